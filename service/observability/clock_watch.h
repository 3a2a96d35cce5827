// Notices when the wall clock jumps.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#include "schemas/base/clock.h"

namespace strata::observability {

// Compares the wall clock with the steady one. Slow drift is no jump. Thread-safe.
class ClockWatch {
 public:
  // How often to look; a jump is what happens between two looks.
  static constexpr std::chrono::seconds kInterval{1};
  // What is less is put right by the machine every day.
  static constexpr std::chrono::seconds kJumpMin{10};

  // `clock` outlives it.
  explicit ClockWatch(const Clock& clock);

  // By how much the wall clock has gone ahead of the steady one since the last look, negative if it
  // lost time. A jump is logged: how far, and which way.
  std::chrono::microseconds Look();

  // How many jumps there were.
  int64_t jumps() const;

 private:
  UnixMicros Ahead() const;

  const Clock& clock_;
  mutable std::mutex mutex_;  // guards what follows
  UnixMicros ahead_;
  int64_t jumps_ = 0;
};

}  // namespace strata::observability
