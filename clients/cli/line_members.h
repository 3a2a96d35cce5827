// The members of a line that is one JSON object, one after the other.
#pragma once

#include <bson/bson.h>

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace strata::cli {

using MemberVisitor = std::function<absl::Status(std::string_view name, const bson_iter_t& value)>;

// Visits the members of `text` in their order. INVALID_ARGUMENT if it is not a JSON object or names
// a member twice; what `visit` answers ends it, with the member's name before it.
absl::Status VisitMembers(std::string_view text, const MemberVisitor& visit);

// Reads a member that has to be a string.
absl::Status ReadString(const bson_iter_t& value, std::string& field);

// Reads a member that has to be a whole number.
absl::Status ReadWhole(const bson_iter_t& value, int64_t& field);

}  // namespace strata::cli
