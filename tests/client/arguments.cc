#include "tests/client/arguments.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "schemas/base/hex.h"

namespace strata::client {
namespace {

// "deltas", "full-copies" and "STRATEGY_DELTAS" name what they should.
std::string Plain(std::string text) {
  for (char& c : text) {
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return text;
}

Value Nested(int levels) {
  Value value = Object{};
  for (int i = 1; i < levels; ++i) value = Object{{"a", value}};
  return value;
}

}  // namespace

std::string Arguments::Untaken() const {
  std::string names;
  const auto* object = values_.As<Object>();
  if (object == nullptr) return names;
  for (const Member& member : *object) {
    if (!taken_.contains(member.name)) names += " " + member.name;
  }
  return names;
}

void Arguments::Read(const Value& value, std::string& text) {
  if (const auto* given = value.As<std::string>()) text = *given;
}

void Arguments::Read(const Value& value, bool& flag) {
  if (const auto* given = value.As<bool>()) flag = *given;
}

void Arguments::Read(const Value& value, int32_t& number) {
  number = static_cast<int32_t>(value.AsInteger().value_or(0));
}

void Arguments::Read(const Value& value, int64_t& number) {
  if (const auto* text = value.As<std::string>()) {
    number = std::stoll(*text);
  } else {
    number = value.AsInteger().value_or(0);
  }
}

void Arguments::Read(const Value& value, absl::Time& time) {
  if (const auto* date = value.As<Date>()) time = date->time();
  if (const auto* text = value.As<std::string>()) {
    absl::ParseTime(absl::RFC3339_full, *text, &time, nullptr);
  }
}

void Arguments::Read(const Value& value, absl::Duration& duration) {
  if (const auto seconds = value.AsDouble()) duration = absl::Seconds(*seconds);
  if (const auto* text = value.As<std::string>()) absl::ParseDuration(*text, &duration);
}

void Arguments::Read(const Value& value, Value& content) {
  if (const auto* array = value.As<Array>()) {
    Array elements;
    for (const Value& element : *array) Read(element, elements.emplace_back());
    content = std::move(elements);
    return;
  }
  const auto* object = value.As<Object>();
  if (object == nullptr) {
    content = value;
    return;
  }
  if (const auto* hex = value["$bson_hex"].As<std::string>()) {
    content = FromBson(BytesOfHex(*hex).value_or("")).value_or(Value());
    return;
  }
  const auto* special = value["$special"].As<std::string>();
  if (special == nullptr) {
    Object members;
    for (const Member& member : *object) {
      // The one special that is not a value but a name.
      Value inner;
      Read(member.value, inner);
      members.Append(member.name, std::move(inner));
    }
    content = std::move(members);
  } else if (*special == "nan") {
    content = std::numeric_limits<double>::quiet_NaN();
  } else if (*special == "infinity") {
    content = std::numeric_limits<double>::infinity();
  } else if (*special == "zero_byte_name") {
    content = Object{{std::string("a\0b", 3), 1}};
  } else if (*special == "bad_utf8") {
    content = "\xff";
  } else if (*special == "too_deep") {
    content = Nested(30);
  } else if (*special == "too_large") {
    content = std::string(size_t{3} << 20, 'x');
  }
}

bool Arguments::IsPossible(const Value& value) {
  if (const auto* array = value.As<Array>()) {
    return std::all_of(array->begin(), array->end(), &Arguments::IsPossible);
  }
  const auto* object = value.As<Object>();
  if (object == nullptr) return true;
  const Value& special = value["$special"];
  if (special == Value("cycle") || special == Value("function") ||
      special == Value("int_too_large")) {
    return false;
  }
  return std::all_of(object->begin(), object->end(),
                     [](const Member& member) { return IsPossible(member.value); });
}

void Arguments::Read(const Value& value, std::map<std::string, std::string>& entries) {
  if (const auto* object = value.As<Object>()) {
    for (const Member& member : *object) Read(member.value, entries[member.name]);
  }
}

// {"set": ["/a", 1]}, {"path": "/a", "set": 1} and {"op": "set", "path": "/a", "value": 1}.
void Arguments::Read(const Value& value, Operation& operation) {
  static const std::pair<const char*, Operation::Kind> kKinds[] = {
      {"set", Operation::Kind::kSet},
      {"unset", Operation::Kind::kUnset},
      {"increment", Operation::Kind::kIncrement},
      {"append", Operation::Kind::kAppend},
      {"append_missing", Operation::Kind::kAppendMissing},
      {"remove_all", Operation::Kind::kRemoveAll}};
  const auto* object = value.As<Object>();
  for (const auto& [name, kind] : kKinds) {
    const bool named = value["op"] == Value(name);
    if (!named && (object == nullptr || object->Find(name) == nullptr)) continue;
    operation.kind = kind;
    Value operand = named ? value["value"] : value[name];
    if (const auto* path = value["path"].As<std::string>()) {
      operation.path = *path;
    } else if (const auto* pair = operand.As<Array>(); pair != nullptr && !pair->empty()) {
      Read(pair->front(), operation.path);
      operand = pair->size() > 1 ? Value((*pair)[1]) : Value();
    } else {
      Read(operand, operation.path);
    }
    Value read;
    Read(operand, read);
    if (const auto* values = read.As<Array>();
        values != nullptr && kind > Operation::Kind::kIncrement) {
      operation.values = *values;
    } else {
      operation.value = read;
    }
  }
}

int Arguments::EnumNumber(const google::protobuf::EnumDescriptor& descriptor, const Value& value) {
  if (const auto number = value.AsInteger()) return static_cast<int>(*number);
  const auto* text = value.As<std::string>();
  if (text == nullptr) return 0;
  const std::string plain = Plain(*text);
  for (int i = 0; i < descriptor.value_count(); ++i) {
    const std::string& name = descriptor.value(i)->name();
    if (name == plain || name.ends_with("_" + plain)) return descriptor.value(i)->number();
  }
  return -1;
}

}  // namespace strata::client
