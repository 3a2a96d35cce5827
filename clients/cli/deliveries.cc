#include "clients/cli/deliveries.h"

namespace strata::cli {

void Deliveries::Add(v1::ConsumeResponse& response) {
  const std::lock_guard lock(mutex_);
  deliveries_.Add(response);
  changed_.notify_all();
}

void Deliveries::End() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

void Deliveries::Begin() {
  const std::lock_guard lock(mutex_);
  over_ = false;
  deliveries_.Begin();
}

std::vector<Deliveries::Taken> Deliveries::Await(size_t most) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return over_ || stopped_ || !deliveries_.empty(); });
  std::vector<Taken> taken;
  while (!stopped_ && !over_ && taken.size() < most && !deliveries_.empty()) {
    taken.push_back(deliveries_.Next());
  }
  return taken;
}

bool Deliveries::Holds(const Taken& taken) {
  const std::lock_guard lock(mutex_);
  return HoldsLocked(taken);
}

void Deliveries::Fail(const Taken& taken) {
  const std::lock_guard lock(mutex_);
  if (HoldsLocked(taken)) deliveries_.Fail(taken.partition, taken.place());
}

void Deliveries::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool Deliveries::stopped() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

bool Deliveries::AwaitEnd(std::chrono::seconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return over_; });
}

}  // namespace strata::cli
