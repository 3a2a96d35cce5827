// Why a call failed. Every absl::Status of this library that a server made, or that stands for no
// answer of a server, can be asked for it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "strata/client/reason.h"

namespace strata::client {

struct Error {
  // kNone: no Strata server said why, or a reason that this library is too old to know: see
  // `reason_name`.
  Reason reason = Reason::kNone;
  // "VERSION_CONFLICT". Empty: no Strata server said why.
  std::string reason_name = {};
  absl::StatusCode code = absl::StatusCode::kUnknown;
  std::string message = {};
  // The facts that error_reason.proto lists for the reason.
  std::map<std::string, std::string> metadata = {};
  // Not before so long does another try make sense. Unset: the server does not invite one.
  std::optional<absl::Duration> retry_delay = {};
  // The call was a write, and it is not known whether it was done. Made again with the same
  // request id it takes effect once.
  bool outcome_unknown = false;
  // That the call was made with. Empty: it had none.
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
