// BsonFromJson: one pass over the text that appends BSON as it goes; an object that turns out to be
// a wrapper is then replaced by the value that it stands for.
#include <bson/bson.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>

#include "clients/cpp/extended_json.h"
#include "schemas/document/bson_view.h"
#include "schemas/document/extended_json/wrapper.h"

namespace strata::client {
namespace {

// Far above what the server accepts (24), far below what the stack holds.
constexpr int kDepthMax = 200;

class Reader {
 public:
  Reader(std::string_view text, std::string& out)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()), out_(out) {}

  // Each function below that answers false has put into `status()` why.
  bool Document() {
    SkipBlanks();
    if (at_ == end_ || *at_ != '{') return Fail("expected a JSON object");
    uint8_t type = 0;
    if (!Value(Wrappers::kRead, type) || !End()) return false;
    if (type == document::kBsonObject) return true;
    status_ = absl::InvalidArgumentError("a document cannot be an Extended JSON value");
    return false;
  }
  bool ValueAsMember() {
    const size_t begin = document::BeginDocument(out_);
    const size_t type_at = out_.size();
    document::AppendMemberHead(document::kBsonNull, "v", out_);
    uint8_t type = 0;
    if (!Value(Wrappers::kRead, type) || !End()) return false;
    out_[type_at] = static_cast<char>(type);
    document::EndDocument(begin, out_);
    return true;
  }
  const absl::Status& status() const { return status_; }

 private:
  // Inside a wrapper objects stay as they are: {"$numberLong": "5"} in a $date is no number yet.
  enum class Wrappers { kRead, kLeave };

  bool Value(Wrappers wrappers, uint8_t& type);
  bool Object(Wrappers wrappers, uint8_t& type);
  bool Members(Wrappers wrappers, std::string& wrapper);
  bool Unwrap(size_t object_begin, const std::string& wrapper, const char* place, uint8_t& type);
  bool Array(Wrappers wrappers, uint8_t& type);
  bool Number(uint8_t& type);
  bool Integer(std::string_view digits, uint8_t& type);
  bool Double(std::string_view digits, uint8_t& type);
  bool Literal(std::string_view word);
  bool Text(std::string& text);
  bool Escape(std::string& text);
  bool CodeUnit(unsigned& unit);

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
  bool End() {
    SkipBlanks();
    return at_ == end_ || Fail("expected nothing more");
  }
  std::string Place() const { return " at byte " + std::to_string(at_ - begin_ + 1); }
  bool Fail(const std::string& what) {
    status_ = absl::InvalidArgumentError(what + (at_ == end_ ? ", at the end" : Place()));
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

bool Reader::Value(Wrappers wrappers, uint8_t& type) {
  SkipBlanks();
  if (at_ == end_) return Fail("expected a value");
  switch (*at_) {
    case '{':
      return Object(wrappers, type);
    case '[':
      return Array(wrappers, type);
    case '"':
      if (!Text(text_)) return false;
      document::AppendStringValue(text_, out_);
      type = document::kBsonString;
      return true;
    case 't':
      out_.push_back(1);
      type = document::kBsonBool;
      return Literal("true");
    case 'f':
      out_.push_back(0);
      type = document::kBsonBool;
      return Literal("false");
    case 'n':
      type = document::kBsonNull;
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

bool Reader::Object(Wrappers wrappers, uint8_t& type) {
  const char* const place = at_++;
  if (++depth_ > kDepthMax) return Fail("too deep");
  const size_t begin = document::BeginDocument(out_);
  std::string wrapper;
  if (!Members(wrappers, wrapper)) return false;
  document::EndDocument(begin, out_);
  --depth_;
  type = document::kBsonObject;
  return wrapper.empty() || Unwrap(begin, wrapper, place, type);
}

// Reads the members of an object to its end and tells the first name that only a wrapper may have.
bool Reader::Members(Wrappers wrappers, std::string& wrapper) {
  if (Take('}')) return true;
  while (true) {
    if (!Peek('"')) return Fail("expected a member name in double quotes");
    if (!Text(text_)) return false;
    if (text_.find('\0') != std::string::npos) return Fail("zero byte in a member name");
    const bool leave = wrappers == Wrappers::kLeave || document::IsWrapperName(text_);
    if (leave && wrappers == Wrappers::kRead && wrapper.empty()) wrapper = text_;
    const size_t type_at = out_.size();
    document::AppendMemberHead(document::kBsonNull, text_, out_);
    if (!Take(':')) return Fail("expected ':'");
    uint8_t type = 0;
    if (!Value(leave ? Wrappers::kLeave : Wrappers::kRead, type)) return false;
    out_[type_at] = static_cast<char>(type);
    if (Take(',')) continue;
    return Take('}') || Fail("expected ',' or '}'");
  }
}

// Replaces the object that ends here, and began in the BSON at `object_begin` and in the text at
// `place`, by the value that it stands for.
bool Reader::Unwrap(size_t object_begin, const std::string& wrapper, const char* place,
                    uint8_t& type) {
  std::optional<document::WrapperFault> fault;
  const std::optional<document::Value> value =
      document::ReadWrapperObject(wrapper, std::string_view(out_).substr(object_begin), fault);
  if (!value) {
    at_ = place;
    return Fail("object that " + fault->problem + "; " + fault->advice + ",");
  }
  out_.resize(object_begin);
  out_ += value->bytes;
  type = value->type;
  return true;
}

bool Reader::Array(Wrappers wrappers, uint8_t& type) {
  ++at_;
  if (++depth_ > kDepthMax) return Fail("too deep");
  const size_t begin = document::BeginDocument(out_);
  if (!Take(']')) {
    for (document::IndexName index;; index.Next()) {
      const size_t type_at = out_.size();
      document::AppendMemberHead(document::kBsonNull, index.text(), out_);
      uint8_t element = 0;
      if (!Value(wrappers, element)) return false;
      out_[type_at] = static_cast<char>(element);
      if (Take(',')) continue;
      if (Take(']')) break;
      return Fail("expected ',' or ']'");
    }
  }
  document::EndDocument(begin, out_);
  --depth_;
  type = document::kBsonArray;
  return true;
}

// The grammar of JSON: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
bool Reader::Number(uint8_t& type) {
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

bool Reader::Integer(std::string_view digits, uint8_t& type) {
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
    document::AppendNumber(static_cast<int32_t>(value), out_);
    type = document::kBsonInt32;
  } else {
    document::AppendNumber(value, out_);
    type = document::kBsonInt64;
  }
  return true;
}

bool Reader::Double(std::string_view digits, uint8_t& type) {
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
  document::AppendNumber(value, out_);
  type = document::kBsonDouble;
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
