// What strategy_report measured: every strategy on every engine, on real histories, and against the
// number of versions.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/render/article.h"
#include "bench/render/numbers.h"
#include "bench/render/sections.h"
#include "bench/render/views.h"

namespace strata::bench {
namespace {

std::vector<std::string> Engines(const Figures& figures) {
  return figures.ValuesOf("engine", "raw_bytes_per_version");
}

void AddTable(std::optional<Table> table, Section& section) {
  if (table) section.tables.push_back(*std::move(table));
}

WordsOf ArticleWord(std::string_view ArticleWords::*member) {
  return [member](const Where& row) { return std::string(ArticleOn(row.at("strategy")).*member); };
}

Section ArticleSection(const Figures& figures) {
  Section section;
  section.title = "The article's table, with figures";
  section.words =
      "Words: those of \"How to Track Versions with MongoDB\" (askasya.com, 2014). Figures: "
      "medians on the real histories, one call at a time, in the process. Recover: from the start "
      "after a kill to the first read, the log replayed; nothing where the engine keeps nothing.";
  const auto median = [](const char* heading, const char* operation,
                         std::string_view ArticleWords::*words) {
    return Column{.heading = heading,
                  .figure = "latency_p50",
                  .where = {{"operation", operation}},
                  .words = ArticleWord(words)};
  };
  for (const std::string& engine : Engines(figures)) {
    TableView view;
    view.keys = {{"strategy", engine}};
    view.where = {{"engine", engine}};
    view.columns = {median("fetch one", "fetch one", &ArticleWords::fetch_one),
                    median("fetch many, each", "fetch many", &ArticleWords::fetch_many),
                    median("update", "update", &ArticleWords::update),
                    {.heading = "recover if fail",
                     .figure = "recovery",
                     .words = ArticleWord(&ArticleWords::recover)}};
    view.words = [](const Where& row) {
      const ArticleWords words = ArticleOn(row.at("strategy"));
      return absl::StrCat(std::string(words.choice), ") ", std::string(words.schema));
    };
    AddTable(MakeTable(figures, view), section);
  }
  for (const char* kind : {"real", "repeated"}) {
    const Figure* const histories = figures.Find("histories", {{"kind", kind}});
    if (histories == nullptr) continue;
    section.notes.push_back(absl::StrCat("The ", kind, " history: ", histories->text, "."));
  }
  return section;
}

Section BytesSection(const Figures& figures) {
  Section section;
  section.title = "Bytes per version";
  section.words =
      "With everything that proves who changed it and why, compacted; records as they are where an "
      "engine has no files. Headers: what the same histories take with empty contents. Contents "
      "alone: put under their keys without a strategy.";
  const auto part = [](const char* name) {
    return Reference{name, "bytes_per_version", {{"part", name}}};
  };
  const auto column = [](const char* name) {
    return Column{.heading = name, .figure = "bytes_per_version", .where = {{"part", name}}};
  };
  for (const std::string& engine : Engines(figures)) {
    const Where where = {{"engine", engine}};
    const auto bars = MakeBarPlot(
        figures, {.title = engine,
                  .bar = "strategy",
                  .where = where,
                  .parts = {part("contents"), part("headers"), part("requests"), part("ledger")},
                  .reference = Reference{"contents alone", "raw_bytes_per_version", where},
                  .caption = "Bytes per version of the real histories."});
    if (bars) section.plots.push_back(*bars);
    AddTable(MakeTable(figures, {.keys = {{"strategy", engine}},
                                 .where = where,
                                 .columns = {column("all"),
                                             {"of the BSON", "share_of_bson"},
                                             column("contents and headers"),
                                             column("headers"),
                                             column("requests"),
                                             column("ledger")}}),
             section);
    const std::optional<double> raw = figures.Value("raw_bytes_per_version", where);
    if (!raw) continue;
    section.notes.push_back(
        absl::StrCat("Contents alone on ", engine, ": ", Digits(*raw), " bytes a version."));
  }
  return section;
}

// What is plotted against the number of versions, a plot an engine.
struct GrowthWithVersions {
  const char* title;
  const char* figure;
  const char* operation;  // empty: the figure is of none
  const char* words;
};
constexpr GrowthWithVersions kGrowth[] = {
    {"Update", "latency_p50", "update",
     "One update with hash chain, request record and ledger entry, durable where the engine is: "
     "median. Beside it what fdatasync alone takes."},
    {"Fetch one", "latency_p50", "fetch one", "The current version of one document: median."},
    {"Fetch many", "latency_p50", "fetch many",
     "A list of current documents, for each of them: median."},
    {"Old version", "latency_p50", "old version",
     "One version, drawn from all that a document has: median."},
    {"History page", "latency_p50", "history page",
     "The newest ten versions of a document with their contents: median."},
    {"Recovery after a crash", "recovery", "",
     "From the start after a kill to the first read, the log replayed."},
    {"Bytes per version, with more versions", "bytes_per_version", "",
     "Everything that is stored, compacted."}};

Section GrowthSection(const Figures& figures, const GrowthWithVersions& growth) {
  Section section;
  section.title = growth.title;
  section.words = growth.words;
  const std::string_view operation = growth.operation;
  std::vector<LineView> views;
  for (const std::string& engine : Engines(figures)) {
    LineView& view = views.emplace_back();
    view.title = engine;
    view.figure = growth.figure;
    view.where = {{"engine", engine}};
    view.x = "versions";
    view.x_title = "versions of each document";
    view.series = "strategy";
    if (operation == "update") view.reference = {"fdatasync alone", "fdatasync", view.where};
    if (!operation.empty()) view.where.emplace("operation", operation);
  }
  section.plots = MakeLinePlots(figures, views);
  return section;
}

std::vector<Column> LatencyColumns(const char* figure) {
  std::vector<Column> columns;
  for (const char* operation :
       {"update", "fetch one", "fetch many", "old version", "history page"}) {
    columns.push_back(
        {.heading = operation, .figure = figure, .where = {{"operation", operation}}});
  }
  return columns;
}

Section TablesSection(const Figures& figures) {
  Section section;
  section.title = "All of it in tables";
  for (const std::string& engine : Engines(figures)) {
    TableView growth{.keys = {{"strategy", engine}, {"versions", "versions"}},
                     .where = {{"engine", engine}},
                     .columns = LatencyColumns("latency_p50"),
                     .folded = "Medians against versions on " + engine};
    growth.columns.insert(growth.columns.end(), {{"fdatasync alone", "fdatasync"},
                                                 {"a version", "bytes_per_version"},
                                                 {"recovery", "recovery"}});
    AddTable(MakeTable(figures, growth), section);
    for (const auto& [figure, words] :
         {std::pair("latency_p50", "Medians"), std::pair("latency_p99", "99th percentiles")}) {
      AddTable(
          MakeTable(figures, {.keys = {{"strategy", absl::StrCat(engine, ", ", words)}},
                              .where = {{"engine", engine}},
                              .columns = LatencyColumns(figure),
                              .folded = absl::StrCat(words, " on the real histories on ", engine)}),
          section);
    }
  }
  for (const Figure& figure : figures.all()) {
    if (figure.name != "limit") continue;
    section.notes.push_back(absl::StrCat(figure.ParameterOr("strategy", "?"), " on ",
                                         figure.ParameterOr("engine", "?"), " ", figure.text, "."));
  }
  return section;
}

Section CrashSection(const Figures& figures) {
  Section section;
  section.title = "What a crash between two writes leaves";
  section.words =
      "On an engine without atomic batches, an update that makes version 4 dies after so many of "
      "its writes. Readers were right, and the next update succeeded, after every one.";
  AddTable(
      MakeTable(figures,
                {.keys = {{"strategy", "strategy"}, {"writes", "died after writes"}},
                 .columns = {{"a reader finds version", "version_read"},
                             {"findings of verify", "findings"},
                             {"the first", "first_finding"},
                             {"findings after the next update", "findings_after_next_update"}}}),
      section);
  return section;
}

}  // namespace

std::vector<Section> StrategySections(const Figures& figures) {
  if (Engines(figures).empty()) return {};
  std::vector<Section> sections = {ArticleSection(figures), BytesSection(figures)};
  for (const GrowthWithVersions& growth : kGrowth)
    sections.push_back(GrowthSection(figures, growth));
  sections.push_back(TablesSection(figures));
  sections.push_back(CrashSection(figures));
  return sections;
}

}  // namespace strata::bench
