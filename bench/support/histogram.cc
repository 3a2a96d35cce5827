#include "bench/support/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace strata::bench {
namespace {

// A number of nanoseconds in [2^k, 2^(k+1)), from 64 on, is told by k and its next six bits.
template <int sub_bits>
size_t BucketOf(uint64_t nanos) {
  constexpr uint64_t kSubs = uint64_t{1} << sub_bits;
  if (nanos < kSubs) return static_cast<size_t>(nanos);
  const int shift = static_cast<int>(std::bit_width(nanos)) - 1 - sub_bits;
  return (static_cast<size_t>(shift) << sub_bits) + static_cast<size_t>(nanos >> shift);
}

// The largest number of a bucket.
template <int sub_bits>
uint64_t EndOf(size_t bucket) {
  constexpr size_t kSubs = size_t{1} << sub_bits;
  if (bucket < 2 * kSubs) return bucket;
  const size_t shift = (bucket >> sub_bits) - 1;
  return ((uint64_t{bucket} - (shift << sub_bits) + 1) << shift) - 1;
}

}  // namespace

void Histogram::Add(std::chrono::nanoseconds duration) {
  const auto nanos = static_cast<uint64_t>(std::max<int64_t>(duration.count(), 0));
  ++buckets_[std::min(BucketOf<kSubBits>(nanos), kBuckets - 1)];
  ++count_;
}

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
}

std::chrono::nanoseconds Histogram::Quantile(double share) const {
  if (count_ == 0) return std::chrono::nanoseconds(0);
  const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(count_)));
  int64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= std::max<int64_t>(rank, 1)) {
      return std::chrono::nanoseconds(static_cast<int64_t>(EndOf<kSubBits>(i)));
    }
  }
  return std::chrono::nanoseconds(static_cast<int64_t>(EndOf<kSubBits>(kBuckets - 1)));
}

}  // namespace strata::bench
