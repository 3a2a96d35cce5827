// Answers as JSON, for machines and for tables.
#pragma once

#include <string>

#include "strata/v1/document.pb.h"

namespace strata::cli {

// A message as one line of JSON: protobuf's JSON mapping with the .proto's field names. Fields that
// are unset are written with their defaults (false, "0", [] …), messages and oneof members that
// are unset are left out, so that a reader finds the same names every time. Content that
// arrived as BSON is written as what content.json would be, its members in their order.
std::string MessageJson(const google::protobuf::Message& message);

// Content as it would be typed: JSON on one line, numbers without wrappers.
std::string ContentText(const v1::Content& content);

// A value of a field change, as a person reads it: compact JSON, numbers without wrappers.
std::string ValueText(const google::protobuf::Value& value);

}  // namespace strata::cli
