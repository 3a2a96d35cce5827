// The one pass that decides whether bytes are a BSON document that Strata stores.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "schemas/document/content.h"

namespace strata::document {

// INVALID_CONTENT unless `bytes` are as Content::FromBson says, the size limits aside.
absl::Status CheckBson(std::string_view bytes, const Limits& limits);

// DOCUMENT_TOO_LARGE if the content passes `limits.bytes_max` in one of the two encodings.
absl::Status CheckSizes(const Content& content, const Limits& limits);

// Whether `bytes` are one well-formed BSON document no deeper than `depth_max`: everything that
// CheckBson asks for, except for wrappers, options of patterns and the number of nodes.
bool IsWellFormed(std::string_view bytes, int depth_max);

}  // namespace strata::document
