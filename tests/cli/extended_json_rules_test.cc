// Claims about the rules of Extended JSON: whatever the front end, JSON text in a client or
// google.protobuf.Struct in the server, a wrapper is the same value, is written the same way, or is
// refused.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

#include "clients/cpp/extended_json.h"
#include "schemas/document/struct_codec.h"
#include "tests/document/documents.h"

namespace strata::client {
namespace {

using document::Content;
using google::protobuf::Struct;
using google::protobuf::util::MessageDifferencer;

std::string Around(const std::string& value) { return R"({"list":[0,)" + value + "]}"; }

Struct ParseStruct(const std::string& json) {
  Struct message;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message);
  EXPECT_TRUE(status.ok()) << json << ": " << status.message();
  return message;
}

// What one of the two front ends reads, as libbson's canonical Extended JSON; how it fails, if so.
std::string ReadAsText(const std::string& json) {
  const absl::StatusOr<std::string> bson = BsonFromJson(json);
  if (!bson.ok()) return std::string(absl::StatusCodeToString(bson.status().code()));
  const absl::Status valid = Content::FromBson(*bson, {}).status();
  return valid.ok() ? document::Json(*bson) : "the server refuses it: " + valid.ToString();
}
std::string ReadAsStruct(const std::string& json) {
  const absl::StatusOr<Content> content =
      document::ContentFromStruct(ParseStruct(json).SerializeAsString(), {});
  if (content.ok()) return document::Json(*content);
  return std::string(absl::StatusCodeToString(content.status().code()));
}

struct Row {
  const char* json;     // a wrapper
  const char* value;    // what libbson calls that value
  const char* written;  // how both front ends write it; null: as `value`
};

constexpr Row kRows[] = {
    {R"({"$numberInt": "-7"})", R"({"$numberInt": "-7"})", "-7"},
    {R"({"$numberInt": "2147483647"})", R"({"$numberInt": "2147483647"})", "2147483647"},
    {R"({"$numberInt": "-0"})", R"({"$numberInt": "0"})", "0"},
    {R"({"$numberLong": "7"})", R"({"$numberLong": "7"})", "7"},
    {R"({"$numberLong": "9007199254740991"})", R"({"$numberLong": "9007199254740991"})",
     "9007199254740991"},
    {R"({"$numberLong": "9007199254740992"})", R"({"$numberLong": "9007199254740992"})", nullptr},
    {R"({"$numberLong": "-9007199254740992"})", R"({"$numberLong": "-9007199254740992"})", nullptr},
    {R"({"$numberLong": "-9223372036854775808"})", R"({"$numberLong": "-9223372036854775808"})",
     nullptr},

    {R"({"$numberDouble": "1"})", R"({"$numberDouble": "1.0"})", nullptr},
    {R"({"$numberDouble": "-0.0"})", R"({"$numberDouble": "-0.0"})", nullptr},
    {R"({"$numberDouble": "1.5"})", R"({"$numberDouble": "1.5"})", "1.5"},
    {R"({"$numberDouble": "1.2345678921232E+18"})", R"({"$numberDouble": "1234567892123200000"})",
     R"({"$numberDouble": "1234567892123200000.0"})"},
    {R"({"$numberDouble": "5e-324"})", R"({"$numberDouble": "5e-324"})", "5e-324"},
    {R"({"$numberDouble": "1e-400"})", R"({"$numberDouble": "0.0"})", nullptr},
    {R"({"$numberDouble": "-1e-400"})", R"({"$numberDouble": "-0.0"})", nullptr},

    {R"({"$numberDecimal": "1.50"})", R"({"$numberDecimal": "1.50"})", nullptr},
    {R"({"$numberDecimal": "-0"})", R"({"$numberDecimal": "-0"})", nullptr},
    {R"({"$numberDecimal": "+.5e1"})", R"({"$numberDecimal": "5"})", nullptr},
    {R"({"$numberDecimal": "1E+6144"})",
     R"({"$numberDecimal": "1.000000000000000000000000000000000E+6144"})", nullptr},
    {R"({"$numberDecimal": "1E-6176"})", R"({"$numberDecimal": "1E-6176"})", nullptr},
    {R"({"$numberDecimal": "0E+9999"})", R"({"$numberDecimal": "0E+6111"})", nullptr},
    {R"({"$numberDecimal": "12345678901234567890123456789012340"})",
     R"({"$numberDecimal": "1.234567890123456789012345678901234E+34"})", nullptr},
    {R"({"$numberDecimal": "20000000470000000001000000008000000000.00E21"})",
     R"({"$numberDecimal": "2.000000047000000000100000000800000E+58"})", nullptr},
    // More than 64 characters: "Exact rounding" and its like in MongoDB's BSON corpus.
    {R"({"$numberDecimal": "0.0000000000000000000000000000000000000000000000000000000000000000001"})",
     R"({"$numberDecimal": "1E-67"})", nullptr},
    {R"({"$numberDecimal": "10000000000000000000000000000000000000000000000000000000000000000000"})",
     R"({"$numberDecimal": "1.000000000000000000000000000000000E+67"})", nullptr},

    {R"({"$date": "1970-01-01T00:00:00Z"})", R"({"$date": {"$numberLong": "0"}})",
     R"({"$date": "1970-01-01T00:00:00Z"})"},
    {R"({"$date": "2026-01-31T12:00:00.25Z"})", R"({"$date": {"$numberLong": "1769860800250"}})",
     R"({"$date": "2026-01-31T12:00:00.250Z"})"},
    {R"({"$date": "2026-01-31t12:00:00z"})", R"({"$date": {"$numberLong": "1769860800000"}})",
     R"({"$date": "2026-01-31T12:00:00Z"})"},
    {R"({"$date": "2026-01-31T13:30:00+01:30"})", R"({"$date": {"$numberLong": "1769860800000"}})",
     R"({"$date": "2026-01-31T12:00:00Z"})"},
    {R"({"$date": "2026-01-31T07:00:00-0500"})", R"({"$date": {"$numberLong": "1769860800000"}})",
     R"({"$date": "2026-01-31T12:00:00Z"})"},
    {R"({"$date": "2000-02-29T00:00:00Z"})", R"({"$date": {"$numberLong": "951782400000"}})",
     R"({"$date": "2000-02-29T00:00:00Z"})"},
    {R"({"$date": "9999-12-31T23:59:59.999Z"})", R"({"$date": {"$numberLong": "253402300799999"}})",
     R"({"$date": "9999-12-31T23:59:59.999Z"})"},
    {R"({"$date": "1969-12-31T23:59:59.999Z"})", R"({"$date": {"$numberLong": "-1"}})", nullptr},
    {R"({"$date": "0000-03-01T00:00:00Z"})", R"({"$date": {"$numberLong": "-62162035200000"}})",
     nullptr},
    {R"({"$date": {"$numberLong": "5"}})", R"({"$date": {"$numberLong": "5"}})",
     R"({"$date": "1970-01-01T00:00:00.005Z"})"},
    {R"({"$date": {"$numberLong": "253402300800000"}})",
     R"({"$date": {"$numberLong": "253402300800000"}})", nullptr},

    {R"({"$oid": "0123456789ABCDEF01234567"})", R"({"$oid": "0123456789abcdef01234567"})", nullptr},
    {R"({"$uuid": "00112233-4455-6677-8899-AABBCCDDEEFF"})",
     R"({"$binary": {"base64": "ABEiM0RVZneImaq7zN3u/w==", "subType": "04"}})", nullptr},
    {R"({"$binary": {"base64": "", "subType": "00"}})",
     R"({"$binary": {"base64": "", "subType": "00"}})", nullptr},
    {R"({"$binary": {"subType": "4", "base64": "AQ=="}})",
     R"({"$binary": {"base64": "AQ==", "subType": "04"}})", nullptr},
    {R"({"$binary": {"base64": "AQID", "subType": "02"}})",
     R"({"$binary": {"base64": "AQID", "subType": "02"}})", nullptr},
    {R"({"$binary": {"base64": "/+8=", "subType": "Ff"}})",
     R"({"$binary": {"base64": "/+8=", "subType": "ff"}})", nullptr},

    {R"({"$regularExpression": {"pattern": "^a\"ü", "options": "im"}})",
     R"({"$regularExpression": {"pattern": "^a\"ü", "options": "im"}})", nullptr},
    {R"({"$regularExpression": {"options": "", "pattern": ""}})",
     R"({"$regularExpression": {"pattern": "", "options": ""}})", nullptr},
    {R"({"$timestamp": {"t": 4294967295, "i": 1}})", R"({"$timestamp": {"t": 4294967295, "i": 1}})",
     nullptr},
    {R"({"$timestamp": {"i": 2e0, "t": 1.0}})", R"({"$timestamp": {"t": 1, "i": 2}})", nullptr},
    {R"({"$minKey": 1})", R"({"$minKey": 1})", nullptr},
    {R"({"$maxKey": 1.0})", R"({"$maxKey": 1})", nullptr},

    // Ordinary objects.
    {R"({"$numberlong": "7"})", R"({"$numberlong": "7"})", nullptr},
    {R"({"$id": 1, "$ref": "x"})", R"({"$id": 1, "$ref": "x"})", nullptr},
};

TEST(ExtendedJsonRules, AWrapperIsTheSameValueForBothFrontEnds) {
  for (const Row& row : kRows) {
    const std::string expected = document::Json(document::Bson(Around(row.value)));
    EXPECT_EQ(ReadAsText(Around(row.json)), expected) << row.json;
    EXPECT_EQ(ReadAsStruct(Around(row.json)), expected) << row.json;
  }
}

TEST(ExtendedJsonRules, AValueIsWrittenAlikeByBothFrontEnds) {
  for (const Row& row : kRows) {
    const std::string bson = document::Bson(Around(row.value));
    const Struct expected = ParseStruct(Around(row.written != nullptr ? row.written : row.value));
    std::string wire;
    document::AppendStruct(Content::FromTrusted(bson), wire);
    Struct message;
    ASSERT_TRUE(message.ParseFromString(wire));
    EXPECT_TRUE(MessageDifferencer::Equals(message, expected)) << message.DebugString();
    const std::string text = JsonFromBson(bson, JsonStyle::kDoublesOnly).value_or("damaged");
    EXPECT_TRUE(MessageDifferencer::Equals(ParseStruct(text), expected)) << text;
  }
}

// An object that has the name of a wrapper.
constexpr const char* kRefused[] = {
    R"({"$numberInt": 7})",
    R"({"$numberInt": ""})",
    R"({"$numberInt": "+7"})",
    R"({"$numberInt": "2147483648"})",
    R"({"$numberLong": 7})",
    R"({"$numberLong": " 7"})",
    R"({"$numberLong": "7x"})",
    R"({"$numberLong": "7.0"})",
    R"({"$numberLong": "9223372036854775808"})",
    R"({"$numberLong": {"$numberLong": "7"}})",
    R"({"$numberDouble": 1})",
    R"({"$numberDouble": ""})",
    R"({"$numberDouble": "x"})",
    R"({"$numberDouble": "1.5 "})",
    R"({"$numberDouble": "NaN"})",
    R"({"$numberDouble": "-Infinity"})",
    R"({"$numberDouble": "1e400"})",
    R"({"$numberDecimal": 1})",
    R"({"$numberDecimal": ""})",
    R"({"$numberDecimal": "."})",
    R"({"$numberDecimal": "-"})",
    R"({"$numberDecimal": "1.2.3"})",
    R"({"$numberDecimal": "1 "})",
    R"({"$numberDecimal": "1e"})",
    R"({"$numberDecimal": "1e+"})",
    R"({"$numberDecimal": "1e 5"})",
    R"({"$numberDecimal": "1\u00005"})",
    R"({"$numberDecimal": "NaN"})",
    R"({"$numberDecimal": "Infinity"})",
    R"({"$numberDecimal": "1E+6145"})",
    R"({"$numberDecimal": "1E-6177"})",
    R"({"$numberDecimal": "1e99999999999999999999"})",
    R"({"$numberDecimal": "12345678901234567890123456789012345"})",
    R"({"$numberDecimal": "0070050010060030.0000001000800061000000006"})",
    R"({"$date": 5})",
    R"({"$date": "today"})",
    R"({"$date": "2026-01-31"})",
    R"({"$date": "2026-01-31T12:00Z"})",
    R"({"$date": "2026-01-31T12:00:00"})",
    R"({"$date": "2026-01-31 12:00:00Z"})",
    R"({"$date": "2026-01-31T12:00:00+01"})",
    R"({"$date": "2026-02-29T00:00:00Z"})",
    R"({"$date": "2026-01-31T24:00:00Z"})",
    R"({"$date": "2026-01-31T12:00:60Z"})",
    R"({"$date": "2026-01-31T12:00:00.Z"})",
    R"({"$date": "2026-01-31T12:00:00.0001Z"})",
    R"({"$date": "2026-01-31T12:00:00.2500Z"})",
    R"({"$date": "2026-01-31T12:00:00.2500000000001Z"})",
    R"({"$date": {"$numberLong": 5}})",
    R"({"$date": {"$numberInt": "5"}})",
    R"({"$date": {"$numberLong": "5", "a": 1}})",
    R"({"$date": ["2026-01-31T12:00:00Z"]})",
    R"({"$oid": 5})",
    R"({"$oid": "0123"})",
    R"({"$oid": "0123456789abcdef0123456x"})",
    R"({"$oid": "0123456789abcdef01234567", "a": 1})",
    R"({"a": 1, "$oid": "0123456789abcdef01234567"})",
    R"({"$oid": {"$oid": "0123456789abcdef01234567"}})",
    R"({"$uuid": "0"})",
    R"({"$uuid": "00112233445566778899aabbccddeeff0000"})",
    R"({"$uuid": "00112233-4455-6677-8899-aabbccddeefg"})",
    R"({"$binary": "AQID"})",
    R"({"$binary": "AQID", "$type": "00"})",
    R"({"$binary": {"base64": "AQID"}})",
    R"({"$binary": {"base64": "AQID", "subType": 0}})",
    R"({"$binary": {"base64": "AQID", "subType": ""}})",
    R"({"$binary": {"base64": "AQID", "subType": "000"}})",
    R"({"$binary": {"base64": "AQID", "subType": "x"}})",
    R"({"$binary": {"base64": "AQID", "subType": "00", "a": 1}})",
    R"({"$binary": {"base64": "AQ", "subType": "00"}})",
    R"({"$binary": {"base64": "AQ..", "subType": "00"}})",
    R"({"$binary": {"base64": "AR==", "subType": "00"}})",
    R"({"$binary": {"base64": "A Q==", "subType": "00"}})",
    R"({"$binary": {"base64": "-_8=", "subType": "00"}})",
    R"({"$regularExpression": "a"})",
    R"({"$regularExpression": {"pattern": "a"}})",
    R"({"$regularExpression": {"pattern": "a", "options": 1}})",
    R"({"$regularExpression": {"pattern": "a\u0000", "options": ""}})",
    R"({"$regularExpression": {"pattern": "a", "options": "g"}})",
    R"({"$regularExpression": {"pattern": "a", "options": "xi"}})",
    R"({"$regularExpression": {"pattern": "a", "options": "ii"}})",
    R"({"$timestamp": {"t": 1}})",
    R"({"$timestamp": {"t": 1, "i": "2"}})",
    R"({"$timestamp": {"t": -1, "i": 0}})",
    R"({"$timestamp": {"t": 1.5, "i": 0}})",
    R"({"$timestamp": {"t": 4294967296, "i": 0}})",
    R"({"$timestamp": {"t": 1, "i": 2, "a": 3}})",
    R"({"$minKey": 2})",
    R"({"$minKey": "1"})",
    R"({"$maxKey": true})",
    R"({"$maxKey": null})",
};

TEST(ExtendedJsonRules, WhatIsNotExactlyAWrapperIsRefusedByBothFrontEnds) {
  for (const char* json : kRefused) {
    EXPECT_EQ(ReadAsText(Around(json)), "INVALID_ARGUMENT") << json;
    EXPECT_EQ(ReadAsStruct(Around(json)), "INVALID_ARGUMENT") << json;
  }
}

TEST(ExtendedJsonRules, TheDocumentItselfIsNoWrapper) {
  for (const char* json : {R"({"$oid": "0123456789abcdef01234567"})",
                           R"({"$oid": "0123456789abcdef01234567", "a": 1})",
                           R"({"a": 1, "$minKey": 1})", R"({"$date": 5})"}) {
    EXPECT_EQ(ReadAsText(json), "INVALID_ARGUMENT") << json;
    EXPECT_EQ(ReadAsStruct(json), "INVALID_ARGUMENT") << json;
  }
}

TEST(ExtendedJsonRules, ARefusalSaysHowTheWrapperIsWritten) {
  const std::string text(BsonFromJson(R"({"v": {"$oid": "0123"}})").status().message());
  EXPECT_EQ(text,
            R"(object that has the name of the Extended JSON wrapper $oid but is not exactly that )"
            R"(wrapper; write {"$oid": "24 hex digits"} with nothing else in the object, or use )"
            R"(another member name, at byte 7)");
}

// What "Exact rounding" of MongoDB's BSON corpus reads, and longer.
TEST(ExtendedJsonRules, ADecimalMayHaveAnyNumberOfZeros) {
  for (const size_t zeros : {size_t{60}, size_t{999}, size_t{6000}, size_t{300'000}}) {
    const std::string many(zeros, '0');
    for (const std::string& text :
         {"1" + many + "E-" + std::to_string(zeros - 40),
          "0." + many + "1E+" + std::to_string(zeros), many + "1.5", "1.5" + many}) {
      SCOPED_TRACE(text.size());
      const std::string json = R"({"v": {"$numberDecimal": ")" + text + "\"}}";
      const std::string read = ReadAsText(json);
      EXPECT_NE(read, "INVALID_ARGUMENT");
      EXPECT_EQ(ReadAsStruct(json), read);
    }
  }
}

}  // namespace
}  // namespace strata::client
