// The report for a terminal.
#include <string>
#include <vector>

#include "bench/strategies/article.h"
#include "bench/strategies/summary.h"
#include "bench/strategies/writers.h"
#include "bench/support/table.h"

namespace strata::bench {
namespace {

std::string Cost(const Costs& costs, Operation operation) {
  const auto& latency = costs[static_cast<size_t>(operation)];
  return latency ? Duration(latency->p50_us) : "-";
}

std::string Beside(std::string_view words, const std::string& figure) {
  return words.empty() ? figure : std::string(words) + ": " + figure;
}

std::string RecoverCell(const Result& result) {
  if (!result.durable) return "keeps nothing";
  return Duration(result.recovery->total_ms() * 1e3);
}

std::string ArticleTable(const Report& report, const std::string& engine) {
  Table table({engine, "fetch one", "fetch many (each)", "update", "recover if fail"});
  for (const Result& result : report.results) {
    if (result.engine != engine) continue;
    const ArticleWords words = ArticleOn(result.strategy);
    table.Add({std::string(words.choice) + ") " + result.strategy,
               Beside(words.fetch_one, Cost(result.costs, Operation::kFetchOne)),
               Beside(words.fetch_many, Cost(result.costs, Operation::kFetchMany)),
               Beside(words.update, Cost(result.costs, Operation::kUpdate)),
               Beside(words.recover, RecoverCell(result))});
  }
  return table.Text();
}

std::string BytesTable(const Report& report, const std::string& engine) {
  Table table({engine + ", bytes a version", "all", "of raw BSON", "contents and headers",
               "requests", "ledger", "headers", "old version", "newest ten"});
  const auto each = [&](int64_t bytes) {
    return Digits(static_cast<double>(bytes) / static_cast<double>(report.versions));
  };
  for (const Result& result : report.results) {
    if (result.engine != engine) continue;
    const StoredBytes& bytes = result.bytes;
    const double share =
        static_cast<double>(bytes.total()) / static_cast<double>(report.bson_bytes);
    table.Add({result.strategy, each(bytes.total()), Number(share * 100, 1) + " %",
               each(bytes.contents()), each(bytes.requests), each(bytes.ledger),
               each(result.bare.contents()), Cost(result.costs, Operation::kOldVersion),
               Cost(result.costs, Operation::kHistory)});
  }
  return table.Text();
}

std::string GrowthTable(const Report& report, const std::string& engine) {
  std::vector<std::string> heading = {engine + ", p50 us with"};
  for (const OperationName& name : kOperations) heading.emplace_back(name.title);
  heading.insert(heading.end(), {"bare fdatasync", "B a version", "recover ms"});
  Table table(heading);
  for (const Result& result : report.results) {
    if (result.engine != engine) continue;
    for (const Point& point : result.growth) {
      std::vector<std::string> row = {result.strategy + ", " +
                                      Number(static_cast<double>(point.versions), 0)};
      for (const auto& cost : point.costs) row.push_back(cost ? Digits(cost->p50_us) : "-");
      row.push_back(point.sync_us > 0 ? Digits(point.sync_us) : "-");
      row.push_back(Digits(point.bytes_per_version()));
      row.push_back(point.recovery ? Digits(point.recovery->total_ms()) : "-");
      table.Add(row);
    }
  }
  return table.Text();
}

}  // namespace

std::string TextReport(const Report& report) {
  const auto number = [](int64_t value) { return Number(static_cast<double>(value), 0); };
  std::string text = "Strategy report: " + number(report.versions) + " versions of " +
                     number(report.documents) + " documents (" + report.file + ", " +
                     number(report.json_bytes) + " bytes of JSON lines, " +
                     number(report.bson_bytes) + " of BSON contents), " + report.date + ", " +
                     report.commit + "\n";
  text += report.machine.processor + ", " + std::to_string(report.machine.cores) + " cores, " +
          report.machine.compiler + ", RocksDB " + report.machine.rocksdb + ", libbson " +
          report.machine.libbson + "; fdatasync " + Duration(report.machine.sync_us) + "\n";
  text += "The article's words beside medians; recover: start after a kill to the first read.\n";
  for (const EngineFacts& engine : report.engines) {
    text += "\n" + ArticleTable(report, engine.engine);
  }
  for (const EngineFacts& engine : report.engines) {
    text += "\n" + BytesTable(report, engine.engine);
    text += "Contents alone, put raw: " +
            Digits(static_cast<double>(engine.raw_bytes) / static_cast<double>(report.versions)) +
            " bytes a version.\n";
  }
  for (const EngineFacts& engine : report.engines) {
    text += "\n" + GrowthTable(report, engine.engine);
  }
  for (const Result& result : report.results) {
    if (!result.limit) continue;
    text += "\n" + result.strategy + " on " + result.engine + " ends at " +
            number(result.limit->versions) + " versions of " + number(report.repeated_bytes) +
            " bytes: " + result.limit->reason + "\n";
  }
  text += "\nWhat a crash between any two writes leaves on an engine without atomic batches\n";
  for (const CrashResult& crash : report.crashes) {
    text += "  " + crash.strategy + ": " + CrashSummary(crash) + "\n";
  }
  text += "\nGoals for storage\n";
  for (const Goal& goal : StorageGoals(report)) {
    text += (goal.met ? "  met     " : "  MISSED  ") + goal.goal + ": " + goal.measured + "\n";
  }
  return text;
}

}  // namespace strata::bench
