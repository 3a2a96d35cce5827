// What a document may be: validation, limits, equality of meaning.
#include "schemas/document/content.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "schemas/document/struct_codec.h"
#include "tests/document/documents.h"

namespace strata::document {
namespace {

using std::string_literals::operator""s;

constexpr char kEveryType[] = R"({
  "double": 1.5, "string": "text", "object": {"a": 1}, "array": [1, "two", null],
  "binary": {"$binary": {"base64": "AQID", "subType": "80"}},
  "old binary": {"$binary": {"base64": "AQID", "subType": "02"}},
  "oid": {"$oid": "0123456789abcdef01234567"}, "bool": true,
  "date": {"$date": "2026-01-31T12:00:00.250Z"}, "null": null,
  "regex": {"$regularExpression": {"pattern": "^a", "options": "i"}}, "int32": 1,
  "int64": {"$numberLong": "9007199254740993"}, "timestamp": {"$timestamp": {"t": 7, "i": 8}},
  "decimal": {"$numberDecimal": "1.50"}, "min": {"$minKey": 1}, "max": {"$maxKey": 1}})";

absl::Status Check(std::string bytes, const Limits& limits = {}) {
  return Content::FromBson(std::move(bytes), limits).status();
}

TEST(Content, TheEmptyDocumentIsTheDefault) {
  EXPECT_EQ(Content().bytes(), kEmptyDocument);
  EXPECT_TRUE(Check(std::string(kEmptyDocument)).ok());
}

TEST(Content, PartOfOtherBytesIsNotCopiedAndKeepsThemInMemory) {
  const std::string bytes = Bson(kEveryType);
  Bytes whole("before" + bytes + "after");
  const std::string_view part = std::string_view(whole).substr(6, bytes.size());
  const Content content = Content::FromTrusted(std::move(whole), part);
  EXPECT_EQ(content.bytes().data(), part.data());
  EXPECT_EQ(content, Content::FromTrusted(bytes));
  EXPECT_NE(content, Content());
}

TEST(Content, EveryAcceptedTypeIsKeptToTheByte) {
  const std::string bytes = Bson(kEveryType);
  const absl::StatusOr<Content> content = Content::FromBson(bytes, {});
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->bytes(), bytes);
}

TEST(Content, DeprecatedAndUnknownTypesAreRefused) {
  const std::string text = "\x02\0\0\0a\0"s;
  for (const auto& [type, value] : std::vector<std::pair<uint8_t, std::string>>{
           {0x06, ""},                                    // undefined
           {0x0C, text + std::string(12, 'x')},           // DBPointer
           {0x0D, text},                                  // code
           {0x0E, text},                                  // symbol
           {0x0F, "\x0F\0\0\0"s + text + "\5\0\0\0\0"s},  // code with scope
           {0x14, "x"},
           {0x00, ""}}) {
    ExpectError(Check(Around(type, value)), ErrorReason::kInvalidContent, "/a");
  }
}

TEST(Content, FramesMustBeCanonical) {
  const std::string valid = Bson(R"({"a": "b"})");
  ExpectError(Check(""), ErrorReason::kInvalidContent, "");
  ExpectError(Check(valid + "\0"s), ErrorReason::kInvalidContent, "");
  ExpectError(Check(Around(kBsonBool, "\2"s)), ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(Around(kBsonString, "\0\0\0\0"s)), ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(Around(kBsonString, "\2\0\0\0ab"s)), ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(Around(kBsonString, "\xff\xff\xff\xff"s)), ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(Around(kBsonString, "\xff\xff\xff\x7f"s)), ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(Around(kBsonBinary, "\4\0\0\0\2\1\0\0\0"s)), ErrorReason::kInvalidContent,
              "/a");
  ExpectError(Check(Around(kBsonObject, "\5\0\0\0x"s)), ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(Around(kBsonRegex, "a\0b"s)), ErrorReason::kInvalidContent, "/a");
}

TEST(Content, TextMustBeUtf8) {
  for (const std::string& text :
       {"\x80"s, "\xc0\x80"s, "\xc3"s, "\xe0\x80\x80"s, "\xed\xa0\x80"s, "\xf0\x80\x80\x80"s,
        "\xf4\x90\x80\x80"s, "\xff"s, "plain text and then \xfe"s}) {
    std::string value;
    AppendStringValue(text, value);
    ExpectError(Check(Around(kBsonObject, Around(kBsonString, value, "b"))),
                ErrorReason::kInvalidContent, "/a/b");
    ExpectError(Check(Around(kBsonObject, Around(kBsonNull, "", text))),
                ErrorReason::kInvalidContent, "/a");
    ExpectError(Check(Around(kBsonRegex, text + "\0\0"s)), ErrorReason::kInvalidContent, "/a");
  }
  std::string value;
  AppendStringValue("\0 \u007f \u0080 \u07ff \u0800 \uffff \U00010000 \U0010ffff"s, value);
  EXPECT_TRUE(Check(Around(kBsonString, value, "\u00fc")).ok());
}

TEST(Content, NumbersMustBeFinite) {
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity()}) {
    std::string value;
    AppendNumber(number, value);
    ExpectError(Check(Around(kBsonDouble, value)), ErrorReason::kInvalidContent, "/a");
  }
  for (const char* text : {"NaN", "Infinity", "-Infinity"}) {
    const Value value = Val(R"({"$numberDecimal": ")"s + text + "\"}");
    ExpectError(Check(Around(kBsonDecimal, value.bytes)), ErrorReason::kInvalidContent, "/a");
  }
}

TEST(Content, ADecimalHasOneForm) {
  // A coefficient beyond 34 digits, which reads as zero.
  std::string value(16, '\xff');
  value[15] = '\x6c';
  ExpectError(Check(Around(kBsonDecimal, value)), ErrorReason::kInvalidContent, "/a");
}

TEST(Content, ANameStandsOnceInAnObject) {
  std::string document;
  for (const int count : {2, 5, 31, 32, 33, 34, 500}) {
    for (const int twin : {0, (count - 1) / 2, count - 2}) {
      document.clear();
      const size_t start = BeginDocument(document);
      for (int i = 0; i < count - 1; ++i) {
        AppendMemberHead(kBsonNull, "n" + std::to_string(i), document);
      }
      const std::string different = document;
      AppendMemberHead(kBsonNull, "n" + std::to_string(twin), document);
      EndDocument(start, document);
      ExpectError(Check(Around(kBsonObject, document)), ErrorReason::kInvalidContent,
                  "/a/n" + std::to_string(twin));
    }
  }
  EXPECT_TRUE(Check(Bson(R"({"a": {"a": {"a": 1}, "b": {"a": 1}}, "b": {"a": 2}})")).ok());
}

TEST(Content, ArrayMembersAreNumbered) {
  EXPECT_TRUE(Check(Bson("{\"a\": [1,2,3,4,5,6,7,8,9,10,11,12]}")).ok());
  ExpectError(Check(Around(kBsonArray, Around(kBsonNull, "", "1"))), ErrorReason::kInvalidContent,
              "/a");
  ExpectError(Check(Around(kBsonArray, Around(kBsonNull, "", "00"))), ErrorReason::kInvalidContent,
              "/a");
  ExpectError(Check(Around(kBsonArray, Around(kBsonNull, "", ""))), ErrorReason::kInvalidContent,
              "/a");
}

// In JSON it would be what the wrapper stands for: whoever writes back what was read changes it.
TEST(Content, NoObjectHasTheNameOfAWrapper) {
  const auto object = [](std::string_view name, const Value& value) {
    return Around(kBsonObject, Around(value.type, value.bytes, name));
  };
  const std::pair<const char*, const char*> wrappers[] = {
      {"$oid", "\"0123456789abcdef01234567\""},
      {"$date", "\"2026-01-31T12:00:00Z\""},
      {"$numberInt", "\"5\""},
      {"$numberLong", "\"5\""},
      {"$numberDouble", "\"5.0\""},
      {"$numberDecimal", "\"1.10\""},
      {"$binary", R"({"base64": "AQID", "subType": "00"})"},
      {"$uuid", "\"01234567-89ab-cdef-0123-456789abcdef\""},
      {"$regularExpression", R"({"pattern": "a", "options": "i"})"},
      {"$timestamp", R"({"t": 1, "i": 2})"},
      {"$minKey", "1"},
      {"$maxKey", "1"},
  };
  for (const auto& [name, value] : wrappers) {
    SCOPED_TRACE(name);
    const std::string found = object(name, Val(value));
    ExpectError(Check(found), ErrorReason::kInvalidContent, "/a");
    ExpectError(Check(Around(kBsonArray, Around(kBsonObject, found, "0"))),
                ErrorReason::kInvalidContent, "/a/0/a");
  }
  EXPECT_TRUE(Check(object("$ref", Val("5"))).ok());
  EXPECT_TRUE(Check(object("$id", Val("5"))).ok());
  EXPECT_TRUE(Check(object("$", Val("5"))).ok());
  ExpectError(Check(object("$oid", Val("5"))), ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(object("$numberLong", Val("5"))), ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(object("$date", Val("\"yesterday\""))), ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(object("$timestamp", Val(R"({"t": 1, "i": 2, "x": 3})"))),
              ErrorReason::kInvalidContent, "/a");
  ExpectError(Check(Around(kBsonString, Val("\"0123456789abcdef01234567\"").bytes, "$oid")),
              ErrorReason::kInvalidContent, "");
  std::string two;
  const size_t start = BeginDocument(two);
  AppendMember(kBsonInt32, "b", Val("1").bytes, two);
  AppendMember(kBsonInt32, "$minKey", Val("1").bytes, two);
  EndDocument(start, two);
  ExpectError(Check(Around(kBsonObject, two)), ErrorReason::kInvalidContent, "/a");
}

TEST(Content, APatternHasOptionsOfBsonInTheirOrder) {
  for (const std::string& options : {""s, "i"s, "ilmsux"s, "imx"s}) {
    EXPECT_TRUE(Check(Around(kBsonRegex, "a\0"s + options + "\0"s)).ok()) << options;
  }
  for (const std::string& options : {"g"s, "xi"s, "ii"s, "I"s, "i "s}) {
    ExpectError(Check(Around(kBsonRegex, "a\0"s + options + "\0"s)), ErrorReason::kInvalidContent,
                "/a");
  }
}

TEST(Content, DepthIsTakenUpToTheLimitAndNoFurther) {
  Limits limits;
  EXPECT_TRUE(Check(Nest(limits.depth_max), limits).ok());
  const absl::Status status = Check(Nest(limits.depth_max + 1), limits);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kInvalidContent);
  EXPECT_EQ(MetadataOf(status, "limit"), "24");
  limits.depth_max = 1;
  EXPECT_TRUE(Check(Bson(R"({"a": 1})"), limits).ok());
  ExpectError(Check(Bson(R"({"a": []})"), limits), ErrorReason::kInvalidContent, "/a");
}

TEST(Content, NodesOfAllLevelsCountTowardsTheLimit) {
  Limits limits;
  limits.nodes_max = 5;
  EXPECT_TRUE(Check(Bson(R"({"a": [1, 2], "b": {"c": 3}})"), limits).ok());
  ExpectError(Check(Bson(R"({"a": [1, 2], "b": {"c": 3, "d": 4}})"), limits),
              ErrorReason::kInvalidContent, "/b/d");
}

TEST(Content, BytesAreLimitedInBothEncodings) {
  const std::string bytes = Bson(R"({"text": "some text that takes a few bytes"})");
  Limits limits;
  limits.bytes_max = std::max(bytes.size(), StructSize(Content::FromTrusted(bytes)));
  EXPECT_TRUE(Check(bytes, limits).ok());
  limits.bytes_max = bytes.size() - 1;
  EXPECT_EQ(ReasonOf(Check(bytes, limits)), ErrorReason::kDocumentTooLarge);
  // Small as BSON, large as a Struct.
  const std::string keys = Bson(R"({"a": [{"$minKey": 1}, {"$minKey": 1}, {"$minKey": 1}]})");
  limits.bytes_max = StructSize(Content::FromTrusted(keys));
  EXPECT_TRUE(Check(keys, limits).ok());
  limits.bytes_max -= 1;
  EXPECT_GT(limits.bytes_max, keys.size());
  const absl::Status status = Check(keys, limits);
  EXPECT_EQ(ReasonOf(status), ErrorReason::kDocumentTooLarge);
  EXPECT_EQ(MetadataOf(status, "limit"), std::to_string(limits.bytes_max));
}

TEST(Content, NoStructIsMoreThanSixteenTimesAsLargeAsItsBson) {
  // CheckSizes relies on it. Each type many times over, by the shortest names.
  for (const char* json : {R"({"$minKey": 1})", R"({"$maxKey": 1})", R"({"$numberDouble": "1.0"})",
                           R"({"$numberLong": "-9223372036854775808"})", "null", "\"\"", "[]", "{}",
                           R"({"$timestamp": {"t": 4294967295, "i": 4294967295}})", "true",
                           R"({"$date": {"$numberLong": "-9223372036854775808"}})",
                           R"({"$regularExpression": {"pattern": "", "options": ""}})",
                           R"({"$binary": {"base64": "", "subType": "00"}})",
                           R"({"$numberDecimal": "-1.234567890123456789012345678901234E-6000"})"}) {
    for (const char* edges : {"[]", "{}"}) {
      std::string text = "{\"\":"s + edges[0];
      for (int i = 0; i < 100; ++i) {
        if (i > 0) text += ',';
        if (edges[0] == '{')
          text +=
              "\"" + std::string(1, static_cast<char>('0' + i % 75)) + (i < 75 ? "" : "x") + "\":";
        text += json;
      }
      // Some of those names need escapes; leave them out of the text.
      if (edges[0] == '{' && text.find('\\') != std::string::npos) {
        text.replace(text.find('\\'), 1, "\\\\");
      }
      const Content content = Doc(text + edges[1] + "}");
      EXPECT_LE(StructSize(content), 16 * content.size()) << json;
    }
  }
}

TEST(Content, CutOrFlippedBytesAreRefusedOrValidButNeverFatal) {
  const std::string bytes = Bson(kEveryType);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Check(bytes.substr(0, size)).ok());
    std::string reframed = bytes.substr(0, size);
    if (size < 4) continue;
    const auto length = static_cast<int32_t>(size);
    std::memcpy(reframed.data(), &length, sizeof(length));
    (void)Check(reframed);
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      const absl::StatusOr<Content> content = Content::FromBson(flipped, {});
      if (!content.ok()) continue;
      std::string wire;
      AppendStruct(*content, wire);
      EXPECT_TRUE(SameMeaning(*content, Content::FromTrusted(flipped)));
    }
  }
}

TEST(Content, PathsInErrorsAreEscapedAndCut) {
  const std::string nan = Around(kBsonDouble, std::string(6, '\0') + "\xf8\x7f", "c/d");
  ExpectError(Check(Around(kBsonObject, nan, "a~b")), ErrorReason::kInvalidContent, "/a~0b/c~1d");
  const absl::Status status = Check(Around(kBsonObject, nan, std::string(10'000, 'n')));
  EXPECT_LT(MetadataOf(status, "path")->size(), 600u);
  EXPECT_LT(status.message().size(), 800u);
}

TEST(Content, ErrorsNameMembersAndNoValues) {
  const absl::Status status = Check(Bson(R"({"k": [{"$undefined": true}], "secret": "s3cret"})"));
  EXPECT_EQ(status.message().find("s3cret"), absl::string_view::npos);
  ExpectError(status, ErrorReason::kInvalidContent, "/k/0");
}

TEST(Content, TheLimitsHoldForWhatWasComputed) {
  Limits limits;
  EXPECT_TRUE(CheckLimits(Content::FromTrusted(Nest(24)), limits).ok());
  EXPECT_EQ(ReasonOf(CheckLimits(Content::FromTrusted(Nest(25)), limits)),
            ErrorReason::kInvalidContent);
  limits.bytes_max = 20;
  EXPECT_EQ(ReasonOf(CheckLimits(Content::FromTrusted(Nest(24)), limits)),
            ErrorReason::kDocumentTooLarge);
}

TEST(SameMeaning, MemberOrderAndIntegerWidthAreAside) {
  EXPECT_TRUE(SameMeaning(Doc(R"({"a": 1, "b": {"c": 2, "d": [3]}})"),
                          Doc(R"({"b": {"d": [{"$numberLong": "3"}], "c": 2}, "a": 1})")));
  const Content one = Doc(R"({"a": 1})");
  for (const char* other :
       {R"({"a": {"$numberDouble": "1.0"}})", R"({"a": 2})", R"({"a": 1, "b": null})", "{}",
        R"({"b": 1})", R"({"a": "1"})", R"({"a": [1]})", R"({"a": true})"}) {
    EXPECT_FALSE(SameMeaning(one, Doc(other))) << other;
    EXPECT_FALSE(SameMeaning(Doc(other), one)) << other;
  }
  EXPECT_FALSE(SameMeaning(Doc(R"({"a": [1, 2]})"), Doc(R"({"a": [2, 1]})")));
  EXPECT_FALSE(SameMeaning(Doc(R"({"a": [1]})"), Doc(R"({"a": {"0": 1}})")));
  EXPECT_FALSE(SameMeaning(Doc(R"({"a": 1, "b": 2})"), Doc(R"({"b": 2, "c": 1})")));
}

}  // namespace
}  // namespace strata::document
