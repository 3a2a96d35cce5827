// A place in the order of events: up to where all is done.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "schemas/store/record.h"

namespace strata::lease {

// An event of a commit, or a whole commit, which lies after every event of it.
struct Place {
  store::CommitPosition position = 0;  // 0: before every commit
  std::optional<int32_t> index;        // in the commit, from 0; none: all of it

  friend bool operator==(const Place&, const Place&) = default;
  friend std::strong_ordering operator<=>(const Place& left, const Place& right) {
    if (const auto order = left.position <=> right.position; order != 0) return order;
    if (!left.index || !right.index) return !left.index <=> !right.index;
    return *left.index <=> *right.index;
  }
};

}  // namespace strata::lease
