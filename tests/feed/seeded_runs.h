// Scenarios that run under one seed after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strata::feed::testing {

// What was wrong in the first of so many runs in which anything was. `run` takes a seed, from 1 on,
// and answers what was wrong.
template <typename Run>
std::vector<std::string> FirstWrong(uint64_t runs, const Run& run) {
  std::vector<std::string> all;
  for (uint64_t seed = 1; seed <= runs && all.empty(); ++seed) {
    for (const std::string& wrong : run(seed)) {
      all.push_back("seed " + std::to_string(seed) + ": " + wrong);
    }
  }
  return all;
}

}  // namespace strata::feed::testing
