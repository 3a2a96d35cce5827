// Leases: exclusive, expiring holds on names, whose tokens fence off who no longer has one.
//
// Two records each (lease_record.h), on every engine. A clock only says when to try to take a lease
// from its holder; what makes that safe is the token, greater at each Acquire, which writes are
// checked against in their own commit (Fence) and which others compare with the greatest they saw.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/base/stop.h"
#include "schemas/base/waiter.h"
#include "schemas/lease/lease_record.h"
#include "schemas/lease/place.h"
#include "schemas/store/joined_plan.h"
#include "schemas/store/store.h"

namespace strata::lease {

inline constexpr std::chrono::microseconds kTtlMin = std::chrono::seconds(1);
inline constexpr std::chrono::microseconds kTtlMax = std::chrono::hours(1);
inline constexpr std::chrono::microseconds kTtlDefault = std::chrono::seconds(10);
inline constexpr std::chrono::microseconds kWaitMax = std::chrono::seconds(25);
inline constexpr size_t kMetadataMax = 32;
inline constexpr size_t kMetadataNameBytesMax = 128;
inline constexpr size_t kMetadataValueBytesMax = 256;
// Names that begin so are the server's own; clients do not get this far with one.
inline constexpr char kServersOwn = '$';

// A lease as it stands.
struct Lease {
  std::string name;
  std::string holder;  // empty: it was released
  // Of its holder; of a released lease one that nobody has, greater than its last holder's.
  store::Stamp token = 0;
  std::chrono::microseconds ttl{0};
  UnixMicros expire_time = 0;  // from then on others may take it
  Metadata metadata;
  Place place;       // up to where its holders are done; position 0: none was noted
  std::string data;  // State::data
  // Of Acquire: it was taken from a holder that had not released it, whose time was over then.
  std::optional<UnixMicros> abandoned;
};
using LeaseCallback = std::function<void(absl::StatusOr<Lease>)>;

struct AcquireRequest {
  std::string name;
  std::string holder;
  std::chrono::microseconds ttl = kTtlDefault;
  Metadata metadata;
  std::chrono::microseconds wait{0};  // while another has it
  // No wait goes beyond it, and no commit begins after it.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  bool background = false;  // the server takes it for itself: there is no deadline
  // Who waits for the answer; outlives the callback. No commit begins for one that is gone. Null:
  // nobody knows.
  const Waiter* waiter = nullptr;
  // What else has to hold for it, or is written with it; null: nothing. Needs atomic batches.
  store::JoinedPlan joined = nullptr;
};

struct RenewRequest {
  std::string name;
  store::Stamp token = 0;
  std::optional<std::chrono::microseconds> ttl;   // none: as before
  std::optional<store::CommitPosition> position;  // all up to here is done; none: as it was
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct ReleaseRequest {
  std::string name;
  store::Stamp token = 0;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// What a holder inside the server writes: the state of its lease as it sees fit, and more in the
// same commit. Needs atomic batches.
struct HeldWrite {
  enum class End : uint8_t {
    kNone,     // the lease lasts another ttl
    kRelease,  // others may take it at once
    kForget,   // both records go: for a name that never comes again
  };

  std::string name;
  store::Stamp token = 0;
  // Puts the place and the data into the state that is stored; false: that is all right as it is,
  // and nothing is written. Called at each attempt, on any thread, with no lock held.
  std::function<bool(State& state)> change;
  store::JoinedPlan joined;  // null: nothing
  End end = End::kNone;
};
struct HeldState {
  State state;           // as it is stored now
  bool written = false;  // by this call; false: `change` refused to
};

// Since the process began.
struct LeaseCounts {
  int64_t take_overs = 0;  // from a holder that had not released the lease
  int64_t lost = 0;        // calls and writes refused with LEASE_LOST
};

// What a writer shows: that it holds a lease, and how far it comes with the write.
struct LeaseToken {
  std::string name;
  store::Stamp token = 0;
  std::optional<Place> place;  // done with the write; none: the lease stays where it is
  std::optional<Place> after;  // must be done before it; only with `place`; none: not asked
};

struct LeaseQuery {
  std::string prefix;
  std::string after_name;  // empty: from the first on
  StopCheck stopped = {};
};

struct LeasesOptions {
  // Of calls of Acquire at once, of all names.
  size_t waiting_max = 10'000;
  // How often those who wait look what other processes have done.
  std::chrono::microseconds look_interval = std::chrono::seconds(1);
  // Released leases without a place are forgotten after so long, where stamps are positions.
  std::chrono::microseconds released_kept = std::chrono::hours(24 * 30);
  std::chrono::microseconds sweep_interval = std::chrono::hours(1);
  // How many leases are remembered whose times were written under another clock (expiries.h).
  size_t wrong_times_max = 10'000;
  // How many leases one turn of the sweeper looks at.
  size_t sweep_leases_max = 1'000;
};

// Thread-safe. Each callback comes once, on any thread, perhaps before the call returns, with no
// lock held. Reads are on the caller's thread; Acquire's later ones on the executor.
class Leases {
 public:
  // All must outlive it, and the executor the work in flight; of that, whatever comes after this is
  // destroyed leaves the others alone.
  Leases(store::Store& store, const Clock& clock, Executor& executor, LeasesOptions options = {});
  // As StopWaiting; what is under way in its executor's threads is waited for.
  ~Leases();

  // Takes the lease, unless somebody else under another holder name has it and does not let it go
  // in time. Those who wait for one lease get it in the order of their calls; waiting holds no
  // thread. LEASE_HELD {lease, holder, expire_time}; OVERLOADED if too many wait; DRAINING;
  // INVALID_NAME, INVALID_FIELD; RETRIES_EXHAUSTED, DEADLINE_EXCEEDED, OUTCOME_UNKNOWN (the lease
  // may be held until it expires; acquire it again), STORE_UNAVAILABLE, DISK_FULL, RECORD_CORRUPT.
  void Acquire(AcquireRequest request, LeaseCallback done);

  // The lease lasts another ttl from now on, whether it has expired or not. LEASE_LOST;
  // ALREADY_ACKNOWLEDGED for a position below the lease's place, POSITION_UNKNOWN for one above the
  // last commit, UNSUPPORTED_BY_ENGINE for one without commit positions; else as Acquire.
  void Renew(RenewRequest request, LeaseCallback done);

  // Others may take it at once; those who wait here hear of it. Its place stays. LEASE_LOST; else
  // as Acquire. Answers with the lease as it stands then.
  void Release(ReleaseRequest request, LeaseCallback done);

  // Writes the state of a lease that is held under the token, expired or not, at that very moment.
  // A place that `change` moves back stays where it is. LEASE_LOST; what `joined` refuses with;
  // RETRIES_EXHAUSTED, DEADLINE_EXCEEDED, OUTCOME_UNKNOWN, STORE_UNAVAILABLE, DISK_FULL,
  // RECORD_CORRUPT.
  void Write(HeldWrite request, std::function<void(absl::StatusOr<HeldState>)> done);

  LeaseCounts counts() const;

  // LEASE_NOT_FOUND, INVALID_NAME.
  absl::StatusOr<Lease> Get(const std::string& name) const;

  // Up to `most` of them in the byte order of their names.
  absl::StatusOr<std::vector<Lease>> List(const LeaseQuery& query, size_t most) const;

  // Whether another holder may not take the lease yet, as Acquire sees it: one whose time was
  // written under another clock is held for its ttl from when this process saw it first.
  bool IsHeld(std::string_view name, const StoredLease& stored) const;

  // The clock was set back: leases that end later than their ttls from now are stored with the
  // times at which they do end, by the executor.
  void SetRight();

  // For a write's `joined`: the write commits only if the lease is held under the token at that
  // very moment, whether it has expired by then or not, and moves its place with the commit.
  // LEASE_LOST, which no retry can change; ALREADY_ACKNOWLEDGED for a place that the lease has
  // reached, EVENT_OUT_OF_ORDER if it has not reached `after`, POSITION_UNKNOWN for a place after
  // the last commit, UNSUPPORTED_BY_ENGINE for a place without commit positions. The plan needs the
  // store, not this object.
  store::JoinedPlan Fence(LeaseToken token) const;

  // Nobody waits from now on: who does is answered DRAINING. What is free can still be acquired.
  void StopWaiting();

  // Forgets released leases, from now on, until this is destroyed; nothing where a forgotten
  // lease's tokens might come again.
  void StartSweeping();

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace strata::lease
