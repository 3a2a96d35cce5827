#include "schemas/json/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "schemas/base/utf8.h"

namespace strata::json {
namespace {

// A double has 17 digits that tell it from all others, and an exponent of three.
constexpr size_t kNumberBytesMax = 400;

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

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

JsonReader::JsonReader(std::string_view text, int depth_max)
    : at_(text.data()),
      begin_(text.data()),
      end_(text.data() + text.size()),
      depth_max_(static_cast<size_t>(depth_max)) {
  if (!IsUtf8(text)) {
    Fail("it is not UTF-8");
  } else if (text.starts_with("\xEF\xBB\xBF")) {
    Fail("it begins with a byte order mark");
  }
}

Token JsonReader::Fail(std::string_view problem) {
  failed_ = true;
  problem_ = problem;
  problem_ += ", in line " + std::to_string(1 + std::count(begin_, at_, '\n'));
  return Token::kError;
}

// What many readers of JSON take is called by its name.
Token JsonReader::Unexpected(std::string_view expected) {
  if (*at_ == '/' || *at_ == '#') return Fail("a comment");
  if (*at_ == '\'') return Fail("a text in single quotes");
  return Fail(expected);
}

void JsonReader::SkipBlanks() {
  while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
}

void JsonReader::ValueEnds() { expected_ = open_.empty() ? Expected::kEnd : Expected::kCommaOrEnd; }

Token JsonReader::Next() {
  if (failed_) return Token::kError;
  SkipBlanks();
  if (expected_ == Expected::kEnd) {
    return at_ == end_ ? Token::kEnd : Fail("there is more after the value");
  }
  if (at_ == end_) return Fail("it ends before the value does");
  if (expected_ == Expected::kCommaOrEnd && *at_ == ',') {
    ++at_;
    SkipBlanks();
    if (at_ == end_) return Fail("it ends before the value does");
    if (*at_ == open_.back()) return Fail("a comma after the last element");
    expected_ = open_.back() == '}' ? Expected::kName : Expected::kValue;
  }
  switch (expected_) {
    case Expected::kCommaOrEnd:
      if (*at_ == open_.back()) return Close(*at_ == '}' ? Token::kObjectEnd : Token::kArrayEnd);
      return Unexpected(open_.back() == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    case Expected::kNameOrEnd:
      return *at_ == '}' ? Close(Token::kObjectEnd) : Name();
    case Expected::kName:
      return Name();
    case Expected::kValueOrEnd:
      return *at_ == ']' ? Close(Token::kArrayEnd) : Value();
    default:
      return Value();
  }
}

Token JsonReader::Open(Token token, char end) {
  if (open_.size() == depth_max_) {
    return Fail("more than " + std::to_string(depth_max_) + " levels of arrays and objects");
  }
  ++at_;
  open_.push_back(end);
  expected_ = token == Token::kObject ? Expected::kNameOrEnd : Expected::kValueOrEnd;
  return token;
}

Token JsonReader::Close(Token token) {
  ++at_;
  open_.pop_back();
  ValueEnds();
  return token;
}

Token JsonReader::Name() {
  if (*at_ != '"') return Unexpected("expected a member's name in double quotes");
  if (!Text()) return Token::kError;
  SkipBlanks();
  if (at_ == end_ || *at_ != ':') return Fail("expected ':' after a member's name");
  ++at_;
  expected_ = Expected::kValue;
  return Token::kName;
}

Token JsonReader::Value() {
  switch (*at_) {
    case '{':
      return Open(Token::kObject, '}');
    case '[':
      return Open(Token::kArray, ']');
    case '"':
      if (!Text()) return Token::kError;
      ValueEnds();
      return Token::kText;
    case 't':
      return Literal("true", Token::kBool);
    case 'f':
      return Literal("false", Token::kBool);
    case 'n':
      return Literal("null", Token::kNull);
    default:
      return Number();
  }
}

Token JsonReader::Literal(std::string_view word, Token token) {
  if (!std::string_view(at_, static_cast<size_t>(end_ - at_)).starts_with(word)) {
    return Fail("expected a value");
  }
  text_ = word;
  at_ += word.size();
  ValueEnds();
  return token;
}

// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
Token JsonReader::Number() {
  const char* at = at_;
  const auto digits = [&] {
    const char* const before = at;
    while (at != end_ && IsDigit(*at)) ++at;
    return at - before;
  };
  if (*at == '-') ++at;
  const bool zero = at != end_ && *at == '0';
  const auto whole = digits();
  bool good = whole == 1 || (whole > 1 && !zero);
  if (good && at != end_ && *at == '.') {
    ++at;
    good = digits() > 0;
  }
  if (good && at != end_ && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end_ && (*at == '+' || *at == '-')) ++at;
    good = digits() > 0;
  }
  if (!good)
    return whole > 0 ? Fail("a number that JSON does not have") : Unexpected("expected a value");
  text_.assign(at_, at);
  if (text_.size() > kNumberBytesMax) {
    return Fail("a number of more than " + std::to_string(kNumberBytesMax) + " bytes");
  }
  double value = 0;
  const auto [rest, error] = std::from_chars(at_, at, value);
  // Too close to zero is rounded, as everywhere.
  if (error != std::errc() && !std::isfinite(std::strtod(text_.c_str(), nullptr))) {
    return Fail("a number beyond what a double holds");
  }
  at_ = at;
  ValueEnds();
  return Token::kNumber;
}

bool JsonReader::Text() {
  ++at_;
  text_.clear();
  for (;;) {
    const char* const plain = at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= ' ') {
      ++at_;
    }
    text_.append(plain, at_);
    if (at_ == end_) {
      Fail("a text without its closing quote");
      return false;
    }
    if (*at_ == '"') {
      ++at_;
      return true;
    }
    if (*at_ != '\\') {
      Fail("a control character in a text");
      return false;
    }
    if (!Escape()) return false;
  }
}

bool JsonReader::CodeUnit(unsigned& unit) {
  if (end_ - at_ >= 4) {
    const auto [rest, error] = std::from_chars(at_, at_ + 4, unit, 16);
    if (error == std::errc() && rest == at_ + 4) {
      at_ = rest;
      return true;
    }
  }
  Fail("\\u without four hexadecimal digits");
  return false;
}

bool JsonReader::Escape() {
  ++at_;
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kCharacters = "\"\\/\b\f\n\r\t";
  const size_t named = at_ == end_ ? std::string_view::npos : kNames.find(*at_);
  if (named != std::string_view::npos) {
    text_.push_back(kCharacters[named]);
    ++at_;
    return true;
  }
  if (at_ == end_ || *at_ != 'u') {
    Fail("an unknown escape in a text");
    return false;
  }
  ++at_;
  unsigned code = 0;
  if (!CodeUnit(code)) return false;
  if (code >= 0xD800 && code < 0xE000) {
    unsigned low = 0;
    const bool pair = code < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u';
    if (pair) {
      at_ += 2;
      if (!CodeUnit(low)) return false;
    }
    if (low < 0xDC00 || low >= 0xE000) {
      Fail("half of a surrogate pair in a text");
      return false;
    }
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  AppendUtf8(code, text_);
  return true;
}

}  // namespace strata::json
