#include "schemas/lease/expiries.h"

#include <algorithm>
#include <utility>

#include "schemas/base/strings.h"

namespace strata::lease {
namespace {

using std::chrono::microseconds;

}  // namespace

Expiries::Expiries(const store::Store& store, const Clock& clock, size_t most)
    : clock_(clock),
      most_(std::max<size_t>(most, 1)),
      began_(clock.SteadyNow()),
      began_at_(store.capabilities().commit_positions ? store.LastPosition() : 0) {}

UnixMicros Expiries::ExpireTime(std::string_view name, const StoredLease& stored) {
  const State& state = *stored.state;
  const UnixMicros now = clock_.Now();
  if (state.expire_time <= now) return state.expire_time;
  const Time steady = clock_.SteadyNow();
  const std::lock_guard lock(mutex_);
  auto found = seen_.find(ToAbsl(name));
  // Once it was known to be wrong it stays so, also when the clock has come up to it.
  if (found == seen_.end() || found->second.token != stored.token ||
      found->second.state_stamp != stored.state_stamp) {
    if (state.expire_time - now <= (state.ttl + kClockTolerance).count()) return state.expire_time;
    const bool old = std::max(stored.token, stored.state_stamp) <= began_at_;
    if (found == seen_.end()) {
      if (names_.size() >= most_) {
        seen_.erase(names_.front());
        names_.pop_front();
      }
      names_.emplace_back(name);
      found = seen_.try_emplace(names_.back()).first;
    }
    found->second = {stored.token, stored.state_stamp, old ? began_ : steady};
  }
  const auto left = std::chrono::ceil<microseconds>(found->second.since + state.ttl - steady);
  return std::min(state.expire_time, now + left.count());
}

}  // namespace strata::lease
