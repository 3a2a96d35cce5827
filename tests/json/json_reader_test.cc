// JSON by the letter of RFC 8259: what is taken, what is refused, and how it is read.
#include "schemas/json/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace strata::json {
namespace {

using testing::HasSubstr;

constexpr int kDepthMax = 8;

// Its tokens as one text, or "!" and what is wrong.
std::string Read(std::string_view text) {
  static constexpr std::string_view kMarks[] = {
      "{", "}", "[", "]", "name:", "text:", "number:", "", "null"};
  JsonReader reader(text, kDepthMax);
  std::string all;
  for (;;) {
    const Token token = reader.Next();
    if (token == Token::kEnd) return all;
    if (token == Token::kError) {
      EXPECT_EQ(reader.Next(), Token::kError);
      return "!" + reader.problem();
    }
    all += all.empty() ? "" : " ";
    all += kMarks[static_cast<size_t>(token)];
    if (token == Token::kName || token == Token::kText || token == Token::kNumber ||
        token == Token::kBool) {
      all += reader.text();
    }
  }
}

TEST(JsonReader, ReadsWhatJsonHas) {
  EXPECT_EQ(Read("{}"), "{ }");
  EXPECT_EQ(Read(" [ ] \r\n\t"), "[ ]");
  EXPECT_EQ(Read(R"({"a": [1, -0.5e+3, true, false, null, "x"], "b": {}})"),
            "{ name:a [ number:1 number:-0.5e+3 true false null text:x ] name:b { } }");
  EXPECT_EQ(Read("7"), "number:7");
  EXPECT_EQ(Read(R"("")"), "text:");
  EXPECT_EQ(Read("1e-400"), "number:1e-400");
  EXPECT_EQ(Read(R"(["\"\\\/\b\f\n\r\t"])"), "[ text:\"\\/\b\f\n\r\t ]");
  EXPECT_EQ(Read(R"("\u0041\u00e9\u20AC\ud83d\uDE00")"),
            "text:A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(Read("\"\xC3\xA9\x7F\""), "text:\xC3\xA9\x7F");
  EXPECT_EQ(Read(R"({"a": 1, "a": 2})"),
            "{ name:a number:1 name:a number:2 }");  // whose reader knows what that means
}

TEST(JsonReader, RefusesWhatItHasNot) {
  const std::pair<std::string, std::string> rows[] = {
      {"", "it ends before the value does"},
      {" ", "it ends before the value does"},
      {"[", "it ends before the value does"},
      {"[1", "it ends before the value does"},
      {"[1,", "it ends before the value does"},
      {R"({"a")", "expected ':'"},
      {R"({"a":)", "it ends before the value does"},
      {R"({"a" 1})", "expected ':'"},
      {R"({"a":1 "b":2})", "expected ',' or '}'"},
      {"[1 2]", "expected ',' or ']'"},
      {"[1,]", "a comma after the last element"},
      {R"({"a":1,})", "a comma after the last element"},
      {"[,1]", "expected a value"},
      {"{,}", "expected a member's name"},
      {"[1}", "expected ',' or ']'"},
      {R"({"a":1])", "expected ',' or '}'"},
      {"]", "expected a value"},
      {"{} {}", "more after the value"},
      {"1 2", "more after the value"},
      {"{a: 1}", "expected a member's name in double quotes"},
      {"{'a': 1}", "single quotes"},
      {"['a']", "single quotes"},
      {"{1: 1}", "expected a member's name"},
      {"[// x\n1]", "a comment"},
      {"[1 /* x */]", "a comment"},
      {"# x\n1", "a comment"},
      {"True", "expected a value"},
      {"tru", "expected a value"},
      {"NaN", "expected a value"},
      {"Infinity", "expected a value"},
      {"-", "expected a value"},
      {"+1", "expected a value"},
      {".5", "expected a value"},
      {"01", "a number that JSON does not have"},
      {"-01", "a number that JSON does not have"},
      {"2.", "a number that JSON does not have"},
      {"1.e3", "a number that JSON does not have"},
      {"1e", "a number that JSON does not have"},
      {"1e+", "a number that JSON does not have"},
      {"0x1F", "more after the value"},
      {"1e400", "beyond what a double holds"},
      {std::string(401, '1'), "more than 400 bytes"},
      {R"("a)", "without its closing quote"},
      {R"("\)", "unknown escape"},
      {R"("\x41")", "unknown escape"},
      {R"("C:\apps")", "unknown escape"},
      {R"("\u12")", "four hexadecimal digits"},
      {R"("\u12g4")", "four hexadecimal digits"},
      {R"("\u-123")", "four hexadecimal digits"},
      {R"("\ud800")", "half of a surrogate pair"},
      {R"("\ud800\u0041")", "half of a surrogate pair"},
      {R"("\udc00\ud800")", "half of a surrogate pair"},
      {"\"a\nb\"", "a control character"},
      {std::string("\"a\0b\"", 5), "a control character"},
      {std::string("1\0", 2), "more after the value"},
      {"\f1", "expected a value"},
      {"\xEF\xBB\xBF{}", "byte order mark"},
      {"\"\xFF\"", "not UTF-8"},
      {"\"\xC0\x80\"", "not UTF-8"},
      {"\"\xED\xA0\x80\"", "not UTF-8"},
  };
  for (const auto& [text, problem] : rows) {
    SCOPED_TRACE(text);
    const std::string read = Read(text);
    EXPECT_TRUE(read.starts_with("!")) << read;
    EXPECT_THAT(read, HasSubstr(problem));
  }
}

TEST(JsonReader, NamesTheLine) { EXPECT_THAT(Read("{\n\n\"a\": x}"), HasSubstr("in line 3")); }

TEST(JsonReader, CountsArraysAndObjectsTogether) {
  EXPECT_EQ(Read(R"([[{"a":[[[[[]]]]]}]])").front(), '[');
  EXPECT_EQ(Read(R"([[{"a":[[[[[[]]]]]]}]])"),
            "!more than 8 levels of arrays and objects, in line 1");
  EXPECT_EQ(Read(std::string(10'000'000, '[')),
            "!more than 8 levels of arrays and objects, in line 1");
}

}  // namespace
}  // namespace strata::json
