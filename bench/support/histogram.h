// How long calls took: counts in buckets that are at most 1.6 % wide, from a nanosecond to hours,
// so that a quantile of millions of calls costs no memory and is off by less than noise.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace strata::bench {

class Histogram {
 public:
  void Add(std::chrono::nanoseconds duration);
  void Merge(const Histogram& other);

  int64_t count() const { return count_; }
  // The duration that `share` (0 to 1) of all stay at or below, rounded up to its bucket's end; 0
  // if there are none.
  std::chrono::nanoseconds Quantile(double share) const;

 private:
  // 64 buckets for each power of two; the first 64 are exact.
  static constexpr int kSubBits = 6;
  static constexpr size_t kBuckets = (64 - kSubBits) << kSubBits;

  std::array<int64_t, kBuckets> buckets_ = {};
  int64_t count_ = 0;
};

}  // namespace strata::bench
