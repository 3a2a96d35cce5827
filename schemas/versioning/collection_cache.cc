#include "schemas/versioning/collection_cache.h"

#include <utility>

#include "schemas/versioning/collections.h"

namespace strata::versioning {

CollectionCache::CollectionPtr CollectionCache::Find(std::string_view name) {
  if (const auto found = young_.find(name); found != young_.end()) return found->second;
  const auto found = old_.find(name);
  if (found == old_.end()) return nullptr;
  Generation::node_type taken = old_.extract(found);
  MakeRoom();
  return young_.insert(std::move(taken)).position->second;
}

void CollectionCache::Put(const CollectionPtr& collection) {
  const CollectionPtr present = Find(collection->name);
  // An older snapshot's answer must not push out what a newer one found.
  if (present != nullptr && present->stamp >= collection->stamp) return;
  if (present == nullptr) MakeRoom();
  young_.insert_or_assign(collection->name, collection);
}

void CollectionCache::Drop(std::string_view name, int64_t incarnation) {
  for (Generation* const generation : {&young_, &old_}) {
    const auto found = generation->find(name);
    if (found != generation->end() && found->second->incarnation == incarnation) {
      generation->erase(found);
    }
  }
}

void CollectionCache::MakeRoom() {
  if (young_.size() < generation_max_) return;
  old_ = std::exchange(young_, {});
}

}  // namespace strata::versioning
