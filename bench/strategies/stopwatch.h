// Repeats an operation until its median stands still.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "bench/strategies/figures.h"
#include "bench/support/histogram.h"

namespace strata::bench {

using Nanoseconds = std::chrono::nanoseconds;

// How long one call of `function` takes.
template <typename Function>
Nanoseconds Timed(Function&& function) {
  const auto start = std::chrono::steady_clock::now();
  std::forward<Function>(function)();
  return std::chrono::steady_clock::now() - start;
}

struct Effort {
  int64_t repetitions_min = 20;
  int64_t repetitions_max = 5'000;
  std::chrono::milliseconds time{150};  // past the minimum, no more than this
};

// Of all that was measured; each quantile times `share_of_each`.
Latency LatencyOf(const Histogram& histogram, double share_of_each = 1);

// Calls `once` with 0, 1, … It answers with how long its operation took, without what it does
// before and after: so it can check what it got. What it measures is divided by `parts` (the
// documents of a list).
Latency Repeat(const Effort& effort, const std::function<Nanoseconds(int64_t)>& once,
               int64_t parts = 1);

}  // namespace strata::bench
