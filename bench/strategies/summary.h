// Words computed from figures, which more than one form of the report uses.
#pragma once

#include <string>
#include <vector>

#include "bench/strategies/figures.h"
#include "bench/support/table.h"

namespace strata::bench {

// A goal for storage (real documents, on an engine that has files), and what came out.
struct Goal {
  std::string goal;
  std::string measured;
  bool met = false;
};
std::vector<Goal> StorageGoals(const Report& report);

// "after 1 write, one finding (…), gone after the next update": of all points of a crash.
std::string CrashSummary(const CrashResult& crash);

const CrashResult& CrashOf(const Report& report, const std::string& strategy);

}  // namespace strata::bench
