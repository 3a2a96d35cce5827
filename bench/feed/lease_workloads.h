// Workloads on leases. Each slot has leases of its own, so that none waits for another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/load/closed_loop.h"

namespace strata::bench {

struct HeldLease {
  std::string name;
  int64_t token = 0;
  int32_t acknowledged = 0;  // how many places a fenced update has moved it
};

// Acquires so many leases, all of one holder.
std::unique_ptr<Workload> AcquireAll(std::vector<HeldLease>& leases, int64_t count);

// Acquires them one after the other again and again, each slot those that AcquireAgain gives it.
std::unique_ptr<Workload> AcquireInTurn(std::vector<HeldLease>& leases, int in_flight);

// Acquires them at random again, a slot those whose number it leaves as a remainder by
// `in_flight`.
std::unique_ptr<Workload> AcquireAgain(std::vector<HeldLease>& leases, int in_flight,
                                       uint64_t seed);

// Each slot renews the lease of its number.
std::unique_ptr<Workload> RenewOwn(const std::vector<HeldLease>& leases);

enum class Fence {
  kToken,  // the lease is compared
  kPlace,  // and its place moves, by one event each
};
// Updates, each fenced with the lease of its slot's number.
std::unique_ptr<Workload> Fenced(std::unique_ptr<Workload> updates, std::vector<HeldLease>& leases,
                                 Fence fence);

}  // namespace strata::bench
