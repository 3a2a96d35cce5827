// The report for people: one page.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "bench/strategies/article.h"
#include "bench/strategies/html_parts.h"
#include "bench/strategies/summary.h"
#include "bench/strategies/writers.h"
#include "bench/support/html_style.h"
#include "bench/support/svg.h"
#include "bench/support/table.h"

namespace strata::bench {
namespace {

class Page {
 public:
  explicit Page(const Report& report) : report_(report) {}

  std::string Write() {
    html_ =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>Strata: what each way to keep versions costs</title>\n<style>" +
        std::string(kHtmlStyle) + "</style></head><body><main>\n";
    WriteTop();
    WriteArticle();
    WriteBytes();
    html_ += GrowthSections(report_);
    WriteCrashes();
    WriteGoals();
    WriteDetails();
    WriteMethod();
    return html_ + "</main></body></html>\n";
  }

 private:
  void WriteTop() {
    const Machine& machine = report_.machine;
    html_ += "<h1>What each way to keep versions costs</h1>\n<p>" + Count(report_.versions) +
             " real versions of " + Count(report_.documents) + " documents (" +
             Escaped(report_.file) + ", " + Digits(static_cast<double>(report_.bson_bytes) / 1e6) +
             " MB of BSON), stored by every strategy on every engine. Medians, one call at a time, "
             "in the process: no network.</p>\n<p><small>" +
             Escaped(report_.date) + " &middot; " + Escaped(report_.commit) + " &middot; " +
             Escaped(machine.processor) + ", " + std::to_string(machine.cores) + " cores, " +
             Digits(static_cast<double>(machine.memory_bytes) / (1 << 30)) + " GiB &middot; " +
             Escaped(machine.system) + " &middot; " + Escaped(machine.compiler) +
             " &middot; RocksDB " + Escaped(machine.rocksdb) + " &middot; libbson " +
             Escaped(machine.libbson) + " &middot; fdatasync " + Duration(machine.sync_us, true) +
             "</small></p>\n";
  }

  std::string CostCell(const Result& result, Operation operation, std::string_view words) const {
    const auto& cost = result.costs[static_cast<size_t>(operation)];
    return Cell(cost ? Duration(cost->p50_us, true) : "\u2013", words);
  }

  // The one of an engine's results with the least of something.
  template <typename Key>
  const Result& Least(const std::string& engine, Key&& key) const {
    const auto results = On(report_, engine);
    return **std::min_element(results.begin(), results.end(),
                              [&](const Result* a, const Result* b) { return key(*a) < key(*b); });
  }

  void WriteArticle() {
    const std::string& engine = report_.engines.front().engine;
    const auto p50 = [](Operation operation) {
      return [operation](const Result& result) {
        return result.costs[static_cast<size_t>(operation)]->p50_us;
      };
    };
    const auto fastest = [&](Operation operation) {
      const Result& least = Least(engine, p50(operation));
      return least.strategy + " (" + Duration(p50(operation)(least), true) + ")";
    };
    html_ += Heading("The article\u2019s table, with figures",
                     "Fastest on " + engine + ": one current version with " +
                         fastest(Operation::kFetchOne) + ", many with " +
                         fastest(Operation::kFetchMany) + ", an update with " +
                         fastest(Operation::kUpdate) + ".");
    for (const EngineFacts& facts : report_.engines) {
      html_ +=
          TableHead({facts.engine, "fetch one", "fetch many, each", "update", "recover if fail"});
      for (const Result* result : On(report_, facts.engine)) {
        const ArticleWords words = ArticleOn(result->strategy);
        html_ += "<tr><td>" + Escaped(result->strategy) + "<small>" + Escaped(words.choice) + ") " +
                 Escaped(words.schema) + "</small></td>" +
                 CostCell(*result, Operation::kFetchOne, words.fetch_one) +
                 CostCell(*result, Operation::kFetchMany, words.fetch_many) +
                 CostCell(*result, Operation::kUpdate, words.update) +
                 Cell(result->recovery ? Duration(result->recovery->total_ms() * 1e3, true)
                                       : "keeps nothing",
                      words.recover) +
                 "</tr>\n";
      }
      html_ += kTableEnd;
    }
    html_ +=
        "<p><small>Small words: the article\u2019s (How to Track Versions with MongoDB). "
        "Recover: from the start after a kill to the first read.</small></p>\n";
  }

  double EachVersion(int64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(report_.versions);
  }

  std::string ShareOfRaw(int64_t bytes) const {
    return Number(static_cast<double>(bytes) / static_cast<double>(report_.bson_bytes) * 100, 1) +
           " %";
  }

  void WriteBytes() {
    const EngineFacts& first = report_.engines.front();
    const auto total = [](const Result& result) { return result.bytes.total(); };
    const Result& least = Least(first.engine, total);
    const Result& most =
        Least(first.engine, [](const Result& result) { return -result.bytes.total(); });
    html_ += Heading("Bytes per version",
                     "A version takes " + Digits(EachVersion(report_.bson_bytes)) +
                         " bytes as BSON; on " + first.engine + " between " +
                         Digits(EachVersion(least.bytes.total())) + " (" + least.strategy +
                         ") and " + Digits(EachVersion(most.bytes.total())) + " (" + most.strategy +
                         "), with everything that proves who changed it and why.");
    html_ += "<div class=\"pair\">\n";
    for (const EngineFacts& facts : report_.engines) WriteBars(facts);
    html_ += "</div>\n";
  }

  void WriteBars(const EngineFacts& facts) {
    BarPlot plot;
    plot.title = "Bytes per version on " + facts.engine;
    plot.parts = {"contents", "headers", "requests", "ledger"};
    for (const Result* result : On(report_, facts.engine)) {
      const int64_t headers = std::min(result->bare.contents(), result->bytes.contents());
      plot.bars.push_back({result->strategy,
                           {EachVersion(result->bytes.contents() - headers), EachVersion(headers),
                            EachVersion(result->bytes.requests), EachVersion(result->bytes.ledger)},
                           Digits(EachVersion(result->bytes.total())) + " B, " +
                               ShareOfRaw(result->bytes.total())});
    }
    plot.bars.push_back(
        {"contents alone",
         {EachVersion(facts.raw_bytes)},
         Digits(EachVersion(facts.raw_bytes)) + " B, " + ShareOfRaw(facts.raw_bytes),
         true});
    html_ += "<figure><h3>" + Escaped(facts.engine) +
             (facts.durable ? ": files on disk, compacted and compressed"
                            : ": records in memory, uncompressed") +
             "</h3>" + ToSvg(plot) + "<figcaption><small>Percent of the raw BSON (" +
             Digits(EachVersion(report_.bson_bytes)) + " B; as JSON lines " +
             Digits(EachVersion(report_.json_bytes)) +
             " B). Contents alone: put under their keys without a strategy."
             "</small></figcaption></figure>\n";
  }

  void WriteCrashes() {
    const auto clean =
        std::count_if(report_.crashes.begin(), report_.crashes.end(), [](const CrashResult& crash) {
          return std::all_of(crash.points.begin(), crash.points.end(),
                             [](const CrashPoint& point) { return point.findings.empty(); });
        });
    html_ += Heading("What a crash between two writes leaves",
                     "On an engine without atomic batches " + Count(clean) + " of " +
                         Count(static_cast<int64_t>(report_.crashes.size())) +
                         " strategies leave nothing; readers were right and the next update "
                         "succeeded after every one of the crashes that were tried.");
    html_ +=
        TableHead({"strategy", "article", "in the strategy\u2019s words", "as verified"}, "words");
    for (const CrashResult& crash : report_.crashes) {
      const ArticleWords words = ArticleOn(crash.strategy);
      html_ += "<tr><td>" + Escaped(crash.strategy) + "</td>" + WordsCell(words.recover) +
               WordsCell(words.crash) + WordsCell(CrashSummary(crash)) + "</tr>\n";
    }
    html_ += kTableEnd;
  }

  void WriteGoals() {
    const std::vector<Goal> goals = StorageGoals(report_);
    const auto met = std::count_if(goals.begin(), goals.end(), [](const Goal& g) { return g.met; });
    html_ +=
        Heading("Goals for storage",
                Count(met) + " of " + Count(static_cast<int64_t>(goals.size())) + " are met with " +
                    report_.file + "; they are set for the 12,206 versions of compat.ndjson.zst.");
    html_ += TableHead({"goal", "measured", ""}, "goals");
    for (const Goal& goal : goals) {
      html_ += "<tr>" + WordsCell(goal.goal) + Cell(goal.measured) +
               (goal.met ? "<td class=\"met\">met</td>" : "<td class=\"missed\">missed</td>") +
               "</tr>\n";
    }
    html_ += kTableEnd;
  }

  void WriteDetails() {
    html_ +=
        "<details><summary>All latencies on the real histories: median and 99th percentile"
        "</summary>\n";
    std::vector<std::string> names = {"strategy", "engine"};
    for (const OperationName& name : kOperations) names.emplace_back(name.title);
    html_ += TableHead(names);
    for (const Result& result : report_.results) {
      html_ += "<tr><td>" + Escaped(result.strategy) + "</td>" + Cell(result.engine);
      for (const auto& cost : result.costs) {
        html_ += cost ? Cell(Duration(cost->p50_us, true), Duration(cost->p99_us, true))
                      : Cell("\u2013");
      }
      html_ += "</tr>\n";
    }
    html_ += kTableEnd + std::string("</details>\n");
  }

  void WriteMethod() {
    html_ +=
        "<h2>How it was measured</h2>\n<p>Each call goes through the Documents facade in one "
        "process, and each answer is held against what was written. The first tables and the "
        "bars: the real histories, written one version at a time in their order with the "
        "records that an import writes. The plots: the history of " +
        Escaped(report_.repeated_id) + " (" + Count(report_.repeated_versions) + " versions of " +
        Count(report_.repeated_bytes) +
        " bytes in the mean), gone round as often as needed, since no real one has more than " +
        Count(report_.history_max) +
        ". Reads come after one pass over everything, from the engine\u2019s cache. Headers: "
        "what the same histories take with empty contents. Crashes: a decorator that applies "
        "a batch write by write and dies after each. The whole took " +
        Digits(report_.seconds) + " s; <code>bench/report</code> makes it again.</p>\n";
  }

  const Report& report_;
  std::string html_;
};

}  // namespace

std::string HtmlReport(const Report& report) { return Page(report).Write(); }

}  // namespace strata::bench
