// Words and judgements computed from figures, which more than one form of the report uses.
#pragma once

#include <string>
#include <vector>

#include "bench/growth/figures.h"

namespace strata::bench {

struct Goal {
  std::string goal;
  std::string measured;
  bool met = false;
};
// Those that the figures have something to say on.
std::vector<Goal> GrowthGoals(const Figures& figures);

// "12.5 MiB".
std::string Mebibytes(int64_t bytes);

// "1,000 on 10 connections, at most 256 MiB in flight".
std::string Describe(const BurstResult& burst);

}  // namespace strata::bench
