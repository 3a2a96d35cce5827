#include "schemas/base/age_clock.h"

#include <algorithm>

namespace strata {
namespace {

constexpr UnixMicros kPeriod = UnixMicros{24} * 3600 * 1'000'000;

UnixMicros SteadyMicros(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::microseconds>(clock.SteadyNow().time_since_epoch())
      .count();
}

}  // namespace

AgeClock::AgeClock(const Clock& clock)
    : clock_(clock),
      period_began_(SteadyMicros(clock)),
      least_(clock.Now() - period_began_),
      least_before_(least_) {}

UnixMicros AgeClock::Now() const {
  const std::lock_guard lock(mutex_);
  const UnixMicros wall = clock_.Now();
  const UnixMicros steady = SteadyMicros(clock_);
  const UnixMicros ahead = wall - steady;
  if (steady - period_began_ >= kPeriod) {
    // Nobody asked in a whole period: nothing was seen in it.
    const bool one_ended = steady - period_began_ < 2 * kPeriod;
    least_before_ = one_ended ? least_ : ahead;
    period_began_ = steady;
    least_ = ahead;
  }
  least_ = std::min(least_, ahead);
  return steady + std::min(least_, least_before_);
}

}  // namespace strata
