// Who consumes a subscription, and who has which of its partitions, as this process sees it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/feed/consumer_workshop.h"
#include "schemas/feed/subscription_record.h"
#include "schemas/lease/lease_record.h"

namespace strata::feed {

// A member's leases that nobody renews go after so long.
inline constexpr std::chrono::hours kDeadMemberKept{1};

// What one look saw.
struct View {
  std::vector<std::string> members;  // those alive
  std::vector<std::string> holders;  // of each partition; empty: it is free
  store::Stamp requests = 0;         // another one: something was asked of what is parked
};
using ViewPtr = std::shared_ptr<const View>;

// One who is shown what is seen.
class Onlooker {
 public:
  virtual ~Onlooker() = default;

  // Each look, in their order. SUBSCRIPTION_NOT_FOUND: there will be nothing more to see; what else
  // a look fails with may pass. On the executor.
  virtual void OnView(const absl::StatusOr<ViewPtr>& view) = 0;
  // The member that it is, while it lives: its lease is not asked then. Empty: none.
  virtual std::string member() const = 0;
  // Whether it knows of the partition as its own: the lease is not asked then. One that it took
  // without hearing of it, as the outcome was lost, is free once its lease has expired.
  virtual bool Has(int32_t partition) const = 0;
};

// A member is alive, and holds its partitions, while its lease lasts, while it is a living one of
// this process, and until its lease has stood unchanged for a ttl in which the store took this
// process's writes. A clock alone is no evidence: a disk that stalls, a process that was suspended
// and a clock that was set look the same as the death of all others.
//
// Looks for all consumers that a subscription has in this process, as each look visits every member
// and every partition: when somebody comes, goes or gives something back here, and each third of
// the lease's ttl while anybody is shown it. Thread-safe. Keep it in a shared_ptr: work in flight
// holds it.
class Lookout : public std::enable_shared_from_this<Lookout> {
 public:
  Lookout(std::shared_ptr<ConsumerWorkshop> workshop, StoredSubscription subscription);

  // Shows it what is seen from now on, for as long as it lives, and looks soon.
  void Show(std::weak_ptr<Onlooker> onlooker);
  // Looks soon; several calls share one look, which begins after all of them.
  void LookSoon();
  // Looks after so long, or up to 50 ms later, so that those of many fall together.
  void LookAfter(std::chrono::microseconds delay);

  // The lease of a member of this process was acquired or renewed, as was begun at `begun`.
  void NoteRenewal(std::chrono::steady_clock::time_point begun);

  // Whether the subscription is there, now. SUBSCRIPTION_NOT_FOUND; STORE_UNAVAILABLE.
  absl::Status Find() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  // A lease as it is since it was seen so first.
  struct Seen {
    store::Stamp token = 0;
    store::Stamp state_stamp = 0;
    Time since;
    uint64_t look = 0;  // the last that saw it
  };

  const Subscription& subscription() const { return subscription_.subscription; }
  std::chrono::microseconds Interval() const { return subscription().lease_ttl / 3; }
  void LookOnAndOn();
  void Look();
  absl::StatusOr<ViewPtr> See();
  // For how long the lease has been seen as it is, while the store took writes.
  std::chrono::steady_clock::duration Unchanged(const std::string& lease,
                                                const lease::StoredLease& stored);
  void Bury(const std::string& lease, const lease::StoredLease& stored) const;
  std::map<std::string, std::shared_ptr<Onlooker>> LivingHere();

  const std::shared_ptr<ConsumerWorkshop> workshop_;
  const StoredSubscription subscription_;

  std::unordered_map<std::string, Seen> seen_;  // by lease; only the thread that looks uses these
  uint64_t looks_ = 0;

  std::mutex mutex_;  // guards what follows
  std::vector<std::weak_ptr<Onlooker>> onlookers_;
  Time renewed_;           // the last renewal
  Time takes_since_;       // the store takes writes, without a pause that lasted longer than it may
  bool looks_on_ = false;  // again and again
  bool look_comes_ = false;  // soon
  std::set<Time> comes_at_;  // later
  bool looking_ = false;
  bool look_again_ = false;
};

}  // namespace strata::feed
