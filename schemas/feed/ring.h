// The newest commits, for all who follow them.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "schemas/feed/commit.h"

namespace strata::feed {

struct RingLimits {
  size_t entries_max = 16'384;
  size_t bytes_max = size_t{16} << 20;
};

// Holds the ledger's commits after begin() and up to end(), and drops the oldest for newer ones.
// One that alone is past a limit is not held. Not thread-safe.
class Ring {
 public:
  explicit Ring(const RingLimits& limits) : limits_(limits) {}

  store::CommitPosition begin() const { return begin_; }
  store::CommitPosition end() const { return end_; }

  // Drops everything; commits after `position` may come next.
  void Reset(store::CommitPosition position);
  // REQUIRES: it lies after end().
  void Append(CommitPtr commit);
  // There is nothing more up to `position`.
  void MoveTo(store::CommitPosition position) { end_ = position; }

  // The commits after `position`, whole ones, until they have `entries_max` entries together.
  // Nothing if some of them are no longer held.
  std::optional<std::vector<CommitPtr>> Behind(store::CommitPosition position,
                                               size_t entries_max) const;

 private:
  struct Held {
    CommitPtr commit;
    size_t bytes = 0;
  };
  void DropOldest();

  const RingLimits limits_;
  store::CommitPosition begin_ = 0;
  store::CommitPosition end_ = 0;
  std::deque<Held> commits_;
  size_t entries_ = 0;
  size_t bytes_ = 0;
};

}  // namespace strata::feed
