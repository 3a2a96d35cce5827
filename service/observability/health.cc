#include "service/observability/health.h"

#include <utility>

namespace strata::observability {

Health::Health(const std::vector<std::string>& services)
    : services_(services.begin(), services.end()) {
  services_.insert("");
  services_.emplace(kWrites);
}

void Health::SetServing(bool serving) {
  const std::lock_guard lock(mutex_);
  Set(serving_, serving);
}

void Health::SetWritable(bool writable) {
  const std::lock_guard lock(mutex_);
  Set(writable_, writable);
}

// REQUIRES: the mutex is held.
void Health::Set(bool& fact, bool value) {
  std::map<int64_t, State> before;
  for (const auto& [number, subscription] : subscriptions_) {
    before.emplace(number, StateOf(subscription.service));
  }
  fact = value;
  for (const auto& [number, subscription] : subscriptions_) {
    const State state = StateOf(subscription.service);
    if (state != before.at(number)) subscription.listener(state);
  }
}

Health::State Health::Of(std::string_view service) const {
  const std::lock_guard lock(mutex_);
  return StateOf(service);
}

int64_t Health::Subscribe(std::string_view service, Listener listener) {
  const std::lock_guard lock(mutex_);
  const int64_t number = next_++;
  listener(StateOf(service));
  subscriptions_.emplace(number, Subscription{std::string(service), std::move(listener)});
  return number;
}

void Health::Unsubscribe(int64_t subscription) {
  const std::lock_guard lock(mutex_);
  subscriptions_.erase(subscription);
}

Health::State Health::StateOf(std::string_view service) const {
  if (services_.find(service) == services_.end()) return State::kUnknownService;
  const bool serves = serving_ && (writable_ || service != kWrites);
  return serves ? State::kServing : State::kNotServing;
}

}  // namespace strata::observability
