// What operations give, as the cases of clients/conformance write it: members by the names of the
// protos, contents as values, integers of 64 bits and times as texts.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "clients/cpp/fields.h"
#include "strata/client/value.h"
#include "strata/v1/collection_service.pb.h"
#include "strata/v1/document.pb.h"
#include "strata/v1/enrollment_service.pb.h"
#include "strata/v1/feed_service.pb.h"
#include "strata/v1/queue_service.pb.h"
#include "strata/v1/transaction_service.pb.h"

namespace strata::client {

template <typename T>
const google::protobuf::EnumDescriptor& EnumOf();
#define STRATA_ENUM(Name)                                         \
  template <>                                                     \
  inline const google::protobuf::EnumDescriptor& EnumOf<Name>() { \
    return *google::protobuf::GetEnumDescriptor<v1::Name>();      \
  }
STRATA_ENUM(VersionKind)
STRATA_ENUM(ChangeType)
STRATA_ENUM(Strategy)
STRATA_ENUM(FindingKind)
STRATA_ENUM(EnrollmentResult)
STRATA_ENUM(EnrollmentOperation)
STRATA_ENUM(EventType)
STRATA_ENUM(ParkedAction)
STRATA_ENUM(MessageState)
STRATA_ENUM(TransactionMode)
STRATA_ENUM(TransactionStatus)
#undef STRATA_ENUM

inline Value Describe(const std::string& text) { return text; }
inline Value Describe(bool value) { return value; }
inline Value Describe(int32_t value) { return value; }
inline Value Describe(int64_t value) { return std::to_string(value); }
inline Value Describe(const Value& value) { return value; }
inline Value Describe(const std::map<std::string, std::string>& entries) {
  Object object;
  for (const auto& [name, value] : entries) object.Append(name, value);
  return object;
}
inline Value Describe(absl::Time time) {
  if (time == absl::InfinitePast()) return nullptr;
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}
inline Value Describe(absl::Duration duration) {
  // Protobuf writes 0, 3, 6 or 9 digits behind the point.
  absl::Duration rest;
  const int64_t seconds = absl::IDivDuration(duration, absl::Seconds(1), &rest);
  std::string text = std::to_string(seconds);
  if (const int64_t nanos = absl::ToInt64Nanoseconds(rest); nanos != 0) {
    std::string digits = std::to_string(1'000'000'000 + nanos).substr(1);
    while (digits.ends_with("000")) digits.resize(digits.size() - 3);
    text += "." + digits;
  }
  return text + "s";
}
template <typename T>
requires std::is_enum_v<T> Value Describe(T value) {
  const auto* const name = EnumOf<T>().FindValueByNumber(static_cast<int>(value));
  return name == nullptr ? Value(static_cast<int32_t>(value)) : Value(name->name());
}
template <typename T>
Value Describe(const std::optional<T>& value);
template <typename T>
Value Describe(const std::vector<T>& values);
template <typename T>
requires std::is_class_v<T> Value Describe(const T& value);

struct Describer {
  Object object;
  template <typename T>
  void operator()(const char* name, const T& member) {
    const std::string_view text = name;
    if constexpr (std::is_same_v<T, std::string>) {
      if (text.ends_with("hash")) return object.Append(name, absl::Base64Escape(member));
    }
    object.Append(name, Describe(member));
  }
};

template <typename T>
Value Describe(const std::optional<T>& value) {
  return value.has_value() ? Describe(*value) : Value();
}
template <typename T>
Value Describe(const std::vector<T>& values) {
  Array array;
  for (const T& value : values) array.push_back(Describe(value));
  return array;
}
template <typename T>
requires std::is_class_v<T> Value Describe(const T& value) {
  Describer describer;
  Fields(describer, const_cast<T&>(value));
  return std::move(describer.object);
}

}  // namespace strata::client
