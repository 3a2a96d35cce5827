// Lossless conversion between BSON and the wire form of google.protobuf.Struct, in MongoDB Extended
// JSON v2.
//
// Works on the bytes of the protobuf messages Struct, Value and ListValue, without message objects:
// building and serialising a Struct costs more than everything else that a call does. Any protobuf
// library can read what AppendStruct writes and write what ContentFromStruct reads.
//
// Struct has doubles only and no member order, so members are stored sorted by their bytes, and
// integer width is not kept. A plain number that is whole and below 2^53 in size becomes an integer
// (int32 if it fits, else int64). From 2^53 on a whole number is refused, as it was perhaps rounded
// before it arrived: the client's 9007199254740993 is 9007199254740992.0 here. -0.0 stays a double.
//
// Types beyond JSON are Extended JSON wrappers, in relaxed form where JSON can hold the value and
// in canonical form otherwise:
//
//   int32, int64 below 2^53    plain number
//   int64 from 2^53 on         {"$numberLong": "9007199254740993"}
//   double with a fraction     plain number
//   whole double, -0.0         {"$numberDouble": "1.0"}
//   datetime, 1970 to 9999     {"$date": "2026-01-31T12:00:00Z"}, or with milliseconds "…:00.250Z"
//   any other datetime         {"$date": {"$numberLong": "-1"}}
//   ObjectId                   {"$oid": "24 hex digits"}
//   binary                     {"$binary": {"base64": "…", "subType": "2 hex digits"}}
//   decimal128                 {"$numberDecimal": "1.50"}
//   regex                      {"$regularExpression": {"pattern": "…", "options": "…"}}
//   timestamp                  {"$timestamp": {"t": 1, "i": 1}}
//   minKey, maxKey             {"$minKey": 1}, {"$maxKey": 1}
//
// Read besides: {"$numberInt": "…"}, {"$numberLong": "…"} of any size, {"$numberDouble": "0.5"},
// {"$uuid": "…"}, a datetime with an offset. An object with one of these member names that is not
// exactly that wrapper is refused, and so is the document itself with such a member; other names
// beginning with "$" are ordinary members. A wrapper is a value: it adds no level and one node.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/document/content.h"

namespace strata::document {

// A Struct is at most this many times as large as the same document in BSON: the worst case is an
// array of empty regexes, 5 bytes each in BSON and 60 in a Struct. So small documents need no
// measuring.
inline constexpr size_t kStructGrowthMax = 16;

// INVALID_CONTENT with metadata "path" (JSON Pointer, cut if it is long) and "problem", and a
// message that says what to write instead, for everything that Content::FromBson would refuse,
// names with a zero byte, a Value without a kind, and bytes that are no Struct; DOCUMENT_TOO_LARGE.
// As in protobuf, fields may come in any order, unknown ones are skipped and of equal map keys the
// last one counts; only messages that protobuf would have to merge are refused. Never goes deeper
// than `limits.depth_max`.
absl::StatusOr<Content> ContentFromStruct(std::string_view struct_wire, const Limits& limits);
absl::StatusOr<Value> ValueFromProto(std::string_view value_wire, const Limits& limits);
// A google.protobuf.ListValue as a BSON array value.
absl::StatusOr<Value> ArrayFromListValue(std::string_view list_wire, const Limits& limits);

// Appends the wire form of the Struct (Value). The size is exact and known in one pass without
// writing.
void AppendStruct(const Content& content, std::string& out);
size_t StructSize(const Content& content);
void AppendValue(const Value& value, std::string& out);
size_t ValueSize(const Value& value);

}  // namespace strata::document
