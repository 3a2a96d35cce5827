// When a call that failed is made again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

#include "clients/cpp/refusal.h"

namespace strata::client {

// Spreads repetitions over time, and ends them.
class Repetition {
 public:
  using Clock = std::chrono::steady_clock;

  // A call is made again until so long after its first time.
  explicit Repetition(int64_t retry_ms) : retry_ms_(retry_ms) {}

  // When to make a call again that failed `attempts` times, with `refusal` at last, and was first
  // made at `first`. Unset: not any more. Whether it may help is for the caller to decide.
  std::optional<Clock::time_point> Next(const Refusal& refusal, int attempts,
                                        Clock::time_point first);

 private:
  int64_t retry_ms_;
  std::minstd_rand random_{std::random_device()()};
};

}  // namespace strata::client
