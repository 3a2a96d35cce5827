// A call that may be made again is, as long as there is time; what was unknown once stays unknown
// until an answer settles it.
#include "clients/cpp/attempts.h"

#include <google/protobuf/descriptor.pb.h>

#include <utility>

#include "clients/cpp/error_status.h"

namespace strata::client {

// Each file has one service at most, and each of its methods has its own request.
CallKind KindOf(const google::protobuf::Descriptor& request) {
  const google::protobuf::ServiceDescriptor& service = *request.file()->service(0);
  int i = 0;
  while (service.method(i)->input_type() != &request) ++i;
  const auto level = service.method(i)->options().idempotency_level();
  return {.writes = level != google::protobuf::MethodOptions::NO_SIDE_EFFECTS,
          .harmful_twice = level == google::protobuf::MethodOptions::IDEMPOTENCY_UNKNOWN};
}

absl::Status StatusOf(const Refusal& refusal, bool outcome_unknown, const std::string& request_id) {
  Error error;
  error.code = static_cast<absl::StatusCode>(refusal.code);
  error.reason_name = refusal.reason;
  error.message = refusal.message;
  error.metadata = refusal.metadata;
  if (refusal.retry_delay_ms.has_value()) {
    error.retry_delay = absl::Milliseconds(*refusal.retry_delay_ms);
  }
  error.outcome_unknown = outcome_unknown;
  error.request_id = request_id;
  return StatusOf(error);
}

std::optional<Attempts::Clock::time_point> Attempts::Failed(Refusal refusal, int64_t patience_ms) {
  unknown_before_ = unknown_before_ || (failures_ > 0 && refusal_.LeavesOutcomeUnknown());
  if (settled_) {
    first_ = Clock::now();
    settled_ = unknown_before_ = false;
  }
  ++failures_;
  refusal_ = std::move(refusal);
  const bool again = kind_.harmful_twice ? refusal_.IsRetryableOnce() : refusal_.IsRetryable();
  if (!again || patience_ms <= 0) return std::nullopt;
  return Repetition(patience_ms).Next(refusal_, failures_, first_);
}

absl::Status Attempts::status(const std::string& request_id) const {
  const bool settles =
      !refusal_.IsRetryable() && (!request_id.empty() || !refusal_.MayBeOfOwnDoing());
  const bool unknown = refusal_.LeavesOutcomeUnknown() || (unknown_before_ && !settles);
  return StatusOf(refusal_, kind_.writes && unknown, request_id);
}

}  // namespace strata::client
