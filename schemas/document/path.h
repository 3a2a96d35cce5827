// JSON Pointers (RFC 6901): how a member inside a document is named.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace strata::document {

// A parsed pointer: "" is the whole document, "/a~1b/0" the first element of member "a/b".
class Path {
 public:
  Path() = default;

  // INVALID_PATH (with metadata "path") unless `text` is empty or begins with "/", escapes only as
  // "~0" and "~1", is UTF-8 without zero bytes and has at most kSegmentsMax segments.
  static absl::StatusOr<Path> Parse(std::string_view text);

  static constexpr size_t kSegmentsMax = 64;

  const std::vector<std::string>& segments() const { return segments_; }
  void Push(std::string_view segment) { segments_.emplace_back(segment); }
  void Pop() { segments_.pop_back(); }
  std::string ToString() const;

 private:
  std::vector<std::string> segments_;
};

// The array index that a segment names: decimal digits without leading zero; -1 for anything else,
// and for what does not fit an int32.
int ArrayIndex(std::string_view segment);

// Appends one escaped segment, with its leading "/", to a pointer's text.
void AppendSegment(std::string_view segment, std::string& pointer);

}  // namespace strata::document
