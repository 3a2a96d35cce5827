// JsonFromBson: walks the BSON member by member; what JSON has no type for is spelled as a wrapper.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "clients/cpp/extended_json.h"
#include "clients/cpp/printable.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/extended_json/scalar_text.h"
#include "schemas/document/extended_json/wrapper.h"

namespace strata::client {
namespace {

constexpr int kDepthMax = 200;

class Writer {
 public:
  Writer(JsonStyle style, int indent, std::string& out)
      : style_(style), indent_(indent), out_(out) {}

  // False: damaged, or of a type that Strata does not store.
  bool Members(std::string_view container, bool is_array);
  bool Value(uint8_t type, std::string_view value);

 private:
  bool Text(std::string_view value);
  bool Int64(std::string_view value);
  bool Double(std::string_view value);
  bool Wrapper(uint8_t type, std::string_view value);
  void Part(const document::WrapperSpelling::Part& part);
  void NewLine();

  JsonStyle style_;
  int indent_;
  int depth_ = 0;
  std::string& out_;
};

void Writer::NewLine() {
  if (indent_ == 0) return;
  out_.push_back('\n');
  out_.append(static_cast<size_t>(depth_ * indent_), ' ');
}

bool Writer::Members(std::string_view container, bool is_array) {
  if (container.back() != '\0' || ++depth_ > kDepthMax) return false;
  out_.push_back(is_array ? '[' : '{');
  bool first = true;
  document::Member member;
  document::MemberReader reader(container);
  while (reader.Next(member)) {
    if (!first) out_.push_back(',');
    first = false;
    NewLine();
    if (!is_array) {
      AppendJsonString(member.name, out_);
      out_.append(indent_ > 0 ? ": " : ":");
    }
    if (!Value(member.type, member.value)) return false;
  }
  --depth_;
  if (reader.failed()) return false;
  if (!first) NewLine();
  out_.push_back(is_array ? ']' : '}');
  return true;
}

bool Writer::Value(uint8_t type, std::string_view value) {
  switch (type) {
    case document::kBsonObject:
    case document::kBsonArray:
      return Members(value, type == document::kBsonArray);
    case document::kBsonString:
      return Text(value);
    case document::kBsonBool:
      out_.append(value[0] != 0 ? "true" : "false");
      return true;
    case document::kBsonNull:
      out_.append("null");
      return true;
    case document::kBsonInt32:
      out_.append(std::to_string(document::LoadNumber<int32_t>(value)));
      return true;
    case document::kBsonInt64:
      return Int64(value);
    case document::kBsonDouble:
      return Double(value);
    default:
      return Wrapper(type, value);
  }
}

bool Writer::Text(std::string_view value) {
  if (value.back() != '\0') return false;
  AppendJsonString(document::StringText(value), out_);
  return true;
}

bool Writer::Int64(std::string_view value) {
  const auto number = document::LoadNumber<int64_t>(value);
  const bool fits_int32 = number == static_cast<int32_t>(number);
  if ((style_ == JsonStyle::kExact && fits_int32) ||
      (style_ == JsonStyle::kDoublesOnly && !document::IsExactInDouble(number))) {
    return Wrapper(document::kBsonInt64, value);
  }
  out_.append(std::to_string(number));
  return true;
}

bool Writer::Double(std::string_view value) {
  const auto number = document::LoadNumber<double>(value);
  if (!std::isfinite(number)) return false;
  if (style_ == JsonStyle::kDoublesOnly && number == std::trunc(number)) {
    return Wrapper(document::kBsonDouble, value);
  }
  document::AppendDouble(number, out_);
  return true;
}

// On one line, however the rest is indented.
bool Writer::Wrapper(uint8_t type, std::string_view value) {
  const document::WrapperSpelling spelling = document::SpellWrapper(type, value);
  if (spelling.name.empty()) return false;
  out_.append("{\"").append(spelling.name).append("\":");
  if (spelling.is_object) {
    for (size_t i = 0; i < spelling.part_count; ++i) {
      out_.append(i == 0 ? "{\"" : ",\"").append(spelling.parts[i].name).append("\":");
      Part(spelling.parts[i]);
    }
    out_.push_back('}');
  } else {
    Part(spelling.parts[0]);
  }
  out_.push_back('}');
  return true;
}

void Writer::Part(const document::WrapperSpelling::Part& part) {
  if (part.number) {
    out_.append(std::to_string(*part.number));
  } else {
    AppendJsonString(part.text, out_);
  }
}

// Whether the first four bytes say how long it is.
bool IsFramed(std::string_view bson) {
  return document::ValueSize(document::kBsonObject, bson.data(), bson.size()) == bson.size();
}

absl::Status Damaged() {
  return absl::InvalidArgumentError("content is damaged, or of a type that is not known here");
}

}  // namespace

absl::StatusOr<std::string> JsonFromBson(std::string_view bson, JsonStyle style, int indent) {
  std::string json;
  json.reserve(bson.size() + bson.size() / 4);
  if (!IsFramed(bson) || !Writer(style, indent, json).Members(bson, false)) return Damaged();
  return json;
}

absl::StatusOr<std::string> JsonFromBsonValue(std::string_view bson, JsonStyle style, int indent) {
  std::string json;
  document::Member member;
  if (!IsFramed(bson) || !document::MemberReader(bson).Next(member)) return Damaged();
  if (!Writer(style, indent, json).Value(member.type, member.value)) return Damaged();
  return json;
}

namespace {

// The first character of `rest`, whose lead byte needs a look: how it is escaped, if it has to be.
// A terminal would obey some beyond what JSON itself forbids.
CodePoint ToEscape(std::string_view rest) {
  const CodePoint code = FirstCodePoint(rest);
  const bool forbidden = code.value == '"' || code.value == '\\';
  if (code.length == 0 || !(forbidden || IsObeyed(code.value))) return {};
  return code;
}

void AppendEscaped(uint32_t code_point, std::string& json) {
  constexpr std::string_view kCharacters = "\"\\\b\f\n\r\t";
  constexpr std::string_view kNames = "\"\\bfnrt";
  const size_t named =
      code_point < 0x80 ? kCharacters.find(static_cast<char>(code_point)) : std::string_view::npos;
  json.push_back('\\');
  if (named != std::string_view::npos) return json.push_back(kNames[named]);
  char escape[12];  // all are of four digits
  std::snprintf(escape, sizeof escape, "u%04x", code_point);
  json.append(escape);
}

}  // namespace

void AppendJsonString(std::string_view text, std::string& json) {
  json.push_back('"');
  size_t plain = 0;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool is_plain = c >= 0x20 && c < 0x7F && c != '"' && c != '\\';
    const CodePoint code = is_plain ? CodePoint() : ToEscape(text.substr(i));
    if (code.length == 0) {
      ++i;
      continue;
    }
    json.append(text, plain, i - plain);
    AppendEscaped(code.value, json);
    i += code.length;
    plain = i;
  }
  json.append(text, plain, text.size() - plain);
  json.push_back('"');
}

}  // namespace strata::client
