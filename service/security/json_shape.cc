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

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::security {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Struct;
using google::protobuf::Value;

// No message here nests deeper than half of this, and protobuf takes minutes for a megabyte of "[".
constexpr int kDepthMax = 16;

absl::Status NotJson(std::string_view problem) {
  return Error(ErrorReason::kInvalidField, "not JSON: " + std::string(problem)).With("field", "");
}

absl::Status MemberError(const std::string& field, std::string_view problem) {
  return Error(ErrorReason::kInvalidField, std::string(problem)).With("field", field);
}

// What protobuf's reader lets pass between the values and in the texts; the rest of the grammar is
// its own to check.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text) {}

  absl::Status Run() {
    for (; at_ < text_.size(); ++at_) {
      RETURN_IF_ERROR(in_text_ ? InText() : Between());
      if (text_[at_] == '\n') ++line_;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Fail(std::string_view problem) const {
    return NotJson(std::string(problem) + ", in line " + std::to_string(line_));
  }

  absl::Status InText() {
    const char c = text_[at_];
    if (static_cast<unsigned char>(c) < ' ') return Fail("a control character in a text");
    if (c == '"') in_text_ = false;
    if (c != '\\') return absl::OkStatus();
    ++at_;
    constexpr std::string_view kEscapes = "\"\\/bfnrtu";
    if (at_ == text_.size() || kEscapes.find(text_[at_]) == std::string_view::npos) {
      --at_;  // the loop ends where the text does
      return Fail("an unknown escape in a text");
    }
    return absl::OkStatus();
  }

  absl::Status Between() {
    const char c = text_[at_];
    if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
      if (c == '\v' || c == '\f') return Fail("a control character");
      return absl::OkStatus();
    }
    if (c == '\'') return Fail("a text in single quotes");
    if (c == '/' || c == '#') return Fail("a comment");
    if ((c == ']' || c == '}') && last_ == ',') return Fail("a comma after the last element");
    if (c == ':' && last_ != '"') return Fail("a member's name without double quotes");
    if ((c == '[' || c == '{') && ++depth_ > kDepthMax) {
      return Fail("more than " + std::to_string(kDepthMax) + " levels");
    }
    if (c == ']' || c == '}') --depth_;
    if (c == '"') in_text_ = true;
    last_ = c;
    return absl::OkStatus();
  }

  const std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  int depth_ = 0;
  bool in_text_ = false;
  char last_ = 0;  // before this, blanks aside
};

// Protobuf's words are a sentence, what stands about the place, and a mark below it.
std::string Explained(const std::string& words) {
  const size_t sentence = words.find('\n');
  std::string said = words.substr(0, sentence);
  if (absl::EndsWith(said, ".")) said.pop_back();
  if (sentence == std::string::npos) return said;
  std::string near = words.substr(sentence + 1, words.rfind('\n') - sentence);
  absl::RemoveExtraAsciiWhitespace(&near);
  const auto is_odd = [](char c) { return c < ' ' || c > '~'; };
  std::replace_if(near.begin(), near.end(), is_odd, '?');  // it may be no UTF-8
  return near.empty() ? said : said + ", near " + near;
}

absl::Status ParseStruct(std::string_view json, Struct& parsed) {
  const auto status = google::protobuf::util::JsonStringToMessage(std::string(json), &parsed);
  if (status.ok()) return absl::OkStatus();
  const std::string words(status.message().data(), status.message().size());
  const size_t key = words.find("Repeated map key: '");
  if (key != std::string::npos) {
    const std::string name = words.substr(key + 19, words.rfind("' is already set") - key - 19);
    return MemberError(name, "stands there twice");
  }
  if (words.find("Root element") != std::string::npos) return NotJson("expected an object, { … }");
  return NotJson(Explained(words));
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

absl::Status CheckJsonShape(std::string_view json, const Descriptor& message) {
  RETURN_IF_ERROR(Scan(json).Run());
  Struct parsed;
  RETURN_IF_ERROR(ParseStruct(json, parsed));
  return CheckObject(parsed, message, "");
}

}  // namespace strata::security
