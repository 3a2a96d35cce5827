// W1 to W5, T1 and T2 on a peer, as a closed loop: a fixed number of calls in flight, each answer
// followed by the next call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
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

// What those who follow got in a round.
struct Followed {
  std::string feed;  // as strata_feed_load names it
  double events_per_second = 0;
  std::optional<double> behind_us;  // beside writers: from the last answer to the last event
};

// Fills the peer, which is empty and was started to be followed, so that there are ten versions of
// each document, and follows it: from the beginning, and 1 and 100 at once beside W1 with 64 in
// flight. Throws as RunWorkloads, and if events are missing or too many.
void RunFeed(Peer& peer, const WorkloadSettings& settings,
             const std::function<void(const Followed&)>& take);

}  // namespace strata::bench
