// Merge patches and operations.
#include "schemas/document/patch.h"

#include <gtest/gtest.h>

#include <chrono>

#include "schemas/document/filter.h"
#include "tests/document/documents.h"
#include "tests/support/cpu_time.h"

namespace strata::document {
namespace {

using std::string_literals::operator""s;

Operation Op(OperationKind kind, std::string_view path, std::string_view operand = "null") {
  return {*Path::Parse(path), kind, Val(operand)};
}
Operation Set(std::string_view path, std::string_view value) {
  return Op(OperationKind::kSet, path, value);
}
Operation Unset(std::string_view path) { return Op(OperationKind::kUnset, path); }
Operation Increment(std::string_view path, std::string_view by) {
  return Op(OperationKind::kIncrement, path, by);
}
Operation Append(std::string_view path, std::string_view elements) {
  return Op(OperationKind::kAppend, path, elements);
}
Operation AppendMissing(std::string_view path, std::string_view elements) {
  return Op(OperationKind::kAppendMissing, path, elements);
}
Operation RemoveAll(std::string_view path, std::string_view elements) {
  return Op(OperationKind::kRemoveAll, path, elements);
}

absl::StatusOr<Content> Apply(std::string_view base, std::vector<Operation> operations) {
  return ApplyPatch(Doc(base), Patch{std::nullopt, std::move(operations)}, {});
}

void ExpectResult(const absl::StatusOr<Content>& result, std::string_view expected) {
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Json(*result), Json(Doc(expected)));
  EXPECT_EQ(*result, Doc(expected));
  EXPECT_TRUE(Content::FromBson(std::string(result->bytes()), {}).ok());
}

struct Row {
  const char* base;
  Operation operation;
  const char* expected;
};

void ExpectRows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.operation.path.ToString() + " of " + row.base);
    ExpectResult(Apply(row.base, {row.operation}), row.expected);
  }
}

// The appendix of RFC 7396, as far as both sides are objects, and more of the kind.
TEST(Merge, FollowsTheAppendixOfRfc7396) {
  const struct {
    const char* base;
    const char* patch;
    const char* expected;
  } rows[] = {
      {R"({"a": "b"})", R"({"a": "c"})", R"({"a": "c"})"},
      {R"({"a": "b"})", R"({"b": "c"})", R"({"a": "b", "b": "c"})"},
      {R"({"a": "b"})", R"({"a": null})", R"({})"},
      {R"({"a": "b", "b": "c"})", R"({"a": null})", R"({"b": "c"})"},
      {R"({"a": ["b"]})", R"({"a": "c"})", R"({"a": "c"})"},
      {R"({"a": "c"})", R"({"a": ["b"]})", R"({"a": ["b"]})"},
      {R"({"a": {"b": "c"}})", R"({"a": {"b": "d", "c": null}})", R"({"a": {"b": "d"}})"},
      {R"({"a": [{"b": "c"}]})", R"({"a": [1]})", R"({"a": [1]})"},
      {R"({"e": null})", R"({"a": 1})", R"({"e": null, "a": 1})"},
      {R"({})", R"({"a": {"bb": {"ccc": null}}})", R"({"a": {"bb": {}}})"},
      {R"({"a": "foo"})", R"({"a": {"b": null, "c": 1}})", R"({"a": {"c": 1}})"},
      {R"({"a": [1]})", R"({"a": [null, {"b": null}]})", R"({"a": [null, {"b": null}]})"},
      {R"({"a": 1})", R"({})", R"({"a": 1})"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.patch);
    ExpectResult(ApplyPatch(Doc(row.base), Patch{Doc(row.patch), {}}, {}), row.expected);
  }
}

TEST(Merge, MembersKeepTheirPlaceAndNewOnesGoLast) {
  ExpectResult(
      ApplyPatch(Doc(R"({"c": 1, "b": {"y": 1, "x": 2}, "a": 3})"),
                 Patch{Doc(R"({"d": 9, "a": 8, "b": {"w": 7, "x": 6, "y": null}})"), {}}, {}),
      R"({"c": 1, "b": {"x": 6, "w": 7}, "a": 8, "d": 9})");
}

TEST(Merge, ManyMembersAreFoundWhateverTheirOrder) {
  std::string base = "{";
  std::string patch = "{";
  std::string expected = "{";
  for (int i = 0; i < 500; ++i) {
    base += (i > 0 ? ",\"m" : "\"m") + std::to_string(i) + "\":1";
    patch +=
        (i > 0 ? ",\"m" : "\"m") + std::to_string(499 - i) + "\":" + (i % 2 == 0 ? "null" : "2");
    if (i % 2 == 0) expected += (i > 0 ? ",\"m" : "\"m") + std::to_string(i) + "\":2";
  }
  ExpectResult(ApplyPatch(Doc(base + "}"), Patch{Doc(patch + "}"), {}}, {}), expected + "}");
}

TEST(Merge, ComesBeforeTheOperations) {
  ExpectResult(
      ApplyPatch(Doc(R"({"a": 1})"), Patch{Doc(R"({"a": 5})"), {Increment("/a", "1")}}, {}),
      R"({"a": 6})");
}

TEST(Set, ReplacesInPlaceOrAddsLastAndMakesParents) {
  ExpectRows({
      {R"({"a": 1, "b": 2})", Set("/a", "\"x\""), R"({"a": "x", "b": 2})"},
      {R"({"a": 1})", Set("/b", "[1]"), R"({"a": 1, "b": [1]})"},
      {R"({"a": {"b": {"c": 1}}, "z": 0})", Set("/a/b/c", "{\"d\": 1}"),
       R"({"a": {"b": {"c": {"d": 1}}}, "z": 0})"},
      {R"({})", Set("/a/b/c", "1"), R"({"a": {"b": {"c": 1}}})"},
      {R"({"a": {"x": 1}})", Set("/a/0/c", "1"), R"({"a": {"x": 1, "0": {"c": 1}}})"},
      {R"({"a": [1, 2, 3]})", Set("/a/1", "\"two\""), R"({"a": [1, "two", 3]})"},
      {R"({"a": [1, 2]})", Set("/a/2", "3"), R"({"a": [1, 2, 3]})"},
      {R"({"a": [1, 2]})", Set("/a/-", "3"), R"({"a": [1, 2, 3]})"},
      {R"({"a": [1]})", Set("/a/-/b/c", "3"), R"({"a": [1, {"b": {"c": 3}}]})"},
      {R"({"a": [{"b": 1}]})", Set("/a/0/b", "null"), R"({"a": [{"b": null}]})"},
      {R"({"a/b": {"": 1}})", Set("/a~1b/", "2"), R"({"a/b": {"": 2}})"},
      {R"({"a.b": 1})", Set("/a.b", "2"), R"({"a.b": 2})"},
      {R"({"-": {"0": 1}})", Set("/-/0", "2"), R"({"-": {"0": 2}})"},
      {R"({"a": 1})", Set("", "{\"b\": 2}"), R"({"b": 2})"},
  });
}

TEST(Set, KeepsTheTypeThatItIsGiven) {
  ExpectRows(
      {{R"({"a": 1})", Set("/a", R"({"$numberLong": "1"})"), R"({"a": {"$numberLong": "1"}})"},
       {R"({"a": 1})", Set("/a", R"({"$date": {"$numberLong": "5"}})"),
        R"({"a": {"$date": {"$numberLong": "5"}}})"}});
}

TEST(Unset, RemovesMembersAndMakesElementsNull) {
  ExpectRows({
      {R"({"a": 1, "b": {"c": 2, "d": 3}})", Unset("/b/c"), R"({"a": 1, "b": {"d": 3}})"},
      {R"({"a": 1})", Unset("/a"), R"({})"},
      {R"({"a": 1})", Unset("/b"), R"({"a": 1})"},
      {R"({"a": 1})", Unset("/b/c/d"), R"({"a": 1})"},
      {R"({"a": 1})", Unset("/a/b"), R"({"a": 1})"},
      {R"({"a": [1, 2, 3]})", Unset("/a/1"), R"({"a": [1, null, 3]})"},
      {R"({"a": [1, 2, 3]})", Unset("/a/7"), R"({"a": [1, 2, 3]})"},
      {R"({"a": [1, 2, 3]})", Unset("/a/-"), R"({"a": [1, 2, 3]})"},
      {R"({"a": [1, {"b": 1}]})", Unset("/a/1/b"), R"({"a": [1, {}]})"},
  });
}

TEST(Increment, AddsAsMongoDoes) {
  const char* const kLong = R"({"$numberLong": "1"})";
  ExpectRows({
      {R"({"a": 1})", Increment("/a", "2"), R"({"a": 3})"},
      {R"({"a": 1})", Increment("/a", "-2"), R"({"a": -1})"},
      {R"({})", Increment("/a/b", "2"), R"({"a": {"b": 2}})"},
      {R"({"a": [1]})", Increment("/a/0", "2"), R"({"a": [3]})"},
      {R"({"a": 2147483647})", Increment("/a", "1"), R"({"a": {"$numberLong": "2147483648"}})"},
      {R"({"a": 1})", Increment("/a", kLong), R"({"a": {"$numberLong": "2"}})"},
      {R"({"a": {"$numberLong": "1"}})", Increment("/a", "1"), R"({"a": {"$numberLong": "2"}})"},
      {R"({"a": 1})", Increment("/a", "1.5"), R"({"a": {"$numberDouble": "2.5"}})"},
      {R"({"a": 1.5})", Increment("/a", "1"), R"({"a": {"$numberDouble": "2.5"}})"},
      {R"({"a": 1.5})", Increment("/a", "0.5"), R"({"a": {"$numberDouble": "2.0"}})"},
      {R"({"a": {"$numberLong": "9223372036854775807"}})", Increment("/a", "0"),
       R"({"a": {"$numberLong": "9223372036854775807"}})"},
  });
}

TEST(Increment, AddsToADecimalExactly) {
  const auto decimal = [](const std::string& digits) {
    return R"({"$numberDecimal": ")" + digits + "\"}";
  };
  const struct {
    std::string old;
    std::string by;
    std::string sum;
  } rows[] = {
      {decimal("1.50"), decimal("0.1"), decimal("1.60")},
      {decimal("1.50"), "1", decimal("2.50")},
      {decimal("1.50"), "-2", decimal("-0.50")},
      {decimal("1.50"), R"({"$numberLong": "9223372036854775807"})",
       decimal("9223372036854775808.50")},
      {decimal("1.50"), "0.25", decimal("1.75")},
      {"1", decimal("0.1"), decimal("1.1")},
      {R"({"$numberLong": "9223372036854775807"})", decimal("1"), decimal("9223372036854775808")},
      {"0.5", decimal("0.10"), decimal("0.60")},
      {decimal("0.1"), decimal("-0.1"), decimal("0.0")},
      {decimal("9999999999999999999999999999999999"), "1",
       decimal("1.000000000000000000000000000000000E+34")},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.old + " + " + row.by);
    ExpectResult(Apply(R"({"a": )" + row.old + "}", {Increment("/a", row.by)}),
                 R"({"a": )" + row.sum + "}");
  }
  ExpectResult(Apply("{}", {Increment("/a", decimal("0.10"))}),
               R"({"a": )" + decimal("0.10") + "}");
}

TEST(Append, AddsElementsInOrder) {
  ExpectRows({
      {R"({"a": [1], "b": 2})", Append("/a", "[2, [3], {\"c\": 4}]"),
       R"({"a": [1, 2, [3], {"c": 4}], "b": 2})"},
      {R"({})", Append("/a/b", "[1, 1]"), R"({"a": {"b": [1, 1]}})"},
      {R"({"a": [1]})", Append("/a", "[]"), R"({"a": [1]})"},
      {R"({"a": [0,1,2,3,4,5,6,7,8]})", Append("/a", "[9,10,11]"),
       R"({"a": [0,1,2,3,4,5,6,7,8,9,10,11]})"},
      {R"({"a": [[1]]})", Append("/a/0", "[2]"), R"({"a": [[1, 2]]})"},
  });
}

TEST(AppendMissing, AddsWhatNoElementEquals) {
  ExpectRows({
      {R"({"a": [1, "x"]})", AppendMissing("/a", "[\"x\", 2, 1, 2]"), R"({"a": [1, "x", 2]})"},
      {R"({})", AppendMissing("/a", "[1, 1, 2]"), R"({"a": [1, 2]})"},
      {R"({"a": [{"b": 1, "c": 2}]})",
       AppendMissing("/a", R"([{"c": 2, "b": {"$numberLong": "1"}}, {"b": 1}])"),
       R"({"a": [{"b": 1, "c": 2}, {"b": 1}]})"},
      {R"({"a": [1, {"$numberDouble": "2.0"}, 0.5]})",
       AppendMissing("/a", R"([{"$numberDouble": "1.0"}, 2, 0.5, true, "1"])"),
       R"({"a": [1, {"$numberDouble": "2.0"}, 0.5, true, "1"]})"},
      {R"({"a": [[1, 2]]})", AppendMissing("/a", "[[2, 1], [1, 2]]"), R"({"a": [[1, 2], [2, 1]]})"},
  });
}

TEST(RemoveAll, RemovesEveryElementThatEqualsOne) {
  ExpectRows({
      {R"({"a": [1, 2, 1, 3], "b": 1})", RemoveAll("/a", "[1, 3]"), R"({"a": [2], "b": 1})"},
      {R"({"a": [1]})", RemoveAll("/a", R"([{"$numberDouble": "1.0"}])"), R"({"a": []})"},
      {R"({"a": [{"b": 1, "c": 2}, null]})", RemoveAll("/a", R"([{"c": 2, "b": 1}, null])"),
       R"({"a": []})"},
      {R"({"a": [1]})", RemoveAll("/b/c", "[1]"), R"({"a": [1]})"},
      {R"({"a": [[1], 1]})", RemoveAll("/a/0", "[1]"), R"({"a": [[], 1]})"},
  });
}

// Filters, append_missing and remove_all mean the same by equal, as long as members are in order.
TEST(Equality, IsThatOfFilters) {
  const char* const values[] = {
      "0",
      "1",
      "2",
      R"({"$numberLong": "1"})",
      R"({"$numberLong": "9007199254740993"})",
      R"({"$numberDouble": "1.0"})",
      R"({"$numberDouble": "-0.0"})",
      R"({"$numberDouble": "0.1"})",
      R"({"$numberDouble": "0.5"})",
      R"({"$numberDouble": "9007199254740992.0"})",
      R"({"$numberDouble": "1e300"})",
      R"({"$numberDecimal": "1"})",
      R"({"$numberDecimal": "1.0"})",
      R"({"$numberDecimal": "10E-1"})",
      R"({"$numberDecimal": "-0E+3"})",
      R"({"$numberDecimal": "0.1"})",
      R"({"$numberDecimal": "0.50"})",
      R"({"$numberDecimal": "9007199254740993"})",
      R"({"$numberDecimal": "1E+300"})",
      R"({"$numberDecimal": "0.1000000000000000055511151231257827"})",
      "true",
      "null",
      "\"1\"",
      R"({"$date": {"$numberLong": "1"}})",
      R"({"b": 1})",
      R"({"b": {"$numberDecimal": "1.0"}})",
      R"({"b": 1, "c": [1]})",
      R"({"b": {"$numberDouble": "1.0"}, "c": [{"$numberDecimal": "1"}]})",
      "[1, 2]",
      R"([{"$numberDecimal": "1.0"}, 2])",
      "[]",
      "{}",
  };
  for (const std::string a : values) {
    // In an array of an array: $eq also looks at the elements of an array, and then at the array.
    const std::string base = R"({"a": [)" + a + "]}";
    for (const std::string b : values) {
      SCOPED_TRACE(a + " and " + b);
      const std::string operand = "[" + b + "]";
      const absl::StatusOr<Filter> filter =
          Filter::Compile(Doc(R"({"a": {"$eq": )" + operand + "}}"));
      ASSERT_TRUE(filter.ok()) << filter.status();
      const bool equal = filter->Matches(Doc(base));
      EXPECT_EQ(*Apply(base, {AppendMissing("/a", operand)}) == Doc(base), equal);
      EXPECT_EQ(*Apply(base, {RemoveAll("/a", operand)}) == Doc(R"({"a": []})"), equal);
    }
  }
}

TEST(Equality, DoesNotDependOnTheOrderOfMembers) {
  const std::string base = R"({"a": [{"b": {"d": 1, "e": 2}, "c": 3}]})";
  const std::string other = R"([{"c": {"$numberDecimal": "3.0"}, "b": {"e": 2, "d": 1}}])";
  ExpectResult(Apply(base, {AppendMissing("/a", other)}), base);
  ExpectResult(Apply(base, {RemoveAll("/a", other)}), R"({"a": []})");
}

TEST(Operations, AreRefusedWithTheirPositionAndPath) {
  const std::vector<std::pair<const char*, Operation>> rows = {
      {R"({"a": 1})", Set("/a/b", "1")},
      {R"({"a": null})", Set("/a/b", "1")},
      {R"({"a": "text"})", Append("/a/0", "[1]")},
      {R"({"a": [1]})", Set("/a/2", "1")},
      {R"({"a": [1]})", Set("/a/x", "1")},
      {R"({"a": [1]})", Set("/a/01", "1")},
      {R"({"a": [1]})", Increment("/a/5", "1")},
      {R"({"a": "1"})", Increment("/a", "1")},
      {R"({"a": {"$date": {"$numberLong": "1"}}})", Increment("/a", "1")},
      {R"({"a": 1})", Increment("/a", "\"1\"")},
      {R"({"a": true})", Increment("/a", R"({"$numberDecimal": "1"})")},
      {R"({"a": {"$numberDecimal": "1E+34"}})", Increment("/a", "1")},
      {R"({"a": {"$numberDecimal": "1"}})", Increment("/a", "0.1")},
      {R"({"a": 0.1})", Increment("/a", R"({"$numberDecimal": "1"})")},
      {R"({"a": {"$numberLong": "9223372036854775807"}})", Increment("/a", "1")},
      {R"({"a": {"$numberLong": "-9223372036854775808"}})", Increment("/a", "-1")},
      {R"({"a": 1.7e308})", Increment("/a", "1.7e308")},
      {R"({"a": 1})", Append("/a", "[1]")},
      {R"({"a": {}})", Append("/a", "[1]")},
      {R"({"a": []})", Append("/a", "1")},
      {R"({"a": 1})", AppendMissing("/a", "[1]")},
      {R"({"a": []})", AppendMissing("/a", "{}")},
      {R"({"a": 1})", RemoveAll("/a", "[1]")},
      {R"({"a": []})", RemoveAll("/a", "1")},
      {R"({"a": 1})", Set("", "1")},
      {R"({"a": 1})", Unset("")},
      {R"({"a": 1})", Append("", "[]")},
  };
  for (const auto& [base, operation] : rows) {
    const absl::Status status = Apply(base, {Set("/z", "0"), operation}).status();
    ExpectError(status, ErrorReason::kInvalidPatch, operation.path.ToString());
    EXPECT_EQ(MetadataOf(status, "field"), "operations[1]");
    EXPECT_TRUE(MetadataOf(status, "problem").has_value());
  }
}

TEST(Operations, ApplyInOrder) {
  ExpectResult(Apply(R"({"a": 1})",
                     {Set("/b", "[]"), Append("/b", "[1, 2]"), Increment("/b/1", "5"), Unset("/a"),
                      Set("/c/d", "{}"), Set("/c/d/e", "1"), RemoveAll("/b", "[1]")}),
               R"({"b": [7], "c": {"d": {"e": 1}}})");
}

TEST(Operations, TheResultKeepsTheLimits) {
  Limits limits;
  const auto apply = [&](std::string_view base, Operation operation) {
    return ApplyPatch(Doc(base), Patch{std::nullopt, {std::move(operation)}}, limits).status();
  };
  limits.depth_max = 3;
  EXPECT_TRUE(apply("{}", Set("/a/b/c", "1")).ok());
  ExpectError(apply("{}", Set("/a/b/c/d", "1")), ErrorReason::kInvalidContent, "/a/b/c");
  limits = {};
  limits.nodes_max = 3;
  EXPECT_TRUE(apply(R"({"a": [1]})", Append("/a", "[2]")).ok());
  ExpectError(apply(R"({"a": [1]})", Append("/a", "[2, 3]")), ErrorReason::kInvalidContent, "/a/2");
  limits = {};
  limits.bytes_max = 60;
  EXPECT_TRUE(apply("{}", Set("/a", "\"short\"")).ok());
  EXPECT_EQ(ReasonOf(apply("{}", Set("/a", "\"" + std::string(60, 'x') + "\""))),
            ErrorReason::kDocumentTooLarge);
}

TEST(Operations, CannotMakeAWrapper) {
  ExpectError(Apply("{}", {Set("/a/$numberLong", "\"5\"")}).status(), ErrorReason::kInvalidContent,
              "/a");
  ExpectError(Apply("{}", {Set("/a/$oid", "5")}).status(), ErrorReason::kInvalidContent, "/a");
}

TEST(Operations, AreLimitedInNumber) {
  std::vector<Operation> operations(Patch::kOperationsMax, Increment("/a", "1"));
  ExpectResult(Apply("{}", operations), R"({"a": 1000})");
  operations.push_back(Increment("/a", "1"));
  EXPECT_EQ(ReasonOf(Apply("{}", operations).status()), ErrorReason::kInvalidPatch);
}

TEST(Operations, AreLimitedInWhatTheyReadAltogether) {
  const std::string base = R"({"a": [], "text": ")" + std::string(1'000'000, 'x') + "\"}";
  EXPECT_TRUE(Apply(base, std::vector<Operation>(200, Increment("/n", "1"))).ok());
  EXPECT_EQ(ReasonOf(Apply(base, std::vector<Operation>(300, Increment("/n", "1"))).status()),
            ErrorReason::kInvalidPatch);
  EXPECT_EQ(ReasonOf(Apply(base, std::vector<Operation>(50, RemoveAll("/a", "[1]"))).status()),
            ErrorReason::kInvalidPatch);
}

TEST(Operations, LargeArraysOfDecimalsAreNoProductOfSizes) {
  std::string elements = "[{\"$numberDecimal\": \"0\"}";
  for (int i = 1; i < 20'000; ++i) {
    elements += ",{\"$numberDecimal\": \"" + std::to_string(i) + ".1E-300\"}," + std::to_string(i) +
                ".1e-300";
  }
  elements += "]";
  const auto start = test_support::ThreadCpuTime();
  const absl::StatusOr<Content> result =
      Apply("{\"a\":" + elements + "}", {AppendMissing("/a", elements), RemoveAll("/a", elements)});
  ExpectResult(result, R"({"a": []})");
  EXPECT_LT(test_support::ThreadCpuTime() - start, std::chrono::seconds(20));
}

TEST(Operations, LargeArraysAreNoProductOfSizes) {
  std::string elements = "[0";
  for (int i = 1; i < 20'000; ++i) elements += "," + std::to_string(i);
  elements += "]";
  const auto start = test_support::ThreadCpuTime();
  const absl::StatusOr<Content> result = Apply(
      "{\"a\":" + elements + "}",
      {AppendMissing("/a", elements), AppendMissing("/a", "[20000]"), RemoveAll("/a", elements)});
  ExpectResult(result, R"({"a": [20000]})");
  EXPECT_LT(test_support::ThreadCpuTime() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace strata::document
