#include "service/engines/memory/tree.h"

#include <functional>
#include <utility>

namespace strata::engines::memory {

struct Tree::Node {
  std::shared_ptr<const Item> item;
  uint64_t priority = 0;  // no less than the children's
  NodePointer left;
  NodePointer right;
  Totals totals;  // of this node and all below
};

namespace {

uint64_t Priority(std::string_view key) {
  // std::hash alone would do with today's library; the multiplication keeps a plain one from
  // turning keys that grow into priorities that grow, which would make the tree a list.
  uint64_t hash = std::hash<std::string_view>{}(key);
  hash ^= hash >> 32;
  hash *= 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

Totals Of(const Item& item) {
  return {1, static_cast<int64_t>(item.key.size() + item.record.value.size())};
}

Totals operator+(const Totals& a, const Totals& b) {
  return {a.records + b.records, a.bytes + b.bytes};
}

}  // namespace

const Item* Tree::Find(std::string_view key) const {
  const Item* item = FirstAtOrAfter(key);
  return item != nullptr && item->key == key ? item : nullptr;
}

const Item* Tree::FirstAtOrAfter(std::string_view key) const {
  const Item* found = nullptr;
  for (const Node* node = root_.get(); node != nullptr;) {
    if (node->item->key < key) {
      node = node->right.get();
    } else {
      found = node->item.get();
      node = node->left.get();
    }
  }
  return found;
}

const Item* Tree::FirstAfter(std::string_view key) const {
  const Item* found = nullptr;
  for (const Node* node = root_.get(); node != nullptr;) {
    if (node->item->key <= key) {
      node = node->right.get();
    } else {
      found = node->item.get();
      node = node->left.get();
    }
  }
  return found;
}

const Item* Tree::LastAtOrBefore(std::string_view key) const {
  const Item* found = nullptr;
  for (const Node* node = root_.get(); node != nullptr;) {
    if (node->item->key > key) {
      node = node->left.get();
    } else {
      found = node->item.get();
      node = node->right.get();
    }
  }
  return found;
}

const Item* Tree::LastBefore(std::string_view key) const {
  const Item* found = nullptr;
  for (const Node* node = root_.get(); node != nullptr;) {
    if (node->item->key >= key) {
      node = node->left.get();
    } else {
      found = node->item.get();
      node = node->right.get();
    }
  }
  return found;
}

const Item* Tree::Last() const {
  const Node* node = root_.get();
  while (node != nullptr && node->right != nullptr) node = node->right.get();
  return node == nullptr ? nullptr : node->item.get();
}

Tree Tree::With(std::shared_ptr<const Item> item) const {
  const uint64_t priority = Priority(item->key);
  return Tree(Put(root_, std::move(item), priority));
}

Tree Tree::Without(std::string_view key) const {
  return Find(key) == nullptr ? *this : Tree(Erase(root_, key));
}

Totals Tree::Below(std::string_view key) const {
  Totals totals;
  for (const Node* node = root_.get(); node != nullptr;) {
    if (node->item->key < key) {
      totals = totals + Of(*node->item);
      if (node->left != nullptr) totals = totals + node->left->totals;
      node = node->right.get();
    } else {
      node = node->left.get();
    }
  }
  return totals;
}

Totals Tree::All() const { return root_ == nullptr ? Totals{} : root_->totals; }

Tree::NodePointer Tree::Make(std::shared_ptr<const Item> item, uint64_t priority, NodePointer left,
                             NodePointer right) {
  auto node = std::make_shared<Node>();
  node->totals = Of(*item);
  if (left != nullptr) node->totals = node->totals + left->totals;
  if (right != nullptr) node->totals = node->totals + right->totals;
  node->item = std::move(item);
  node->priority = priority;
  node->left = std::move(left);
  node->right = std::move(right);
  return node;
}

Tree::NodePointer Tree::Put(const NodePointer& node, std::shared_ptr<const Item> item,
                            uint64_t priority) {
  if (node == nullptr) return Make(std::move(item), priority, nullptr, nullptr);
  const int order = item->key.compare(node->item->key);
  if (order == 0) return Make(std::move(item), priority, node->left, node->right);
  if (order < 0) {
    NodePointer left = Put(node->left, std::move(item), priority);
    if (left->priority <= node->priority)
      return Make(node->item, node->priority, std::move(left), node->right);
    return Make(left->item, left->priority, left->left,
                Make(node->item, node->priority, left->right, node->right));
  }
  NodePointer right = Put(node->right, std::move(item), priority);
  if (right->priority <= node->priority)
    return Make(node->item, node->priority, node->left, std::move(right));
  return Make(right->item, right->priority,
              Make(node->item, node->priority, node->left, right->left), right->right);
}

Tree::NodePointer Tree::Erase(const NodePointer& node, std::string_view key) {
  const int order = key.compare(node->item->key);
  if (order == 0) return Merge(node->left, node->right);
  if (order < 0) return Make(node->item, node->priority, Erase(node->left, key), node->right);
  return Make(node->item, node->priority, node->left, Erase(node->right, key));
}

Tree::NodePointer Tree::Merge(const NodePointer& left, const NodePointer& right) {
  if (left == nullptr) return right;
  if (right == nullptr) return left;
  if (left->priority >= right->priority)
    return Make(left->item, left->priority, left->left, Merge(left->right, right));
  return Make(right->item, right->priority, Merge(left, right->left), right->right);
}

}  // namespace strata::engines::memory
