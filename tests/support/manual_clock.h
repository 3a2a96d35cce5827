// A clock that the test owns.
#pragma once

#include <atomic>
#include <chrono>

#include "schemas/base/clock.h"

namespace strata::test_support {

// Stands still until it is moved. The wall clock and the steady clock advance together; only the
// wall clock can be set back or jump. Thread-safe.
class ManualClock final : public Clock {
 public:
  // 2024-01-01T00:00:00Z.
  static constexpr UnixMicros kStart = 1'704'067'200'000'000;

  explicit ManualClock(UnixMicros now = kStart) : wall_(now) {}

  UnixMicros Now() const override { return wall_.fetch_add(step_); }
  std::chrono::steady_clock::time_point SteadyNow() const override {
    // From an hour on, so that a test may subtract from it.
    return std::chrono::steady_clock::time_point(std::chrono::hours(1) +
                                                 std::chrono::microseconds(steady_));
  }

  void Advance(std::chrono::microseconds by) {
    wall_ += by.count();
    steady_ += by.count();
  }
  // The wall clock alone; backwards too.
  void SetNow(UnixMicros now) { wall_ = now; }
  // From now on each Now() is followed by a step of the wall clock, so that no two are equal.
  void StepAtEachCall(std::chrono::microseconds step) { step_ = step.count(); }

 private:
  mutable std::atomic<int64_t> wall_;
  std::atomic<int64_t> steady_ = 0;
  std::atomic<int64_t> step_ = 0;
};

}  // namespace strata::test_support
