// The collections that were asked for last. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace strata::versioning {

struct Collection;

// Two generations: what is asked for stands in the young one, which grows old when it is full; what
// nobody has asked for since then is forgotten. So what is in use stays, whatever passes by. Not
// thread-safe.
class CollectionCache {
 public:
  using CollectionPtr = std::shared_ptr<const Collection>;

  // Holds so many at most.
  explicit CollectionCache(size_t most) : generation_max_(most / 2) {}

  // Null if it is not there. Grows no older.
  CollectionPtr Find(std::string_view name);
  // Puts it in, unless what is there was read later.
  void Put(const CollectionPtr& collection);
  void Drop(std::string_view name, int64_t incarnation);

 private:
  using Generation = std::map<std::string, CollectionPtr, std::less<>>;

  void MakeRoom();

  const size_t generation_max_;
  Generation young_;
  Generation old_;  // none of them is young
};

}  // namespace strata::versioning
