// Which names in a filter are operators.
#pragma once

#include <string_view>

#include "schemas/document/bson_view.h"

namespace strata::document {

// For refusals.
inline constexpr std::string_view kFilterOperatorList =
    "$eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists, $type, $size, $regex (with $options), "
    "$elemMatch, $all and $not under a member name, and $and, $or and $nor beside member names";

// Begins like an operator, whether there is such a one or not.
inline bool IsOperatorName(std::string_view name) { return !name.empty() && name[0] == '$'; }

// $and, $or, $nor: stand beside member names.
bool IsListOperator(std::string_view name);

// Stands under a member name.
bool IsMemberOperator(std::string_view name);

// A member of a DBRef, which is a value although its names begin with "$".
bool IsReferenceName(std::string_view name);

// An object of operators, not a value to compare with.
bool HoldsOperators(const Member& member);

bool FindMember(std::string_view object, std::string_view name, Member& member);

// Empty for an empty object.
std::string_view FirstName(std::string_view object);

}  // namespace strata::document
