// The end of a server: calls under way get their answers, streams hear why they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <list>
#include <string>
#include <thread>

#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

// Whether the call that waited was under way when the server ended: nobody tells from outside.
bool EndsAServerUnderACall() {
  app::ServerOptions options = HttpOptions();
  options.grace = kPatience;
  HttpWorld world(options);
  EXPECT_TRUE(world.grpc().CreateQueue(R"({"name": "jobs"})").ok());
  HttpClient waiting(world.port());
  waiting.Send(Post(PathOf("QueueService/Reserve"), R"({"queue": "jobs", "wait": "20s"})"));
  HttpClient watch(world.port());
  watch.Send(PostStream("FeedService/Watch", "{}"));
  EXPECT_EQ(watch.ReadHead().status, 200);
  HttpClient idle(world.port());
  EXPECT_EQ(idle.Call(Get("/version")).status, 200);

  std::future<void> drained = std::async(std::launch::async, [&] { world.server().Drain(); });
  Message message = watch.ReadMessage();
  while (message.flags == 0) message = watch.ReadMessage();
  EXPECT_EQ(message.flags, 2);
  EXPECT_EQ(JsonText(message.text, "code"), "unavailable") << message.text;
  EXPECT_EQ(JsonText(message.text, "reason"), "DRAINING");
  const Response answer = waiting.Read();
  if (answer.status != 0) {
    EXPECT_EQ(answer.status, 503) << answer.body;
    EXPECT_EQ(JsonText(answer.body, "reason"), "DRAINING");
    EXPECT_EQ(answer.header("connection"), "close");
  }
  EXPECT_TRUE(idle.IsClosed());
  drained.get();
  EXPECT_EQ(CallOnce(world.port(), Get("/version")).status, 0) << "nobody listens any more";
  return answer.status != 0;
}

TEST(Drain, CallsAreAnsweredAndWatchesEndWithDraining) {
  EXPECT_TRUE(ComesTrue(EndsAServerUnderACall));
}

// Whoever takes nothing in is not waited for.
TEST(Drain, NobodyHoldsItUp) {
  app::ServerOptions options = HttpOptions();
  options.grace = std::chrono::milliseconds(0);
  HttpWorld world(options);
  HttpClient half(world.port());
  half.Send("POST /strata.v1.DocumentService/Get HTTP/1.1\r\nHost: loc");
  HttpClient watch(world.port());
  watch.Send(PostStream("FeedService/Watch", "{}"));
  ASSERT_EQ(watch.ReadHead().status, 200);
  const auto start = std::chrono::steady_clock::now();
  world.server().Drain();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(8));
  EXPECT_TRUE(half.IsClosed());
}

// However far a request has come when the server ends: an answer, or a connection that ends.
TEST(Drain, RequestsThatComeMeanwhileHarmNobody) {
  for (int round = 0; round < 20; ++round) {
    app::ServerOptions options = HttpOptions();
    options.grace = kPatience;
    HttpWorld world(options);
    ASSERT_TRUE(world.grpc().CreateQueue(R"({"name": "jobs"})").ok());
    std::list<HttpClient> clients;
    for (int i = 0; i < 12; ++i) {
      HttpClient& client = clients.emplace_back(world.port());
      if (i % 3 == 0) {
        EXPECT_EQ(client.Call(Get("/version")).status, 200);
      }
    }
    std::future<void> drained = std::async(std::launch::async, [&] { world.server().Drain(); });
    int at = 0;
    for (HttpClient& client : clients) {
      // Nothing waits for it: requests come at other steps of the end in each round.
      std::this_thread::sleep_for(std::chrono::microseconds(round * 10));
      switch (++at % 3) {
        case 0:
          client.Send(PostStream("FeedService/Watch", "{}"));
          break;
        case 1:
          client.Send(Post(PathOf("QueueService/Reserve"), R"({"queue": "jobs", "wait": "20s"})"));
          break;
        default:
          client.Send(Post(PathOf("QueueService/GetQueue"), R"({"name": "jobs"})"));
      }
    }
    for (HttpClient& client : clients) {
      const Response answer = client.ReadHead();
      EXPECT_THAT(answer.status, testing::AnyOf(0, 200, 503));
    }
    drained.get();
  }
}

}  // namespace
}  // namespace strata::http_test
