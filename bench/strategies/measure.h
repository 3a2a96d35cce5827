// The measurements, one function each. All work in a directory that they may fill and leave.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/strategies/figures.h"
#include "bench/strategies/histories.h"
#include "bench/support/figure_lines.h"
#include "schemas/versioning/strategy.h"
#include "service/engines/engines.h"

namespace strata::bench {

// Documents get so many versions, one after the other.
inline constexpr int64_t kGrowth[] = {1, 10, 100, 1'000, 10'000};

// Everything, of all strategies on all engines. `scratch` is made, and removed in the end.
void MeasureAll(const std::string& file, const std::filesystem::path& scratch, FigureLines& lines);

// Loads the real histories version by version, which measures updates, then reads. Fills in costs,
// bytes and bare.
void MeasureHistories(const engines::Engine& engine, const versioning::StrategyEntry& strategy,
                      const Histories& histories, const std::filesystem::path& directory,
                      Result& result);

// Fills in growth and limit.
void MeasureGrowth(const engines::Engine& engine, const versioning::StrategyEntry& strategy,
                   const Histories& histories, const std::filesystem::path& directory,
                   Result& result);

// Fills in the recoveries of the histories and of each point of the growth, which must be measured
// before. A second process of this program loads the histories from their `file`, and is killed.
void MeasureRecovery(const std::string& file, const engines::Engine& engine,
                     const versioning::StrategyEntry& strategy, const Histories& histories,
                     const std::filesystem::path& directory, Result& result);

// What that second process does: loads what MeasureRecovery reads, the histories and one document
// for each of `growth`, says so, and waits for its end.
[[noreturn]] void LoadAndWait(const engines::Engine& engine,
                              const versioning::StrategyEntry& strategy, const Histories& histories,
                              const std::vector<int64_t>& growth,
                              const std::filesystem::path& directory);

// Dies between any two writes of an update, on a store that knows no atomic batches.
CrashResult MeasureCrashes(const versioning::StrategyEntry& strategy, const Histories& histories);

// The `number`-th version of a document that repeats histories.repeated.
RealVersion Repeated(const Histories& histories, const std::string& id, int64_t number);

}  // namespace strata::bench
