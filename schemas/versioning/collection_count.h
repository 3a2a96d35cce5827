// How many collections there are, so that nobody makes more than there may be. Internal to this
// folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "schemas/base/clock.h"
#include "schemas/base/error.h"
#include "schemas/store/store.h"

namespace strata::versioning {

// Knows of what this process makes and deletes, and counts anew before it refuses, at most every
// ten seconds, as others may have deleted some. Of what others do it knows only about, and so where
// scans may be stale; one that is made or deleted while it counts may count once too often or too
// seldom until the next time. Thread-safe.
class CollectionCount {
 public:
  // Both outlive it.
  CollectionCount(const store::Store& store, const Clock& clock, int64_t most)
      : store_(store), clock_(clock), most_(most) {}

  // Counts what is stored, the first time; before anything is made or deleted. STORE_UNAVAILABLE.
  absl::Status Begin();

  // COLLECTION_LIMIT if there is no room for `count` more; what Begin answers. Takes none.
  absl::Status Check(int64_t count);
  // One was deleted.
  void Remove();

 private:
  friend class CollectionRoom;

  // Of one name, which has room once, by as many as make it.
  struct Making {
    int64_t makers = 0;
    bool made = false;  // or may be
  };

  absl::Status BeginLocked();
  absl::Status CountLocked();
  absl::Status CheckLocked(int64_t count);
  absl::Status Take(const std::string& name);
  void End(const std::string& name, bool made);

  const store::Store& store_;
  const Clock& clock_;
  const int64_t most_;
  std::mutex mutex_;
  std::optional<int64_t> count_;  // with those that are being made; nothing: not counted yet
  std::map<std::string, Making> making_;
  std::chrono::steady_clock::time_point counted_at_;
};

// The room of collections that are being made, given back unless they were.
class CollectionRoom {
 public:
  // `count` outlives it.
  explicit CollectionRoom(CollectionCount& count) : count_(count) {}
  ~CollectionRoom() { End(/*made=*/false); }
  CollectionRoom(const CollectionRoom&) = delete;
  CollectionRoom& operator=(const CollectionRoom&) = delete;

  // For one of this name: COLLECTION_LIMIT if there is none, unless another maker has it; what
  // CollectionCount::Begin answers.
  absl::Status Take(const std::string& name) {
    absl::Status taken = count_.Take(name);
    if (taken.ok()) names_.push_back(name);
    return taken;
  }
  // They are made, or may be.
  void Keep() { End(/*made=*/true); }

 private:
  void End(bool made) {
    for (const std::string& name : std::exchange(names_, {})) count_.End(name, made);
  }

  CollectionCount& count_;
  std::vector<std::string> names_;
};

// After the commit that makes them. What may be stored keeps its room until it is counted anew.
inline void EndMaking(const store::CommitResult& result, std::shared_ptr<CollectionRoom> room) {
  if (room == nullptr) return;
  if (result.committed || ReasonOf(result.status) == ErrorReason::kOutcomeUnknown) room->Keep();
}

}  // namespace strata::versioning
