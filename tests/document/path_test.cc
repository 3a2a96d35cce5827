// JSON Pointers.
#include "schemas/document/path.h"

#include <gtest/gtest.h>

#include "schemas/base/error.h"

namespace strata::document {
namespace {

using Segments = std::vector<std::string>;

TEST(Path, ParsesTheExamplesOfRfc6901) {
  const std::vector<std::pair<std::string, Segments>> table = {
      {"", {}},
      {"/foo", {"foo"}},
      {"/foo/0", {"foo", "0"}},
      {"/", {""}},
      {"/a~1b", {"a/b"}},
      {"/c%d", {"c%d"}},
      {"/e^f", {"e^f"}},
      {"/g|h", {"g|h"}},
      {"/i\\j", {"i\\j"}},
      {"/k\"l", {"k\"l"}},
      {"/ ", {" "}},
      {"/m~0n", {"m~n"}},
      {"/~01", {"~1"}},
      {"//", {"", ""}},
      {"/18.6", {"18.6"}},
  };
  for (const auto& [text, segments] : table) {
    const absl::StatusOr<Path> path = Path::Parse(text);
    ASSERT_TRUE(path.ok()) << text << ": " << path.status();
    EXPECT_EQ(path->segments(), segments);
    EXPECT_EQ(path->ToString(), text);
  }
}

TEST(Path, RefusesWhatIsNoPointerAndNamesIt) {
  using std::string_literals::operator""s;
  for (const std::string& text : {"a"s, "a/b"s, "/~"s, "/~2"s, "/a~"s, "/a\0b"s, "/\xff"s}) {
    const absl::Status status = Path::Parse(text).status();
    EXPECT_EQ(ReasonOf(status), ErrorReason::kInvalidPath) << text;
    EXPECT_TRUE(MetadataOf(status, "path").has_value());
  }
  EXPECT_EQ(MetadataOf(Path::Parse("a/b").status(), "path"), "a/b");
  EXPECT_EQ(MetadataOf(Path::Parse("/\xff").status(), "path"), "") << "not text that can be shown";
}

TEST(Path, TakesAsManySegmentsAsItSaysAndNoMore) {
  std::string text;
  for (size_t i = 0; i < Path::kSegmentsMax; ++i) text += "/a";
  EXPECT_TRUE(Path::Parse(text).ok());
  EXPECT_EQ(ReasonOf(Path::Parse(text + "/a").status()), ErrorReason::kInvalidPath);
}

TEST(Path, AnIndexIsDigitsWithoutLeadingZero) {
  EXPECT_EQ(ArrayIndex("0"), 0);
  EXPECT_EQ(ArrayIndex("10"), 10);
  EXPECT_EQ(ArrayIndex("2147483647"), 2147483647);
  for (const char* text :
       {"", "-", "-1", "+1", "01", "00", "1a", " 1", "1 ", "2147483648", "1.0"}) {
    EXPECT_EQ(ArrayIndex(text), -1) << text;
  }
}

TEST(Path, ALongPathIsCutInTheError) {
  const absl::Status status = Path::Parse("/~" + std::string(100'000, 'x')).status();
  EXPECT_LT(MetadataOf(status, "path")->size(), 600u);
  EXPECT_LT(status.message().size(), 800u);
}

}  // namespace
}  // namespace strata::document
