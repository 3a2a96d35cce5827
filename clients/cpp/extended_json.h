// JSON text to BSON and back, without loss: MongoDB Extended JSON v2, member order kept. Wrappers
// are read and written by the same rules as in the server (schemas/document/extended_json).
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata::client {

// Reads one JSON object into one BSON document, member order kept. Whole numbers without fraction
// and exponent become int32 or, where that is too small, int64; other numbers become doubles
// (so 1 and 1.0 differ). Extended JSON wrappers such as {"$numberLong": "5"} and
// {"$date": "2026-01-31T12:00:00Z"} become their types, and an object with the name of one that is
// not exactly that wrapper is refused. INVALID_ARGUMENT names what is wrong and
// the byte where; OUT_OF_RANGE means that the JSON is well-formed but no BSON number holds the
// value. What only the server can judge (limits, members named twice) passes.
absl::StatusOr<std::string> BsonFromJson(std::string_view json);

// As BsonFromJson for any JSON value: the answer is a document whose only member, "v", is the
// value.
absl::StatusOr<std::string> BsonFromJsonValue(std::string_view json);

// How numbers are written; all else is the same in each style.
enum class JsonStyle {
  // For people: 5, 1.0, 9007199254740993. Read back, an int64 that fits an int32 becomes one.
  kRelaxed,
  // As kRelaxed, but BsonFromJson gives the same bytes again: an int64 that fits an int32 is
  // written as {"$numberLong": "5"}.
  kExact,
  // For readers that have doubles only, such as google.protobuf.Value: also whole doubles and int64
  // from ±2^53 on are wrapped.
  kDoublesOnly,
};

// Writes a BSON document as JSON. `indent` 0: on one line without blanks; otherwise so many blanks
// a level. INVALID_ARGUMENT if the BSON is damaged or holds a type that Strata does not store.
absl::StatusOr<std::string> JsonFromBson(std::string_view bson, JsonStyle style, int indent = 0);

// Writes the value of the only member of a BSON document, as BsonFromJsonValue makes them.
absl::StatusOr<std::string> JsonFromBsonValue(std::string_view bson, JsonStyle style,
                                              int indent = 0);

// Appends `text` as a JSON string, quotes included. Everything but quotes, backslashes and what
// terminals obey (printable.h) stays as it is.
void AppendJsonString(std::string_view text, std::string& json);

// Whether `text` is well-formed UTF-8.
bool IsUtf8(std::string_view text);

}  // namespace strata::client
