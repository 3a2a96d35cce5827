// Changes to a document: RFC 7396 merge patches and operations on single members.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/document/content.h"
#include "schemas/document/path.h"

namespace strata::document {

enum class OperationKind {
  kSet,        // operand: any value
  kUnset,      // no operand; nothing there is no error; an array's element becomes null, so that
               // the others keep their indices (as MongoDB's $unset)
  kIncrement,  // operand: a number; an absent member starts at zero
  kAppend,     // operand: an array whose elements are appended; an absent member becomes the array
  kAppendMissing,  // as kAppend, but only the elements that no present element equals (MongoDB's
                   // $addToSet)
  kRemoveAll,      // operand: an array; removes every element that equals one of its elements
                   // ($pullAll); nothing there is no error
};

// kAppendMissing and kRemoveAll take two elements for equal as filters do (Compare): numbers by
// their exact value whatever their type (1, 1.0 and decimal128 1.0); but whatever the order of
// members, which JSON does not have.
struct Operation {
  Path path;
  OperationKind kind = OperationKind::kSet;
  Value operand;  // valid BSON, as ValueFromProto makes it
};

struct Patch {
  std::optional<Content>
      merge;  // RFC 7396, applied first: null removes, objects merge, all else replaces
  std::vector<Operation> operations;  // then these, in order

  static constexpr size_t kOperationsMax = 1000;
  // What the operations may read of the document altogether: each reads it once, kAppendMissing and
  // kRemoveAll count eightfold. Only hundreds of operations on a document near its limit get there.
  static constexpr size_t kWorkBytesMax = size_t{256} << 20;
};

// What the operations cost at the worst, in bytes that are read, on a document that keeps its size
// of so many bytes; more than Patch::kWorkBytesMax counts, where elements are compared.
size_t WorkBytes(const Patch& patch, size_t document_bytes);

// `base` with the patch applied, whole or not at all. Missing parents of set, increment, append are
// made (as objects). INVALID_PATCH with metadata "field" ("operations[2]"), "path" and the problem:
// a path through a scalar, an array index past the end (the end itself and "-" append), an
// increment of a non-number, an integer increment that overflows int64, a double one that becomes
// infinite, a decimal128 one that would have to be rounded (addition.h), an append to a non-array,
// an operand of the wrong type, an empty path with anything but set of an object, more than
// Patch::kOperationsMax operations or Patch::kWorkBytesMax. (Unset and remove-all of what a path
// through a scalar names find nothing there, and that is no error.) Member order: members that stay
// keep their place, new ones go last. The result is checked against `limits`: INVALID_CONTENT or
// DOCUMENT_TOO_LARGE as CheckLimits.
absl::StatusOr<Content> ApplyPatch(const Content& base, const Patch& patch, const Limits& limits);

}  // namespace strata::document
