// BSON to and from google.protobuf.Struct, checked against protobuf's own Struct.
#include "schemas/document/struct_codec.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/document/documents.h"

namespace strata::document {
namespace {

using std::string_literals::operator""s;
using Struct = google::protobuf::Struct;

Struct ParseStruct(const std::string& json) {
  Struct message;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message);
  EXPECT_TRUE(status.ok()) << json << ": " << status.message();
  return message;
}

std::string Wire(const std::string& json) { return ParseStruct(json).SerializeAsString(); }

// The message's bytes with map entries in the order of their keys, so that they can be compared.
std::string Sorted(const Struct& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// What protobuf reads of what AppendStruct writes.
Struct Shown(const Content& content) {
  std::string wire = "before";
  AppendStruct(content, wire);
  wire.erase(0, 6);
  EXPECT_EQ(wire.size(), StructSize(content));
  Struct message;
  EXPECT_TRUE(message.ParseFromString(wire));
  EXPECT_EQ(message.ByteSizeLong(), wire.size()) << "as many bytes as protobuf would have used";
  return message;
}

absl::Status Refused(const std::string& json) { return ContentFromStruct(Wire(json), {}).status(); }

struct Row {
  const char* bson;  // in libbson's canonical Extended JSON, types and all
  const char* json;  // as a Struct shows it
};

// Members stand sorted, so that both directions can be compared to the byte.
constexpr Row kRows[] = {
    {R"({})", R"({})"},
    {R"({"a": null, "b": true, "c": false, "d": "", "e": "text \u00fc \u0000 end"})",
     R"({"a": null, "b": true, "c": false, "d": "", "e": "text \u00fc \u0000 end"})"},
    {R"({"a": {"$numberInt": "0"}, "b": {"$numberInt": "-2147483648"}})",
     R"({"a": 0, "b": -2147483648})"},
    {R"({"a": {"$numberLong": "2147483648"}, "b": {"$numberLong": "-9007199254740991"}})",
     R"({"a": 2147483648, "b": -9007199254740991})"},
    {R"({"a": {"$numberLong": "9007199254740992"}, "b": {"$numberLong": "-9223372036854775808"}})",
     R"({"a": {"$numberLong": "9007199254740992"}, "b": {"$numberLong": "-9223372036854775808"}})"},
    {R"({"a": {"$numberDouble": "0.1"}, "b": {"$numberDouble": "-2.5e-300"}})",
     R"({"a": 0.1, "b": -2.5e-300})"},
    {R"({"a": {"$numberDouble": "1.0"}, "b": {"$numberDouble": "1e300"}})",
     R"({"a": {"$numberDouble": "1.0"}, "b": {"$numberDouble": "1e+300"}})"},
    {R"({"a": {"$numberDouble": "-0.0"}, "b": {"$numberDouble": "0.0"}})",
     R"({"a": {"$numberDouble": "-0.0"}, "b": {"$numberDouble": "0.0"}})"},
    {R"({"a": {"$date": {"$numberLong": "0"}}, "b": {"$date": {"$numberLong": "1769860800250"}}})",
     R"({"a": {"$date": "1970-01-01T00:00:00Z"}, "b": {"$date": "2026-01-31T12:00:00.250Z"}})"},
    {R"({"a": {"$date": {"$numberLong": "-1"}}, "b": {"$date": {"$numberLong": "253402300800000"}}})",
     R"({"a": {"$date": {"$numberLong": "-1"}}, "b": {"$date": {"$numberLong": "253402300800000"}}})"},
    {R"({"a": {"$date": {"$numberLong": "951782400000"}}, "b": {"$date": {"$numberLong": "253402300799999"}}})",
     R"({"a": {"$date": "2000-02-29T00:00:00Z"}, "b": {"$date": "9999-12-31T23:59:59.999Z"}})"},
    {R"({"a": {"$oid": "0123456789abcdef01234567"}})",
     R"({"a": {"$oid": "0123456789abcdef01234567"}})"},
    {R"({"a": {"$binary": {"base64": "", "subType": "00"}}, "b": {"$binary": {"base64": "/+8=", "subType": "80"}}})",
     R"({"a": {"$binary": {"base64": "", "subType": "00"}}, "b": {"$binary": {"base64": "/+8=", "subType": "80"}}})"},
    {R"({"a": {"$binary": {"base64": "AQID", "subType": "02"}}})",
     R"({"a": {"$binary": {"base64": "AQID", "subType": "02"}}})"},
    {R"({"a": {"$numberDecimal": "1.50"}, "b": {"$numberDecimal": "-1E+6000"}})",
     R"({"a": {"$numberDecimal": "1.50"}, "b": {"$numberDecimal": "-1E+6000"}})"},
    {R"({"a": {"$regularExpression": {"pattern": "^a", "options": "im"}}})",
     R"({"a": {"$regularExpression": {"pattern": "^a", "options": "im"}}})"},
    {R"({"a": {"$timestamp": {"t": 4294967295, "i": 1}}})",
     R"({"a": {"$timestamp": {"t": 4294967295, "i": 1}}})"},
    {R"({"a": {"$maxKey": 1}, "b": {"$minKey": 1}})",
     R"({"a": {"$maxKey": 1}, "b": {"$minKey": 1}})"},
    {R"({"$ref": "x", "a": {"$id": 1}, "b": {"$dollar": [], "$price": {}}})",
     R"({"$ref": "x", "a": {"$id": 1}, "b": {"$dollar": [], "$price": {}}})"},
    {R"({"": [[], [[]], {"": {}}], "a.b/c": [0, [1, [2]], "x", null]})",
     R"({"": [[], [[]], {"": {}}], "a.b/c": [0, [1, [2]], "x", null]})"},
};

TEST(Json, EveryTypeRoundTripsToTheByte) {
  for (const Row& row : kRows) {
    const Content content = Doc(row.bson);
    ASSERT_TRUE(Content::FromBson(std::string(content.bytes()), {}).ok()) << row.bson;
    EXPECT_EQ(Sorted(Shown(content)), Sorted(ParseStruct(row.json))) << row.json;
    const absl::StatusOr<Content> read = ContentFromStruct(Wire(row.json), {});
    ASSERT_TRUE(read.ok()) << row.json << ": " << read.status();
    EXPECT_EQ(Json(*read), Json(content));
    EXPECT_EQ(*read, content);
  }
}

TEST(Json, TheIntegerWidthIsTheOnlyThingThatIsLost) {
  const Content content = Doc(R"({"a": {"$numberLong": "7"}})");
  EXPECT_EQ(Sorted(Shown(content)), Sorted(ParseStruct(R"({"a": 7})")));
  EXPECT_TRUE(SameMeaning(content, *ContentFromStruct(Wire(R"({"a": 7})"), {})));
}

TEST(Json, OtherSpellingsOfWrappersAreRead) {
  const std::pair<const char*, const char*> table[] = {
      {R"({"$numberInt": "-7"})", R"({"$numberInt": "-7"})"},
      {R"({"$numberLong": "7"})", R"({"$numberLong": "7"})"},
      {R"({"$numberDouble": "1.5"})", R"({"$numberDouble": "1.5"})"},
      {R"({"$numberDouble": "1"})", R"({"$numberDouble": "1.0"})"},
      {R"({"$uuid": "00112233-4455-6677-8899-AABBCCDDEEFF"})",
       R"({"$binary": {"base64": "ABEiM0RVZneImaq7zN3u/w==", "subType": "04"}})"},
      {R"({"$binary": {"subType": "4", "base64": "AQ=="}})",
       R"({"$binary": {"base64": "AQ==", "subType": "04"}})"},
      {R"({"$oid": "0123456789ABCDEF01234567"})", R"({"$oid": "0123456789abcdef01234567"})"},
      {R"({"$date": {"$numberLong": "5"}})", R"({"$date": {"$numberLong": "5"}})"},
      {R"({"$date": "1970-01-01T01:00:00.5+01:00"})", R"({"$date": {"$numberLong": "500"}})"},
      {R"({"$date": "1969-12-31T23:59:59.999Z"})", R"({"$date": {"$numberLong": "-1"}})"},
      {R"({"$timestamp": {"i": 2, "t": 1}})", R"({"$timestamp": {"t": 1, "i": 2}})"},
  };
  for (const auto& [json, bson] : table) {
    const absl::StatusOr<Content> read = ContentFromStruct(Wire("{\"v\":"s + json + "}"), {});
    ASSERT_TRUE(read.ok()) << json << ": " << read.status();
    EXPECT_EQ(Json(*read), Json(Doc("{\"v\":"s + bson + "}")));
  }
}

TEST(Json, AnObjectWithTheNameOfAWrapperIsExactlyThatWrapperOrRefused) {
  for (const char* json : {R"({"$oid": "123"})",
                           R"({"$oid": "0123456789abcdef0123456x"})",
                           R"({"$oid": 5})",
                           R"({"$oid": "0123456789abcdef01234567", "a": 1})",
                           R"({"$date": 5})",
                           R"({"$date": "today"})",
                           R"({"$date": "2026-02-29T00:00:00Z"})",
                           R"({"$date": "2026-01-01"})",
                           R"({"$date": "2026-01-01T00:00:00"})",
                           R"({"$date": "2026-01-01T24:00:00Z"})",
                           R"({"$date": "2026-01-01T00:00:00.0001Z"})",
                           R"({"$date": "2026-01-01T00:00:00.Z"})",
                           R"({"$date": {"$numberLong": 5}})",
                           R"({"$date": {"$numberInt": "5"}})",
                           R"({"$date": {"$numberLong": "5", "a": 1}})",
                           R"({"$numberLong": "9223372036854775808"})",
                           R"({"$numberLong": "1.0"})",
                           R"({"$numberLong": " 1"})",
                           R"({"$numberLong": ""})",
                           R"({"$numberLong": 1})",
                           R"({"$numberInt": "2147483648"})",
                           R"({"$numberInt": 1})",
                           R"({"$numberDouble": "NaN"})",
                           R"({"$numberDouble": "Infinity"})",
                           R"({"$numberDouble": "1e999"})",
                           R"({"$numberDouble": "x"})",
                           R"({"$numberDouble": 1})",
                           R"({"$numberDecimal": "NaN"})",
                           R"({"$numberDecimal": "Infinity"})",
                           R"({"$numberDecimal": "1e9999"})",
                           R"({"$numberDecimal": ""})",
                           R"({"$numberDecimal": 1})",
                           R"({"$numberDecimal": "12345678901234567890123456789012345"})",
                           R"({"$binary": {"base64": "AQ=", "subType": "00"}})",
                           R"({"$binary": {"base64": "AR==", "subType": "00"}})",
                           R"({"$binary": {"base64": "A===", "subType": "00"}})",
                           R"({"$binary": {"base64": "AQ==", "subType": "000"}})",
                           R"({"$binary": {"base64": "AQ==", "subType": ""}})",
                           R"({"$binary": {"base64": "AQ=="}})",
                           R"({"$binary": {"base64": "AQ==", "subType": "00", "a": 1}})",
                           R"({"$binary": "AQ=="})",
                           R"({"$uuid": "001122334455667788990011223344556677"})",
                           R"({"$uuid": "0"})",
                           R"({"$regularExpression": {"pattern": "a"}})",
                           R"({"$regularExpression": {"pattern": "a\u0000", "options": ""}})",
                           R"({"$regularExpression": {"pattern": "a", "options": "mi"}})",
                           R"({"$timestamp": {"t": -1, "i": 0}})",
                           R"({"$timestamp": {"t": 4294967296, "i": 0}})",
                           R"({"$timestamp": {"t": 1.5, "i": 0}})",
                           R"({"$timestamp": {"t": 1}})",
                           R"({"$minKey": 2})",
                           R"({"$maxKey": true})"}) {
    const std::string in_array = "{\"list\": [0, "s + json + "]}";
    ExpectError(Refused(in_array), ErrorReason::kInvalidContent, "/list/1");
  }
  ExpectError(Refused(R"({"$oid": "0123456789abcdef01234567"})"), ErrorReason::kInvalidContent,
              "/$oid");
}

TEST(Json, AWholeNumberBeyondTheExactRangeIsRefused) {
  EXPECT_TRUE(Refused(R"({"a": 9007199254740991, "b": -9007199254740991})").ok());
  for (const char* number : {"9007199254740993", "-9007199254740993", "1e300"}) {
    const absl::Status status = Refused("{\"a\": {\"b\": "s + number + "}}");
    ExpectError(status, ErrorReason::kInvalidContent, "/a/b");
    EXPECT_NE(status.message().find("$numberLong"), absl::string_view::npos);
    EXPECT_NE(status.message().find("$numberDouble"), absl::string_view::npos);
  }
}

TEST(Json, AMinusZeroStaysADouble) {
  Struct message;
  (*message.mutable_fields())["a"].set_number_value(-0.0);
  const absl::StatusOr<Content> content = ContentFromStruct(message.SerializeAsString(), {});
  EXPECT_EQ(*content, Doc(R"({"a": {"$numberDouble": "-0.0"}})"));
}

TEST(Json, WhatIsNotFiniteIsRefused) {
  for (const double number : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    Struct message;
    (*message.mutable_fields())["a"].set_number_value(number);
    ExpectError(ContentFromStruct(message.SerializeAsString(), {}).status(),
                ErrorReason::kInvalidContent, "/a");
  }
}

TEST(Json, MembersAreStoredSortedByTheirBytes) {
  const absl::StatusOr<Content> content =
      ContentFromStruct(Wire(R"({"b": 1, "\u00fc": 2, "B": 3, "": 4, "ab": 5, "a": 6})"), {});
  EXPECT_EQ(*content, Doc(R"({"": 4, "B": 3, "a": 6, "ab": 5, "b": 1, "\u00fc": 2})"));
}

TEST(Json, NamesWithZeroBytesAreRefused) {
  ExpectError(Refused(R"({"a": {"b\u0000": 1}})"), ErrorReason::kInvalidContent, "/a");
}

TEST(Json, DepthAndNodesAreTakenUpToTheLimitsAndNoFurther) {
  const auto nested = [](int levels) {
    std::string json = "{}";
    for (int i = 1; i < levels; ++i) json = i % 2 == 0 ? "{\"a\":" + json + "}" : "[" + json + "]";
    return levels % 2 == 0 ? "{\"a\":" + json.substr(0) + "}" : json;
  };
  Limits limits;
  // nested(n) of even n puts a root around n levels.
  EXPECT_TRUE(ContentFromStruct(Wire(nested(22)), limits).ok());
  limits.depth_max = 23;
  EXPECT_TRUE(ContentFromStruct(Wire(nested(22)), limits).ok());
  limits.depth_max = 22;
  const absl::Status deep = ContentFromStruct(Wire(nested(22)), limits).status();
  EXPECT_EQ(ReasonOf(deep), ErrorReason::kInvalidContent);
  EXPECT_EQ(MetadataOf(deep, "limit"), "22");
  limits = {};
  limits.depth_max = 1;
  EXPECT_TRUE(ContentFromStruct(Wire(R"({"a": {"$date": {"$numberLong": "1"}}})"), limits).ok())
      << "a wrapper is a value and no level";
  limits.nodes_max = 3;
  EXPECT_TRUE(ContentFromStruct(Wire(R"({"a": 1, "b": 2, "c": 3})"), limits).ok());
  ExpectError(ContentFromStruct(Wire(R"({"a": 1, "b": 2, "c": 3, "d": 4})"), limits).status(),
              ErrorReason::kInvalidContent, "/d");
}

TEST(Json, BytesAreLimitedInBothEncodings) {
  Limits limits;
  const std::string wire = Wire(R"({"a": [1, 2, 3, {"$minKey": 1}]})");
  const size_t bson_size = ContentFromStruct(wire, limits)->size();
  limits.bytes_max = wire.size();
  EXPECT_TRUE(ContentFromStruct(wire, limits).ok());
  limits.bytes_max = wire.size() - 1;
  EXPECT_GT(wire.size(), bson_size);
  EXPECT_EQ(ReasonOf(ContentFromStruct(wire, limits).status()), ErrorReason::kDocumentTooLarge);
  const std::string numbers = Wire(R"({"a": [[], [], [], [], [], [], [], []]})");
  limits.bytes_max = ContentFromStruct(numbers, {})->size();
  EXPECT_GT(limits.bytes_max, numbers.size());
  EXPECT_TRUE(ContentFromStruct(numbers, limits).ok());
  limits.bytes_max -= 1;
  EXPECT_EQ(ReasonOf(ContentFromStruct(numbers, limits).status()), ErrorReason::kDocumentTooLarge);
}

// Wire forms that no library writes but that the format allows.
std::string Field(char tag, const std::string& bytes) {
  return std::string(1, tag) + static_cast<char>(bytes.size()) + bytes;
}

TEST(Json, EntriesMayHaveTheirFieldsInAnyOrderAndTheLastOfAKeyCounts) {
  const std::string one = "\x11" + Bson(R"({"a": {"$numberDouble": "1.0"}})").substr(7, 8);
  const std::string text = Field('\x1a', "x");
  const std::string wire = Field('\x0a', Field('\x12', one) + Field('\x0a', "k")) +
                           Field('\x0a', Field('\x0a', "j") + Field('\x12', one)) +
                           Field('\x0a', Field('\x0a', "k") + Field('\x12', one + text));
  const absl::StatusOr<Content> content = ContentFromStruct(wire, {});
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(*content, Doc(R"({"j": 1, "k": "x"})"));
  Struct message;
  ASSERT_TRUE(message.ParseFromString(wire));
  EXPECT_EQ(Sorted(message), Sorted(ParseStruct(R"({"j": 1, "k": "x"})")));
}

TEST(Json, UnknownFieldsAreSkippedAndAMissingKeyIsEmpty) {
  const std::string unknown = "\x38\x05" + Field('\x42', "zzz") + "\x4d" + "1234";
  const std::string wire = unknown + Field('\x0a', unknown + Field('\x12', unknown + "\x08\x00"s));
  const absl::StatusOr<Content> content = ContentFromStruct(wire, {});
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(*content, Doc(R"({"": null})"));
}

TEST(Json, AValueWithoutKindIsRefused) {
  ExpectError(ContentFromStruct(Field('\x0a', Field('\x0a', "a")), {}).status(),
              ErrorReason::kInvalidContent, "/a");
  EXPECT_EQ(ReasonOf(ValueFromProto("", {}).status()), ErrorReason::kInvalidContent);
}

TEST(Json, HostileDepthEndsAtTheLimit) {
  google::protobuf::Value value;
  value.set_null_value(google::protobuf::NULL_VALUE);
  std::string wire = value.SerializeAsString();
  const auto varint = [](size_t number) {
    std::string bytes;
    for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
    return bytes + static_cast<char>(number);
  };
  for (int i = 0; i < 20'000; ++i) {
    wire = "\x0a" + varint(wire.size()) + wire;  // ListValue
    wire = "\x32" + varint(wire.size()) + wire;  // Value
  }
  EXPECT_EQ(ReasonOf(ValueFromProto(wire, {}).status()), ErrorReason::kInvalidContent);
}

TEST(Json, CutOrFlippedWiresAreRefusedOrValidButNeverFatal) {
  const std::string wire =
      Wire(R"({"a": [1, "two", null, {"b": true}], "d": {"$date": "2026-01-31T12:00:00Z"},)"
           R"("o": {"$binary": {"base64": "AQID", "subType": "00"}}, "n": -1.5})");
  for (size_t size = 0; size < wire.size(); ++size) {
    (void)ContentFromStruct(wire.substr(0, size), {});
  }
  for (size_t at = 0; at < wire.size(); ++at) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string flipped = wire;
      flipped[at] = static_cast<char>(flipped[at] ^ flip);
      const absl::StatusOr<Content> content = ContentFromStruct(flipped, {});
      if (!content.ok()) continue;
      const absl::Status valid = Content::FromBson(std::string(content->bytes()), {}).status();
      EXPECT_TRUE(valid.ok()) << valid;
      // What protobuf takes as well, it reads alike.
      Struct message;
      if (!message.ParseFromString(flipped)) continue;
      EXPECT_EQ(*ContentFromStruct(message.SerializeAsString(), {}), *content) << at << " " << flip;
    }
  }
}

TEST(Json, RandomDocumentsSurviveProtobufAndBack) {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE(seed);
    const Content content = RandomDocuments(seed).Make();
    std::string wire;
    AppendStruct(content, wire);
    EXPECT_EQ(wire.size(), StructSize(content));
    Struct message;
    ASSERT_TRUE(message.ParseFromString(wire));
    EXPECT_EQ(message.ByteSizeLong(), wire.size());
    // Protobuf writes a map in an order of its own.
    const absl::StatusOr<Content> back = ContentFromStruct(message.SerializeAsString(), {});
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_TRUE(SameMeaning(*back, content)) << Json(content) << "\n" << Json(*back);
    EXPECT_TRUE(Content::FromBson(std::string(back->bytes()), {}).ok());
  }
}

TEST(Json, SingleValuesAndListsRoundTrip) {
  for (const Row& row : kRows) {
    Member member;
    const std::string bson = Bson(row.bson);
    for (MemberReader reader(bson); reader.Next(member);) {
      const Value value{member.type, std::string(member.value)};
      std::string wire;
      AppendValue(value, wire);
      google::protobuf::Value message;
      ASSERT_TRUE(message.ParseFromString(wire));
      const absl::StatusOr<Value> back = ValueFromProto(message.SerializeAsString(), {});
      ASSERT_TRUE(back.ok()) << back.status();
      EXPECT_EQ(*back, value) << Json(value);
      if (value.type != kBsonArray) continue;
      EXPECT_EQ(*ArrayFromListValue(message.list_value().SerializeAsString(), {}), value);
    }
  }
  ExpectError(ArrayFromListValue(Wire("{}") + "\x0a\x00"s, {}).status(),
              ErrorReason::kInvalidContent, "/0");
}

}  // namespace
}  // namespace strata::document
