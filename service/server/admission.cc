#include "service/server/admission.h"

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

}  // namespace strata::server
