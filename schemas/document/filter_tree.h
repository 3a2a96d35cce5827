// A compiled filter: what Filter::Compile makes and Filter::Matches walks.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/document/content.h"
#include "schemas/document/pattern.h"

namespace strata::document {

// A value in a document or a filter, where it stands.
struct Element {
  uint8_t type = 0;
  std::string_view value;
};

// What stands where a path names nothing. No value has this type byte.
inline constexpr uint8_t kMissingType = 0;

using FilterPath = std::vector<std::string>;

enum class FilterKind {
  // Of children, without a path.
  kAll,
  kAny,
  kNot,  // of its one child
  // Of one element: what a path leads to, or an element that $elemMatch looks at.
  kEqual,
  kGreater,
  kGreaterOrEqual,
  kLess,
  kLessOrEqual,
  kIn,
  kExists,
  kType,
  kPattern,
  kSize,
  kElementObject,  // an object in the array, with the children as a filter of that object
  kElementValue,   // an element of the array, with the children as conditions on it
};

struct FilterNode {
  explicit FilterNode(FilterKind of_kind, const FilterPath* at = nullptr)
      : kind(of_kind), path(at) {}

  FilterKind kind;
  const FilterPath* path;  // null if the node asks the element that it is given
  std::vector<FilterNode> children;
  Element operand;                // of comparisons
  std::vector<Element> values;    // kIn; in order
  std::vector<Pattern> patterns;  // kIn, kPattern
  uint32_t types = 0;             // kType: TypeBit of each
  int64_t size = 0;               // kSize
};

// A type's bit in a set of types.
inline uint32_t TypeBit(uint8_t type) {
  // minKey and maxKey have the only bytes past the bits.
  return uint32_t{1} << (type == 0xFF ? 30 : (type == 0x7F ? 31 : type & 31));
}

struct FilterTree {
  explicit FilterTree(Content given) : filter(std::move(given)) {}
  FilterTree(const FilterTree&) = delete;
  FilterTree& operator=(const FilterTree&) = delete;

  Content filter;                // nodes hold views into it
  std::deque<FilterPath> paths;  // nodes point at them
  FilterNode root{FilterKind::kAll};
};

// Fills in the paths and the root. Errors as Filter::Compile.
absl::Status CompileFilter(FilterTree& tree);

}  // namespace strata::document
