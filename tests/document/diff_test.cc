// Field changes and projections.
#include "schemas/document/diff.h"

#include <gtest/gtest.h>

#include <limits>

#include "schemas/document/struct_codec.h"
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

std::vector<FieldChange> AllChanges(const Content& before, const Content& after) {
  Changes changes = Diff(before, after, std::numeric_limits<size_t>::max());
  EXPECT_FALSE(changes.truncated);
  return std::move(changes.list);
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
  EXPECT_EQ(Lines(AllChanges(Doc(before), Doc(after))), lines) << before << " -> " << after;
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
      AllChanges(Doc("{\"" + name + R"(": {"a": 1, "b": {"c": 1}}})"),
                 Doc("{\"" + name + R"(": {"a": 2, "b": {"c": 2}}})"));
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].path, "/" + name);
  EXPECT_EQ(changes[0].type, ChangeType::kChanged);
}

TEST(Diff, KeepsToItsBudgetAndSaysSo) {
  const Content before = Doc(R"({"a": 1, "b": {"c": "x", "d": [1, 2]}, "e": null})");
  const Content after = Doc(R"({"a": 2, "b": {"c": "y", "d": [1, 3, 4]}, "f": {"g": 1}})");
  const std::vector<FieldChange> all = AllChanges(before, after);
  ASSERT_EQ(all.size(), 6u);
  size_t whole = 0;
  for (const FieldChange& change : all) whole += WireSize(change);
  for (size_t budget = 0; budget <= whole + 1; ++budget) {
    const Changes cut = Diff(before, after, budget);
    size_t bytes = 0;
    for (size_t i = 0; i < cut.list.size(); ++i) {
      EXPECT_EQ(cut.list[i].path, all[i].path);
      bytes += WireSize(cut.list[i]);
    }
    EXPECT_LE(bytes, budget);
    EXPECT_EQ(cut.truncated, cut.list.size() < all.size());
    EXPECT_EQ(cut.truncated, budget < whole);
    if (cut.truncated) {
      EXPECT_GT(bytes + WireSize(all[cut.list.size()]), budget);
    }
  }
}

TEST(Diff, GoesOnBehindAnyChange) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomDocuments random(seed);
    const Content before = random.Make();
    const Content after = random.Change(before);
    const std::vector<std::string> all = Lines(AllChanges(before, after));
    for (size_t skip = 0; skip <= all.size() + 1; ++skip) {
      std::vector<FieldChange> taken;
      const auto take_two = [&](FieldChange&& change) {
        if (taken.size() == 2) return false;
        taken.push_back(std::move(change));
        return true;
      };
      const bool complete = VisitChanges(before, after, static_cast<int64_t>(skip), take_two);
      const size_t begin = std::min(skip, all.size());
      const size_t end = std::min(begin + 2, all.size());
      EXPECT_EQ(Lines(taken),
                std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                         all.begin() + static_cast<std::ptrdiff_t>(end)));
      EXPECT_EQ(complete, end == all.size());
    }
  }
}

// With all its changes in memory, this one would take 4.7 MB for a document of 109 KB.
TEST(Diff, HoldsOneChangeAtATime) {
  const std::string name(430, 'n');
  std::string members;
  for (int i = 0; i < 10'000; ++i) {
    members += (i == 0 ? "\"" : ", \"") + std::to_string(i) + "\": 1";
  }
  const Content before = Doc("{\"" + name + "\": {}}");
  const Content after = Doc("{\"" + name + "\": {" + members + "}}");
  ASSERT_LT(after.size(), 110'000u);
  size_t bytes = 0;
  int changes = 0;
  EXPECT_TRUE(VisitChanges(before, after, 0, [&](FieldChange&& change) {
    bytes += WireSize(change);
    ++changes;
    return true;
  }));
  EXPECT_EQ(changes, 10'000);
  EXPECT_GT(bytes, 4'500'000u);
  const Changes cut = Diff(before, after, size_t{1} << 20);
  EXPECT_TRUE(cut.truncated);
  EXPECT_LT(cut.list.size(), 2'500u);
}

TEST(Diff, AnObjectWithAnEndlessNameIsComparedAsAWhole) {
  const std::string name(kDiffNameMax, '~');
  const auto diff = [&](const std::string& key) {
    return AllChanges(Doc(R"({"a": {"b": 1, ")" + key + R"(": 1}, "c": 1})"),
                      Doc(R"({"a": {"b": 2, ")" + key + R"(": 2}, "c": 2})"));
  };
  EXPECT_EQ(diff(name).size(), 3u);
  const std::vector<FieldChange> whole = diff(name + "~");
  ASSERT_EQ(whole.size(), 2u);
  EXPECT_EQ(whole[0].path, "/a");
  EXPECT_EQ(whole[1].path, "/c");
  // At the top, that is the document.
  const std::vector<FieldChange> document = AllChanges(Doc("{}"), Doc("{\"" + name + "~\": 1}"));
  ASSERT_EQ(document.size(), 1u);
  EXPECT_EQ(document[0].path, "");
  EXPECT_EQ(document[0].type, ChangeType::kChanged);
  EXPECT_TRUE(AllChanges(Doc("{\"" + name + "~\": 1}"), Doc("{\"" + name + "~\": 1}")).empty());
}

TEST(Diff, LeavesOutValuesThatNoAnswerCouldHold) {
  const Limits limits{.bytes_max = Limits::kBytesCeiling};
  const auto of = [&](char fill, size_t size) {
    return *Content::FromBson(
        std::string(Doc("{\"a\": \"" + std::string(size, fill) + "\"}").bytes()), limits);
  };
  for (const size_t size : {size_t{1'500'000}, size_t{1'600'000}, Limits::kBytesCeiling - 100}) {
    const std::vector<FieldChange> changes = AllChanges(of('x', size), of('y', size));
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_LE(WireSize(changes[0]), kChangeBytesMax);
    EXPECT_EQ(changes[0].values_omitted, size > 1'550'000);
    EXPECT_EQ(changes[0].before.has_value(), size < 1'550'000);
    EXPECT_EQ(changes[0].path, "/a");
  }
}

TEST(Diff, IsEmptyExactlyForTheSameMeaning) {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    RandomDocuments random(seed);
    const Content before = random.Make();
    const Content after = random.Change(before);
    EXPECT_EQ(AllChanges(before, after).empty(), SameMeaning(before, after));
    EXPECT_EQ(SameMeaning(before, after), SameMeaning(after, before));
    EXPECT_TRUE(AllChanges(before, before).empty());
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
