// A protobuf number is a double: so what is an int32 travels as a number, and what would not come
// back as what it was, in a wrapper.
#include "clients/cpp/json_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "clients/cpp/error_status.h"
#include "clients/cpp/text_rules.h"

namespace strata::client {
namespace {

using Json = google::protobuf::Value;
using JsonObject = google::protobuf::Struct;

constexpr uint8_t kOldBinary = 2;  // whose payload begins with its own length once more

JsonObject& Wrapper(Json& json) { return *json.mutable_struct_value(); }
void SetText(JsonObject& object, const char* name, const std::string& text) {
  (*object.mutable_fields())[name].set_string_value(text);
}
void SetNumber(JsonObject& object, const char* name, double number) {
  (*object.mutable_fields())[name].set_number_value(number);
}

std::string Shortest(double number) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, number).ptr;
  std::string shortest(text, end);
  if (shortest.find_first_of(".e") == std::string::npos) shortest += ".0";
  return shortest;
}

void BinaryToJson(const Binary& binary, Json& json) {
  std::string payload = binary.bytes;
  if (binary.subtype == kOldBinary && payload.size() >= sizeof(int32_t)) {
    payload.erase(0, sizeof(int32_t));
  }
  constexpr char kDigits[] = "0123456789abcdef";
  JsonObject& inner = *(*Wrapper(json).mutable_fields())["$binary"].mutable_struct_value();
  SetText(inner, "base64", absl::Base64Escape(payload));
  SetText(inner, "subType", {kDigits[binary.subtype >> 4], kDigits[binary.subtype & 15]});
}

constexpr int kDepthMax = 24;

absl::Status TextToJson(const std::string& text, const std::string& path, Json& json) {
  if (!IsValidUtf8(text)) return RefusedContent(path, "is not UTF-8");
  json.set_string_value(text);
  return absl::OkStatus();
}

absl::Status NodeToJson(const Value& value, const std::string& path, int depth, Json& json);

absl::Status ArrayToJson(const Array& array, const std::string& path, int depth,
                         google::protobuf::ListValue& json) {
  if (depth > kDepthMax) return RefusedContent(path, "lies deeper than 24 levels");
  for (size_t i = 0; i < array.size(); ++i) {
    absl::Status status =
        NodeToJson(array[i], path + "/" + std::to_string(i), depth + 1, *json.add_values());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ObjectToJson(const Object& object, const std::string& path, int depth,
                          JsonObject& json) {
  if (depth > kDepthMax) return RefusedContent(path, "lies deeper than 24 levels");
  auto& fields = *json.mutable_fields();
  for (const auto& [name, value] : object) {
    std::string inner = path;
    AppendSegment(name, inner);
    if (name.find('\0') != std::string::npos) {
      return RefusedContent(inner, "has a zero byte in its name");
    }
    if (!IsValidUtf8(name)) return RefusedContent(inner, "has a name that is not UTF-8");
    absl::Status status = NodeToJson(value, inner, depth + 1, fields[name]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RareToJson(const Value& value, const std::string& path, Json& json) {
  if (const auto* binary = value.As<Binary>()) {
    BinaryToJson(*binary, json);
  } else if (const auto* date = value.As<Date>()) {
    SetText(*(*Wrapper(json).mutable_fields())["$date"].mutable_struct_value(), "$numberLong",
            std::to_string(date->milliseconds));
  } else if (const auto* decimal = value.As<Decimal128>()) {
    if (!decimal->is_finite()) return RefusedContent(path, "is NaN or infinity");
    SetText(Wrapper(json), "$numberDecimal", decimal->text());
  } else if (const auto* id = value.As<ObjectId>()) {
    SetText(Wrapper(json), "$oid", id->text());
  } else if (const auto* regex = value.As<Regex>()) {
    if (!IsValidUtf8(regex->pattern) || !IsValidUtf8(regex->options)) {
      return RefusedContent(path, "is not UTF-8");
    }
    JsonObject& inner =
        *(*Wrapper(json).mutable_fields())["$regularExpression"].mutable_struct_value();
    SetText(inner, "pattern", regex->pattern);
    SetText(inner, "options", regex->options);
  } else if (const auto* timestamp = value.As<Timestamp>()) {
    JsonObject& inner = *(*Wrapper(json).mutable_fields())["$timestamp"].mutable_struct_value();
    SetNumber(inner, "t", timestamp->seconds);
    SetNumber(inner, "i", timestamp->increment);
  } else {
    SetNumber(Wrapper(json), value.type() == Value::Type::kMinKey ? "$minKey" : "$maxKey", 1);
  }
  return absl::OkStatus();
}

absl::Status NodeToJson(const Value& value, const std::string& path, int depth, Json& json) {
  switch (value.type()) {
    case Value::Type::kNull:
      json.set_null_value(google::protobuf::NULL_VALUE);
      return absl::OkStatus();
    case Value::Type::kBool:
      json.set_bool_value(*value.As<bool>());
      return absl::OkStatus();
    case Value::Type::kInt32:
      json.set_number_value(*value.As<int32_t>());
      return absl::OkStatus();
    case Value::Type::kInt64:
      SetText(Wrapper(json), "$numberLong", std::to_string(*value.As<int64_t>()));
      return absl::OkStatus();
    case Value::Type::kDouble: {
      const double number = *value.As<double>();
      if (!std::isfinite(number)) return RefusedContent(path, "is NaN or infinity");
      if (std::trunc(number) == number) {
        SetText(Wrapper(json), "$numberDouble", Shortest(number));
      } else {
        json.set_number_value(number);
      }
      return absl::OkStatus();
    }
    case Value::Type::kString:
      return TextToJson(*value.As<std::string>(), path, json);
    case Value::Type::kArray:
      return ArrayToJson(*value.As<Array>(), path, depth, *json.mutable_list_value());
    case Value::Type::kObject:
      return ObjectToJson(*value.As<Object>(), path, depth, *json.mutable_struct_value());
    default:
      return RareToJson(value, path, json);
  }
}

// What stands in a wrapper's place.
absl::Status NoWrapper(const std::string& name) {
  return absl::InvalidArgumentError("'" + name + "' is not followed by what it announces");
}

template <typename Number>
std::optional<Number> NumberOf(const std::string& text) {
  Number number{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

const Json* Find(const JsonObject& object, const char* name) {
  const auto field = object.fields().find(name);
  return field == object.fields().end() ? nullptr : &field->second;
}

std::string TextOf(const JsonObject& object, const char* name) {
  const Json* const json = Find(object, name);
  return json == nullptr ? "" : json->string_value();
}

std::optional<Value> BinaryFromJson(const JsonObject& inner) {
  Binary binary;
  uint8_t subtype = 0;
  const std::string digits = TextOf(inner, "subType");
  const auto [rest, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), subtype, 16);
  if (error != std::errc() || rest != digits.data() + digits.size()) return std::nullopt;
  binary.subtype = subtype;
  if (!absl::Base64Unescape(TextOf(inner, "base64"), &binary.bytes)) return std::nullopt;
  if (subtype == kOldBinary) {
    const auto length = static_cast<int32_t>(binary.bytes.size());
    binary.bytes.insert(0, reinterpret_cast<const char*>(&length), sizeof length);
  }
  return Value(std::move(binary));
}

std::optional<Value> DateFromJson(const Json& json) {
  if (json.has_struct_value()) {
    const auto number = NumberOf<int64_t>(TextOf(json.struct_value(), "$numberLong"));
    if (!number.has_value()) return std::nullopt;
    return Value(Date{*number});
  }
  absl::Time time;
  std::string problem;
  if (!absl::ParseTime(absl::RFC3339_full, json.string_value(), &time, &problem)) {
    return std::nullopt;
  }
  return Value(Date::FromTime(time));
}

template <typename T>
std::optional<Value> ValueOf(absl::StatusOr<T> parsed) {
  if (!parsed.ok()) return std::nullopt;
  return Value(*std::move(parsed));
}

template <typename T>
std::optional<Value> ValueOf(std::optional<T> parsed) {
  if (!parsed.has_value()) return std::nullopt;
  return Value(*std::move(parsed));
}

// Of an object whose only member is `name`. Outer nothing: that is the name of no wrapper; inner
// nothing: it is, and what follows is wrong.
std::optional<std::optional<Value>> Unwrapped(const std::string& name, const Json& json) {
  const std::string& text = json.string_value();
  const JsonObject& inner = json.struct_value();
  if (name == "$numberInt") return ValueOf(NumberOf<int32_t>(text));
  if (name == "$numberLong") return ValueOf(NumberOf<int64_t>(text));
  if (name == "$numberDouble") return ValueOf(NumberOf<double>(text));
  if (name == "$numberDecimal") return ValueOf(Decimal128::FromText(text));
  if (name == "$oid") return ValueOf(ObjectId::FromText(text));
  if (name == "$uuid") return ValueOf(UuidFromText(text));
  if (name == "$date") return DateFromJson(json);
  if (name == "$binary") return BinaryFromJson(inner);
  if (name == "$minKey") return Value(MinKey());
  if (name == "$maxKey") return Value(MaxKey());
  if (name == "$regularExpression") {
    return Value(Regex{.pattern = TextOf(inner, "pattern"), .options = TextOf(inner, "options")});
  }
  if (name == "$timestamp") {
    const Json* const seconds = Find(inner, "t");
    const Json* const increment = Find(inner, "i");
    if (seconds == nullptr || increment == nullptr) return std::optional<Value>();
    return Value(Timestamp{.seconds = static_cast<uint32_t>(seconds->number_value()),
                           .increment = static_cast<uint32_t>(increment->number_value())});
  }
  return std::nullopt;
}

Value NumberFromJson(double number) {
  constexpr double kExact = 9007199254740992;
  if (std::trunc(number) != number || std::abs(number) > kExact) return number;
  const auto whole = static_cast<int64_t>(number);
  if (whole >= std::numeric_limits<int32_t>::min() &&
      whole <= std::numeric_limits<int32_t>::max()) {
    return static_cast<int32_t>(whole);
  }
  return whole;
}

}  // namespace

absl::Status ToJson(const Value& value, const std::string& path, Json& json) {
  // The member of a document lies one level below it.
  return NodeToJson(value, path, /*depth=*/2, json);
}

absl::Status ToJson(const Value& value, JsonObject& json) {
  const auto* object = value.As<Object>();
  if (object == nullptr) return RefusedContent("", "is no object");
  return ObjectToJson(*object, "", /*depth=*/1, json);
}

absl::StatusOr<Value> FromJson(const JsonObject& json) {
  if (json.fields().size() == 1) {
    const auto& [name, inner] = *json.fields().begin();
    if (const auto wrapped = Unwrapped(name, inner)) {
      if (!wrapped->has_value()) return NoWrapper(name);
      return **wrapped;
    }
  }
  // Members have no order here; sorted, as the server keeps those that arrive as JSON.
  std::vector<const std::string*> names;
  for (const auto& [name, inner] : json.fields()) names.push_back(&name);
  std::sort(names.begin(), names.end(), [](const auto* a, const auto* b) { return *a < *b; });
  Object object;
  for (const std::string* name : names) {
    absl::StatusOr<Value> value = FromJson(json.fields().at(*name));
    if (!value.ok()) return value.status();
    object.Append(*name, *std::move(value));
  }
  return Value(std::move(object));
}

absl::StatusOr<Value> FromJson(const Json& json) {
  switch (json.kind_case()) {
    case Json::kBoolValue:
      return Value(json.bool_value());
    case Json::kNumberValue:
      return NumberFromJson(json.number_value());
    case Json::kStringValue:
      return Value(json.string_value());
    case Json::kStructValue:
      return FromJson(json.struct_value());
    case Json::kListValue: {
      Array array;
      for (const Json& element : json.list_value().values()) {
        absl::StatusOr<Value> value = FromJson(element);
        if (!value.ok()) return value.status();
        array.push_back(*std::move(value));
      }
      return Value(std::move(array));
    }
    default:
      return Value();
  }
}

}  // namespace strata::client
