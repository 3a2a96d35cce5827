// A walk over what is read so many at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata::rpc {

// The cursor for FillPage, over a query that answers a number of items after the last one. Not
// thread-safe.
template <typename Item>
class BatchedCursor {
 public:
  // Up to `most` items after `last`; null: from the start of the walk.
  using Read = std::function<absl::StatusOr<std::vector<Item>>(const Item* last, size_t most)>;

  explicit BatchedCursor(Read read, size_t at_once = 100)
      : read_(std::move(read)), at_once_(at_once) {}

  bool Next() {
    if (++at_ < items_.size()) return true;
    if (at_end_) return false;
    auto items = read_(items_.empty() ? nullptr : &items_.back(), at_once_);
    status_ = items.status();
    items_ = items.ok() ? *std::move(items) : std::vector<Item>();
    at_end_ = items_.size() < at_once_;
    at_ = 0;
    return !items_.empty();
  }

  // The one moved to.
  const Item& item() const { return items_[at_]; }
  // Whether the walk ended because there are no more.
  bool done() const { return at_end_ && at_ >= items_.size(); }
  const absl::Status& status() const { return status_; }

 private:
  const Read read_;
  const size_t at_once_;
  std::vector<Item> items_;
  size_t at_ = 0;
  bool at_end_ = false;
  absl::Status status_;
};

}  // namespace strata::rpc
