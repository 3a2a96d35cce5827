// Deltas: exact to the byte, small, and safe on any bytes.
#include "schemas/document/delta.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/document/documents.h"
#include "tests/support/cpu_time.h"

namespace strata::document {
namespace {

using std::string_literals::operator""s;

// The delta, once it has been seen to lead from one to the other.
std::string Delta(const Content& base, const Content& next) {
  std::string delta = EncodeDelta(base, next);
  const absl::StatusOr<Content> applied = ApplyDelta(base, delta);
  EXPECT_TRUE(applied.ok()) << Json(delta) << "\n" << Json(base) << "\n" << Json(next);
  if (applied.ok()) {
    EXPECT_EQ(*applied, next) << Json(delta) << "\n" << Json(base) << "\n" << Json(next);
  }
  EXPECT_LE(delta.size(), next.size() + 8);
  return delta;
}

struct Row {
  const char* base;
  const char* next;
  const char* delta;
};

TEST(Delta, ReadsAsItsGrammarSays) {
  const Row rows[] = {
      {R"({"a": 1})", R"({"a": 1})", R"({})"},
      {R"({"title": "Moby", "stock": 3, "tags": ["sea", "whale"], "by": {"first": "H.", "last": "M."}})",
       R"({"title": "Moby", "stock": 2, "tags": ["sea", "whale", "classic"],
           "by": {"first": "H.", "last": "M.", "born": 1819}})",
       R"({"=/stock": 2, "*2:0/tags": ["classic"], "+/by/born": 1819})"},
      {R"({"a": 1, "b": "long enough to be worth it", "c": 3})",
       R"({"b": "long enough to be worth it", "c": null})", R"({"-/a": null, "=/c": null})"},
      {R"({"a": "long enough to be worth it", "b": 2})",
       R"({"x": 0, "a": "long enough to be worth it", "y": 0, "b": 2, "z": 0})",
       R"({"+0/x": 0, "+2/y": 0, "+/z": 0})"},
      {R"({"a": "the first of three", "b": "the second", "c": "the third of them"})",
       R"({"c": "the third of them", "a": "the first of three", "b": "the second"})",
       R"({">0/c": null})"},
      {R"({"a": "the first of three", "b": {"x": "the second", "y": 5}, "c": "the third of them"})",
       R"({"a": "the first of three", "c": "the third of them", "b": {"x": "the second", "y": 6}})",
       R"({"=/b/y": 6, ">1/c": null})"},
      {R"({"a": {"b/c": {"d": "something long", "e~": 2}}})",
       R"({"a": {"b/c": {"d": "something long", "e~": 3}}})", R"({"=/a/b~1c/e~0": 3})"},
      {R"({"a": {"b": {"c": "something long", "d": 2, "e": 3}}})",
       R"({"a": {"b": {"c": "something long", "d": 3, "e": 4}}})",
       R"({"~/a/b": {"=/d": 3, "=/e": 4}})"},
      {R"({"a": 1, "b": "something quite long"})",
       R"({"a": {"$numberLong": "1"}, "b": "something quite long"})",
       R"({"=/a": {"$numberLong": "1"}})"},
      {R"({"a": [1, 2, 3, 4, 5, 6, 7, 8, 9]})", R"({"a": [1, 2, 3, 7, 8, 9]})",
       R"({"*3:3/a": []})"},
      {R"({"a": [{"x": "something long", "y": 1}, {"x": "something else", "y": 2}, "end of it"]})",
       R"({"a": ["new", {"x": "something long", "y": 1}, {"x": "something else", "y": 3}, "end of it"]})",
       R"({"~/a": {"*0:0": ["new"], "=/1/y": 3}})"},
      {R"({"": {"": "something long", "0": 1}})", R"({"": {"": "something long", "0": 2}})",
       R"({"=//0": 2})"},
      {R"({"a": "something entirely", "b": "different"})", R"({"c": 1})", R"({"=": {"c": 1}})"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Json(Delta(Doc(row.base), Doc(row.next))), Json(Bson(row.delta))) << row.next;
  }
}

TEST(Delta, AnElementAddedToALongArrayDoesNotStoreTheArray) {
  std::string elements;
  for (int i = 0; i < 5000; ++i) elements += "\"element " + std::to_string(i) + "\",";
  const std::string array = elements.substr(0, elements.size() - 1);
  const Content base = Doc("{\"a\": [" + array + "]}");
  EXPECT_LT(Delta(base, Doc("{\"a\": [" + array + ", \"new\"]}")).size(), 50u);
  EXPECT_LT(Delta(base, Doc("{\"a\": [\"new\", " + array + "]}")).size(), 50u);
  std::string middle = array;
  middle.insert(middle.find("\"element 2500\""), "\"new\",");
  EXPECT_LT(Delta(base, Doc("{\"a\": [" + middle + "]}")).size(), 50u);
  std::string several = middle;
  several.erase(several.find("\"element 17\","), 13);
  several.insert(several.find("\"element 4000\""), "\"newer\",");
  EXPECT_LT(Delta(base, Doc("{\"a\": [" + several + "]}")).size(), 100u);
}

TEST(Delta, ReorderedMembersCostTheirNames) {
  std::string forward = "{";
  std::string moved = "{";
  for (int i = 0; i < 100; ++i) {
    const std::string member =
        "\"name " + std::to_string(i) + "\": \"" + std::string(100, 'x') + "\"";
    forward += (i > 0 ? "," : "") + member;
    moved += (i > 0 ? "," : "") + ("\"name " + std::to_string((i * 37) % 100)) + "\": \"" +
             std::string(100, 'x') + "\"";
  }
  EXPECT_LT(Delta(Doc(forward + "}"), Doc(moved + "}")).size(), 2000u);
}

TEST(Delta, LeadsFromAnyDocumentToAnyOther) {
  size_t total = 0;
  size_t whole = 0;
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomDocuments random(seed);
    Content base = random.Make();
    for (int step = 0; step < 4; ++step) {
      const Content next = random.Change(base);
      total += Delta(base, next).size();
      whole += next.size();
      base = next;
    }
    Delta(base, random.Make());
  }
  EXPECT_LT(total, whole / 2) << "deltas of small changes are small";
}

TEST(Delta, LargeArraysAndObjectsTakeNoProductOfSizes) {
  const auto array = [](int count, int factor) {
    std::string bytes;
    IndexName index;
    const size_t start = BeginDocument(bytes);
    for (int i = 0; i < count; ++i, index.Next()) {
      AppendMemberHead(kBsonInt32, index.text(), bytes);
      AppendNumber(static_cast<int32_t>(static_cast<int64_t>(i) * factor % 49'999), bytes);
    }
    EndDocument(start, bytes);
    return bytes;
  };
  const auto start = test_support::ThreadCpuTime();
  const auto check = [](const std::string& base, const std::string& next) {
    Delta(Content::FromTrusted(Around(kBsonArray, base)),
          Content::FromTrusted(Around(kBsonArray, next)));
    Delta(Content::FromTrusted(base), Content::FromTrusted(next));
  };
  check(array(49'990, 1), array(49'990, 7));
  check(array(49'990, 1), array(49'990, -1));
  check(array(49'990, 0), array(25'000, 0));
  check(array(49'990, 0), array(49'990, 1));
  EXPECT_LT(test_support::ThreadCpuTime() - start, std::chrono::seconds(20));
}

TEST(ApplyDelta, RefusesWhatIsNoDeltaOfTheBase) {
  const Content base = Doc(R"({"a": {"b": 1, "c": 2}, "d": [1, 2, 3], "e": "text"})");
  for (const char* delta : {R"({"": 1})",
                            R"({"/a": 1})",
                            R"({"?/a": 1})",
                            R"({"=a": 1})",
                            R"({"=": 1})",
                            R"({"=": {}, "=/a": 1})",
                            R"({"=/x": 1})",
                            R"({"-/x": null})",
                            R"({"~/x": {}})",
                            R"({"~/e": {}})",
                            R"({"~/a": 1})",
                            R"({"~": {}})",
                            R"({"=/e": 1, "=/a": 1})",
                            R"({"=/a": 1, "=/a/b": 1})",
                            R"({"=/e/x": 1})",
                            R"({"=/a~2": 1})",
                            R"({"=/a/~": 1})",
                            R"({"+/a": 1})",
                            R"({"+": 1})",
                            R"({"+4/x": 1})",
                            R"({"+2/x": 1, "+1/y": 1})",
                            R"({"+/x": 1, "+1/y": 1})",
                            R"({"+-1/x": 1})",
                            R"({"+99999999999999999999/x": 1})",
                            R"({"+1x/x": 1})",
                            R"({"+/x": 1, "+0/x": 1})",
                            R"({">/x": null})",
                            R"({">9/a": null})",
                            R"({"-/a": null, ">/a": null})",
                            R"({"+/e/x": 1})",
                            R"({">/a": null, "+0/a": 1})",
                            R"({"*0:1/d": 1})",
                            R"({"*0:4/d": []})",
                            R"({"*4:0/d": []})",
                            R"({"*0/d": []})",
                            R"({"*0:/d": []})",
                            R"({"*:0/d": []})",
                            R"({"*0:1": []})",
                            R"({"*0:1/a": []})",
                            R"({"*0:18446744073709551615/d": []})",
                            R"({"-/d/0": null})",
                            R"({"=/d/3": 1})",
                            R"({"=/d/00": 1})",
                            R"({"+/d/1": 1})",
                            R"({">/d/1": null})",
                            R"({"+/d/x": 1})",
                            R"({"~/d": {"=/1": 1, "=/0": 1}})",
                            R"({"~/d": {"*1:1": [], "=/1": 1}})",
                            R"({"~/d": {"=": [1]}})",
                            R"({"~/a": {"=": {}}})"}) {
    const absl::Status status = ApplyDelta(base, Bson(delta)).status();
    EXPECT_EQ(ReasonOf(status), ErrorReason::kRecordCorrupt) << delta;
  }
  EXPECT_EQ(ReasonOf(ApplyDelta(base, "").status()), ErrorReason::kRecordCorrupt);
  EXPECT_EQ(ReasonOf(ApplyDelta(base, "\5\0\0\0"s).status()), ErrorReason::kRecordCorrupt);
  EXPECT_EQ(ReasonOf(ApplyDelta(base, Around(kBsonObject, Nest(5000), "=/a")).status()),
            ErrorReason::kRecordCorrupt);
}

// What comes out of a delta that was not made here is still BSON, with names once in an object.
void ExpectWellFormed(const absl::StatusOr<Content>& content) {
  if (!content.ok()) {
    EXPECT_EQ(ReasonOf(content.status()), ErrorReason::kRecordCorrupt);
    return;
  }
  const absl::Status status = Content::FromBson(std::string(content->bytes()), {}).status();
  EXPECT_TRUE(status.ok()) << status;
}

TEST(ApplyDelta, CutFlippedAndForeignDeltasAreRefusedOrLeadToADocument) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomDocuments random(seed);
    const Content base = random.Make();
    const Content next = random.Change(base);
    const std::string delta = EncodeDelta(base, next);
    ExpectWellFormed(ApplyDelta(next, delta));
    ExpectWellFormed(ApplyDelta(random.Make(), delta));
    for (size_t size = 0; size < delta.size(); ++size) {
      EXPECT_FALSE(ApplyDelta(base, delta.substr(0, size)).ok());
    }
    for (size_t at = 0; at < delta.size(); ++at) {
      for (const int flip : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
        std::string flipped = delta;
        flipped[at] = static_cast<char>(flipped[at] ^ flip);
        ExpectWellFormed(ApplyDelta(base, flipped));
      }
    }
  }
}

TEST(ApplyDelta, TheResultIsBounded) {
  const Content base = Content::FromTrusted(Around(kBsonObject, Nest(1), "a"));
  std::string text;
  AppendStringValue(std::string(Limits::kBytesCeiling, 'x'), text);
  EXPECT_EQ(ReasonOf(ApplyDelta(base, Around(kBsonString, text, "=/a")).status()),
            ErrorReason::kRecordCorrupt);
}

}  // namespace
}  // namespace strata::document
