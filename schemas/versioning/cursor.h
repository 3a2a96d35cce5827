// A walk over versions, documents or findings whose items the caller pulls.
#pragma once

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata::versioning {

// Not thread-safe; reads nothing before the first Next.
//
//   while (cursor->Next()) Use(cursor->item());
//   RETURN_IF_ERROR(cursor->status());
template <typename Item>
class Cursor {
 public:
  Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  virtual ~Cursor() = default;

  // Moves to the next item; false at the end and after an error, and from then on.
  bool Next() {
    if (ended_) return false;
    absl::StatusOr<std::optional<Item>> next = Produce();
    if (next.ok()) {
      item_ = *std::move(next);
    } else {
      item_.reset();
      status_ = std::move(next).status();
    }
    ended_ = !item_.has_value();
    return !ended_;
  }

  // Lives until the next Next; may be moved from. REQUIRES: the last Next returned true.
  Item& item() { return *item_; }
  const Item& item() const { return *item_; }

  // Why the walk ended: OK at the end, and while it goes on.
  const absl::Status& status() const { return status_; }

 private:
  // The next item; nothing at the end. Not called again after it returned nothing or an error.
  virtual absl::StatusOr<std::optional<Item>> Produce() = 0;

  std::optional<Item> item_;
  bool ended_ = false;
  absl::Status status_;
};

}  // namespace strata::versioning
