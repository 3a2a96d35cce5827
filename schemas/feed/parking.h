// Who waits for something to happen, by what would concern them.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "schemas/feed/commit.h"

namespace strata::feed {

// One who follows the feed.
class Follower {
 public:
  virtual ~Follower() = default;

  // Never changes.
  virtual const Selection& selection() const = 0;
  // It is no longer parked: after `passed` there may be an event for it, up to there there is none.
  // On the tail's thread, without a lock.
  virtual void Wake(store::CommitPosition passed) = 0;
};
using FollowerPtr = std::shared_ptr<Follower>;

// What one waits for besides its entries: to tell how far it has looked.
struct Bookmark {
  std::chrono::steady_clock::time_point due;  // not before
  store::CommitPosition told = 0;             // unless nothing lies after this
};

struct Woken {
  FollowerPtr follower;
  store::CommitPosition passed = 0;
};

// Not thread-safe.
class Parking {
 public:
  using Time = std::chrono::steady_clock::time_point;

  size_t size() const { return spots_.size(); }

  void Add(const FollowerPtr& follower, const Bookmark& bookmark);
  // Whether it was there.
  bool Remove(const Follower& follower);

  // Takes out whoever wants an entry of the commits, with the commit before its first one.
  std::vector<Woken> TakeFor(std::span<const CommitPtr> commits);
  std::vector<Woken> TakeAll(store::CommitPosition passed);

  // Takes out whose bookmark is due at `now`, where commits up to `position` have been looked at.
  // Those that have been told of that stop counting, until something has moved.
  std::vector<Woken> TakeDue(Time now, store::CommitPosition position);
  void Moved();
  // When the first bookmark that counts becomes due.
  std::optional<Time> NextDue() const;

 private:
  using Followers = absl::flat_hash_set<const Follower*>;
  struct Spot {
    FollowerPtr follower;
    Bookmark bookmark;
  };

  void Take(const Follower* follower, store::CommitPosition passed, std::vector<Woken>& woken);

  absl::flat_hash_map<const Follower*, Spot> spots_;
  std::set<std::pair<Time, const Follower*>> due_;
  Followers quiet_;  // are not in due_
  absl::flat_hash_map<std::string, Followers> of_collections_;
  Followers of_all_;
};

}  // namespace strata::feed
