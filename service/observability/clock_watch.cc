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
  std::chrono::microseconds jump;
  {
    const std::lock_guard lock(mutex_);
    const UnixMicros ahead = Ahead();
    jump = std::chrono::microseconds(ahead - ahead_);
    ahead_ = ahead;
  }
  if (jump > kJumpMin || jump < -kJumpMin) {
    Log(LogLevel::kWarning, "the wall clock jumped",
        {{"direction", jump.count() > 0 ? "forward" : "back"},
         {"by_ms", std::abs(jump.count()) / 1000}});
  }
  return jump;
}

}  // namespace strata::observability
