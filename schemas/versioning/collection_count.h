// How many collections there are, so that nobody makes more than there may be. Internal to this
// folder.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/status/status.h"
#include "schemas/store/store.h"

namespace strata::versioning {

// Knows of what this process makes and deletes; of what was there before only about, where scans
// may be stale. Thread-safe.
class CollectionCount {
 public:
  // `store` outlives it.
  CollectionCount(const store::Store& store, int64_t most) : store_(store), most_(most) {}

  // Counts what is stored, the first time; before anything is made or deleted. STORE_UNAVAILABLE.
  absl::Status Begin();

  // Takes room for one that is about to be made: COLLECTION_LIMIT if there is none; what Begin
  // answers.
  absl::Status Add();
  // One was deleted, or not made.
  void Remove() { Remove(1); }
  void Remove(int64_t count);
  // COLLECTION_LIMIT if there is no room for so many; what Begin answers. Takes none.
  absl::Status Check(int64_t count);

 private:
  absl::Status BeginLocked();
  absl::Status CheckLocked(int64_t count) const;

  const store::Store& store_;
  const int64_t most_;
  std::mutex mutex_;
  std::optional<int64_t> count_;  // nothing: not counted yet
};

// The room of collections that are being made, given back unless they were.
class CollectionRoom {
 public:
  // `count` outlives it.
  explicit CollectionRoom(CollectionCount& count) : count_(count) {}
  ~CollectionRoom() { count_.Remove(taken_); }
  CollectionRoom(const CollectionRoom&) = delete;
  CollectionRoom& operator=(const CollectionRoom&) = delete;

  // For one more, as CollectionCount::Add.
  absl::Status Take() {
    absl::Status added = count_.Add();
    if (added.ok()) ++taken_;
    return added;
  }
  // They are made, or may be.
  void Keep() { taken_ = 0; }

 private:
  CollectionCount& count_;
  int64_t taken_ = 0;
};

}  // namespace strata::versioning
