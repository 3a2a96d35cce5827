// Who hears of every call that ends: the access log, metrics.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace strata::observability {

// How a call ended. The views live until the observer returns.
struct CallEnd {
  using Time = std::chrono::steady_clock::time_point;

  std::string_view method;     // "strata.v1.DocumentService/Get"; "unknown" if there is none
  const absl::Status& status;  // its code, and its reason (schemas/base/error.h)
  Time arrival;
  Time end;
  size_t request_bytes = 0;  // of a stream: of all its messages
  size_t response_bytes = 0;

  std::chrono::microseconds duration() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(end - arrival);
  }
};

// Thread-safe.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // Once for each call, just before its answer is sent, or when its caller has given up. On any
  // thread, perhaps with the call's lock held: returns soon and does not touch the call.
  virtual void OnEnd(const CallEnd& end) = 0;
};

}  // namespace strata::observability
