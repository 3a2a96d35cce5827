// When leases end, also those whose times were written under another clock. Internal to this
// folder.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "schemas/base/clock.h"
#include "schemas/lease/lease_record.h"
#include "schemas/store/store.h"

namespace strata::lease {

// A lease that ends later than its ttl from now was written under another clock: one that was ahead
// and was set right, or another server's. Its ttl is counted on the steady clock from when it is
// first seen here as it stands, so no holder's time is cut short: it was written before that. What
// was stored when this was made counts as seen then, where stamps are positions. Thread-safe.
class Expiries {
 public:
  // Both outlive it. It remembers that many leases, then no longer those it has known longest,
  // whose ttl begins anew when they are seen again.
  Expiries(const store::Store& store, const Clock& clock, size_t most);

  // From when on others may take the lease, by the wall clock as it is now. REQUIRES: it has a
  // state.
  UnixMicros ExpireTime(std::string_view name, const StoredLease& stored);

  // Another holder may not take it yet.
  bool IsHeld(std::string_view name, const StoredLease& stored) {
    return stored.IsHeld(clock_.Now()) && ExpireTime(name, stored) > clock_.Now();
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  // A lease as it is since it was seen so first.
  struct Seen {
    store::Stamp token = 0;
    store::Stamp state_stamp = 0;
    Time since;
  };

  const Clock& clock_;
  const size_t most_;
  const Time began_;
  const store::CommitPosition began_at_;  // what is stored up to here was there when this began

  std::mutex mutex_;  // guards what follows
  absl::flat_hash_map<std::string, Seen> seen_;
  std::deque<std::string> names_;  // of all of these, in the order in which they came
};

}  // namespace strata::lease
