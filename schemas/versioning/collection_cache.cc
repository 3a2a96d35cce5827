#include "schemas/versioning/collection_cache.h"

#include "schemas/versioning/collections.h"

namespace strata::versioning {

CollectionCache::CollectionPtr CollectionCache::Find(std::string_view name) {
  const auto found = places_.find(name);
  if (found == places_.end()) return nullptr;
  order_.splice(order_.begin(), order_, found->second);
  return order_.front();
}

void CollectionCache::Put(const CollectionPtr& collection) {
  if (const CollectionPtr present = Find(collection->name)) {
    // An older snapshot's answer must not push out what a newer one found.
    if (present->stamp < collection->stamp) order_.front() = collection;
    return;
  }
  if (order_.size() == most_) {
    places_.erase(order_.back()->name);
    order_.pop_back();
  }
  order_.push_front(collection);
  places_.emplace(collection->name, order_.begin());
}

void CollectionCache::Drop(std::string_view name, int64_t incarnation) {
  const auto found = places_.find(name);
  if (found == places_.end() || (*found->second)->incarnation != incarnation) return;
  order_.erase(found->second);
  places_.erase(found);
}

}  // namespace strata::versioning
