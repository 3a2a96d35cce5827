#include "service/observability/health.h"

#include <utility>

namespace strata::observability {

Health::Health(const std::vector<std::string>& services)
    : services_(services.begin(), services.end()) {
  services_.insert("");
}

void Health::SetServing(bool serving) {
  const std::lock_guard lock(mutex_);
  if (serving_ == serving) return;
  serving_ = serving;
  for (const auto& [number, subscription] : subscriptions_) {
    const State state = StateOf(subscription.service);
    if (state != State::kUnknownService) subscription.listener(state);
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
  return serving_ ? State::kServing : State::kNotServing;
}

}  // namespace strata::observability
