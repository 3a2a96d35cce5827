// W1 to W5, T1 and T2 on a peer, as a closed loop: a fixed number of calls in flight, each answer
// followed by the next call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "bench/peers/peer.h"
#include "bench/support/measurement.h"

namespace strata::bench {

struct WorkloadSettings {
  std::chrono::milliseconds warm_up{1000};
  std::chrono::milliseconds duration{3000};
  int64_t documents = 10'000;
  uint64_t seed = 1;
};

// Fills the peer, which is empty, and runs one workload after another; `take` gets each result.
// Throws std::runtime_error if the peer cannot be filled or falls silent, and InterruptedError.
void RunWorkloads(const std::string& system, Peer& peer, const WorkloadSettings& settings,
                  const std::function<void(const Measurement&)>& take);

}  // namespace strata::bench
