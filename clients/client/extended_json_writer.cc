// JsonFromBson: walks the BSON with libbson's iterator, which checks every length.
#include <bson/bson.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "absl/strings/escaping.h"
#include "clients/client/extended_json.h"
#include "clients/client/time_text.h"

namespace strata::client {
namespace {

constexpr int kDepthMax = 200;
constexpr int64_t kDoubleExactMax = int64_t{1} << 53;

class Writer {
 public:
  Writer(JsonStyle style, int indent, std::string& out)
      : style_(style), indent_(indent), out_(out) {}

  bool Members(bson_iter_t& iter, bool array);
  bool Value(const bson_iter_t& iter);

 private:
  bool Nested(const bson_iter_t& iter, bool array);
  bool Wrapped(const bson_iter_t& iter);
  void Int64(int64_t value);
  void Double(double value);
  void Date(int64_t milliseconds);
  void Binary(const bson_iter_t& iter);
  void NewLine();
  void Member(std::string_view name) {
    AppendJsonString(name, out_);
    out_.append(indent_ > 0 ? ": " : ":");
  }
  // {"name":"text"}, where neither needs escaping.
  void Wrap(std::string_view name, std::string_view text) {
    out_.append("{\"").append(name).append("\":\"").append(text).append("\"}");
  }

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

// Writes all that `iter`, not yet moved, walks over. False: damaged or not a type of Strata's.
bool Writer::Members(bson_iter_t& iter, bool array) {
  if (++depth_ > kDepthMax) return false;
  out_.push_back(array ? '[' : '{');
  bool first = true;
  while (bson_iter_next(&iter)) {
    if (!first) out_.push_back(',');
    first = false;
    NewLine();
    if (!array) Member({bson_iter_key(&iter), bson_iter_key_len(&iter)});
    if (!Value(iter)) return false;
  }
  --depth_;
  if (iter.err_off != 0) return false;
  if (!first) NewLine();
  out_.push_back(array ? ']' : '}');
  return true;
}

bool Writer::Nested(const bson_iter_t& iter, bool array) {
  bson_iter_t child;
  return bson_iter_recurse(&iter, &child) && Members(child, array);
}

bool Writer::Value(const bson_iter_t& iter) {
  switch (bson_iter_type(&iter)) {
    case BSON_TYPE_DOCUMENT:
      return Nested(iter, false);
    case BSON_TYPE_ARRAY:
      return Nested(iter, true);
    case BSON_TYPE_UTF8: {
      uint32_t length = 0;
      const char* text = bson_iter_utf8(&iter, &length);
      AppendJsonString({text, length}, out_);
      return true;
    }
    case BSON_TYPE_BOOL:
      out_.append(bson_iter_bool(&iter) ? "true" : "false");
      return true;
    case BSON_TYPE_NULL:
      out_.append("null");
      return true;
    case BSON_TYPE_INT32:
      out_.append(std::to_string(bson_iter_int32(&iter)));
      return true;
    case BSON_TYPE_INT64:
      Int64(bson_iter_int64(&iter));
      return true;
    case BSON_TYPE_DOUBLE:
      Double(bson_iter_double(&iter));
      return std::isfinite(bson_iter_double(&iter));
    default:
      return Wrapped(iter);
  }
}

void Writer::Int64(int64_t value) {
  const std::string digits = std::to_string(value);
  const bool fits_int32 =
      value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max();
  const bool fits_double = value >= -kDoubleExactMax && value <= kDoubleExactMax;
  if ((style_ == JsonStyle::kExact && fits_int32) ||
      (style_ == JsonStyle::kDoublesOnly && !fits_double)) {
    Wrap("$numberLong", digits);
  } else {
    out_.append(digits);
  }
}

void Writer::Double(double value) {
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  std::string text(buffer, end);  // The shortest that reads back as the same double.
  if (text.find_first_of(".e") == std::string::npos) text.append(".0");
  if (style_ == JsonStyle::kDoublesOnly && value == std::trunc(value)) {
    Wrap("$numberDouble", text);
  } else {
    out_.append(text);
  }
}

void Writer::Date(int64_t milliseconds) {
  constexpr int64_t kYear10000Ms = 253'402'300'800'000;
  if (milliseconds < 0 || milliseconds >= kYear10000Ms) {
    out_.append("{\"$date\":");
    Wrap("$numberLong", std::to_string(milliseconds));
    out_.push_back('}');
    return;
  }
  Wrap("$date", FormatTime({.seconds = milliseconds / 1000,
                            .nanos = static_cast<int32_t>(milliseconds % 1000) * 1'000'000}));
}

void Writer::Binary(const bson_iter_t& iter) {
  bson_subtype_t subtype = BSON_SUBTYPE_BINARY;
  uint32_t length = 0;
  const uint8_t* bytes = nullptr;
  bson_iter_binary(&iter, &subtype, &length, &bytes);
  char hex[4];
  std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned>(subtype) & 0xFF);
  out_.append("{\"$binary\":{\"base64\":\"")
      .append(absl::Base64Escape({reinterpret_cast<const char*>(bytes), length}))
      .append("\",\"subType\":\"")
      .append(hex)
      .append("\"}}");
}

bool Writer::Wrapped(const bson_iter_t& iter) {
  switch (bson_iter_type(&iter)) {
    case BSON_TYPE_DATE_TIME:
      Date(bson_iter_date_time(&iter));
      return true;
    case BSON_TYPE_BINARY:
      Binary(iter);
      return true;
    case BSON_TYPE_OID: {
      char hex[25];
      bson_oid_to_string(bson_iter_oid(&iter), hex);
      Wrap("$oid", hex);
      return true;
    }
    case BSON_TYPE_DECIMAL128: {
      bson_decimal128_t decimal;
      char text[BSON_DECIMAL128_STRING];
      bson_iter_decimal128(&iter, &decimal);
      bson_decimal128_to_string(&decimal, text);
      Wrap("$numberDecimal", text);
      return true;
    }
    case BSON_TYPE_TIMESTAMP: {
      uint32_t time = 0;
      uint32_t increment = 0;
      bson_iter_timestamp(&iter, &time, &increment);
      out_.append("{\"$timestamp\":{\"t\":").append(std::to_string(time));
      out_.append(",\"i\":").append(std::to_string(increment)).append("}}");
      return true;
    }
    case BSON_TYPE_REGEX: {
      const char* options = nullptr;
      const char* pattern = bson_iter_regex(&iter, &options);
      out_.append("{\"$regularExpression\":{\"pattern\":");
      AppendJsonString(pattern, out_);
      out_.append(",\"options\":");
      AppendJsonString(options, out_);
      out_.append("}}");
      return true;
    }
    case BSON_TYPE_MINKEY:
      out_.append("{\"$minKey\":1}");
      return true;
    case BSON_TYPE_MAXKEY:
      out_.append("{\"$maxKey\":1}");
      return true;
    default:
      return false;
  }
}

bool Begin(std::string_view bson, bson_t& view, bson_iter_t& iter) {
  return bson_init_static(&view, reinterpret_cast<const uint8_t*>(bson.data()), bson.size()) &&
         bson_iter_init(&iter, &view);
}

absl::Status Damaged() {
  return absl::InvalidArgumentError("content is damaged, or of a type that is not known here");
}

}  // namespace

absl::StatusOr<std::string> JsonFromBson(std::string_view bson, JsonStyle style, int indent) {
  std::string json;
  json.reserve(bson.size() + bson.size() / 4);
  bson_t view;
  bson_iter_t iter;
  if (!Begin(bson, view, iter)) return Damaged();
  if (!Writer(style, indent, json).Members(iter, false)) return Damaged();
  return json;
}

absl::StatusOr<std::string> JsonFromBsonValue(std::string_view bson, JsonStyle style, int indent) {
  std::string json;
  bson_t view;
  bson_iter_t iter;
  if (!Begin(bson, view, iter) || !bson_iter_next(&iter)) return Damaged();
  if (!Writer(style, indent, json).Value(iter)) return Damaged();
  return json;
}

void AppendJsonString(std::string_view text, std::string& json) {
  json.push_back('"');
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    json.append(text, plain, i - plain);
    plain = i + 1;
    constexpr std::string_view kCharacters = "\"\\\b\f\n\r\t";
    constexpr std::string_view kNames = "\"\\bfnrt";
    const size_t named = kCharacters.find(text[i]);
    json.push_back('\\');
    if (named != std::string_view::npos) {
      json.push_back(kNames[named]);
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "u%04x", c);
      json.append(escape);
    }
  }
  json.append(text, plain, text.size() - plain);
  json.push_back('"');
}

}  // namespace strata::client
