// Server streams by Connect's protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

using testing::HasSubstr;

constexpr char kWatch[] = "FeedService/Watch";
constexpr char kVerify[] = "CollectionService/Verify";

void CreateBook(HttpWorld& world, const std::string& id) {
  const Response created =
      world.Call("DocumentService/Create",
                 R"({"collection": "books", "id": ")" + id + R"(", "content": {"json": {}}})");
  ASSERT_EQ(created.status, 200) << created.body;
}

TEST(Streams, AWatchHearsOfEachCommitAtOnce) {
  HttpWorld world;
  CreateBook(world, "a");
  HttpClient client(world.port());
  client.Send(PostStream(kWatch, R"({"collections": ["books"], "after_position": 0})"));
  const Response head = client.ReadHead();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("content-type"), "application/connect+json");
  EXPECT_EQ(head.header("transfer-encoding"), "chunked");
  for (const char* const id : {"a", "b", "c"}) {
    if (*id != 'a') CreateBook(world, id);
    Message message;
    do {
      message = client.ReadMessage();
    } while (message.flags == 0 && message.text.find("events") == std::string::npos);
    EXPECT_THAT(message.text, HasSubstr(std::string(R"("id":")") + id + '"'));
  }
}

TEST(Streams, AVerifyEndsWithItsStatusAndAnotherCallMayFollow) {
  HttpWorld world;
  CreateBook(world, "a");
  HttpClient client(world.port());
  for (int i = 0; i < 2; ++i) {
    client.Send(PostStream(kVerify, R"({"collection": "books"})"));
    EXPECT_EQ(client.ReadHead().status, 200);
    Message message = client.ReadMessage();
    EXPECT_EQ(message.flags, 0);
    std::string last;
    while (message.flags == 0) {
      last = message.text;
      message = client.ReadMessage();
    }
    EXPECT_THAT(last, HasSubstr(R"("complete":true)"));
    EXPECT_EQ(message.flags, 2);
    EXPECT_EQ(message.text, "{}");
    // The end of the chunks, and then another request on the same connection.
    EXPECT_EQ(client.ReadMessage().flags, -1);
  }
}

// As nginx asks the server behind it, unless it is configured otherwise.
TEST(Http10, AnswersEndWithTheirConnection) {
  HttpWorld world;
  CreateBook(world, "a");
  const auto in_http_1_0 = [](std::string request) {
    request.replace(request.find("HTTP/1.1"), 8, "HTTP/1.0");
    return request;
  };
  HttpClient unary(world.port());
  const Response got = unary.Call(
      in_http_1_0(Post(PathOf("DocumentService/Get"), R"({"collection": "books", "id": "a"})",
                       {{"Expect", "100-continue"}})));
  EXPECT_EQ(got.status, 200) << got.body;
  EXPECT_THAT(got.body, HasSubstr(R"("version":"1")"));
  EXPECT_EQ(got.header("connection"), "close");
  EXPECT_TRUE(unary.IsClosed());

  HttpClient stream(world.port());
  const Response verified =
      stream.Call(in_http_1_0(PostStream(kVerify, R"({"collection": "books"})")));
  EXPECT_EQ(verified.status, 200);
  EXPECT_EQ(verified.header("transfer-encoding"), "");
  EXPECT_EQ(verified.header("connection"), "close");
  const std::string end({'\2', '\0', '\0', '\0', '\2', '{', '}'});
  EXPECT_TRUE(verified.body.ends_with(end)) << verified.body;
  EXPECT_THAT(verified.body, HasSubstr(R"("complete":true)"));
  EXPECT_TRUE(stream.IsClosed());
}

TEST(Streams, MessagesMayBeBytes) {
  HttpWorld world;
  CreateBook(world, "a");
  v1::VerifyRequest request;
  request.set_collection("books");
  HttpClient client(world.port());
  client.Send(Post(PathOf(kVerify), Enveloped(request.SerializeAsString()),
                   {{"Content-Type", "application/connect+proto"}}));
  EXPECT_EQ(client.ReadHead().header("content-type"), "application/connect+proto");
  const Message message = client.ReadMessage();
  v1::VerifyResponse response;
  EXPECT_EQ(message.flags, 0);
  EXPECT_TRUE(response.ParseFromString(message.text));
}

TEST(Streams, AnErrorIsTheLastMessage) {
  HttpWorld world;
  struct Failing {
    std::string body;
    std::string reason;
    std::string message;
  };
  for (const Failing& failing : std::initializer_list<Failing>{
           {Enveloped(R"({"collection": "nowhere"})"), "COLLECTION_NOT_FOUND",
            "no such collection"},
           {Enveloped(R"({"nowhere": 1})"), "INVALID_FIELD", "nowhere"},
           {Enveloped("{"), "INVALID_MESSAGE", "strata.v1.VerifyRequest"},
           {"", "INVALID_MESSAGE", "no message"},
           {"{}", "INVALID_MESSAGE", "no message"},
           {Enveloped("{}", 1), "INVALID_MESSAGE", "compressed"},
           {Enveloped("{}", 2), "INVALID_MESSAGE", "flags"},
           {Enveloped("{}") + Enveloped("{}"), "INVALID_MESSAGE", "send one message"},
           {Enveloped("{}").substr(0, 6), "INVALID_MESSAGE", "send one message"}}) {
    SCOPED_TRACE(failing.body);
    HttpClient client(world.port());
    client.Send(
        Post(PathOf(kVerify), failing.body, {{"Content-Type", "application/connect+json"}}));
    EXPECT_EQ(client.ReadHead().status, 200);
    const Message end = client.ReadMessage();
    EXPECT_EQ(end.flags, 2);
    EXPECT_EQ(JsonText(end.text, "reason"), failing.reason) << end.text;
    EXPECT_THAT(JsonText(end.text, "message"), HasSubstr(failing.message));
    EXPECT_THAT(end.text, testing::StartsWith(R"({"error":{"code":")"));
  }
}

TEST(Streams, AreRefusedBeforeTheyBeginAsCallsAre) {
  HttpWorld world;
  const auto status = [&](const std::string& request) {
    return CallOnce(world.port(), request).status;
  };
  EXPECT_EQ(status(Post(PathOf(kWatch), "{}")), 415);
  EXPECT_EQ(status(PostStream(kWatch, "{}", {{"Connect-Content-Encoding", "gzip"}})), 415);
  EXPECT_EQ(status(PostStream(kWatch, "{}", {{"Content-Encoding", "gzip"}})), 415);
  EXPECT_EQ(status(PostStream(kWatch, "{}", {{"Host", "evil.example"}})), 421);
  EXPECT_EQ(status(PostStream(kWatch, "{}", {{"Origin", "http://evil.example"}})), 403);
}

TEST(Streams, EndAtTheirCallersDeadline) {
  HttpWorld world;
  HttpClient client(world.port());
  client.Send(PostStream(kWatch, "{}", {{"Connect-Timeout-Ms", "100"}}));
  EXPECT_EQ(client.ReadHead().status, 200);
  Message message = client.ReadMessage();
  while (message.flags == 0) message = client.ReadMessage();
  EXPECT_EQ(message.flags, 2);
  EXPECT_EQ(JsonText(message.text, "code"), "deadline_exceeded");
}

}  // namespace
}  // namespace strata::http_test
