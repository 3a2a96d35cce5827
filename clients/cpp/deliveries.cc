#include "clients/cpp/deliveries.h"

#include <utility>

namespace strata::client {

void Deliveries::Add(v1::ConsumeResponse& response) {
  switch (response.message_case()) {
    case v1::ConsumeResponse::kDeliveries:
      for (v1::Delivery& delivery : *response.mutable_deliveries()->mutable_deliveries()) {
        AddOne({.partition = response.deliveries().partition(), .delivery = std::move(delivery)});
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
}

void Deliveries::AddOne(Taken taken) {
  const auto failed = failed_.find(taken.partition);
  if (failed != failed_.end() && !taken.delivery.replay()) {
    if (taken.place() != failed->second) return;
    failed_.erase(failed);
  }
  taken.term = terms_[taken.partition];
  queues_[taken.partition].push_back(std::move(taken));
}

void Deliveries::Begin() {
  queues_.clear();
  tokens_.clear();
  failed_.clear();
}

Deliveries::Taken Deliveries::Next() {
  auto next = queues_.upper_bound(last_);
  if (next == queues_.end()) next = queues_.begin();
  last_ = next->first;
  Taken taken = std::move(next->second.front());
  next->second.pop_front();
  if (next->second.empty()) queues_.erase(next);
  return taken;
}

bool Deliveries::Holds(int32_t partition, int64_t token, int64_t term, bool replay) const {
  const auto held = tokens_.find(partition);
  if (held == tokens_.end() || held->second != token) return false;
  const auto present = terms_.find(partition);
  return replay || (present != terms_.end() && present->second == term);
}

// A partition that went and came again meanwhile begins anew by itself.
void Deliveries::Fail(int32_t partition, Place place) {
  failed_[partition] = place;
  ++terms_[partition];
  const auto queue = queues_.find(partition);
  if (queue == queues_.end()) return;
  std::erase_if(queue->second, [](const Taken& each) { return !each.delivery.replay(); });
  if (queue->second.empty()) queues_.erase(queue);
}

}  // namespace strata::client
