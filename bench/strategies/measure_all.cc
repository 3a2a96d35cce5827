// The whole run: every strategy on every engine, one after the other.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "bench/strategies/machine.h"
#include "bench/strategies/measure.h"
#include "bench/strategies/storage.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;
using versioning::StrategyEntry;

class Run {
 public:
  Run(std::string file, fs::path scratch)
      : file_(std::move(file)), scratch_(std::move(scratch)), histories_(ReadHistories(file_)) {}

  Report Measure() {
    const auto start = std::chrono::steady_clock::now();
    Report report = Facts();
    for (const StrategyEntry& strategy : versioning::AllStrategies()) {
      report.crashes.push_back(MeasureCrashes(strategy, histories_));
    }
    for (const engines::Engine& engine : engines::AllEngines()) {
      const EngineFacts facts = {std::string(engine.name), IsDurable(engine, Fresh()),
                                 RawBytes(engine, histories_, Fresh())};
      report.engines.push_back(facts);
      for (const StrategyEntry& strategy : versioning::AllStrategies()) {
        report.results.push_back(MeasureOne(engine, strategy, facts.durable));
      }
    }
    fs::remove_all(scratch_);
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report;
  }

 private:
  // An empty folder for one step; the step before loses its own.
  fs::path Fresh() const {
    fs::remove_all(scratch_);
    fs::create_directories(scratch_);
    fs::permissions(scratch_, fs::perms::owner_all);  // engines warn of others
    return scratch_;
  }

  Result MeasureOne(const engines::Engine& engine, const StrategyEntry& strategy, bool durable) {
    Result result;
    result.strategy = strategy.name;
    result.engine = engine.name;
    result.durable = durable;
    const auto step = [&](const char* what) {
      std::fprintf(stderr, "%s on %s: %s\n", result.strategy.c_str(), result.engine.c_str(), what);
      return Fresh();
    };
    MeasureHistories(engine, strategy, histories_, step("real histories"), result);
    MeasureGrowth(engine, strategy, histories_, step("more and more versions"), result);
    if (!durable) return result;
    MeasureRecovery(file_, engine, strategy, histories_, step("killed, opened again"), result);
    return result;
  }

  Report Facts() const {
    Report report;
    report.date = Today();
    report.machine = DescribeMachine(Fresh());
    report.file = histories_.file;
    report.documents = static_cast<int64_t>(histories_.documents.size());
    report.versions = static_cast<int64_t>(histories_.versions.size());
    report.deletions = histories_.deletions;
    for (const auto& [id, indexes] : histories_.documents) {
      report.history_max = std::max(report.history_max, static_cast<int64_t>(indexes.size()));
    }
    report.json_bytes = histories_.json_bytes;
    report.bson_bytes = histories_.bson_bytes;
    report.repeated_id = histories_.repeated_id;
    report.repeated_versions = static_cast<int64_t>(histories_.repeated.size());
    for (const document::Content& content : histories_.repeated) {
      report.repeated_bytes += static_cast<int64_t>(content.size());
    }
    report.repeated_bytes /= report.repeated_versions;
    return report;
  }

  const std::string file_;
  const fs::path scratch_;
  const Histories histories_;
};

}  // namespace

Report MeasureAll(const std::string& file, const fs::path& scratch) {
  return Run(file, scratch).Measure();
}

}  // namespace strata::bench
