// A queue's message about an enrollment, as a line of JSON.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "strata/v1/enrollment_service.pb.h"

namespace strata::cli {

// Reads {"operation": "insert", "student_id": 1, "class": "CS 101", "sequence_number": 1000} into
// `request`. "operation" is "insert" or "delete"; a student_id that is a whole number becomes the
// id of its digits; "set", "actor", "reason" and "on_behalf_of" may stand there too and take the
// place of what `request` has. INVALID_ARGUMENT names the member that is wrong or missing.
absl::Status ParseEnrollmentLine(std::string_view text, v1::ApplyRequest& request);

}  // namespace strata::cli
