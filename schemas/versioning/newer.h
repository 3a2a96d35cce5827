// Numbers that only grow: how writes that arrive late, twice or out of order leave no trace.
//
// Such a write says which integer of the content it makes greater, and applies only if it does. A
// deletion, which has no content, keeps the number in a label of its own, so that a late write does
// not bring the document back; what was never written is deleted for the same reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/base/names.h"
#include "schemas/document/content.h"
#include "schemas/document/path.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

struct CurrentState;

inline constexpr size_t kNewerPathBytesMax = 120;

// The prefix of the labels of deletions that keep a number; the path follows. Labels of requests
// never do (ValidateChange).
inline constexpr std::string_view kNewerLabelPrefix = "newer:";

// The integer at `path` has to be below `value`, which it becomes then.
struct Newer {
  document::Path path;
  int64_t value = 0;

  // INVALID_PATH, whose metadata "field" is "path", unless it is a JSON Pointer to a member, of at
  // most kNewerPathBytesMax bytes.
  static absl::StatusOr<Newer> Make(std::string_view path, int64_t value);

  // Of a deletion: the name of the label, and its value.
  std::string Label() const;
  std::string LabelValue() const;

  friend bool operator==(const Newer& a, const Newer& b) {
    return a.path.segments() == b.path.segments() && a.value == b.value;
  }
};

// Whether the document is as new already, or newer. Over a deletion counts the number that it
// keeps; if it keeps none, that of the version before it, and so on down to the last content:
// deletions of deletions cost a read each. NUMBER_EXPECTED for what is no integer, or no place for
// one; TakesLong where others wait and there are many deletions; what reading fails with.
absl::StatusOr<bool> IsStale(const DocumentName& name, const Newer& newer,
                             const CurrentState& current);

// The content with the number, as a patch's set puts it there: missing parents are made as objects.
// INVALID_PATH, whose metadata "field" is "precondition.newer.path", where the path goes through an
// array or a scalar, or makes what no content may be; DOCUMENT_TOO_LARGE.
absl::StatusOr<document::Content> WithNumber(const document::Content& content, const Newer& newer,
                                             const document::Limits& limits);

// Whether the version is a deletion that keeps a number.
bool KeepsNumber(const VersionHeader& header);
// The labels with numbers that a version has: what a copy of the deletion has to keep.
std::map<std::string, std::string> NumbersKept(const StoredVersion& version);

}  // namespace strata::versioning
