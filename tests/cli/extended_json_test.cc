// Claims about JSON and BSON: what is printed can be read again, to the byte.
#include "clients/cpp/extended_json.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace strata::client {
namespace {

std::string RoundTrip(const std::string& json, JsonStyle style = JsonStyle::kRelaxed) {
  const auto bson = BsonFromJson(json);
  if (!bson.ok()) return std::string(bson.status().message());
  return JsonFromBson(*bson, style).value_or("damaged");
}

TEST(ExtendedJson, PlainJsonComesBackAsItWas) {
  const std::vector<std::string> texts = {
      R"({})",
      R"({"b":1,"a":2})",
      R"({"a":[],"b":{},"c":[[1],{"d":null}],"e":true,"f":false})",
      R"({"18.6":"keys with dots","":"empty","a/b~":"ö 日本 😀"})",
      R"({"quotes":"\"\\\n\t\r\b\f\u0001"})",
      R"({"int":2147483647,"long":2147483648,"longest":-9223372036854775808})",
      R"({"double":0.1,"whole":1.0,"large":1e+300,"small":5e-324,"zero":-0.0})"};
  for (const std::string& text : texts) EXPECT_EQ(RoundTrip(text), text);
}

TEST(ExtendedJson, WrappersComeBackAsTheyWere) {
  const std::vector<std::string> values = {
      R"({"$date":"2026-01-31T12:00:00Z"})",
      R"({"$date":"2026-01-31T12:00:00.250Z"})",
      R"({"$date":{"$numberLong":"-1"}})",
      R"({"$oid":"507f1f77bcf86cd799439011"})",
      R"({"$numberDecimal":"1.10"})",
      R"({"$binary":{"base64":"AQID","subType":"00"}})",
      R"({"$binary":{"base64":"AQID","subType":"02"}})",
      R"({"$binary":{"base64":"AQID","subType":"80"}})",
      R"({"$regularExpression":{"pattern":"^a\"b","options":"i"}})",
      R"({"$timestamp":{"t":4294967295,"i":1}})",
      R"({"$minKey":1})",
      R"({"$maxKey":1})"};
  for (const std::string& value : values) {
    for (const JsonStyle style :
         {JsonStyle::kRelaxed, JsonStyle::kExact, JsonStyle::kDoublesOnly}) {
      EXPECT_EQ(RoundTrip(R"({"v":)" + value + "}", style), R"({"v":)" + value + "}");
    }
  }
}

TEST(ExtendedJson, ExactStyleKeepsTheWidthOfIntegers) {
  const std::string json = R"({"v":{"$numberLong":"5"},"w":5})";
  EXPECT_EQ(RoundTrip(json), R"({"v":5,"w":5})");
  EXPECT_EQ(RoundTrip(json, JsonStyle::kExact), json);
}

TEST(ExtendedJson, DoublesOnlyStyleWrapsWhatADoubleWouldBlur) {
  EXPECT_EQ(RoundTrip(R"({"a":9007199254740993,"b":9007199254740992,"c":1.0,"d":1.5,"e":-0.0})",
                      JsonStyle::kDoublesOnly),
            R"({"a":{"$numberLong":"9007199254740993"},"b":{"$numberLong":"9007199254740992"},)"
            R"("c":{"$numberDouble":"1.0"},"d":1.5,"e":{"$numberDouble":"-0.0"}})");
}

TEST(ExtendedJson, OtherSpellingsAreRead) {
  EXPECT_EQ(RoundTrip(" { \"a\" : [ 1 , 2 ] } \n"), R"({"a":[1,2]})");
  EXPECT_EQ(RoundTrip(R"({"a":"\u00e9\ud83d\ude00\/"})"), R"({"a":"é😀/"})");
  EXPECT_EQ(RoundTrip(R"({"a":{"$numberInt":"7"}})"), R"({"a":7})");
  EXPECT_EQ(RoundTrip(R"({"a":{"$uuid":"00112233-4455-6677-8899-aabbccddeeff"}})"),
            R"({"a":{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}})");
  EXPECT_EQ(RoundTrip(R"({"a":{"$timestamp": {"i": 2, "t": 1}}})"),
            R"({"a":{"$timestamp":{"t":1,"i":2}}})");
  EXPECT_EQ(RoundTrip(R"({"a":{"$ref":"x","$id":1}})"), R"({"a":{"$ref":"x","$id":1}})");
  EXPECT_EQ(RoundTrip(R"({"a":1e-400})"), R"({"a":0.0})");
}

TEST(ExtendedJson, WhatIsNotJsonIsRefusedWithItsPlace) {
  EXPECT_EQ(BsonFromJson(R"({"a":1} x)").status().message(), "expected nothing more at byte 9");
  const std::vector<std::string> texts = {"",
                                          "[1]",
                                          "1",
                                          R"({"a":1,})",
                                          R"({"a":01})",
                                          R"({"a":1.})",
                                          R"({"a":.5})",
                                          R"({"a":+1})",
                                          R"({"a":NaN})",
                                          R"({"a":Infinity})",
                                          R"({"a":tru})",
                                          R"({a:1})",
                                          R"({'a':1})",
                                          R"({"a")",
                                          R"({"a":"x)",
                                          "{\"a\":\"x\ny\"}",
                                          "{\"a\":\"\xff\"}",
                                          R"({"a":"\x"})",
                                          R"({"a":"\ud800"})",
                                          R"({"a":"\ud800\u0041"})",
                                          R"({"\u0000":1})",
                                          R"({"a":1}{"b":2})",
                                          R"({"$numberLong":"5"})"};
  for (const std::string& text : texts) {
    EXPECT_TRUE(absl::IsInvalidArgument(BsonFromJson(text).status())) << text;
  }
}

TEST(ExtendedJson, MalformedWrappersAreRefused) {
  const std::vector<std::string> values = {R"({"$numberLong":5})",
                                           R"({"$numberLong":"5x"})",
                                           R"({"$numberLong":"9223372036854775808"})",
                                           R"({"$numberInt":"2147483648"})",
                                           R"({"$numberDouble":"NaN"})",
                                           R"({"$numberDecimal":"x"})",
                                           R"({"$oid":"507f"})",
                                           R"({"$date":"2026-01-31"})",
                                           R"({"$date":"2026-01-31T12:00:00.0001Z"})",
                                           R"({"$date":5})",
                                           R"({"$binary":"AQID"})",
                                           R"({"$binary":{"base64":"AQID"}})",
                                           R"({"$timestamp":{"t":1,"t":2}})",
                                           R"({"$minKey":2})",
                                           R"({"$numberLong":"5","a":1})"};
  for (const std::string& value : values) {
    EXPECT_FALSE(BsonFromJson(R"({"v":)" + value + "}").ok()) << value;
  }
}

TEST(ExtendedJson, NumbersThatNoTypeHoldsAreOutOfRange) {
  EXPECT_TRUE(absl::IsOutOfRange(BsonFromJson(R"({"a":9223372036854775808})").status()));
  EXPECT_TRUE(absl::IsOutOfRange(BsonFromJson(R"({"a":1e400})").status()));
}

TEST(ExtendedJson, DepthIsBounded) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"({"a":)";
  EXPECT_TRUE(absl::IsInvalidArgument(BsonFromJson(deep).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(BsonFromJson(R"({"a":)" + std::string(100'000, '[')).status()));
}

TEST(ExtendedJson, DamagedBsonIsRefused) {
  const std::string bson = BsonFromJson(R"({"a":{"b":"text"}})").value();
  EXPECT_FALSE(JsonFromBson("", JsonStyle::kRelaxed).ok());
  EXPECT_FALSE(JsonFromBson(bson.substr(0, bson.size() - 1), JsonStyle::kRelaxed).ok());
  std::string damaged = bson;
  damaged[4] = 0x0E;  // A type that Strata does not store.
  EXPECT_FALSE(JsonFromBson(damaged, JsonStyle::kRelaxed).ok());
}

TEST(ExtendedJson, PeopleGetIndentation) {
  const std::string bson = BsonFromJson(R"({"a":[1,{}],"b":{"c":[]}})").value();
  EXPECT_EQ(JsonFromBson(bson, JsonStyle::kRelaxed, 2).value(),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": {\n    \"c\": []\n  }\n}");
}

TEST(ExtendedJson, AnyValueCanStandAlone) {
  for (const std::string text : {"1", "\"x\"", "[1,2]", "{\"a\":1}", "null"}) {
    EXPECT_EQ(JsonFromBsonValue(BsonFromJsonValue(text).value(), JsonStyle::kRelaxed).value(),
              text);
  }
}

}  // namespace
}  // namespace strata::client
