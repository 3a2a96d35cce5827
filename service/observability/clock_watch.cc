#include "service/observability/clock_watch.h"

#include <cstdlib>

#include "service/observability/log.h"

namespace strata::observability {

ClockWatch::ClockWatch(const Clock& clock) : clock_(clock), ahead_(Ahead()) {}

UnixMicros ClockWatch::Ahead() const {
  return clock_.Now() - std::chrono::duration_cast<std::chrono::microseconds>(
                            clock_.SteadyNow().time_since_epoch())
                            .count();
}

std::chrono::microseconds ClockWatch::Look() {
  std::chrono::microseconds by;
  bool jumped = false;
  {
    const std::lock_guard lock(mutex_);
    const UnixMicros ahead = Ahead();
    by = std::chrono::microseconds(ahead - ahead_);
    ahead_ = ahead;
    jumped = by > kJumpMin || by < -kJumpMin;
    if (jumped) ++jumps_;
  }
  if (jumped) {
    Log(LogLevel::kWarning, "the wall clock jumped",
        {{"direction", by.count() > 0 ? "forward" : "back"},
         {"by_ms", std::abs(by.count()) / 1000}});
  }
  return by;
}

int64_t ClockWatch::jumps() const {
  const std::lock_guard lock(mutex_);
  return jumps_;
}

}  // namespace strata::observability
