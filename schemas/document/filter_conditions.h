// The conditions of a filter that hold no others: each is one operator and its operand.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/filter_tree.h"
#include "schemas/document/filter_walk.h"

namespace strata::document {

// Where conditions are compiled: on what `path` leads to (null: on the element that the node is
// given), added to `nodes`.
struct ConditionPlace {
  FilterWalk& walk;
  const FilterPath* path;
  std::vector<FilterNode>& nodes;
};

// The negation of a condition.
FilterNode NotNode(FilterNode node);

// Compares with a value.
absl::Status CompileEqual(const ConditionPlace& place, const Member& value);
// Matches a regular expression that stands as a value. REQUIRES: it is one.
absl::Status CompileRegex(const ConditionPlace& place, const Member& regex);

// An operator beside `siblings`, the object that it stands in. False in `known` if it is none of
// those that hold no others.
absl::Status CompileCondition(const ConditionPlace& place, std::string_view siblings,
                              const Member& condition, bool& known);

}  // namespace strata::document
