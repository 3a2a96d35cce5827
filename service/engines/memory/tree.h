// An ordered map that never changes: an update makes a new tree, which shares all but the path to
// the change with the old one.
//
// So a snapshot is a copy of one pointer, readers need no lock, and a batch that is refused is a
// tree that nobody keeps. The balance comes from a priority per key (a treap), drawn from the key's
// hash, so that the same keys always make the same tree.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "schemas/base/clock.h"
#include "schemas/store/record.h"

namespace strata::engines::memory {

struct Item {
  std::string key;
  store::Record record;
  UnixMicros expire_time = 0;
};

struct Totals {
  int64_t records = 0;
  int64_t bytes = 0;  // of keys and values
};

// A handle on one state of the map; copying is cheap. Const functions of one tree may run on many
// threads at once. All costs are logarithmic in the number of records.
class Tree {
 public:
  Tree() = default;

  // The items live as long as any tree that holds them. Null where there is none.
  const Item* Find(std::string_view key) const;
  const Item* FirstAtOrAfter(std::string_view key) const;
  const Item* FirstAfter(std::string_view key) const;
  const Item* LastAtOrBefore(std::string_view key) const;
  const Item* LastBefore(std::string_view key) const;
  const Item* Last() const;

  // This tree with the item, in place of one of the same key if there is one.
  Tree With(std::shared_ptr<const Item> item) const;
  // This tree without the key.
  Tree Without(std::string_view key) const;

  // What lies below `key`; everything.
  Totals Below(std::string_view key) const;
  Totals All() const;

 private:
  struct Node;
  using NodePointer = std::shared_ptr<const Node>;

  explicit Tree(NodePointer root) : root_(std::move(root)) {}
  static NodePointer Make(std::shared_ptr<const Item> item, uint64_t priority, NodePointer left,
                          NodePointer right);
  static NodePointer Put(const NodePointer& node, std::shared_ptr<const Item> item,
                         uint64_t priority);
  static NodePointer Erase(const NodePointer& node, std::string_view key);
  static NodePointer Merge(const NodePointer& left, const NodePointer& right);

  NodePointer root_;
};

}  // namespace strata::engines::memory
