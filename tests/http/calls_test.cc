// Unary calls: their answers and errors are those of the gRPC port, said in JSON.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/escaping.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "strata/v1/server_service.pb.h"
#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

template <typename Message>
Message FromJson(const std::string& json) {
  Message message;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &message);
  EXPECT_TRUE(parsed.ok()) << parsed.ToString() << " in " << json.substr(0, 200);
  return message;
}

template <typename Message>
void ExpectSame(const Message& a, const Message& b) {
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(a, b))
      << a.ShortDebugString().substr(0, 500) << "\n"
      << b.ShortDebugString().substr(0, 500);
}

// An object in an object, so many levels in all.
std::string Deep(int levels, bool arrays) {
  std::string json;
  for (int i = 1; i < levels; ++i) json += arrays && i > 1 ? "[" : R"({"a":)";
  json += arrays ? "[]" : "{}";
  for (int i = levels - 1; i >= 1; --i) json += arrays && i > 1 ? "]" : "}";
  return json;
}

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_GT(details.details_size(), 0);
  details.clear_code();
  details.clear_message();
  return details;
}

// Of Connect's error, as a client that knows the types reads them.
google::rpc::Status DetailsIn(const std::string& body) {
  google::rpc::Status details;
  const auto error = FromJson<google::protobuf::Struct>(body);
  for (const auto& detail : error.fields().at("details").list_value().values()) {
    const auto& fields = detail.struct_value().fields();
    const std::string& value = fields.at("value").string_value();
    EXPECT_FALSE(value.ends_with('=')) << "Connect has no padding";
    google::protobuf::Any& any = *details.add_details();
    any.set_type_url("type.googleapis.com/" + fields.at("type").string_value());
    EXPECT_TRUE(absl::Base64Unescape(value, any.mutable_value()));
  }
  return details;
}

TEST(Calls, AnswerInProtobufsJson) {
  HttpWorld world;
  const Response created = world.Call(
      "DocumentService/Create",
      R"({"collection": "books", "id": "moby", "content": {"json": {"title": "Moby", "stock": 3}},
          "change": {"actor": "ann", "reason": "catalogue"}})");
  EXPECT_EQ(created.status, 200) << created.body;
  EXPECT_EQ(created.header("content-type"), "application/json");
  EXPECT_THAT(created.body, HasSubstr(R"("version":"1")")) << "64 bits are text";
  EXPECT_THAT(created.body, HasSubstr(R"("createTime":")")) << "names are in lowerCamelCase";
  const Response got =
      world.Call("DocumentService/Get", R"({"collection": "books", "id": "moby"})");
  EXPECT_THAT(got.body, HasSubstr(R"("content":{"json":{)"));
  ExpectSame(FromJson<v1::GetResponse>(got.body),
             world.grpc().Get(R"({"collection": "books", "id": "moby"})").response);
  // Nothing that has its default is said.
  EXPECT_EQ(world.Call("QueueService/ListQueues", "{}").body, "{}");
}

TEST(Calls, TakeBothFormsOfANameAndMessagesInBytes) {
  HttpWorld world;
  ASSERT_EQ(world
                .Call("CollectionService/CreateCollection",
                      R"({"name": "books", "options": {"keyframeInterval": 7}})")
                .status,
            200);
  EXPECT_EQ(world
                .Call("CollectionService/CreateCollection",
                      R"({"name": "others", "options": {"keyframe_interval": 7}})")
                .status,
            200);
  v1::GetCollectionRequest request;
  request.set_name("books");
  const Response response = CallOnce(
      world.port(), Post(PathOf("CollectionService/GetCollection"), request.SerializeAsString(),
                         {{"Content-Type", "application/proto"}}));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-type"), "application/proto");
  v1::GetCollectionResponse answer;
  ASSERT_TRUE(answer.ParseFromString(response.body));
  ExpectSame(answer, world.grpc().GetCollection(R"({"name": "books"})").response);
}

TEST(Calls, AnErrorIsThatOfGrpcWithAllItsDetails) {
  HttpWorld world;
  ASSERT_EQ(world
                .Call("DocumentService/Create",
                      R"({"collection": "books", "id": "a", "content": {"json": {}}})")
                .status,
            200);
  struct Failing {
    std::string method;
    std::string json;
    int status;
    std::string code;
  };
  for (
      const Failing& failing : std::initializer_list<Failing>{
          {"DocumentService/Get", R"({"collection": "books", "id": "b"})", 404, "not_found"},
          {"DocumentService/Get", R"({"collection": "books"})", 400, "invalid_argument"},
          {"DocumentService/Create",
           R"({"collection": "books", "id": "a", "content": {"json": {}}})", 409, "already_exists"},
          {"DocumentService/Update",
           R"({"collection": "books", "id": "a", "replace": {"json": {}}, "precondition": {"version": 9}})",
           409, "aborted"},
          {"CollectionService/CreateCollection",
           R"({"name": "books", "strategy": "STRATEGY_FULL_COPIES"})", 409, "already_exists"},
          {"DocumentService/List", R"({"collection": "books", "page_token": "x"})", 400,
           "invalid_argument"}}) {
    SCOPED_TRACE(failing.method + " " + failing.json);
    const Response response = world.Call(failing.method, failing.json);
    EXPECT_EQ(response.status, failing.status) << response.body;
    EXPECT_EQ(JsonText(response.body, "code"), failing.code);
    const grpc::Status status =
        world.grpc().CallByName("strata.v1." + failing.method, failing.json);
    EXPECT_EQ(JsonText(response.body, "message"), status.error_message());
    ExpectSame(DetailsIn(response.body), DetailsOf(status));
    EXPECT_THAT(response.body,
                HasSubstr(R"("debug":{"reason":")" + rpc_test::DetailsOf(status).reason + '"'));
  }
}

TEST(Calls, WhatIsNoRequestIsRefusedByName) {
  HttpWorld world;
  struct Bad {
    std::string json;
    std::string reason;
    std::string field;
    std::string message;
  };
  for (const Bad& bad : std::initializer_list<Bad>{
           {R"({"colection": "books"})", "INVALID_FIELD", "colection", "there is no such field"},
           {R"({"change": {"actr": "x"}})", "INVALID_FIELD", "change.actr",
            "there is no such field"},
           {R"({"collection": 1})", "INVALID_FIELD", "collection", "invalid value"},
           {R"({"precondition": {"version": "x"}})", "INVALID_FIELD", "precondition.version",
            "invalid value"},
           {R"({"collection": "a")", "INVALID_MESSAGE", "", "it ends before the value does"},
           {"", "INVALID_MESSAGE", "", "strata.v1.UpdateRequest"},
           {"[]", "INVALID_MESSAGE", "", "Root element"},
           {"null", "INVALID_MESSAGE", "", "Root element"},
           {R"({"replace": {"json": {"a": NaN}}})", "INVALID_MESSAGE", "", "expected a value"},
           {R"({"replace": {"json": {"a": 1e999}}})", "INVALID_MESSAGE", "",
            "beyond what a double holds"},
           {"{\"collection\": \"\xFF\"}", "INVALID_MESSAGE", "", "UTF-8"}}) {
    SCOPED_TRACE(bad.json);
    const Response response = world.Call("DocumentService/Update", bad.json);
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(JsonText(response.body, "code"), "invalid_argument") << response.body;
    EXPECT_EQ(JsonText(response.body, "reason"), bad.reason);
    EXPECT_EQ(JsonText(response.body, "field"), bad.field);
    EXPECT_THAT(JsonText(response.body, "message"), HasSubstr(bad.message));
  }
  // A name that is cut stays text.
  std::string name;
  for (int i = 0; i < 150; ++i) name += "\xC3\xA4";
  const Response unknown = world.Call("DocumentService/Update", "{\"" + name + "\": 1}");
  EXPECT_EQ(JsonText(unknown.body, "field"), name.substr(0, 200));
  const std::string deep =
      R"({"collection": "a", "id": "b", "content": {"json": )" + Deep(150, false) + "}}";
  EXPECT_EQ(world.Call("DocumentService/Create", deep).status, 400);
}

// The largest and the deepest that there may be, and what numbers and texts can hold.
TEST(Calls, WhateverAGetOverGrpcAnswersIsAnsweredInJsonToo) {
  HttpWorld world;
  std::string members;
  for (int i = 0; i < 900; ++i) {
    members +=
        (i == 0 ? "" : ",") + ("\"m" + std::to_string(i)) + R"(":")" + std::string(1000, 'x') + '"';
  }
  std::string numbers;
  for (int i = 0; i < 40'000; ++i) numbers += (i == 0 ? "" : ",") + std::to_string(i % 10);
  int number = 0;
  for (
      const std::string& json : {
          Deep(24, false),
          Deep(24, true),
          "{" + members + "}",
          R"({"a":[)" + numbers + "]}",
          std::string(
              R"({"a": {"$numberLong": "9223372036854775807"}, "b": {"$numberLong": "9007199254740993"},
                           "c": {"$numberDouble": "1e300"},
                           "e": {"$numberDecimal": "1E+6144"}, "f": -0.0,
                           "g": {"$numberDouble": "1e308"}, "h": 5e-324,
                           "i": {"$binary": {"base64": "AAEC", "subType": "00"}}, "j": null,
                           "k": {"$date": "1969-12-31T23:59:59.999Z"}, "l": {}, "m": []})"),
          std::string(
              R"({"\u0001": "\u0000\u001f\"\\\u2028<\/script>", "ä": "\ud83d\ude00", "": 1})"),
      }) {
    const std::string name = R"({"collection": "books", "id": "d)" + std::to_string(number++) + '"';
    const Response created =
        world.Call("DocumentService/Create", name + R"(, "content": {"json": )" + json + "}}");
    ASSERT_EQ(created.status, 200) << json.substr(0, 200) << created.body.substr(0, 500);
    const auto by_grpc = world.grpc().Get(name + "}");
    ASSERT_TRUE(by_grpc.ok());
    const Response got = world.Call("DocumentService/Get", name + "}");
    ASSERT_EQ(got.status, 200) << got.body.substr(0, 500);
    ExpectSame(FromJson<v1::GetResponse>(got.body), by_grpc.response);
    const auto history = world.grpc().History(name + R"(, "include_content": true})");
    ASSERT_TRUE(history.ok());
    ExpectSame(
        FromJson<v1::HistoryResponse>(
            world.Call("DocumentService/History", name + R"(, "include_content": true})").body),
        history.response);
  }
  // A page of all of them.
  const Response page = world.Call("DocumentService/List", R"({"collection": "books"})");
  EXPECT_EQ(page.status, 200) << page.body.substr(0, 300);
}

TEST(Calls, EndAtTheirCallersDeadline) {
  HttpWorld world;
  ASSERT_EQ(world.Call("QueueService/CreateQueue", R"({"name": "jobs"})").status, 200);
  // A wait ends before its caller stops waiting: the deadline has come through to the handler.
  const auto start = std::chrono::steady_clock::now();
  const Response waited = world.Call("QueueService/Reserve", R"({"queue": "jobs", "wait": "20s"})",
                                     {{"Connect-Timeout-Ms", "50"}});
  EXPECT_THAT(waited.status, testing::AnyOf(200, 504)) << waited.body;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

TEST(Version, TellsWhatRunsHere) {
  HttpWorld world;
  const Response response = CallOnce(world.port(), Get("/version"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("content-type"), "application/json");
  const auto info = FromJson<v1::GetServerInfoResponse>(response.body);
  EXPECT_EQ(info.engine(), "memory");
  EXPECT_THAT(response.body, StartsWith(R"({"version":")"));
  EXPECT_THAT(response.body, HasSubstr(R"("commit":")"));
  EXPECT_THAT(response.body, HasSubstr(R"("storageFormat":)"));
}

TEST(Version, TellsStrangersNoMore) {
  rpc_test::SecuredServer secured("", {"ann"}, "", 1, false, [](app::ServerOptions& options) {
    options.http.listen = "127.0.0.1:0";
  });
  const Target target{.port = secured.server().http_port(), .ca = secured.ca().pem()};
  const Response stranger = CallOnce(target, Get("/version"));
  EXPECT_EQ(stranger.status, 200);
  EXPECT_THAT(stranger.body, HasSubstr(R"("version":")"));
  EXPECT_THAT(stranger.body, Not(HasSubstr("engine")));
  EXPECT_THAT(CallOnce(target, Get("/version", {{"Authorization", "Bearer strata_wrong"}})).body,
              Not(HasSubstr("engine")));
  EXPECT_THAT(
      CallOnce(target, Get("/version", {{"Authorization", secured.User("ann").authorization}}))
          .body,
      HasSubstr(R"("engine":"memory")"));
}

}  // namespace
}  // namespace strata::http_test
