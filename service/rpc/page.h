// How much goes on one page of an answer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/stop.h"
#include "service/rpc/answer_size.h"
#include "service/rpc/convert.h"

namespace strata::rpc {

inline constexpr int kPageSizeDefault = 100;
inline constexpr int kPageSizeMax = 1000;

// The number of items asked for. INVALID_FIELD.
inline absl::StatusOr<int> ToPageSize(int32_t page_size) {
  if (page_size == 0) return kPageSizeDefault;
  RETURN_IF_ERROR(CheckRange("page_size", page_size, 1, kPageSizeMax));
  return page_size;
}

// Counts what is on a page. An item that is larger than a page stands alone on one.
class PageMeter {
 public:
  explicit PageMeter(int items_max) : items_max_(items_max) {}

  bool full() const { return items_ == items_max_; }
  // Whether an item of so many bytes goes on the page; if so, it is counted.
  bool Take(size_t bytes) {
    if (full() || (items_ > 0 && bytes_ + bytes > kPageBytesMax)) return false;
    ++items_;
    bytes_ += bytes;
    return true;
  }

 private:
  const int items_max_;
  int items_ = 0;
  size_t bytes_ = 0;
};

// Keeps the item that was filled last in `items` if it fits, and takes it away otherwise.
template <typename Item>
bool TakeLast(PageMeter& meter, google::protobuf::RepeatedPtrField<Item>& items) {
  if (meter.Take(items[items.size() - 1].ByteSizeLong())) return true;
  items.RemoveLast();
  return false;
}

// What a walk for the call asks whether to go on.
inline StopCheck OnceClosed(const Call& call) {
  return [&call] { return call.closed(); };
}

// Takes a cursor's items while they fit: `fill` makes a message of the one that the cursor stands
// on, unless `wanted` says that it is to be left out. The cursor is left at its end, or on the
// first item that was not taken.
template <typename Cursor, typename Item, typename Fill, typename Wanted>
absl::Status FillPage(Cursor& cursor, const Call& call, int items_max,
                      google::protobuf::RepeatedPtrField<Item>& items, const Fill& fill,
                      const Wanted& wanted) {
  PageMeter meter(items_max);
  while (cursor.Next()) {
    if (call.closed()) break;
    if (!wanted()) continue;
    if (meter.full()) break;
    fill(*items.Add());
    if (!TakeLast(meter, items)) break;
  }
  return cursor.status();
}

template <typename Cursor, typename Item, typename Fill>
absl::Status FillPage(Cursor& cursor, const Call& call, int items_max,
                      google::protobuf::RepeatedPtrField<Item>& items, const Fill& fill) {
  return FillPage(cursor, call, items_max, items, fill, [] { return true; });
}

}  // namespace strata::rpc
