// What becomes of JSON content on its way through the server: member order, numbers, wrappers.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

struct Row {
  const char* sent;
  const char* answered;  // null: refused
};

TEST(Json, ComesBackAsTheTableSays) {
  const Row rows[] = {
      {R"({})", R"({})"},
      {R"({"a": null, "b": true, "c": "text", "d": [1, [2]], "e": {}})",
       R"({"a": null, "b": true, "c": "text", "d": [1, [2]], "e": {}})"},
      {R"({"n": 1})", R"({"n": 1})"},
      {R"({"n": 1.5})", R"({"n": 1.5})"},
      {R"({"n": 9007199254740991})", R"({"n": 9007199254740991})"},
      {R"({"n": 9007199254740992})", nullptr},  // what the next number is rounded to
      {R"({"n": 9007199254740994})", nullptr},
      {R"({"n": 1e300})", nullptr},
      {R"({"n": -9007199254740994})", nullptr},
      {R"({"n": {"$numberLong": "9007199254740993"}})",
       R"({"n": {"$numberLong": "9007199254740993"}})"},
      {R"({"n": {"$numberLong": "7"}})", R"({"n": 7})"},
      {R"({"n": {"$numberInt": "7"}})", R"({"n": 7})"},
      {R"({"n": {"$numberLong": "9223372036854775808"}})", nullptr},
      {R"({"n": {"$numberDouble": "1.0"}})", R"({"n": {"$numberDouble": "1.0"}})"},
      {R"({"n": {"$numberDouble": "1.5"}})", R"({"n": 1.5})"},
      {R"({"n": {"$numberDouble": "NaN"}})", nullptr},
      {R"({"n": -0.0})", R"({"n": {"$numberDouble": "-0.0"}})"},
      {R"({"n": {"$numberDecimal": "1.10"}})", R"({"n": {"$numberDecimal": "1.10"}})"},
      {R"({"n": {"$numberDecimal":
          "0.0000000000000000000000000000000000000000000000000000000000000000001"}})",
       R"({"n": {"$numberDecimal": "1E-67"}})"},
      {R"({"n": {"$numberDecimal": "1e99999999999999999999"}})", nullptr},
      {R"({"d": {"$date": "2026-01-31T12:00:00Z"}})",
       R"({"d": {"$date": "2026-01-31T12:00:00Z"}})"},
      {R"({"o": {"$oid": "0123456789abcdef01234567"}})",
       R"({"o": {"$oid": "0123456789abcdef01234567"}})"},
      {R"({"o": {"$oid": "0123"}})", nullptr},
      {R"({"o": {"$oid": "0123456789abcdef01234567", "x": 1}})", nullptr},
      {R"({"b": {"$binary": {"base64": "AQID", "subType": "00"}}})",
       R"({"b": {"$binary": {"base64": "AQID", "subType": "00"}}})"},
      {R"({"$ref": "x", "$id": 1})", R"({"$ref": "x", "$id": 1})"},
      {R"({"": {"a.b": {"~/": 1}}})", R"({"": {"a.b": {"~/": 1}}})"},
  };
  TestServer server;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.sent);
    const auto made =
        server.Create(std::string(R"({"collection": "c", "content": {"json": )") + row.sent + "}}");
    if (row.answered == nullptr) {
      EXPECT_EQ(made.details().reason, "INVALID_CONTENT");
      continue;
    }
    ASSERT_TRUE(made.ok()) << made.status.error_message();
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(
        made.response.document().content().json(), Parse<google::protobuf::Struct>(row.answered)));
  }
}

// A Struct has no member order, so the server sorts; BSON has one, and keeps it.
TEST(Json, MembersAreStoredSortedByTheirBytes) {
  TestServer server;
  ASSERT_TRUE(server
                  .Create(R"({"collection": "c", "id": "x",
                              "content": {"json": {"b": 1, "a": 2, "B": 3, "ä": 4}}})")
                  .ok());
  const auto bson = server.Get(R"({"collection": "c", "id": "x", "encoding": "ENCODING_BSON"})");
  const std::string& bytes = bson.response.document().content().bson();
  std::vector<size_t> places;
  for (const char* name : {"B", "a", "b", "ä"}) {
    std::string member = "\x10";  // int32
    member += name;
    member += '\0';
    places.push_back(bytes.find(member));
  }
  EXPECT_THAT(places, testing::Each(testing::Ne(std::string::npos)));
  EXPECT_TRUE(std::is_sorted(places.begin(), places.end()));

  // {b: 1, a: 2} in BSON.
  const std::string ordered(
      "\x13\0\0\0\x10"
      "b\0\1\0\0\0\x10"
      "a\0\2\0\0\0\0",
      19);
  v1::CreateRequest create;
  create.set_collection("c");
  create.set_id("y");
  create.set_encoding(v1::ENCODING_BSON);
  create.mutable_content()->set_bson(ordered);
  const auto kept = server.Call<v1::CreateResponse>(server.documents(),
                                                    &v1::DocumentService::Stub::Create, create);
  ASSERT_TRUE(kept.ok()) << kept.status.error_message();
  EXPECT_EQ(kept.response.document().content().bson(), ordered);
  const auto again = server.Update(R"({"collection": "c", "id": "y",
                                       "replace": {"json": {"a": 2, "b": 1}}})");
  EXPECT_FALSE(again.response.changed());
}

// As deep as a document may be, it is read in every answer that can hold it, by any protobuf
// library.
TEST(Json, TheDeepestDocumentIsReadableEverywhere) {
  std::string deep = "1";
  for (int i = 0; i < 24; ++i) deep = R"({"a": )" + deep + "}";
  TestServer server;
  ASSERT_TRUE(
      server.Create(R"({"collection": "c", "id": "x", "content": {"json": )" + deep + "}}").ok());
  EXPECT_EQ(server.Create(R"({"collection": "c", "content": {"json": {"a": )" + deep + "}}}")
                .details()
                .reason,
            "INVALID_CONTENT");
  EXPECT_TRUE(server.Get(R"({"collection": "c", "id": "x"})").ok());
  EXPECT_TRUE(server.List(R"({"collection": "c"})").ok());
  EXPECT_TRUE(server
                  .History(R"({"collection": "c", "id": "x", "include_content": true,
                               "include_changes": true})")
                  .ok());
  EXPECT_TRUE(server.Audit(R"({"include_changes": true})").ok());
}

}  // namespace
}  // namespace strata::rpc_test
