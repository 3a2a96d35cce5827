// The report as tables of text.
#include <string>

#include "bench/growth/summary.h"
#include "bench/growth/writers.h"
#include "bench/support/table.h"

namespace strata::bench {
namespace {

std::string Count(int64_t value) { return Number(static_cast<double>(value), 0); }

void AddCosts(const std::vector<std::string>& size, const Costs& costs, Table& table) {
  for (size_t i = 0; i < kOperationNames.size(); ++i) {
    const Measurement& one = costs.operations[i];
    std::vector<std::string> row = size;
    row.insert(row.end(), {kOperationNames[i], Count(one.in_flight),
                           Number(one.calls_per_second(), 0), Number(one.server_cpu_us(), 1),
                           Number(one.latency_ms(0.5), 2), Number(one.latency_ms(0.99), 2)});
    table.Add(std::move(row));
  }
}

std::string DocumentsTable(const Figures& figures) {
  Table table({"documents", "call", "in flight", "calls/s", "server us/call", "p50 ms", "p99 ms"});
  for (const DocumentsPoint& point : figures.documents) {
    AddCosts({Count(point.documents)}, point.costs, table);
  }
  std::string text = table.Text() + "\n";
  Table filling({"documents", "filled at documents/s", "server MiB"});
  for (const DocumentsPoint& point : figures.documents) {
    filling.Add({Count(point.documents), Number(point.fills_per_second, 0),
                 Mebibytes(point.resident_bytes)});
  }
  return text + filling.Text();
}

std::string VersionsTable(const Figures& figures) {
  Table table({"strategy", "versions", "call", "in flight", "calls/s", "server us/call", "p50 ms",
               "p99 ms"});
  for (const VersionsPoint& point : figures.versions) {
    AddCosts({point.strategy, Count(point.versions)}, point.costs, table);
  }
  std::string text = table.Text();
  for (const StrategyEnd& end : figures.ends) text += end.strategy + " " + end.why + "\n";
  return text;
}

std::string IdleTable(const Figures& figures) {
  Table table({"idle", "open", "s to open", "MiB before", "with", "after", "KiB each",
               "files before", "with", "after", "Get/s before", "beside", "p99 ms beside"});
  for (const IdleResult& idle : figures.idle) {
    table.Add({idle.what, Count(idle.open), Number(idle.opening_seconds, 1),
               Mebibytes(idle.before.resident_bytes), Mebibytes(idle.with.resident_bytes),
               Mebibytes(idle.after.resident_bytes), Number(idle.kib_each(), 1),
               Count(idle.before.open_files), Count(idle.with.open_files),
               Count(idle.after.open_files), Number(idle.get_before.calls_per_second(), 0),
               Number(idle.get_beside.calls_per_second(), 0),
               Number(idle.get_beside.latency_ms(0.99), 2)});
  }
  return table.Text();
}

std::string BurstTable(const Figures& figures) {
  Table table({"burst", "OK", "RESOURCE_EXHAUSTED", "cut off", "others", "s", "MiB before", "peak",
               "after", "Get behind, ms"});
  for (const BurstResult& burst : figures.bursts) {
    table.Add({Describe(burst), Count(burst.accepted), Count(burst.refused), Count(burst.cut_off),
               Count(burst.others), Number(burst.seconds, 2), Mebibytes(burst.resident_before),
               Mebibytes(burst.resident_peak), Mebibytes(burst.resident_after),
               Number(burst.get_ms, 1)});
  }
  return table.Text();
}

std::string StartTable(const Figures& figures) {
  Table table({"start on", "directory", "serving ms, median of 5", "longest", "resident"});
  for (const StartResult& start : figures.starts) {
    table.Add({start.what, Mebibytes(start.directory_bytes), Number(start.serving_ms, 0),
               Number(start.serving_ms_max, 0), Mebibytes(start.resident_bytes)});
  }
  return table.Text();
}

std::string GoalTable(const Figures& figures) {
  Table table({"goal", "measured", "met"});
  for (const Goal& goal : GrowthGoals(figures)) {
    table.Add({goal.goal, goal.measured, goal.met ? "yes" : "no"});
  }
  return table.Text();
}

}  // namespace

std::string TextReport(const Figures& figures) {
  std::string text;
  const auto add = [&](bool there, const std::string& table) {
    if (there) text += table + "\n";
  };
  add(!figures.documents.empty(), DocumentsTable(figures));
  add(!figures.versions.empty(), VersionsTable(figures));
  add(!figures.idle.empty(), IdleTable(figures));
  add(!figures.bursts.empty(), BurstTable(figures));
  add(!figures.starts.empty(), StartTable(figures));
  add(true, GoalTable(figures));
  for (const std::string& wrong : figures.wrong) text += "WRONG: " + wrong + "\n";
  return text + "In " + Number(figures.seconds, 0) + " s.\n";
}

}  // namespace strata::bench
