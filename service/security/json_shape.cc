#include "service/security/json_shape.h"

#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_join.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/json/message_json.h"

namespace strata::security {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Struct;
using google::protobuf::Value;

// No message here nests deeper than half of this.
constexpr int kDepthMax = 16;

absl::Status NotJson(std::string_view problem) {
  return Error(ErrorReason::kInvalidField, "not JSON: " + std::string(problem)).With("field", "");
}

absl::Status MemberError(const std::string& field, std::string_view problem) {
  return Error(ErrorReason::kInvalidField, std::string(problem)).With("field", field);
}

// REQUIRES: the text was checked.
absl::Status ParseStruct(std::string_view json, Struct& parsed) {
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &parsed);
  return status.ok() ? absl::OkStatus() : NotJson("expected an object, { … }");
}

std::string Member(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::string_view KindName(const Value& value) {
  switch (value.kind_case()) {
    case Value::kNumberValue:
      return "a number";
    case Value::kStringValue:
      return "a text";
    case Value::kBoolValue:
      return "true or false";
    case Value::kStructValue:
      return "an object";
    case Value::kListValue:
      return "a list";
    default:
      return "null";
  }
}

absl::Status CheckObject(const Struct& object, const Descriptor& message, const std::string& path);

absl::Status CheckValue(const Value& value, const FieldDescriptor& field, const std::string& path) {
  const auto expect = [&](Value::KindCase kind, std::string_view name) {
    if (value.kind_case() == kind) return absl::OkStatus();
    return MemberError(
        path, "is " + std::string(KindName(value)) + ", but has to be " + std::string(name));
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_MESSAGE:
      RETURN_IF_ERROR(expect(Value::kStructValue, "an object"));
      return CheckObject(value.struct_value(), *field.message_type(), path);
    case FieldDescriptor::CPPTYPE_STRING:
      return expect(Value::kStringValue, "a text");
    case FieldDescriptor::CPPTYPE_INT32: {
      RETURN_IF_ERROR(expect(Value::kNumberValue, "a number"));
      const double number = value.number_value();
      if (number == std::trunc(number) && std::abs(number) <= std::numeric_limits<int32_t>::max()) {
        return absl::OkStatus();
      }
      return MemberError(path, "has to be a whole number below 2147483648");
    }
    default:
      return expect(Value::kNumberValue, "a number");
  }
}

absl::Status CheckMember(const Value& value, const FieldDescriptor& field,
                         const std::string& path) {
  if (!field.is_repeated()) return CheckValue(value, field, path);
  if (value.kind_case() != Value::kListValue) {
    return MemberError(path, "is " + std::string(KindName(value)) + ", but has to be a list");
  }
  for (int i = 0; i < value.list_value().values_size(); ++i) {
    RETURN_IF_ERROR(
        CheckValue(value.list_value().values(i), field, path + "[" + std::to_string(i) + "]"));
  }
  return absl::OkStatus();
}

// By protobuf's own code alone: its maps have another layout under ThreadSanitizer, which the
// machine's library is not built for.
std::map<std::string, const Value*> MembersOf(const Struct& object) {
  const auto& reflection = *object.GetReflection();
  const FieldDescriptor& fields =
      *object.GetDescriptor()->FindFieldByNumber(Struct::kFieldsFieldNumber);
  std::map<std::string, const Value*> members;
  for (int i = 0; i < reflection.FieldSize(object, &fields); ++i) {
    const google::protobuf::Message& entry = reflection.GetRepeatedMessage(object, &fields, i);
    const auto& of_entry = *entry.GetReflection();
    const google::protobuf::Message& value =
        of_entry.GetMessage(entry, fields.message_type()->map_value());
    members.emplace(of_entry.GetString(entry, fields.message_type()->map_key()),
                    &static_cast<const Value&>(value));
  }
  return members;
}

absl::Status CheckObject(const Struct& object, const Descriptor& message, const std::string& path) {
  std::map<std::string, const FieldDescriptor*> fields;
  for (int i = 0; i < message.field_count(); ++i) {
    fields.emplace(message.field(i)->name(), message.field(i));
  }
  for (const auto& [name, value] : MembersOf(object)) {
    const auto field = fields.find(name);
    if (field == fields.end()) {
      const auto append = [](std::string* out, const auto& each) { out->append(each.first); };
      return MemberError(Member(path, name),
                         "is no member; there are " + absl::StrJoin(fields, ", ", append));
    }
    RETURN_IF_ERROR(CheckMember(*value, *field->second, Member(path, name)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckJsonShape(std::string_view text, const Descriptor& message) {
  const auto checked = json::CheckMessageJson(text, message, {.depth_max = kDepthMax});
  if (!checked.ok()) {
    if (MetadataOf(checked.status(), "field")) return checked.status();
    std::string_view problem = ToStd(checked.status().message());
    problem.remove_prefix(std::min(problem.size(), problem.find(": ") + 2));
    return NotJson(problem);
  }
  Struct parsed;
  RETURN_IF_ERROR(ParseStruct(text, parsed));
  return CheckObject(parsed, message, "");
}

}  // namespace strata::security
