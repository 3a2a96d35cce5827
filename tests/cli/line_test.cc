// Claims about the lines of import and export and the files they stand in.
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "clients/cli/line_format.h"
#include "clients/cli/line_stream.h"
#include "clients/client/extended_json.h"

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
        R"({"id":"1","content":{},"comment":"x"})", R"({"id":"1","id":"2","content":{}})",
        R"({"id":"1","content":{},"labels":{"a":1}})",
        R"({"id":"1","content":{},"labels":{"time":"x"}})", R"(not json)", R"([])"}) {
    EXPECT_FALSE(ParseVersionLine(text).ok()) << text;
  }
}

TEST(ImportRequestId, DependsOnTheLineAndItsNumberOnly) {
  const std::string id = ImportRequestId("line", 7);
  EXPECT_EQ(id, "import-38a9c1e721584da2-7");
  EXPECT_EQ(id, ImportRequestId("line", 7));
  EXPECT_NE(id, ImportRequestId("line", 8));
  EXPECT_NE(id, ImportRequestId("Line", 7));
  EXPECT_LE(ImportRequestId("", INT64_MAX).size(), 128u);
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

TEST(LineReader, TakesEveryEnd) {
  EXPECT_EQ(ReadLines(""), (std::vector<std::string>{}));
  EXPECT_EQ(ReadLines("a\nb"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(ReadLines("a\r\n\nb\n"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(ReadLines("(\xB5"), (std::vector<std::string>{"(\xB5"}));
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
