// The system's clock, whose wall the test moves.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "schemas/base/clock.h"

namespace strata::test_support {

// For whole servers: those set deadlines by the system's steady clock, so they must be held against
// that. Thread-safe.
class MovedClock final : public Clock {
 public:
  UnixMicros Now() const override { return Clock::System().Now() + ahead_; }
  std::chrono::steady_clock::time_point SteadyNow() const override {
    return Clock::System().SteadyNow();
  }

  void Move(std::chrono::microseconds by) { ahead_ += by.count(); }

 private:
  std::atomic<int64_t> ahead_ = 0;
};

}  // namespace strata::test_support
