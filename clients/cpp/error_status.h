// Errors as absl::Status: what of them a status has no place for travels as its payload.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "strata/client/error.h"

namespace strata::client {

// REQUIRES: error.code is not OK.
absl::Status StatusOf(const Error& error);

// By its name on the wire; kNone: not known here.
Reason ReasonFromName(std::string_view name);

// INVALID_ARGUMENT / INVALID_CONTENT as the server would answer: the member at `path` "is NaN".
absl::Status RefusedContent(const std::string& path, const std::string& problem);
// RESOURCE_EXHAUSTED / DOCUMENT_TOO_LARGE: no server takes more than 2 MiB. `path`: where that was
// noticed.
absl::Status TooLargeContent(const std::string& path);
// INVALID_ARGUMENT / INVALID_FIELD.
absl::Status RefusedField(const std::string& field, const std::string& problem);

}  // namespace strata::client
