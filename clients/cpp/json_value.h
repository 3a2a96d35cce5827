// Values as the JSON messages of protobuf, for what travels as JSON only: filters, the operands of
// operations, and what changed. Types beyond JSON are MongoDB's Extended JSON v2.
#pragma once

#include <google/protobuf/struct.pb.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strata/client/value.h"

namespace strata::client {

// Refuses what ToBson refuses, as a member at `path`.
absl::Status ToJson(const Value& value, const std::string& path, google::protobuf::Value& json);
// REQUIRES the same, and that `value` is an object.
absl::Status ToJson(const Value& value, google::protobuf::Struct& json);

// INVALID_ARGUMENT for an object with the name of a wrapper that is none.
absl::StatusOr<Value> FromJson(const google::protobuf::Value& json);
absl::StatusOr<Value> FromJson(const google::protobuf::Struct& json);

}  // namespace strata::client
