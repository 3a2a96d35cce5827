// Why a call failed. ErrorOf reads it from every absl::Status of this library that a server made,
// or that stands for a missing answer.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "strata/client/reason.h"

namespace strata::client {

struct Error {
  // kNone: no Strata server gave a reason, or this library is too old to know it: see
  // `reason_name`.
  Reason reason = Reason::kNone;
  // "VERSION_CONFLICT". Empty: no Strata server gave a reason.
  std::string reason_name = {};
  absl::StatusCode code = absl::StatusCode::kUnknown;
  std::string message = {};
  // The facts that error_reason.proto lists for the reason.
  std::map<std::string, std::string> metadata = {};
  // The time after which another try makes sense. Unset: the server does not invite one.
  std::optional<absl::Duration> retry_delay = {};
  // The call was a write with an unknown outcome. Repeated with the same request id, it takes
  // effect once.
  bool outcome_unknown = false;
  // The request id of the call. Empty: it had none.
  std::string request_id = {};

  // "VERSION_CONFLICT: version is 4, not 3 (actual=4 expected=3)".
  std::string ToString() const;
};

// REQUIRES: `status` is not OK.
Error ErrorOf(const absl::Status& status);

// For a switch: `switch (ReasonOf(status)) { case Reason::kVersionConflict: …`. kNone also if
// `status` is OK.
Reason ReasonOf(const absl::Status& status);

// "VERSION_CONFLICT"; empty for kNone.
std::string ReasonName(Reason reason);

}  // namespace strata::client
