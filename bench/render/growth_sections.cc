// What strata_growth measured: cost against documents and versions, idle connections and streams,
// bursts of large updates, starts.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/render/sections.h"
#include "bench/render/views.h"

namespace strata::bench {
namespace {

const std::vector<Column>& CallColumns() {
  static const std::vector<Column> columns = {
      {"calls/s", "calls_per_second"},
      {.heading = "server us/call", .figure = "server_cpu", .shown = Shown::kMicroseconds},
      {.heading = "p50 ms", .figure = "latency_p50", .shown = Shown::kMilliseconds},
      {.heading = "p99 ms", .figure = "latency_p99", .shown = Shown::kMilliseconds}};
  return columns;
}

// Empty without tables: then nothing was measured, and nothing is there to be plotted.
void Add(Section section, std::vector<std::optional<Table>> tables,
         std::vector<Section>& sections) {
  for (std::optional<Table>& table : tables) {
    if (table) section.tables.push_back(*std::move(table));
  }
  if (!section.tables.empty()) sections.push_back(std::move(section));
}

void AddDocuments(const Figures& figures, std::vector<Section>& sections) {
  Section section;
  section.title = "With the number of documents";
  section.words =
      "Documents of 300 B of BSON in one collection under deltas, the real server over loopback, "
      "64 calls in flight.";
  struct Row {
    const char* figure;
    const char* title;
  };
  for (const Row& row :
       {Row{"server_cpu", "Server CPU per call"}, Row{"calls_per_second", "Calls per second"},
        Row{"latency_p50", "Median"}, Row{"latency_p99", "99th percentile"}}) {
    for (Plot& plot : MakeLinePlots(figures, {{.title = row.title,
                                             .figure = row.figure,
                                             .where = {{"in_flight", "64"}},
                                             .x = "documents",
                                             .x_title = "documents",
                                             .series = "call"}})) {
      section.plots.push_back(std::move(plot));
    }
  }
  Add(std::move(section),
      {MakeTable(
           figures,
           {.keys = {{"documents", "documents"}, {"call", "call"}, {"in_flight", "in flight"}},
            .columns = CallColumns(),
            .folded = "All calls by the number of documents"}),
       MakeTable(figures, {.keys = {{"documents", "documents"}},
                           .columns = {{"filled at documents/s", "documents_filled_per_second"},
                                       {"server memory", "resident_memory"}}})},
      sections);
}

void AddScale(const Figures& figures, std::vector<Section>& sections) {
  Section section;
  section.title = "With ten thousand documents, and with many more";
  section.words =
      "The same calls on two servers in turns, 64 in flight; what an update costs is all that "
      "comes "
      "of it, until the last compaction has ended.";
  Section sustained;
  sustained.title = "Updates that go on and on";
  sustained.words =
      "Of a million documents at random. Bytes that went to the disk for each byte of new content, "
      "and the room that the directory took at most and once all was compacted.";
  Add(std::move(section),
      {MakeTable(figures, {.keys = {{"of", "calls"}, {"to", "held against"}},
                           .columns = {{"server CPU", "server_cpu_ratio"},
                                       {"calls/s", "calls_ratio"},
                                       {"p99", "latency_p99_ratio"}}}),
       MakeTable(figures, {.keys = {{"scale_documents", "documents"}},
                           .columns = {{.heading = "longest update ms",
                                        .figure = "latency_max",
                                        .shown = Shown::kMilliseconds},
                                       {"memory at most", "resident_memory"},
                                       {.heading = "serving after a kill -9, ms",
                                        .figure = "serving",
                                        .shown = Shown::kMilliseconds}}})},
      sections);
  Add(std::move(sustained),
      {MakeTable(
           figures,
           {.keys = {{"sustained", "call"}},
            .columns =
                {{"calls/s", "calls_per_second"},
                 {.heading = "server us/call",
                  .figure = "server_cpu",
                  .shown = Shown::kMicroseconds},
                 {.heading = "p99 ms", .figure = "latency_p99", .shown = Shown::kMilliseconds},
                 {.heading = "longest ms", .figure = "latency_max", .shown = Shown::kMilliseconds},
                 {"room at most", "disk_most"},
                 {"compacted", "disk_compacted"},
                 {"memory", "resident_memory"}}}),
       MakeTable(figures, {.keys = {{"what", "written"}},
                           .columns = {{"for a byte of content", "written_per_byte"}}})},
      sections);
}

void AddVersions(const Figures& figures, std::vector<Section>& sections) {
  Section section;
  section.title = "With the number of versions";
  section.words =
      "Documents of as many versions, the real server over loopback: reads with 64 calls in "
      "flight, updates with 4, no two on one document. Only embedded history, which keeps all "
      "versions in one record, is to cost more with each of them.";
  for (const std::string& call : figures.ValuesOf("call", "server_cpu")) {
    for (const auto& [figure, title] : {std::pair("server_cpu", "server CPU per call"),
                                        std::pair("latency_p99", "99th percentile")}) {
      LineView view{.title = absl::StrCat(call, ": ", title),
                    .figure = figure,
                    .where = {{"call", call}, {"in_flight", call == "Update" ? "4" : "64"}},
                    .x = "versions",
                    .x_title = "versions of each document",
                    .series = "strategy"};
      for (Plot& plot : MakeLinePlots(figures, {view})) section.plots.push_back(std::move(plot));
    }
  }
  for (const Figure& figure : figures.all()) {
    if (figure.name != "end") continue;
    section.notes.push_back(
        absl::StrCat(figure.ParameterOr("strategy", "?"), " ", figure.text, "."));
  }
  Add(std::move(section),
      {MakeTable(figures, {.keys = {{"strategy", "strategy"},
                                    {"versions", "versions"},
                                    {"call", "call"},
                                    {"in_flight", "in flight"}},
                           .columns = CallColumns(),
                           .folded = "All calls by the number of versions"})},
      sections);
}

void AddIdle(const Figures& figures, std::vector<Section>& sections) {
  Section section;
  section.title = "Idle connections and streams";
  section.words =
      "Many on which nothing happens. Memory each: what the server has resident with them less "
      "what it had before, by their number; Get: what is answered beside them.";
  if (auto plot = MakeBarPlot(figures, {.title = "Server memory for each one",
                                        .bar = "idle",
                                        .parts = {{"memory", "memory_each"}}})) {
    section.plots.push_back(*std::move(plot));
  }
  const auto at = [](const char* heading, const char* figure, const char* when) {
    return Column{.heading = heading, .figure = figure, .where = {{"when", when}}};
  };
  Add(std::move(section),
      {MakeTable(figures, {.keys = {{"idle", "idle"}},
                           .columns = {{"open", "open"},
                                       {"opened in", "opening"},
                                       at("memory before", "resident_memory", "before"),
                                       at("with them", "resident_memory", "beside"),
                                       at("after", "resident_memory", "after"),
                                       {"each", "memory_each"},
                                       at("files before", "open_files", "before"),
                                       at("with them", "open_files", "beside"),
                                       at("after", "open_files", "after"),
                                       at("Get/s before", "calls_per_second", "before"),
                                       at("beside", "calls_per_second", "beside"),
                                       at("p99 before", "latency_p99", "before"),
                                       at("beside", "latency_p99", "beside")}})},
      sections);
}

void AddBursts(const Figures& figures, std::vector<Section>& sections) {
  Section section;
  section.title = "A burst of large updates";
  section.words =
      "What does not fit is refused with RESOURCE_EXHAUSTED and writes nothing; the server goes "
      "on. Calls that gRPC cuts off, because what is on its way in passes its quota, end with the "
      "same code without a reason, and may have taken effect. The server's memory follows what may "
      "be in flight, which bounds what has arrived whole and, apart from it, what is still "
      "arriving.";
  if (auto plot = MakeBarPlot(
          figures, {.title = "Server memory at its peak",
                    .bar = "burst",
                    .parts = {{"before", "memory_before"}, {"more at the peak", "memory_growth"}},
                    .caption = "Resident, seen every 20 ms."})) {
    section.plots.push_back(*std::move(plot));
  }
  Add(std::move(section),
      {MakeTable(figures, {.keys = {{"burst", "burst"}},
                           .columns = {{"accepted", "accepted"},
                                       {"refused", "refused"},
                                       {"cut off", "cut_off"},
                                       {"other answers", "other_answers"},
                                       {"sent", "sent"},
                                       {"took", "took"},
                                       {"memory before", "memory_before"},
                                       {"peak", "memory_peak"},
                                       {"a second later", "memory_after"},
                                       {"Get after", "get_after"}}})},
      sections);
}

void AddStarts(const Figures& figures, std::vector<Section>& sections) {
  Section section;
  section.title = "At start";
  section.words =
      "From exec to the line that says that it serves: median of five, and the longest.";
  Add(std::move(section),
      {MakeTable(figures, {.keys = {{"start_on", "start on"}},
                           .columns = {{"directory", "directory"},
                                       {"serving after", "serving"},
                                       {"longest", "serving_max"},
                                       {"resident memory", "resident_memory"}}})},
      sections);
}

}  // namespace

std::vector<Section> GrowthSections(const Figures& figures) {
  std::vector<Section> sections;
  for (const auto add : {AddDocuments, AddScale, AddVersions, AddIdle, AddBursts, AddStarts}) {
    add(figures, sections);
  }
  return sections;
}

}  // namespace strata::bench
