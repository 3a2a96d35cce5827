// The differences between two contents, member by member, for people and programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schemas/document/content.h"
#include "schemas/document/path.h"

namespace strata::document {

enum class ChangeType { kAdded, kRemoved, kChanged };

struct FieldChange {
  std::string path;  // a JSON Pointer
  ChangeType type = ChangeType::kChanged;
  std::optional<Value> before;  // absent for kAdded
  std::optional<Value> after;   // absent for kRemoved
};

// Behind a path longer than this, what changes inside a member is one change of the member. So a
// member name as long as the document cannot be repeated for each of its thousands of members.
inline constexpr size_t kDiffPathMax = 512;

// What changed from `before` to `after`, at the deepest member that changed: objects are compared
// by member name, arrays by position behind their common beginning and before their common end (an
// element put in front of an array is one addition). A path of a removed array element counts in
// `before`, any other in `after`. Member order and the width of whole numbers do not count as
// change. Ordered by `before`'s member order, additions last within each object.
std::vector<FieldChange> Diff(const Content& before, const Content& after);

// Only the members that `paths` name, in the document's order, under their parents; what is absent
// is left out, and so are parents in which nothing that is named was found. Array elements that are
// named stand in an array of their own without gaps. The empty path is everything; no path at all
// is nothing.
Content Project(const Content& content, const std::vector<Path>& paths);

}  // namespace strata::document
