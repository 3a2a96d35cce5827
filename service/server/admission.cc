#include "service/server/admission.h"

#include <string>

#include "schemas/base/error.h"

namespace strata::server {

absl::Status Admission::Admit(const Method& method, const CallInfo& /*info*/) const {
  if (method.operational) return absl::OkStatus();
  if (draining_.load(std::memory_order_relaxed)) {
    return Error(ErrorReason::kDraining, "server is draining");
  }
  if (bytes_in_flight_.load(std::memory_order_relaxed) > bytes_in_flight_max_) {
    return Error(ErrorReason::kOverloaded, "too much is in flight");
  }
  return absl::OkStatus();
}

absl::Status Admission::AdmitMessage(size_t bytes) const {
  if (bytes <= message_bytes_max_) return absl::OkStatus();
  return Error(ErrorReason::kInvalidMessage,
               "the message has " + std::to_string(bytes) + " bytes, at most " +
                   std::to_string(message_bytes_max_) + " are allowed")
      .With("size", static_cast<int64_t>(bytes))
      .With("limit", static_cast<int64_t>(message_bytes_max_));
}

}  // namespace strata::server
