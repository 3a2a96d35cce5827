// Random bytes that a seed repeats.
#pragma once

#include <cstdint>
#include <mutex>
#include <random>
#include <string>

#include "schemas/base/clock.h"

namespace strata::test_support {

// The same seed and the same calls give the same bytes, on every machine. Thread-safe, but threads
// that share one share its sequence.
class SeededEntropy final : public Entropy {
 public:
  explicit SeededEntropy(uint64_t seed) : generator_(seed) {}

  std::string Bytes(size_t count) override {
    const std::lock_guard lock(mutex_);
    std::string bytes;
    bytes.reserve(count);
    while (bytes.size() < count) bytes += static_cast<char>(generator_() >> 56);
    return bytes;
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 generator_;
};

// A seed for one random run: the environment's STRATA_SEED if set, to repeat a failed run, else a
// new one. Print it (STRATA_TRACE_SEED).
uint64_t TestSeed();

}  // namespace strata::test_support
