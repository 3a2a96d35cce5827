// BsonFromJson: one pass over the text that appends BSON as it goes; only an object whose first
// member is named like a wrapper is looked at as a whole.
#include <bson/bson.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/strings/escaping.h"
#include "clients/client/extended_json.h"
#include "clients/client/time_text.h"

namespace strata::client {
namespace {

// Far above what the server accepts (24), far below what the stack holds.
constexpr int kDepthMax = 200;

constexpr std::array<std::string_view, 12> kWrappers = {
    "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal",     "$date",   "$oid",
    "$uuid",      "$binary",     "$timestamp",    "$regularExpression", "$minKey", "$maxKey"};

bool IsWrapper(std::string_view name) {
  if (name.empty() || name.front() != '$') return false;
  for (std::string_view wrapper : kWrappers) {
    if (name == wrapper) return true;
  }
  return false;
}

template <typename T>
void AppendRaw(T value, std::string& out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);  // BSON is little-endian, as are our machines.
  out.append(bytes, sizeof value);
}

void PatchLength(size_t begin, std::string& out) {
  const auto length = static_cast<int32_t>(out.size() - begin);
  std::memcpy(out.data() + begin, &length, sizeof length);
}

void AppendString(std::string_view text, std::string& out) {
  AppendRaw(static_cast<int32_t>(text.size() + 1), out);
  out.append(text);
  out.push_back('\0');
}

// The two members that the longest wrappers have, by name.
struct WrapperMembers {
  std::string first;
  std::string second;
};

class Reader {
 public:
  Reader(std::string_view text, std::string& out)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()), out_(out) {}

  // The three functions below answer false once `status()` says why.
  bool Document() {
    SkipBlanks();
    if (at_ == end_ || *at_ != '{') return Fail("expected a JSON object");
    char type = 0;
    if (!Value(type) || !End()) return false;
    if (type != BSON_TYPE_DOCUMENT) return FailWhole("a document cannot be an Extended JSON value");
    return true;
  }
  bool ValueAsMember() {
    AppendRaw(int32_t{0}, out_);
    out_.append("\0v\0", 3);
    char type = 0;
    if (!Value(type) || !End()) return false;
    out_[4] = type;
    out_.push_back('\0');
    PatchLength(0, out_);
    return true;
  }
  const absl::Status& status() const { return status_; }

 private:
  bool Value(char& type);
  bool Object(char& type);
  bool Members(size_t begin, bool have_name);
  bool Array(char& type);
  bool Number(char& type);
  bool Integer(std::string_view digits, char& type);
  bool Double(std::string_view digits, char& type);
  bool Literal(std::string_view word);
  bool Text(std::string& text);
  bool Escape(std::string& text);
  bool CodeUnit(unsigned& unit);

  bool Wrapper(char& type);
  bool NumberWrapper(const std::string& name, char& type);
  bool Date(char& type);
  bool Binary(char& type);
  bool Uuid(char& type);
  bool Oid(char& type);
  bool Timestamp(char& type);
  bool RegularExpression(char& type);
  bool BoundaryKey(char key, char& type);
  bool PairOfMembers(std::string_view first, std::string_view second, bool numbers,
                     WrapperMembers& members);
  bool Unsigned32(const std::string& text, uint32_t& value);
  void AppendBinary(std::string_view bytes, uint8_t subtype);

  void SkipBlanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  bool Peek(char c) {
    SkipBlanks();
    return at_ != end_ && *at_ == c;
  }
  bool Take(char c) {
    if (!Peek(c)) return false;
    ++at_;
    return true;
  }
  bool Expect(char c) {
    if (Take(c)) return true;
    return Fail(std::string("expected '") + c + "'");
  }
  bool End() {
    SkipBlanks();
    return at_ == end_ || Fail("expected nothing more");
  }
  std::string Place() const { return " at byte " + std::to_string(at_ - begin_ + 1); }
  bool Fail(const std::string& what) {
    status_ = absl::InvalidArgumentError(what + (at_ == end_ ? ", at the end" : Place()));
    return false;
  }
  bool FailWhole(const std::string& what) {
    status_ = absl::InvalidArgumentError(what);
    return false;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  std::string& out_;
  std::string text_;  // The member name or string read last.
  int depth_ = 0;
  absl::Status status_;
};

bool Reader::Value(char& type) {
  SkipBlanks();
  if (at_ == end_) return Fail("expected a value");
  switch (*at_) {
    case '{':
      return Object(type);
    case '[':
      return Array(type);
    case '"':
      if (!Text(text_)) return false;
      AppendString(text_, out_);
      type = BSON_TYPE_UTF8;
      return true;
    case 't':
      out_.push_back(1);
      type = BSON_TYPE_BOOL;
      return Literal("true");
    case 'f':
      out_.push_back(0);
      type = BSON_TYPE_BOOL;
      return Literal("false");
    case 'n':
      type = BSON_TYPE_NULL;
      return Literal("null");
    default:
      return Number(type);
  }
}

bool Reader::Literal(std::string_view word) {
  if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) {
    return Fail("expected a value");
  }
  at_ += word.size();
  return true;
}

bool Reader::Object(char& type) {
  ++at_;
  if (++depth_ > kDepthMax) return Fail("too deep");
  bool have_name = false;
  if (Peek('"')) {
    if (!Text(text_)) return false;
    if (IsWrapper(text_)) {
      --depth_;
      return Wrapper(type) && Expect('}');
    }
    have_name = true;
  }
  const size_t begin = out_.size();
  AppendRaw(int32_t{0}, out_);
  if (!Members(begin, have_name)) return false;
  --depth_;
  type = BSON_TYPE_DOCUMENT;
  return true;
}

// Reads the members of an object to its end; the name of the first one stands in text_ already if
// `have_name`.
bool Reader::Members(size_t begin, bool have_name) {
  if (have_name || !Take('}')) {
    while (true) {
      if (!have_name) {
        if (!Peek('"')) return Fail("expected a member name in double quotes");
        if (!Text(text_)) return false;
      }
      have_name = false;
      if (text_.find('\0') != std::string::npos) return Fail("zero byte in a member name");
      const size_t type_at = out_.size();
      out_.push_back('\0');
      out_.append(text_);
      out_.push_back('\0');
      char type = 0;
      if (!Expect(':') || !Value(type)) return false;
      out_[type_at] = type;
      if (Take(',')) continue;
      if (Take('}')) break;
      return Fail("expected ',' or '}'");
    }
  }
  out_.push_back('\0');
  PatchLength(begin, out_);
  return true;
}

bool Reader::Array(char& type) {
  ++at_;
  if (++depth_ > kDepthMax) return Fail("too deep");
  const size_t begin = out_.size();
  AppendRaw(int32_t{0}, out_);
  if (!Take(']')) {
    for (uint32_t index = 0;; ++index) {
      const size_t type_at = out_.size();
      char name[12];
      const auto [name_end, error] = std::to_chars(name, name + sizeof name, index);
      out_.push_back('\0');
      out_.append(name, name_end);
      out_.push_back('\0');
      char element = 0;
      if (!Value(element)) return false;
      out_[type_at] = element;
      if (Take(',')) continue;
      if (Take(']')) break;
      return Fail("expected ',' or ']'");
    }
  }
  out_.push_back('\0');
  PatchLength(begin, out_);
  --depth_;
  type = BSON_TYPE_ARRAY;
  return true;
}

// The grammar of JSON: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
bool Reader::Number(char& type) {
  const char* at = at_;
  const auto digits = [&] {
    const char* before = at;
    while (at != end_ && *at >= '0' && *at <= '9') ++at;
    return at - before;
  };
  bool whole = true;
  if (at != end_ && *at == '-') ++at;
  const bool zero = at != end_ && *at == '0';
  const auto length = digits();
  bool ok = length > 0 && (!zero || length == 1);
  if (ok && at != end_ && *at == '.') {
    ++at;
    whole = false;
    ok = digits() > 0;
  }
  if (ok && at != end_ && (*at == 'e' || *at == 'E')) {
    ++at;
    whole = false;
    if (at != end_ && (*at == '+' || *at == '-')) ++at;
    ok = digits() > 0;
  }
  if (!ok) return Fail("expected a value");
  const std::string_view text(at_, static_cast<size_t>(at - at_));
  if (!(whole && text != "-0" ? Integer(text, type) : Double(text, type))) return false;
  at_ = at;
  return true;
}

bool Reader::Integer(std::string_view digits, char& type) {
  int64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
    status_ = absl::OutOfRangeError(
        "whole number beyond 64 bits; write {\"$numberDecimal\": \"…\"} or {\"$numberDouble\": "
        "\"…\"}," +
        Place());
    return false;
  }
  if (value >= std::numeric_limits<int32_t>::min() &&
      value <= std::numeric_limits<int32_t>::max()) {
    AppendRaw(static_cast<int32_t>(value), out_);
    type = BSON_TYPE_INT32;
  } else {
    AppendRaw(value, out_);
    type = BSON_TYPE_INT64;
  }
  return true;
}

bool Reader::Double(std::string_view digits, char& type) {
  double value = 0;
  const auto error = std::from_chars(digits.data(), digits.data() + digits.size(), value).ec;
  // Out of range means too large or too close to zero; the latter is rounded, as everywhere.
  if (error == std::errc::result_out_of_range)
    value = std::strtod(std::string(digits).c_str(), nullptr);
  if (!std::isfinite(value)) {
    status_ =
        absl::OutOfRangeError("number beyond double; write {\"$numberDecimal\": \"…\"}," + Place());
    return false;
  }
  AppendRaw(value, out_);
  type = BSON_TYPE_DOUBLE;
  return true;
}

// Reads a string, the opening quote included.
bool Reader::Text(std::string& text) {
  ++at_;
  text.clear();
  while (true) {
    const char* plain = at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) {
      ++at_;
    }
    text.append(plain, at_);
    if (at_ == end_) return Fail("string without closing quote");
    if (*at_ == '"') {
      ++at_;
      return true;
    }
    if (*at_ != '\\') return Fail("control character in a string");
    if (!Escape(text)) return false;
  }
}

bool Reader::CodeUnit(unsigned& unit) {
  if (end_ - at_ < 4) return Fail("\\u needs four hexadecimal digits");
  const auto [rest, error] = std::from_chars(at_, at_ + 4, unit, 16);
  if (error != std::errc() || rest != at_ + 4) return Fail("\\u needs four hexadecimal digits");
  at_ += 4;
  return true;
}

void AppendUtf8(unsigned code, std::string& out) {
  const auto tail = [&](unsigned shift) {
    out.push_back(static_cast<char>(0x80 | ((code >> shift) & 0x3F)));
  };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (code >> 6)));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (code >> 12)));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | (code >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool Reader::Escape(std::string& text) {
  ++at_;
  if (at_ == end_) return Fail("string without closing quote");
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kCharacters = "\"\\/\b\f\n\r\t";
  const size_t named = kNames.find(*at_);
  if (named != std::string_view::npos) {
    text.push_back(kCharacters[named]);
    ++at_;
    return true;
  }
  if (*at_ != 'u') return Fail("unknown escape in a string");
  ++at_;
  unsigned code = 0;
  if (!CodeUnit(code)) return false;
  if (code >= 0xD800 && code < 0xE000) {
    const bool pair = code < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u';
    if (!pair) return Fail("half of a surrogate pair in a string");
    at_ += 2;
    unsigned low = 0;
    if (!CodeUnit(low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return Fail("half of a surrogate pair in a string");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  AppendUtf8(code, text);
  return true;
}

// Reads the value of a wrapper, whose name stands in text_; the caller reads the closing brace.
bool Reader::Wrapper(char& type) {
  const std::string name = text_;
  if (!Expect(':')) return false;
  if (name == "$date") return Date(type);
  if (name == "$binary") return Binary(type);
  if (name == "$timestamp") return Timestamp(type);
  if (name == "$regularExpression") return RegularExpression(type);
  if (name == "$minKey") return BoundaryKey(static_cast<char>(BSON_TYPE_MINKEY), type);
  if (name == "$maxKey") return BoundaryKey(static_cast<char>(BSON_TYPE_MAXKEY), type);
  if (!Peek('"')) return Fail(name + " takes a string");
  if (!Text(text_)) return false;
  if (name == "$oid") return Oid(type);
  if (name == "$uuid") return Uuid(type);
  return NumberWrapper(name, type);
}

bool Reader::NumberWrapper(const std::string& name, char& type) {
  const char* end = text_.data() + text_.size();
  if (name == "$numberDecimal") {
    bson_decimal128_t decimal;
    if (!bson_decimal128_from_string(text_.c_str(), &decimal)) return Fail("not a $numberDecimal");
    AppendRaw(decimal.low, out_);
    AppendRaw(decimal.high, out_);
    type = BSON_TYPE_DECIMAL128;
    return true;
  }
  if (name == "$numberDouble") {
    double value = 0;
    const auto [rest, error] = std::from_chars(text_.data(), end, value);
    if (error != std::errc() || rest != end || !std::isfinite(value)) {
      return Fail("not a finite $numberDouble");
    }
    AppendRaw(value, out_);
    type = BSON_TYPE_DOUBLE;
    return true;
  }
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(text_.data(), end, value);
  const bool narrow = name == "$numberInt";
  if (error != std::errc() || rest != end || (narrow && value != static_cast<int32_t>(value))) {
    return Fail("not a " + name);
  }
  if (narrow) {
    AppendRaw(static_cast<int32_t>(value), out_);
  } else {
    AppendRaw(value, out_);
  }
  type = narrow ? BSON_TYPE_INT32 : BSON_TYPE_INT64;
  return true;
}

// {"$date": "2026-01-31T12:00:00Z"} or {"$date": {"$numberLong": "milliseconds"}}.
bool Reader::Date(char& type) {
  type = BSON_TYPE_DATE_TIME;
  if (Take('{')) {
    if (!Peek('"') || !Text(text_) || text_ != "$numberLong") return Fail("not a $date");
    if (!Expect(':')) return false;
    if (!Peek('"') || !Text(text_)) return Fail("$numberLong takes a string");
    char ignored = 0;
    return NumberWrapper("$numberLong", ignored) && Expect('}');
  }
  if (!Peek('"') || !Text(text_)) return Fail("$date takes a string");
  const absl::StatusOr<Instant> time = ParseTime(text_);
  if (!time.ok() || text_.size() < sizeof "2026-01-31T12:00" || time->nanos % 1'000'000 != 0) {
    return Fail("not a $date in milliseconds, such as 2026-01-31T12:00:00.000Z");
  }
  AppendRaw(time->seconds * 1000 + time->nanos / 1'000'000, out_);
  return true;
}

// Reads {"first": …, "second": …}, in either order; both strings, or both whole numbers.
bool Reader::PairOfMembers(std::string_view first, std::string_view second, bool numbers,
                           WrapperMembers& members) {
  if (!Expect('{')) return false;
  bool have_first = false;
  bool have_second = false;
  for (int i = 0; i < 2; ++i) {
    if (i == 1 && !Expect(',')) return false;
    if (!Peek('"')) return Fail("expected a member name in double quotes");
    if (!Text(text_)) return false;
    bool& have = text_ == first ? have_first : have_second;
    if (have || (text_ != first && text_ != second)) return Fail("not that wrapper's member");
    std::string& value = text_ == first ? members.first : members.second;
    have = true;
    if (!Expect(':')) return false;
    SkipBlanks();
    if (numbers) {
      value.clear();
      while (at_ != end_ && *at_ >= '0' && *at_ <= '9') value.push_back(*at_++);
    } else if (at_ == end_ || *at_ != '"' || !Text(value)) {
      return Fail("expected a string");
    }
  }
  return Expect('}');
}

void Reader::AppendBinary(std::string_view bytes, uint8_t subtype) {
  const auto size = static_cast<int32_t>(bytes.size());
  const bool old = subtype == BSON_SUBTYPE_BINARY_DEPRECATED;  // Has its length twice.
  AppendRaw(old ? size + 4 : size, out_);
  out_.push_back(static_cast<char>(subtype));
  if (old) AppendRaw(size, out_);
  out_.append(bytes);
}

bool Reader::Binary(char& type) {
  WrapperMembers members;
  if (!PairOfMembers("base64", "subType", false, members)) return false;
  std::string bytes;
  uint8_t subtype = 0;
  const char* end = members.second.data() + members.second.size();
  const auto [rest, error] = std::from_chars(members.second.data(), end, subtype, 16);
  if (error != std::errc() || rest != end || !absl::Base64Unescape(members.first, &bytes)) {
    return Fail("not a $binary");
  }
  AppendBinary(bytes, subtype);
  type = BSON_TYPE_BINARY;
  return true;
}

bool IsHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

bool Reader::Uuid(char& type) {
  std::string digits;
  for (size_t i = 0; i < text_.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (text_[i] == '-')) return Fail("not a $uuid");
    if (!dash) digits.push_back(text_[i]);
  }
  if (digits.size() != 32 || !IsHex(digits)) return Fail("not a $uuid");
  AppendBinary(absl::HexStringToBytes(digits), BSON_SUBTYPE_UUID);
  type = BSON_TYPE_BINARY;
  return true;
}

bool Reader::Oid(char& type) {
  if (text_.size() != 24 || !IsHex(text_)) return Fail("an $oid has 24 hexadecimal digits");
  out_.append(absl::HexStringToBytes(text_));
  type = BSON_TYPE_OID;
  return true;
}

bool Reader::Unsigned32(const std::string& text, uint32_t& value) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return (error == std::errc() && rest == end) || Fail("not a $timestamp");
}

bool Reader::Timestamp(char& type) {
  WrapperMembers members;
  uint32_t time = 0;
  uint32_t increment = 0;
  if (!PairOfMembers("t", "i", true, members) || !Unsigned32(members.first, time) ||
      !Unsigned32(members.second, increment)) {
    return false;
  }
  AppendRaw(increment, out_);
  AppendRaw(time, out_);
  type = BSON_TYPE_TIMESTAMP;
  return true;
}

bool Reader::RegularExpression(char& type) {
  WrapperMembers members;
  if (!PairOfMembers("pattern", "options", false, members)) return false;
  if ((members.first + members.second).find('\0') != std::string::npos) {
    return Fail("zero byte in a $regularExpression");
  }
  out_.append(members.first).push_back('\0');
  out_.append(members.second).push_back('\0');
  type = BSON_TYPE_REGEX;
  return true;
}

bool Reader::BoundaryKey(char key, char& type) {
  type = key;
  return Take('1') || Fail("$minKey and $maxKey take 1");
}

absl::Status NotUtf8() { return absl::InvalidArgumentError("not UTF-8"); }

}  // namespace

bool IsUtf8(std::string_view text) { return bson_utf8_validate(text.data(), text.size(), true); }

absl::StatusOr<std::string> BsonFromJson(std::string_view json) {
  if (!IsUtf8(json)) return NotUtf8();
  std::string bson;
  bson.reserve(json.size() + json.size() / 4);
  Reader reader(json, bson);
  if (!reader.Document()) return reader.status();
  return bson;
}

absl::StatusOr<std::string> BsonFromJsonValue(std::string_view json) {
  if (!IsUtf8(json)) return NotUtf8();
  std::string bson;
  Reader reader(json, bson);
  if (!reader.ValueAsMember()) return reader.status();
  return bson;
}

}  // namespace strata::client
