// The end of the ledger, read once for all who follow it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/feed/commit.h"
#include "schemas/feed/parking.h"
#include "schemas/feed/ring.h"
#include "schemas/store/store.h"

namespace strata::feed {

// Between two looks for bookmarks that are due.
inline constexpr std::chrono::milliseconds kBookmarkLook{100};

// Follows the ledger while somebody has joined: each time that the store tells of a commit it reads
// on, once however often it is told meanwhile, and wakes whom that concerns. While nothing is
// committed it does nothing, and while nobody has joined it costs the store nothing. Thread-safe.
//
// No wake is lost between a follower's last look and its parking, nor between a commit and the
// tail's last look:
//
// - Park refuses a follower that has not looked at all up to end(). It asks and parks in one hold
//   of the mutex, and the tail moves end() on and takes out whom that concerns in one hold of it.
//   So an entry that moved end() before the parking was in front of the follower, which is refused
//   unless it has looked at it; and one that moves it afterwards finds the follower parked.
// - The store tells of a commit after its position has become readable (Store::OnPosition), and
//   what it tells sets `work_`. A run clears that before it asks for the last position: told
//   before, it sees the position; told after, it finds `work_` set at its end and runs again.
// - Whoever joins first is told of nothing that was committed before the store had the listener;
//   the ring begins with the last position as of after that.
class Tail {
 public:
  // Work is done on `executor`, and what is left there is dropped before the tail goes. `store` and
  // `clock` outlive the tail.
  Tail(store::Store& store, const Clock& clock, Executor& executor, const RingLimits& limits);
  // REQUIRES: all who joined have left.
  ~Tail();
  Tail(const Tail&) = delete;
  Tail& operator=(const Tail&) = delete;

  // One more follows, or one less. Not from a call of the store's.
  void Join();
  void Leave();

  // All commits up to this have been looked at.
  store::CommitPosition end() const;

  // The ring's commits after a position; `held` is false if the ring lacks some, and the caller has
  // to read the ledger up to `end`.
  struct Taken {
    bool held = false;
    std::vector<CommitPtr> commits;  // whole ones, with about `entries_max` entries
    store::CommitPosition end = 0;
  };
  Taken Take(store::CommitPosition behind, size_t entries_max) const;

  // Whether the follower, which has looked at all up to `looked`, is parked; if not, there is more
  // for it to look at.
  bool Park(const FollowerPtr& follower, store::CommitPosition looked, const Bookmark& bookmark);
  // It will not be woken any more, unless that is under way.
  void Unpark(const Follower& follower);

  size_t parked() const;
  // How often the ledger was read.
  int64_t looks() const { return looks_; }

 private:
  enum class Work : uint8_t { kNone, kRuns, kWaits };
  struct Step;

  void OnPosition();
  void Run();
  void Look();
  absl::Status Read(store::CommitPosition from, Step& step) const;
  void ArmTimer();
  void OnTimer(Parking::Time armed_for);
  static void WakeAll(std::span<const Woken> woken);

  store::Store& store_;
  const Clock& clock_;
  Executor& executor_;
  std::atomic<Work> work_ = Work::kNone;
  std::atomic<int64_t> looks_ = 0;

  std::mutex joining_;  // held while somebody joins or leaves; taken before mutex_
  int64_t followers_ = 0;

  mutable std::mutex mutex_;  // guards what follows
  bool follows_ = false;
  uint64_t life_ = 0;  // grows each time that somebody joins as the first
  Ring ring_;
  Parking parking_;
  std::optional<Parking::Time> armed_for_;  // the one timer that counts
};

}  // namespace strata::feed
