// Ends the history of messages that are remembered for longer than they are kept. Internal to this
// folder.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/queue/dispatcher.h"
#include "schemas/queue/queue_record.h"

namespace strata::queue {

// A finished message with a request id is remembered for a day from its push on, and kept for its
// queue's history_retention as it is now (IsKept). What lies between is a stub: without payload and
// headers. Others go by themselves. Used by one thread at a time.
class HistorySweep {
 public:
  explicit HistorySweep(QueueEnvironmentPtr environment) : environment_(std::move(environment)) {}

  // Makes stubs of those of the queue whose time has come, some of them; whether there are more.
  // STORE_UNAVAILABLE, RECORD_CORRUPT.
  absl::StatusOr<bool> Sweep(const QueueRecord& queue);

 private:
  // How far a queue's hints were looked at. They are in the order of the times at which messages
  // finished.
  struct Place {
    std::chrono::microseconds retention{0};
    std::string after;         // the last key that needs no second look
    UnixMicros look_at = 0;    // before that there is nothing to do
    UnixMicros anew_from = 0;  // when the look began at the first key
  };

  absl::Status SweepOne(const QueueRecord& queue, const Hint& hint, std::string_view key,
                        UnixMicros now);

  const QueueEnvironmentPtr environment_;
  absl::flat_hash_map<int64_t, Place> places_;  // by incarnation
};

}  // namespace strata::queue
