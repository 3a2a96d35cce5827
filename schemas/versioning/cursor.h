// A walk over versions, documents or findings whose items the caller pulls.
#pragma once

#include <memory>
#include <new>
#include <optional>

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
    if (!more_) return false;
    // Made where it stays: versions are large to move.
    std::destroy_at(&next_);
    ::new (&next_) Produced(Produce());
    more_ = next_.ok() && next_->has_value();
    return more_;
  }

  // Lives until the next Next; may be moved from. REQUIRES: the last Next returned true.
  Item& item() { return **next_; }
  const Item& item() const { return **next_; }

  // Why the walk ended: OK at the end, and while it goes on.
  const absl::Status& status() const { return next_.status(); }

 private:
  using Produced = absl::StatusOr<std::optional<Item>>;

  // The next item; nothing at the end. Called while there is no item(), and not again after it
  // returned nothing or an error.
  virtual absl::StatusOr<std::optional<Item>> Produce() = 0;

  Produced next_ = std::optional<Item>();
  bool more_ = true;
};

}  // namespace strata::versioning
