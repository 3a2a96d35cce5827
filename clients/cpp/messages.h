// The library's types to the protos' messages and back, by the names of their members (fields.h).
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/fields.h"

namespace strata::client {

template <typename T>
concept Enumeration = std::is_enum_v<T>;

// Sets the fields of a message that its members name. An unset one, which is an empty text, zero,
// false or nothing, leaves its field alone. What options spell otherwise than the protos goes where
// it belongs: if_version, if_exists, if_matches and newer into the precondition; actor,
// on_behalf_of, reason and labels into the change, where the message has one.
class MessageWriter {
 public:
  explicit MessageWriter(google::protobuf::Message& message) : message_(message) {}

  template <typename T>
  void operator()(const char* name, const T& value) {
    if (!status_.ok() || IsUnset(value)) return;
    const Place place = Find(name);
    Set(place, value);
  }

  // Not OK: a value that cannot be sent.
  const absl::Status& status() const { return status_; }

 private:
  struct Place {
    google::protobuf::Message* message = nullptr;
    const google::protobuf::FieldDescriptor* field = nullptr;
  };

  static bool IsUnset(const std::string& text) { return text.empty(); }
  static bool IsUnset(bool value) { return !value; }
  static bool IsUnset(int32_t value) { return value == 0; }
  static bool IsUnset(int64_t value) { return value == 0; }
  static bool IsUnset(Enumeration auto value) { return static_cast<int>(value) == 0; }
  static bool IsUnset(absl::Time value) { return value == absl::InfinitePast(); }
  static bool IsUnset(absl::Duration value) { return value == absl::ZeroDuration(); }
  template <typename T>
  static bool IsUnset(const std::optional<T>& value) {
    return !value.has_value();
  }
  template <typename T>
  static bool IsUnset(const std::vector<T>& value) {
    return value.empty();
  }
  static bool IsUnset(const std::map<std::string, std::string>& value) { return value.empty(); }
  template <typename T>
  requires(!Enumeration<T>) static bool IsUnset(const T&) { return false; }

  // The field of the name, or the one where the protos have what is called so.
  Place Find(const std::string& name);
  Place Locate(const std::string& name);

  void Set(Place place, const std::string& text);
  void Set(Place place, bool value);
  void Set(Place place, int32_t value);
  void Set(Place place, int64_t value);
  void SetEnum(Place place, int number);
  void Set(Place place, Enumeration auto value) { SetEnum(place, static_cast<int>(value)); }
  void Set(Place place, absl::Time time);
  void Set(Place place, absl::Duration duration);
  void Set(Place place, const Value& value);
  void Set(Place place, const std::map<std::string, std::string>& entries);
  template <typename T>
  void Set(Place place, const std::optional<T>& value) {
    Set(place, *value);
  }
  template <typename T>
  void Set(Place place, const std::vector<T>& values) {
    for (const T& value : values) Set(place, value);
  }
  // A message of its own; another one, if the field has several.
  google::protobuf::Message* Nested(Place place);
  template <typename T>
  requires(!Enumeration<T>) void Set(Place place, const T& value) {
    MessageWriter writer(*Nested(place));
    Fields(writer, const_cast<T&>(value));
    status_.Update(writer.status());
  }

  google::protobuf::Message& message_;
  absl::Status status_;
};

// Not OK: something in `value` cannot be sent.
template <typename T>
absl::Status WriteMessage(const T& value, google::protobuf::Message& message) {
  MessageWriter writer(message);
  Fields(writer, const_cast<T&>(value));
  return writer.status();
}

// Fills members from the fields of their names.
class MessageReader {
 public:
  explicit MessageReader(const google::protobuf::Message& message) : message_(message) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    Get(FieldOf(name), value);
  }

  // Not OK: the message holds what no server sends.
  const absl::Status& status() const { return status_; }

 private:
  using Field = const google::protobuf::FieldDescriptor&;

  Field FieldOf(const char* name) const;
  bool Has(Field field) const;
  int Count(Field field) const;
  const google::protobuf::Message& Nested(Field field, int index) const;

  void Get(Field field, std::string& text);
  void Get(Field field, bool& value);
  void Get(Field field, int32_t& value);
  void Get(Field field, int64_t& value);
  int GetEnum(Field field, int index) const;
  void Get(Field field, Enumeration auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(GetEnum(field, -1));
  }
  void Get(Field field, absl::Time& time);
  void Get(Field field, absl::Duration& duration);
  void Get(Field field, std::optional<Value>& value);
  void Get(Field field, std::map<std::string, std::string>& entries);
  void Get(Field field, std::vector<std::string>& texts);
  template <typename T>
  void Get(Field field, std::optional<T>& value) {
    if (!Has(field)) return;
    Get(field, value.emplace());
  }
  template <typename T>
  void Get(Field field, std::vector<T>& values) {
    const int count = Count(field);
    values.reserve(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
      if constexpr (std::is_enum_v<T>) {
        values.push_back(static_cast<T>(GetEnum(field, i)));
      } else {
        Read(Nested(field, i), values.emplace_back());
      }
    }
  }
  template <typename T>
  requires(!Enumeration<T>) void Get(Field field, T& value) {
    if (Has(field)) Read(Nested(field, -1), value);
  }
  template <typename T>
  void Read(const google::protobuf::Message& message, T& value) {
    MessageReader reader(message);
    Fields(reader, value);
    status_.Update(reader.status());
  }

  const google::protobuf::Message& message_;
  absl::Status status_;
};

template <typename T>
absl::StatusOr<T> ReadMessage(const google::protobuf::Message& message) {
  T value;
  MessageReader reader(message);
  Fields(reader, value);
  if (!reader.status().ok()) return reader.status();
  return value;
}

}  // namespace strata::client
