// Claims about the lines of import and export and the files they stand in.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "clients/cli/line_format.h"
#include "clients/cli/line_stream.h"
#include "clients/cpp/extended_json.h"

namespace strata::cli {
namespace {

TEST(VersionLine, IsWrittenAsItWasRead) {
  for (
      const std::string text :
      {R"({"collection":"c","id":"a/b","time":"2016-11-29T11:33:29Z","actor":"x","reason":"y","content":{"b":1,"a":[1.0]}})",
       R"({"collection":"c","id":"1","on_behalf_of":"z","labels":{"k":"v","l":""},"deleted":true})",
       R"({"id":"1","content":{}})", R"({"id":"1","content":{"n":{"$numberLong":"5"}}})"}) {
    const auto line = ParseVersionLine(text);
    ASSERT_TRUE(line.ok()) << text << line.status();
    EXPECT_EQ(FormatVersionLine(*line).value(), text);
  }
}

TEST(VersionLine, ContentIsExactBson) {
  const VersionLine line = ParseVersionLine(R"({"id":"1","content":{"b":1,"a":"x"}})").value();
  EXPECT_EQ(line.content, client::BsonFromJson(R"({"b":1,"a":"x"})").value());
}

TEST(VersionLine, NothingIsLostSilently) {
  for (const std::string text :
       {R"({})", R"({"id":"1"})", R"({"id":"","deleted":true})", R"({"id":1,"deleted":true})",
        R"({"id":"1","content":{},"deleted":true})", R"({"id":"1","deleted":false})",
        R"({"id":"1","content":[]})", R"({"id":"1","content":"x"})",
        R"({"id":"1","content":{},"comment":"x"})", R"({"id":"1","content":{},"evidence":"x"})",
        R"({"id":"1","id":"2","content":{}})", R"({"id":"1","content":{},"labels":{"a":1}})",
        R"({"id":"1","content":{},"labels":{"time":"x"}})", R"(not json)", R"([])"}) {
    EXPECT_FALSE(ParseVersionLine(text).ok()) << text;
  }
}

TEST(ImportRequestId, DependsOnWhatTheLineSaysAndItsNumberOnly) {
  const std::string text = R"({"collection":"c","id":"a","actor":"x","content":{"b":1}})";
  const auto id = [](const std::string& line, int64_t number) {
    return ImportRequestId(ParseVersionLine(line).value(), number);
  };
  const std::string one = id(text, 7);
  EXPECT_TRUE(one.starts_with("import-"));
  EXPECT_TRUE(one.ends_with("-7"));
  EXPECT_EQ(one, id(R"({ "actor":"x", "id":"a","collection":"c", "content":{"b": 1}})", 7));
  EXPECT_EQ(one, id(R"({"collection":"c","id":"a","actor":"x","evidence":{"version":7},)"
                    R"("content":{"b":1}})",
                    7));
  EXPECT_NE(one, id(text, 8));
  for (const std::string other :
       {R"({"collection":"d","id":"a","actor":"x","content":{"b":1}})",
        R"({"collection":"c","id":"b","actor":"x","content":{"b":1}})",
        R"({"collection":"c","id":"a","reason":"x","content":{"b":1}})",
        R"({"collection":"c","id":"a","actor":"x","content":{"b":1.0}})",
        R"({"collection":"c","id":"a","actor":"x","deleted":true})",
        R"({"collection":"c","id":"a","actor":"x","labels":{"b":""},"content":{"b":1}})"}) {
    EXPECT_NE(one, id(other, 7)) << other;
  }
  EXPECT_LE(id(text, INT64_MAX).size(), 128u);
}

std::vector<std::string> ReadLines(const std::string& bytes) {
  std::istringstream in(bytes);
  LineReader reader(in);
  std::vector<std::string> lines;
  std::string line;
  while (true) {
    const auto more = reader.Next(line);
    if (!more.ok()) {
      lines.push_back("error: " + std::string(more.status().message()));
      break;
    }
    if (!*more) break;
    lines.push_back(line);
  }
  return lines;
}

// Gives out a few bytes at a time, as a pipe does.
class Trickle : public std::streambuf {
 public:
  Trickle(std::string text, size_t at_once) : text_(std::move(text)), at_once_(at_once) {}

 protected:
  int_type underflow() override {
    if (at_ == text_.size()) return traits_type::eof();
    const size_t count = std::min(at_once_, text_.size() - at_);
    setg(text_.data() + at_, text_.data() + at_, text_.data() + at_ + count);
    at_ += count;
    return traits_type::to_int_type(*gptr());
  }

 private:
  std::string text_;
  const size_t at_once_;
  size_t at_ = 0;
};

// So that a line is read when it is there, and not when a block of them is.
TEST(LineReader, TakesNoMoreThanThereIs) {
  Trickle bytes("a\nb\nc", 4);
  std::istream in(&bytes);
  LineReader reader(in);
  std::string line;
  EXPECT_TRUE(reader.needs_input());
  ASSERT_TRUE(reader.Next(line).value());
  EXPECT_EQ(reader.bytes_read(), 4);
  EXPECT_FALSE(reader.needs_input());
  ASSERT_TRUE(reader.Next(line).value());
  EXPECT_EQ(line, "b");
  EXPECT_TRUE(reader.needs_input());
  ASSERT_TRUE(reader.Next(line).value());
  EXPECT_EQ(line, "c");
  EXPECT_FALSE(reader.Next(line).value());
  EXPECT_FALSE(reader.needs_input());
}

TEST(LineReader, TakesEveryEnd) {
  EXPECT_EQ(ReadLines(""), (std::vector<std::string>{}));
  EXPECT_EQ(ReadLines("a\nb"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(ReadLines("a\r\n\nb\n"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(ReadLines("(\xB5"), (std::vector<std::string>{"(\xB5"}));
}

TEST(LineReader, PassesOverAByteOrderMarkAndBlanks) {
  EXPECT_EQ(ReadLines("\xEF\xBB\xBF{}\n  \t\r\n \xEF\xBB\xBF\n"),
            (std::vector<std::string>{"{}", "", " \xEF\xBB\xBF"}));
  EXPECT_EQ(ReadLines("\xEF\xBB\xBF"), (std::vector<std::string>{""}));
}

// Lines of many lengths, some longer than a block, half of the bytes incompressible.
std::vector<std::string> ManyLines(unsigned seed) {
  SCOPED_TRACE(seed);
  std::minstd_rand random(seed);
  std::vector<std::string> lines;
  for (int i = 0; i < 300; ++i) {
    std::string line(random() % (i % 50 == 0 ? 400'000 : 3000), 'x');
    for (size_t j = 0; j < line.size() / 2; ++j) line[j] = static_cast<char>('!' + random() % 90);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string WriteLines(const std::vector<std::string>& lines, bool compress) {
  std::ostringstream out;
  LineWriter writer(out, compress);
  for (const std::string& line : lines) EXPECT_TRUE(writer.Write(line));
  EXPECT_TRUE(writer.Finish());
  return out.str();
}

TEST(LineStream, WhatIsWrittenIsRead) {
  const std::vector<std::string> lines = ManyLines(1);
  EXPECT_EQ(ReadLines(WriteLines(lines, false)), lines);
  const std::string compressed = WriteLines(lines, true);
  EXPECT_EQ(ReadLines(compressed), lines);
  EXPECT_EQ(ReadLines(WriteLines({}, true)), (std::vector<std::string>{}));
  // Byte by byte, the mark of zstd too.
  Trickle bytes(compressed, 1);
  std::istream in(&bytes);
  LineReader reader(in);
  std::string line;
  size_t read = 0;
  while (reader.Next(line).value_or(false)) EXPECT_EQ(line, lines[read++]);
  EXPECT_EQ(read, lines.size());
  // Frames one after the other, as concatenated files have them.
  EXPECT_EQ(ReadLines(WriteLines({"a"}, true) + WriteLines({"b"}, true)),
            (std::vector<std::string>{"a", "b"}));
}

TEST(LineStream, ACutOrDamagedFileIsAnError) {
  const std::string compressed = WriteLines(ManyLines(2), true);
  for (const size_t size : {compressed.size() - 1, compressed.size() / 2, size_t{6}}) {
    EXPECT_TRUE(ReadLines(compressed.substr(0, size)).back().starts_with("error:")) << size;
  }
  std::string damaged = compressed;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  EXPECT_TRUE(ReadLines(damaged).back().starts_with("error:"));
}

}  // namespace
}  // namespace strata::cli
