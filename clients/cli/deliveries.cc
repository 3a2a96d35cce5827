#include "clients/cli/deliveries.h"

#include <utility>

namespace strata::cli {

void Deliveries::Add(v1::ConsumeResponse& response) {
  const std::lock_guard lock(mutex_);
  switch (response.message_case()) {
    case v1::ConsumeResponse::kDeliveries:
      for (v1::Delivery& delivery : *response.mutable_deliveries()->mutable_deliveries()) {
        AddOne({response.deliveries().partition(), std::move(delivery)});
      }
      break;
    case v1::ConsumeResponse::kAssigned:
      tokens_[response.assigned().partition()] = response.assigned().token();
      break;
    case v1::ConsumeResponse::kRevoked:
      tokens_.erase(response.revoked().partition());
      failed_.erase(response.revoked().partition());
      queues_.erase(response.revoked().partition());
      break;
    case v1::ConsumeResponse::kAcknowledged: {
      const v1::ConsumeResponse::Acknowledged& done = response.acknowledged();
      const auto failed = failed_.find(done.partition());
      if (failed != failed_.end() && Place{done.position(), done.index()} >= failed->second) {
        failed_.erase(failed);
      }
      break;
    }
    case v1::ConsumeResponse::MESSAGE_NOT_SET:
      break;
  }
  changed_.notify_all();
}

void Deliveries::AddOne(Taken taken) {
  const auto failed = failed_.find(taken.partition);
  if (failed != failed_.end() && !taken.delivery.replay()) {
    if (taken.place() != failed->second) return;
    failed_.erase(failed);
  }
  queues_[taken.partition].push_back(std::move(taken));
}

void Deliveries::End() {
  const std::lock_guard lock(mutex_);
  over_ = true;
  changed_.notify_all();
}

void Deliveries::Begin() {
  const std::lock_guard lock(mutex_);
  over_ = false;
  queues_.clear();
  tokens_.clear();
  failed_.clear();
}

std::vector<Deliveries::Taken> Deliveries::Await(size_t most) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return over_ || stopped_ || !queues_.empty(); });
  std::vector<Taken> taken;
  while (!stopped_ && !over_ && taken.size() < most && !queues_.empty()) {
    auto next = queues_.upper_bound(last_);
    if (next == queues_.end()) next = queues_.begin();
    last_ = next->first;
    taken.push_back(std::move(next->second.front()));
    next->second.pop_front();
    if (next->second.empty()) queues_.erase(next);
  }
  return taken;
}

bool Deliveries::Holds(const Taken& taken) {
  const std::lock_guard lock(mutex_);
  return HoldsLocked(taken);
}

bool Deliveries::HoldsLocked(const Taken& taken) const {
  const auto token = tokens_.find(taken.partition);
  return token != tokens_.end() && token->second == taken.delivery.lease().token();
}

// A partition that went and came again meanwhile begins anew by itself.
void Deliveries::Fail(const Taken& taken) {
  const std::lock_guard lock(mutex_);
  if (!HoldsLocked(taken)) return;
  failed_[taken.partition] = taken.place();
  const auto queue = queues_.find(taken.partition);
  if (queue == queues_.end()) return;
  std::erase_if(queue->second, [](const Taken& each) { return !each.delivery.replay(); });
  if (queue->second.empty()) queues_.erase(queue);
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
