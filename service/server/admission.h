// Decides on every call, unary or stream, before it is handled.
#pragma once

#include <atomic>
#include <cstddef>

#include "absl/status/status.h"
#include "service/server/call_info.h"
#include "service/server/method.h"

namespace strata::server {

// Thread-safe.
class Admission {
 public:
  Admission(size_t message_bytes_max, size_t bytes_in_flight_max)
      : message_bytes_max_(message_bytes_max), bytes_in_flight_max_(bytes_in_flight_max) {}

  // OK, or how the call is answered instead of being handled: DRAINING, OVERLOADED. Operational
  // methods are always admitted.
  absl::Status Admit(const Method& method, const CallInfo& info) const;

  // OK, or why a request, or one message of a stream, is not even decoded: INVALID_MESSAGE if it is
  // larger than any may be.
  absl::Status AdmitMessage(size_t bytes) const;

  // From now on nothing new is admitted.
  void Drain() { draining_ = true; }
  bool draining() const { return draining_; }

  // Requests being handled and answers being sent, of all unary calls together.
  void Enter(size_t bytes) { bytes_in_flight_.fetch_add(bytes, std::memory_order_relaxed); }
  void Leave(size_t bytes) { bytes_in_flight_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const size_t message_bytes_max_;
  const size_t bytes_in_flight_max_;
  std::atomic<bool> draining_ = false;
  std::atomic<size_t> bytes_in_flight_ = 0;
};

}  // namespace strata::server
