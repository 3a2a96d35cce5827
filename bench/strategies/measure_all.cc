// The whole run: every strategy on every engine, one after the other.
#include <cstdio>
#include <utility>

#include "bench/strategies/measure.h"
#include "bench/strategies/storage.h"
#include "bench/strategies/write_figures.h"

namespace strata::bench {
namespace {

namespace fs = std::filesystem;
using versioning::StrategyEntry;

class Run {
 public:
  Run(std::string file, fs::path scratch)
      : file_(std::move(file)), scratch_(std::move(scratch)), histories_(ReadHistories(file_)) {}

  void Measure(FigureLines& lines) {
    Write(histories_, lines);
    for (const StrategyEntry& strategy : versioning::AllStrategies()) {
      Write(MeasureCrashes(strategy, histories_), lines);
    }
    const auto versions = static_cast<double>(histories_.versions.size());
    for (const engines::Engine& engine : engines::AllEngines()) {
      const bool durable = IsDurable(engine, Fresh());
      lines.Number("raw_bytes_per_version", {{"engine", engine.name}},
                   static_cast<double>(RawBytes(engine, histories_, Fresh())) / versions,
                   Unit::kBytes);
      for (const StrategyEntry& strategy : versioning::AllStrategies()) {
        Write(MeasureOne(engine, strategy, durable), histories_, lines);
      }
    }
    fs::remove_all(scratch_);
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

  const std::string file_;
  const fs::path scratch_;
  const Histories histories_;
};

}  // namespace

void MeasureAll(const std::string& file, const fs::path& scratch, FigureLines& lines) {
  Run(file, scratch).Measure(lines);
}

}  // namespace strata::bench
