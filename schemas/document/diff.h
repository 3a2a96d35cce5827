// The differences between two contents, member by member, for people and programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
  bool values_omitted = false;  // both are absent, because they are too large
};

// Below a path longer than this, what changes inside a member is one change of the member. So a
// member name as long as the document cannot be repeated for each of its thousands of members.
inline constexpr size_t kDiffPathMax = 512;
// An object that has a member with a longer name on either side is compared as a whole. So no path
// is longer than both limits (and the escapes in it) together.
inline constexpr size_t kDiffNameMax = size_t{64} << 10;
// A change that takes more than so many bytes (WireSize) is told without its values.
inline constexpr size_t kChangeBytesMax = size_t{3} << 20;

// Called with each change; false: it was not taken, stop here.
using ChangeVisitor = std::function<bool(FieldChange&& change)>;

// Visits what changed from `before` to `after`, at the deepest member that changed: objects are
// compared by member name, arrays by position after their common beginning and before their common
// end (an element put in front of an array is one addition). A path of a removed array element
// counts in `before`, any other in `after`. Member order and the width of whole numbers do not
// count as change. Ordered by `before`'s member order, additions last within each object. The first
// `skip` changes are passed over. True if the visitor took all the others. Holds one change at a
// time.
bool VisitChanges(const Content& before, const Content& after, int64_t skip,
                  const ChangeVisitor& visitor);

// What a change takes as a strata.v1.FieldChange in a list of them.
size_t WireSize(const FieldChange& change);

struct Changes {
  std::vector<FieldChange> list;
  bool truncated = false;  // there are more
};

// The first changes, as many as take no more than `bytes_max` (WireSize) together.
Changes Diff(const Content& before, const Content& after, size_t bytes_max);

// Only the members that `paths` name, in the document's order, under their parents; what is absent
// is left out, and so are parents in which nothing that is named was found. Array elements that are
// named stand in an array of their own without gaps. The empty path is everything; no path at all
// is nothing.
Content Project(const Content& content, const std::vector<Path>& paths);

}  // namespace strata::document
