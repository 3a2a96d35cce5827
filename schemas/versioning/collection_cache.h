// The collections that were asked for last. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace strata::versioning {

struct Collection;

// When it is full, it forgets what nobody has asked for the longest. Not thread-safe.
class CollectionCache {
 public:
  using CollectionPtr = std::shared_ptr<const Collection>;

  // Holds so many at most.
  explicit CollectionCache(size_t most) : most_(most) {}

  // Null if it is not there.
  CollectionPtr Find(std::string_view name);
  // Puts it in, unless what is there was read later.
  void Put(const CollectionPtr& collection);
  void Drop(std::string_view name, int64_t incarnation);

 private:
  using Order = std::list<CollectionPtr>;

  const size_t most_;
  Order order_;  // what was asked for last comes first
  std::map<std::string, Order::iterator, std::less<>> places_;
};

}  // namespace strata::versioning
