#include "bench/strategies/stopwatch.h"

namespace strata::bench {

Latency LatencyOf(const Histogram& histogram, double share_of_each) {
  const auto us = [&](double share) {
    return static_cast<double>(histogram.Quantile(share).count()) / 1e3 * share_of_each;
  };
  return {us(0.5), us(0.99), histogram.count()};
}

Latency Repeat(const Effort& effort, const std::function<Nanoseconds(int64_t)>& once,
               int64_t parts) {
  Histogram histogram;
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < effort.repetitions_max; ++i) {
    if (i >= effort.repetitions_min && std::chrono::steady_clock::now() - start > effort.time) {
      break;
    }
    histogram.Add(once(i));
  }
  return LatencyOf(histogram, 1 / static_cast<double>(parts));
}

}  // namespace strata::bench
