// What queues do by themselves is done in the name of a principal who once ordered it: who last
// changed the queue's settings, made the schedule, or pushed the message.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace strata::queue {

// Asks whether that principal may still do it. An empty principal is one that was not known.
// Thread-safe.
class StandingGrants {
 public:
  virtual ~StandingGrants() = default;

  // Of an enrollment sink.
  virtual bool MayWriteCollection(const std::string& principal,
                                  std::string_view collection) const = 0;
  // Of a dead letter queue and a schedule.
  virtual bool MayWriteQueue(const std::string& principal, std::string_view queue) const = 0;
  // Of a message for an enrollment sink that bears another's name: OK, or ACT_FOR_DENIED.
  virtual absl::Status MayActFor(const std::string& principal, std::string_view name,
                                 std::string_view collection) const = 0;
};

}  // namespace strata::queue
