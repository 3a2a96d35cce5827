// The content of a document: validated BSON, immutable, cheap to copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/base/bytes.h"
#include "schemas/document/bson_view.h"

namespace strata::document {

// What a document may be. `bytes_max` holds in both encodings: for the BSON bytes and for the wire
// form of the google.protobuf.Struct that a JSON reader gets (struct_codec.h).
struct Limits {
  size_t bytes_max = size_t{1} << 20;  // at most kBytesCeiling
  int depth_max = 24;                  // the root is depth 1; each object or array inside adds one
  int nodes_max = 50'000;              // members and array elements, of all levels together

  static constexpr size_t kBytesCeiling = size_t{2} << 20;
};

// A BSON document that is known to be valid. Copies share the bytes, which may be part of others.
// Thread-safe, as it never changes.
class Content {
 public:
  // The empty document.
  Content();

  // Takes BSON bytes from a client. INVALID_CONTENT with metadata "path" (JSON Pointer, cut if it
  // is long), "problem" and perhaps "limit", unless they are one BSON document in canonical
  // framing, of accepted types only, with UTF-8 strings, no NaN or infinity (decimal128 included),
  // no member name twice in one object, array members named "0", "1", …, no member with the name of
  // an Extended JSON wrapper, which JSON would show as the value that it stands for
  // (struct_codec.h), and within the depth and node limits; DOCUMENT_TOO_LARGE with "size" and
  // "limit" past `limits.bytes_max` in either encoding. Accepted types: double, string, document,
  // array, binary, ObjectId, bool, UTC datetime, null, regex, int32, int64, timestamp, decimal128
  // (canonically encoded), minKey, maxKey. Deprecated ones (undefined, DBPointer, symbol, code with
  // or without scope) are refused.
  static absl::StatusOr<Content> FromBson(std::string bytes, const Limits& limits);

  // Takes bytes that this library made or that were validated before. REQUIRES: they are valid.
  static Content FromTrusted(std::string bytes);
  // The same of bytes that are `part` of `whole`, and keep all of it in memory.
  static Content FromTrusted(Bytes whole, std::string_view part);

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }

  friend bool operator==(const Content& a, const Content& b) {
    const bool same = a.bytes_.data() == b.bytes_.data() && a.size() == b.size();
    return same || a.bytes_ == b.bytes_;
  }

 private:
  Content(Bytes whole, std::string_view part) : whole_(std::move(whole)), bytes_(part) {}

  Bytes whole_;  // none: the part lives as long as the program
  std::string_view bytes_;
};

// Checks a document that was computed (the result of a patch) against everything that FromBson asks
// for: the limits in both encodings, and that no wrapper was put together.
absl::Status CheckLimits(const Content& content, const Limits& limits);

// Whether both say the same: member order and the width of whole numbers aside (int32 1 equals
// int64 1, but not double 1.0). An update to an equal content writes nothing.
bool SameMeaning(const Content& a, const Content& b);

}  // namespace strata::document
