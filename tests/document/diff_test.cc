// Field changes and projections.
#include "schemas/document/diff.h"

#include <gtest/gtest.h>

#include "tests/document/documents.h"

namespace strata::document {
namespace {

// "+ /path after", "- /path before", "~ /path before -> after", as one line each.
std::vector<std::string> Lines(const std::vector<FieldChange>& changes) {
  std::vector<std::string> lines;
  for (const FieldChange& change : changes) {
    const auto text = [](const std::optional<Value>& value) { return value ? Json(*value) : ""; };
    switch (change.type) {
      case ChangeType::kAdded:
        EXPECT_FALSE(change.before);
        lines.push_back("+ " + change.path + " " + text(change.after));
        break;
      case ChangeType::kRemoved:
        EXPECT_FALSE(change.after);
        lines.push_back("- " + change.path + " " + text(change.before));
        break;
      case ChangeType::kChanged:
        lines.push_back("~ " + change.path + " " + text(change.before) + " -> " +
                        text(change.after));
    }
  }
  return lines;
}

struct Expected {
  char type;
  const char* path;
  const char* before;
  const char* after;
};

void ExpectDiff(std::string_view before, std::string_view after,
                const std::vector<Expected>& expected) {
  std::vector<std::string> lines;
  for (const Expected& change : expected) {
    std::string line = std::string(1, change.type) + " " + change.path + " ";
    if (change.type != '+') line += Json(Val(change.before));
    if (change.type == '~') line += " -> ";
    if (change.type != '-') line += Json(Val(change.after));
    lines.push_back(line);
  }
  EXPECT_EQ(Lines(Diff(Doc(before), Doc(after))), lines) << before << " -> " << after;
}

TEST(Diff, NamesTheDeepestMemberThatChanged) {
  ExpectDiff(R"({"a": {"b": {"c": 1, "d": 2}}})", R"({"a": {"b": {"c": 1, "d": 3}}})",
             {{'~', "/a/b/d", "2", "3"}});
  ExpectDiff(R"({"a": {"b": 1}})", R"({"a": {}})", {{'-', "/a/b", "1", ""}});
  ExpectDiff(R"({"a": {}})", R"({"a": {"b": {"c": 1}}})", {{'+', "/a/b", "", R"({"c": 1})"}});
  ExpectDiff(R"({"a": {"b": 1}})", R"({"a": [1]})", {{'~', "/a", R"({"b": 1})", "[1]"}});
  ExpectDiff(R"({"a": null})", R"({})", {{'-', "/a", "null", ""}});
  ExpectDiff(R"({"a~b": {"c/d": 1}})", R"({"a~b": {"c/d": 2}})", {{'~', "/a~0b/c~1d", "1", "2"}});
}

TEST(Diff, GoesByTheOldOrderWithAdditionsLastInEachObject) {
  ExpectDiff(R"({"c": 1, "b": {"z": 1, "y": 1}, "a": 1})",
             R"({"n": 1, "b": {"x": 1, "y": 2}, "c": 2})",
             {{'~', "/c", "1", "2"},
              {'-', "/b/z", "1", ""},
              {'~', "/b/y", "1", "2"},
              {'+', "/b/x", "", "1"},
              {'-', "/a", "1", ""},
              {'+', "/n", "", "1"}});
}

TEST(Diff, OrderAndIntegerWidthAreNoChange) {
  ExpectDiff(R"({"a": 1, "b": [{"c": 1, "d": 2}]})",
             R"({"b": [{"d": {"$numberLong": "2"}, "c": 1}], "a": {"$numberLong": "1"}})", {});
  ExpectDiff(R"({"a": 1})", R"({"a": {"$numberDouble": "1.0"}})",
             {{'~', "/a", "1", R"({"$numberDouble": "1.0"})"}});
}

TEST(Diff, ArraysAreComparedBehindTheirCommonBeginningAndBeforeTheirCommonEnd) {
  ExpectDiff(R"({"a": [1, 2, 3]})", R"({"a": [0, 1, 2, 3]})", {{'+', "/a/0", "", "0"}});
  ExpectDiff(R"({"a": [1, 2, 3]})", R"({"a": [1, 2, 3, 4]})", {{'+', "/a/3", "", "4"}});
  ExpectDiff(R"({"a": [1, 2, 3]})", R"({"a": [1, 3]})", {{'-', "/a/1", "2", ""}});
  ExpectDiff(R"({"a": [1, 2, 3, 4]})", R"({"a": [1, 5, 4]})",
             {{'~', "/a/1", "2", "5"}, {'-', "/a/2", "3", ""}});
  ExpectDiff(R"({"a": [{"x": 1}, {"x": 2}]})", R"({"a": [{"x": 1}, {"x": 3, "y": [0]}]})",
             {{'~', "/a/1/x", "2", "3"}, {'+', "/a/1/y", "", "[0]"}});
  ExpectDiff(R"({"a": [1, 1]})", R"({"a": [1]})", {{'-', "/a/1", "1", ""}});
  ExpectDiff(R"({"a": [[1], [2]]})", R"({"a": [[1], [2, 3]]})", {{'+', "/a/1/1", "", "3"}});
}

TEST(Diff, DoesNotRepeatALongNameForEachMemberBehindIt) {
  const std::string name(kDiffPathMax, 'n');
  const std::vector<FieldChange> changes =
      Diff(Doc("{\"" + name + R"(": {"a": 1, "b": {"c": 1}}})"),
           Doc("{\"" + name + R"(": {"a": 2, "b": {"c": 2}}})"));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].path, "/" + name);
  EXPECT_EQ(changes[0].type, ChangeType::kChanged);
}

TEST(Diff, IsEmptyExactlyForTheSameMeaning) {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    RandomDocuments random(seed);
    const Content before = random.Make();
    const Content after = random.Change(before);
    EXPECT_EQ(Diff(before, after).empty(), SameMeaning(before, after));
    EXPECT_EQ(SameMeaning(before, after), SameMeaning(after, before));
    EXPECT_TRUE(Diff(before, before).empty());
  }
}

std::string Projected(std::string_view content, const std::vector<std::string>& paths) {
  std::vector<Path> parsed;
  for (const std::string& path : paths) parsed.push_back(*Path::Parse(path));
  const Content projected = Project(Doc(content), parsed);
  EXPECT_TRUE(Content::FromBson(std::string(projected.bytes()), {}).ok());
  return Json(projected);
}

TEST(Project, KeepsWhatIsNamedUnderItsParentsInTheDocumentsOrder) {
  constexpr char kContent[] =
      R"({"c": {"y": 1, "x": {"w": 2, "v": 3}}, "b": [10, {"p": 1, "q": 2}, 12], "a": null})";
  const struct {
    std::vector<std::string> paths;
    const char* expected;
  } rows[] = {
      {{"/a", "/c/y"}, R"({"c": {"y": 1}, "a": null})"},
      {{"/c/x/v"}, R"({"c": {"x": {"v": 3}}})"},
      {{"/c/x/v", "/c/x"}, R"({"c": {"x": {"w": 2, "v": 3}}})"},
      {{"/b"}, R"({"b": [10, {"p": 1, "q": 2}, 12]})"},
      {{"/b/2", "/b/1/q"}, R"({"b": [{"q": 2}, 12]})"},
      {{"/b/3", "/b/-", "/none", "/c/none/x", "/a/b"}, R"({})"},
      {{"/c/none", "/c/x/none"}, R"({})"},
      {{}, R"({})"},
      {{"/a", ""}, kContent},
  };
  for (const auto& row : rows) EXPECT_EQ(Projected(kContent, row.paths), Json(Doc(row.expected)));
}

}  // namespace
}  // namespace strata::document
