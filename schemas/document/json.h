// Lossless conversion between BSON and the wire form of google.protobuf.Struct, in MongoDB Extended
// JSON v2.
//
// Works on the bytes of the protobuf messages Struct, Value and ListValue, without message objects:
// building and serialising a Struct costs more than everything else that a call does. Any protobuf
// library can read what AppendStruct writes and write what ContentFromStruct reads.
//
// Struct has doubles only and no member order, so: members are stored sorted by their bytes; a
// whole number within ±2^53 becomes an integer (int32 if it fits, else int64); a whole number
// beyond is refused, as it was rounded before it arrived; -0.0 in a plain number stays a double.
// Types beyond JSON are Extended JSON wrappers, as relaxed form where JSON can hold the value and
// canonical form otherwise:
//   int32, int64 within ±2^53   plain number        int64 beyond   {"$numberLong":
//   "9007199254740993"} double with a fraction      plain number        whole double, -0.0
//   {"$numberDouble": "1.0"} datetime    {"$date": "2026-01-31T12:00:00Z"} for years 1970 to 9999,
//   else {"$date": {"$numberLong": "…"}} ObjectId    {"$oid": "24 hex digits"}           binary
//   {"$binary": {"base64": "…", "subType": "2 hex digits"}} decimal128  {"$numberDecimal": "…"}
//   regex    {"$regularExpression": {"pattern": "…", "options": "…"}} timestamp   {"$timestamp":
//   {"t": n, "i": n}}    minKey, maxKey   {"$minKey": 1}, {"$maxKey": 1}
// Read besides: {"$numberInt": "…"}, {"$numberLong": …} within ±2^53, {"$uuid": "…"}. An object
// with one of these member names that is not exactly that wrapper is refused; other names beginning
// with "$" are ordinary members.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/document/content.h"

namespace strata::document {

// INVALID_CONTENT with metadata "path" (JSON Pointer) and what to write instead;
// DOCUMENT_TOO_LARGE. Never reads past depth `limits.depth_max`.
absl::StatusOr<Content> ContentFromStruct(std::string_view struct_wire, const Limits& limits);
absl::StatusOr<Value> ValueFromProto(std::string_view value_wire, const Limits& limits);
// A google.protobuf.ListValue as a BSON array value.
absl::StatusOr<Value> ArrayFromListValue(std::string_view list_wire, const Limits& limits);

// Appends the wire form of the Struct (Value). The size is exact and known in one pass without
// writing.
void AppendStruct(const Content& content, std::string& out);
size_t StructSize(const Content& content);
void AppendValue(const Value& value, std::string& out);

}  // namespace strata::document
