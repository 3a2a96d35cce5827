// The fence: a write that commits only while its writer holds a lease. Internal to this folder.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "schemas/lease/lease_record.h"
#include "schemas/lease/leases.h"
#include "schemas/store/joined_plan.h"
#include "schemas/store/store.h"

namespace strata::lease {

// What LeaseCounts tells of.
struct Counters {
  std::atomic<int64_t> take_overs = 0;
  std::atomic<int64_t> lost = 0;
};

// As Leases::Fence. The store must outlive it.
store::JoinedPlan MakeFence(const store::Store& store, std::shared_ptr<Counters> counters,
                            LeaseToken token);

// LEASE_LOST unless the lease is held under the token.
absl::Status CheckToken(std::string_view name, const StoredLease& lease, store::Stamp token);

// POSITION_UNKNOWN for a place after the last commit. UNSUPPORTED_BY_ENGINE without positions.
absl::Status CheckPlaceExists(const store::Store& store, std::string_view field,
                              const Place& place);

// ALREADY_ACKNOWLEDGED: that `place` is none to go to from `stored`.
absl::Status AlreadyAcknowledged(std::string_view name, const Place& place, const Place& stored);

}  // namespace strata::lease
