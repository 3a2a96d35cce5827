// What a person types, read: values, paths, labels, contents, names of enums.
#pragma once

#include <istream>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "strata/v1/collection_service.pb.h"
#include "strata/v1/document.pb.h"
#include "strata/v1/enrollment_service.pb.h"
#include "strata/v1/queue_service.pb.h"
#include "strata/v1/transaction_service.pb.h"

namespace strata::cli {

// "/stock=2": a JSON Pointer and what stands after the first "=".
struct PathValue {
  std::string path;
  std::string value;
};

// INVALID_ARGUMENT without "=" or where the path neither is empty nor begins with "/".
absl::StatusOr<PathValue> SplitPathValue(const std::string& text);

// "/version=7" as the number that has to grow. INVALID_ARGUMENT without "=" or an int64 after it.
absl::StatusOr<v1::Newer> NewerProto(const std::string& text);

// VALUE as a BSON document with the one member "v": JSON, or a string if it is not JSON.
// INVALID_ARGUMENT for what was surely meant as JSON: a number beyond 64 bits, and text that begins
// with a brace, a bracket or a double quote and does not parse.
absl::StatusOr<std::string> ValueBson(const std::string& text);

// VALUE as the protobuf value that carries it without loss, as Extended JSON where necessary. Only
// the order of members in an object is lost.
absl::StatusOr<google::protobuf::Value> ValueProto(const std::string& text);

// As ValueProto, but only a number will do.
absl::StatusOr<google::protobuf::Value> NumberProto(const std::string& text);

// A filter as a person types it: MongoDB's query language in braces, or a condition in short form:
// "stock>0", "stock>=1", "stock<9", "stock<=9", "title=Emma", "title!=Emma", "title~^Em" (a regular
// expression), "isbn" (there is such a member), "!isbn" (there is none). What stands left is a
// dotted path or a JSON Pointer, what stands right a value as for ValueProto, which begins with a
// sign only in double quotes: "v<>1" has an operator that does not exist. Blanks around the sign
// and at the ends do not count.
absl::StatusOr<google::protobuf::Struct> FilterProto(const std::string& text);

// Content given as JSON, "@file" or "-" (all of `in`), as exact BSON. INVALID_ARGUMENT if it cannot
// be read or is not a JSON object.
absl::StatusOr<v1::Content> ContentArgument(const std::string& argument, std::istream& in);

// "key=value", split at the first "=".
absl::StatusOr<std::pair<std::string, std::string>> SplitLabel(const std::string& text);

// "full-copies" for STRATEGY_FULL_COPIES and so on, both ways.
std::string StrategyName(v1::Strategy strategy);
absl::StatusOr<v1::Strategy> ParseStrategy(const std::string& name);

// "below-floor" for ENROLLMENT_RESULT_BELOW_FLOOR and so on.
std::string ResultName(v1::EnrollmentResult result);

// "created" for VERSION_KIND_CREATED and so on, both ways.
std::string KindName(v1::VersionKind kind);
absl::StatusOr<v1::VersionKind> ParseKind(const std::string& name);

// "two-phase" for TRANSACTION_MODE_TWO_PHASE and so on.
std::string TransactionModeName(v1::TransactionMode mode);

// "pending" for TRANSACTION_STATUS_PENDING and so on, both ways.
std::string TransactionStatusName(v1::TransactionStatus status);
absl::StatusOr<v1::TransactionStatus> ParseTransactionStatus(const std::string& name);

// "dead" for MESSAGE_STATE_DEAD and so on, both ways.
std::string MessageStateName(v1::MessageState state);
absl::StatusOr<v1::MessageState> ParseMessageState(const std::string& name);

}  // namespace strata::cli
