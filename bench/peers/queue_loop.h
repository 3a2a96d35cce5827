// A closed loop over a queue: what a workload calls, slot by slot, what it takes of the answers,
// and how the time between them is counted.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bench/peers/queue_peer.h"
#include "bench/support/measurement.h"

namespace strata::bench {

// What is called next, and what of it counts. Called by one thread.
class QueueWorkload {
 public:
  virtual ~QueueWorkload() = default;
  virtual std::string name() const = 0;
  virtual int slots() const = 0;
  // The next call of a slot. False: there is none, for ever or until the slot is woken.
  virtual bool Next(int slot, QueueCall& call) = 0;

  struct Outcome {
    int64_t results = 0;         // that this answer completes
    bool is_on_the_way = false;  // the slot has more to do for its result
    bool is_wrong = false;
  };
  virtual Outcome Answered(int slot, const QueueAnswer& answer) = 0;
  // A slot that had no next call and may have one by now; asked after each answer until there is
  // none.
  virtual std::optional<int> Woken() { return std::nullopt; }
};

// With no duration, until the workload has no more calls. It may run out of them before.
// Throws std::runtime_error if the peer falls silent, and InterruptedError.
Measurement RunLoop(QueuePeer& peer, QueueWorkload& workload, std::chrono::milliseconds warm_up,
                    std::chrono::milliseconds duration);

}  // namespace strata::bench
