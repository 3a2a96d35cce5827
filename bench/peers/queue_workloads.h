// The queue workloads on a peer, as a closed loop: a fixed number of calls in flight, each answer
// followed by the next call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "bench/peers/queue_peer.h"
#include "bench/support/measurement.h"

namespace strata::bench {

struct QueueSettings {
  std::chrono::milliseconds warm_up{1000};
  std::chrono::milliseconds duration{3000};
  int64_t documents = 10'000;
  int64_t waiting = 100'000;  // messages in q2_cycle_waiting; 0 leaves it out
  uint64_t seed = 1;
};

// One workload after another, each on a queue of its own; `take` gets each result, whose calls are
// messages and whose latencies are those of calls. Throws std::runtime_error if the peer falls
// silent, and InterruptedError.
void RunQueueWorkloads(const std::string& system, QueuePeer& peer, const QueueSettings& settings,
                       const std::function<void(const Measurement&)>& take);

}  // namespace strata::bench
