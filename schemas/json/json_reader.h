// JSON text as RFC 8259 has it and in no other way, token by token: one pass, and memory for the
// depth alone.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace strata::json {

enum class Token {
  kObject,
  kObjectEnd,
  kArray,
  kArrayEnd,
  kName,
  kText,
  kNumber,
  kBool,
  kNull,
  kEnd,
  kError
};

// RFC 8259 leaves some texts to the reader. This one refuses what two readers could take in two
// ways: bytes that are no UTF-8, a byte order mark, half of a surrogate pair, numbers beyond a
// double.
class JsonReader {
 public:
  // `depth_max`: of arrays and objects together. REQUIRES: `text` outlives the reader.
  JsonReader(std::string_view text, int depth_max);

  // The next one. After kEnd and kError: the same again.
  Token Next();

  // Of kName and kText: without quotes and escapes. Of kNumber and kBool: as written.
  const std::string& text() const { return text_; }
  // How many arrays and objects are open.
  int depth() const { return static_cast<int>(open_.size()); }
  // Of kError: what is wrong and in which line.
  const std::string& problem() const { return problem_; }

 private:
  enum class Expected { kValue, kValueOrEnd, kName, kNameOrEnd, kCommaOrEnd, kEnd };

  Token Fail(std::string_view problem);
  Token Unexpected(std::string_view expected);
  Token Value();
  Token Name();
  Token Open(Token token, char end);
  Token Close(Token token);
  Token Literal(std::string_view word, Token token);
  Token Number();
  bool Text();
  bool Escape();
  bool CodeUnit(unsigned& unit);
  void SkipBlanks();
  void ValueEnds();

  const char* at_;
  const char* const begin_;
  const char* const end_;
  const size_t depth_max_;
  Expected expected_ = Expected::kValue;
  std::vector<char> open_;  // what ends each array and object
  std::string text_;
  std::string problem_;
  bool failed_ = false;
};

}  // namespace strata::json
