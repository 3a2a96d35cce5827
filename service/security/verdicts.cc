#include "service/security/verdicts.h"

#include <utility>

#include "absl/hash/hash.h"
#include "schemas/base/strings.h"

namespace strata::security {

Verdicts::KeyView::KeyView(std::string_view of_principal, const Demand& demand)
    : principal(of_principal),
      name(demand.resource.name),
      what(static_cast<unsigned>(demand.permission) * 16 +
           static_cast<unsigned>(demand.resource.kind)) {}

size_t Verdicts::HashOf::operator()(const KeyView& key) const {
  return absl::HashOf(ToAbsl(key.principal), ToAbsl(key.name), key.what);
}

void Verdicts::Use(std::shared_ptr<const Policy> policy) {
  uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    has_policy_.store(policy != nullptr, std::memory_order_release);
    in_use_ = {std::move(policy), in_use_.generation + 1};
    generation = in_use_.generation;
  }
  for (Shard& shard : shards_) {
    Map forgotten;  // freed when nobody waits for it
    const std::lock_guard lock(shard.mutex);
    shard.generation = generation;
    forgotten.swap(shard.verdicts);
  }
}

Verdicts::InUse Verdicts::in_use() {
  const std::lock_guard lock(mutex_);
  return in_use_;
}

bool Verdicts::Permits(std::string_view principal, const Demand& demand) {
  if (!has_policy()) return true;
  if (demand.resource.name.size() > kNameBytesMax) return Ask(principal, demand, nullptr);
  const KeyView key(principal, demand);
  Shard& shard = shards_[HashOf()(key) % kShards];
  {
    const std::lock_guard lock(shard.mutex);
    const auto found = shard.verdicts.find(key);
    if (found != shard.verdicts.end()) return found->second;
  }
  return Ask(principal, demand, &shard);
}

bool Verdicts::Ask(std::string_view principal, const Demand& demand, Shard* shard) {
  const InUse now = in_use();
  const bool verdict = now.policy == nullptr || now.policy->Permits(principal, demand);
  if (shard == nullptr) return verdict;
  const KeyView key(principal, demand);
  Map forgotten;
  const std::lock_guard lock(shard->mutex);
  if (shard->generation != now.generation) return verdict;
  if (shard->verdicts.size() >= kVerdictsMax / kShards) forgotten.swap(shard->verdicts);
  shard->verdicts.try_emplace({std::string(key.principal), std::string(key.name), key.what},
                              verdict);
  return verdict;
}

size_t Verdicts::size() {
  size_t count = 0;
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    count += shard.verdicts.size();
  }
  return count;
}

}  // namespace strata::security
