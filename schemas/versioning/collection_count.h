// How many collections there are, so that nobody makes more than there may be. Internal to this
// folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "schemas/base/clock.h"
#include "schemas/base/error.h"
#include "schemas/store/store.h"

namespace strata::versioning {

// Knows of what this process makes and deletes, and counts anew before it refuses, at most once a
// second, as others may have deleted some. Of what others do it knows only about, and so where
// scans may be stale. Thread-safe.
class CollectionCount {
 public:
  // Both outlive it.
  CollectionCount(const store::Store& store, const Clock& clock, int64_t most)
      : store_(store), clock_(clock), most_(most) {}

  // Counts what is stored, the first time; before anything is made or deleted. STORE_UNAVAILABLE.
  absl::Status Begin();

  // COLLECTION_LIMIT if there is no room for so many; what Begin answers. Takes none.
  absl::Status Check(int64_t count);
  // One was deleted.
  void Remove();

 private:
  friend class CollectionRoom;

  absl::Status BeginLocked();
  absl::Status CountLocked();
  absl::Status CheckLocked(int64_t count);
  absl::Status Take();
  void End(int64_t made, int64_t not_made);

  const store::Store& store_;
  const Clock& clock_;
  const int64_t most_;
  std::mutex mutex_;
  std::optional<int64_t> count_;  // with those that are being made; nothing: not counted yet
  int64_t making_ = 0;
  std::chrono::steady_clock::time_point counted_at_;
};

// The room of collections that are being made, given back unless they were.
class CollectionRoom {
 public:
  // `count` outlives it.
  explicit CollectionRoom(CollectionCount& count) : count_(count) {}
  ~CollectionRoom() { count_.End(0, taken_); }
  CollectionRoom(const CollectionRoom&) = delete;
  CollectionRoom& operator=(const CollectionRoom&) = delete;

  // For one more: COLLECTION_LIMIT if there is none; what CollectionCount::Begin answers.
  absl::Status Take() {
    absl::Status taken = count_.Take();
    if (taken.ok()) ++taken_;
    return taken;
  }
  // They are made, or may be.
  void Keep() { count_.End(std::exchange(taken_, 0), 0); }

 private:
  CollectionCount& count_;
  int64_t taken_ = 0;
};

// After the commit that makes them. What may be stored keeps its room until it is counted anew.
inline void EndMaking(const store::CommitResult& result, std::shared_ptr<CollectionRoom> room) {
  if (room == nullptr) return;
  if (result.committed || ReasonOf(result.status) == ErrorReason::kOutcomeUnknown) room->Keep();
}

}  // namespace strata::versioning
