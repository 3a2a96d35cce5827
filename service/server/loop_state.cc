#include "service/server/loop_state.h"

#include <random>

namespace strata::server {

Recognized LoopState::Recognize(std::string_view peer, const security::Credentials& credentials) {
  const std::lock_guard lock(seen_mutex_);
  return seen_.Of(peer, credentials);
}

CallInfo::Time LoopState::OldAt(CallInfo::Time arrival) const {
  thread_local std::minstd_rand spread{std::random_device{}()};
  const std::chrono::milliseconds age = options.connection_age_max;
  if (age.count() == 0) return CallInfo::Time::max();
  return arrival + age +
         std::chrono::milliseconds(
             std::uniform_int_distribution<int64_t>(0, age.count() / 10)(spread));
}

void LoopState::UnaryEnds() {
  if (unary_in_progress_.fetch_sub(1) != 1 || !admission.draining()) return;
  // Under the lock, so that the waiter is either before its look at the number or asleep.
  const std::lock_guard lock(mutex);
  changed.notify_all();
}

void LoopState::AwaitUnaryCalls(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, at_most, [this] { return unary_in_progress_ == 0; });
}

void LoopState::Add(LiveCall& call) {
  const std::lock_guard lock(live_mutex_);
  live_.push_back(&call);
  ++live_count_;
}

void LoopState::Remove(LiveCall& call) {
  const std::lock_guard lock(live_mutex_);
  live_.remove(&call);
  --live_count_;
}

void LoopState::EndCalls() {
  const std::lock_guard lock(live_mutex_);
  for (LiveCall* const call : live_) call->Drain();
}

void LoopState::LookAtCalls(CallInfo::Time now) {
  admission.room_line().OfferAll();
  const std::lock_guard lock(live_mutex_);
  for (LiveCall* const call : live_) call->Look(now);
}

}  // namespace strata::server
