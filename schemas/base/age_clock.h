// How old something is, by the lesser of two clocks.
#pragma once

#include <chrono>
#include <mutex>

#include "schemas/base/clock.h"

namespace strata {

// A wall clock that no jump makes late: a time of the wall that was less than 24 h ago by the
// steady clock is less than 24 h ago by this one too, and never longer ago than by the wall clock
// itself. So data to be kept for a day is forgotten only once both clocks say that the day is over.
// A step back makes nothing older. After a step forward Now() lags the wall clock by as much;
// between 24 h and 48 h later it has caught up, so that the kept data does not grow for ever after
// a clock was set right.
//
// It knows the steady clock from its construction on: across a restart there is only the wall
// clock. Call Now() when the time is taken that will be asked for, too: it must have seen a step
// back to know it. Thread-safe.
class AgeClock final : public Clock {
 public:
  // `clock` outlives it.
  explicit AgeClock(const Clock& clock);

  UnixMicros Now() const override;
  std::chrono::steady_clock::time_point SteadyNow() const override { return clock_.SteadyNow(); }

 private:
  const Clock& clock_;
  // How far the wall clock is ahead of the steady one: the least that was seen in this period of
  // 24 h, and in the one before. So the least of any 24 h is among the two.
  mutable std::mutex mutex_;  // guards what follows
  mutable UnixMicros period_began_;
  mutable UnixMicros least_;
  mutable UnixMicros least_before_;
};

}  // namespace strata
