// By reflection, because protobuf's own printer would show BSON as base64 and leave defaults out.
#include "clients/cli/message_json.h"

#include <google/protobuf/util/time_util.h>

#include <charconv>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/escaping.h"
#include "clients/cpp/extended_json.h"
#include "clients/cpp/time_text.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace strata::cli {
namespace {

using client::AppendJsonString;
using client::JsonStyle;
using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::ListValue;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Struct;
using google::protobuf::Timestamp;
using google::protobuf::Value;

void AppendValue(const Value& value, std::string& out);

void AppendNumber(double number, std::string& out) {
  char buffer[40];
  constexpr double kWholeMax = 9007199254740992;  // 2^53
  if (number == std::trunc(number) && std::abs(number) <= kWholeMax) {
    out += std::to_string(static_cast<int64_t>(number));
    return;
  }
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
}

void AppendStruct(const Struct& object, std::string& out) {
  // The map has no order of its own; the server stores members sorted.
  std::map<std::string_view, const Value*> members;
  for (const auto& [name, value] : object.fields()) members[name] = &value;
  char separator = '{';
  for (const auto& [name, value] : members) {
    out += separator;
    separator = ',';
    AppendJsonString(name, out);
    out += ':';
    AppendValue(*value, out);
  }
  out += members.empty() ? "{}" : "}";
}

void AppendList(const ListValue& list, std::string& out) {
  char separator = '[';
  for (const Value& value : list.values()) {
    out += separator;
    separator = ',';
    AppendValue(value, out);
  }
  out += list.values().empty() ? "[]" : "]";
}

void AppendValue(const Value& value, std::string& out) {
  switch (value.kind_case()) {
    case Value::kNumberValue:
      return AppendNumber(value.number_value(), out);
    case Value::kStringValue:
      return AppendJsonString(value.string_value(), out);
    case Value::kBoolValue:
      out += value.bool_value() ? "true" : "false";
      return;
    case Value::kStructValue:
      return AppendStruct(value.struct_value(), out);
    case Value::kListValue:
      return AppendList(value.list_value(), out);
    default:
      out += "null";
  }
}

void AppendContent(const v1::Content& content, std::string& out) {
  std::string json;
  if (content.has_bson()) {
    json = client::JsonFromBson(content.bson(), JsonStyle::kDoublesOnly).value_or("null");
  } else {
    AppendStruct(content.json(), json);
  }
  out += "{\"json\":" + json + "}";
}

class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  void AppendMessage(const Message& message) {
    const std::string& type = message.GetDescriptor()->full_name();
    if (type == "strata.v1.Content") {
      return AppendContent(static_cast<const v1::Content&>(message), out_);
    }
    if (type == "google.protobuf.Timestamp") {
      const auto& time = static_cast<const Timestamp&>(message);
      return AppendJsonString(client::FormatTime({time.seconds(), time.nanos()}), out_);
    }
    if (type == "google.protobuf.Duration") {
      const auto& duration = static_cast<const Duration&>(message);
      return AppendJsonString(google::protobuf::util::TimeUtil::ToString(duration), out_);
    }
    if (type == "google.protobuf.Value") {
      return AppendValue(static_cast<const Value&>(message), out_);
    }
    AppendFields(message);
  }

 private:
  // Unset messages and oneof members say something by their absence; everything else has a default.
  static bool IsLeftOut(const Message& message, const FieldDescriptor& field) {
    return field.has_presence() && !message.GetReflection()->HasField(message, &field);
  }

  void AppendFields(const Message& message) {
    char separator = '{';
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      if (IsLeftOut(message, field)) continue;
      out_ += separator;
      separator = ',';
      AppendJsonString(field.name(), out_);
      out_ += ':';
      if (field.is_map()) {
        AppendMap(message, field);
      } else if (field.is_repeated()) {
        AppendRepeated(message, field);
      } else {
        AppendOne(message, field, -1);
      }
    }
    out_ += separator == '{' ? "{}" : "}";
  }

  void AppendRepeated(const Message& message, const FieldDescriptor& field) {
    const int size = message.GetReflection()->FieldSize(message, &field);
    out_ += '[';
    for (int i = 0; i < size; ++i) {
      if (i > 0) out_ += ',';
      AppendOne(message, field, i);
    }
    out_ += ']';
  }

  // The contract has maps of string to string only; sorted, so that equal answers are equal text.
  void AppendMap(const Message& message, const FieldDescriptor& field) {
    const Reflection& reflection = *message.GetReflection();
    std::map<std::string, std::string> entries;
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      const auto* type = entry.GetDescriptor();
      entries[entry.GetReflection()->GetString(entry, type->map_key())] =
          entry.GetReflection()->GetString(entry, type->map_value());
    }
    char separator = '{';
    for (const auto& [name, value] : entries) {
      out_ += separator;
      separator = ',';
      AppendJsonString(name, out_);
      out_ += ':';
      AppendJsonString(value, out_);
    }
    out_ += entries.empty() ? "{}" : "}";
  }

  // One value of a field: of element `index`, or of a singular field if that is -1.
  void AppendOne(const Message& message, const FieldDescriptor& field, int index) {
    const Reflection& reflection = *message.GetReflection();
    const bool single = index < 0;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return AppendMessage(single ? reflection.GetMessage(message, &field)
                                    : reflection.GetRepeatedMessage(message, &field, index));
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = single ? reflection.GetString(message, &field)
                                        : reflection.GetRepeatedString(message, &field, index);
        const bool bytes = field.type() == FieldDescriptor::TYPE_BYTES;
        return AppendJsonString(bytes ? absl::Base64Escape(text) : text, out_);
      }
      case FieldDescriptor::CPPTYPE_INT64:  // As a string: JSON readers have doubles.
        return AppendJsonString(
            std::to_string(single ? reflection.GetInt64(message, &field)
                                  : reflection.GetRepeatedInt64(message, &field, index)),
            out_);
      case FieldDescriptor::CPPTYPE_INT32:
        out_ += std::to_string(single ? reflection.GetInt32(message, &field)
                                      : reflection.GetRepeatedInt32(message, &field, index));
        return;
      case FieldDescriptor::CPPTYPE_BOOL:
        out_ += (single ? reflection.GetBool(message, &field)
                        : reflection.GetRepeatedBool(message, &field, index))
                    ? "true"
                    : "false";
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        return AppendJsonString((single ? reflection.GetEnum(message, &field)
                                        : reflection.GetRepeatedEnum(message, &field, index))
                                    ->name(),
                                out_);
      default:  // The contract has no other types.
        out_ += "null";
    }
  }

  std::string& out_;
};

}  // namespace

std::string MessageJson(const Message& message) {
  std::string json;
  FieldWriter(json).AppendMessage(message);
  return json;
}

std::string ContentText(const v1::Content& content) {
  std::string bson = content.bson();
  if (!content.has_bson()) {
    std::string json;
    AppendStruct(content.json(), json);
    bson = client::BsonFromJson(json).value_or("");
  }
  return client::JsonFromBson(bson, JsonStyle::kRelaxed).value_or("null");
}

std::string ValueText(const Value& value) {
  std::string json;
  AppendValue(value, json);
  const absl::StatusOr<std::string> bson = client::BsonFromJsonValue(json);
  if (!bson.ok()) return json;
  return client::JsonFromBsonValue(*bson, JsonStyle::kRelaxed).value_or(json);
}

}  // namespace strata::cli
