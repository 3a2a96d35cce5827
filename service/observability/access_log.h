// One line of the log for a call: every failed one, and all at level debug.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace strata::observability {

struct CallRecord {
  std::string_view method;  // "strata.v1.DocumentService/Get"
  const absl::Status& status;
  std::chrono::microseconds duration{0};
  size_t request_bytes = 0;
  size_t response_bytes = 0;
};

// Failures that the server is to blame for are warnings, those of the caller's making information.
void LogCall(const CallRecord& record);

}  // namespace strata::observability
