// The end of a server: calls under way get their answers, streams hear why they end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

TEST(Drain, CallsAreAnsweredAndWatchesEndWithDraining) {
  app::ServerOptions options = HttpOptions();
  options.grace = kPatience;
  HttpWorld world(options);
  ASSERT_TRUE(world.grpc().CreateQueue(R"({"name": "jobs"})").ok());
  HttpClient watch(world.port());
  watch.Send(PostStream("FeedService/Watch", "{}"));
  ASSERT_EQ(watch.ReadHead().status, 200);
  HttpClient waiting(world.port());
  waiting.Send(Post(PathOf("QueueService/Reserve"), R"({"queue": "jobs", "wait": "20s"})"));
  HttpClient idle(world.port());
  ASSERT_EQ(idle.Call(Get("/version")).status, 200);

  std::future<void> drained = std::async(std::launch::async, [&] { world.server().Drain(); });
  Message message = watch.ReadMessage();
  while (message.flags == 0) message = watch.ReadMessage();
  EXPECT_EQ(message.flags, 2);
  EXPECT_EQ(JsonText(message.text, "code"), "unavailable") << message.text;
  EXPECT_EQ(JsonText(message.text, "reason"), "DRAINING");
  const Response answer = waiting.Read();
  EXPECT_EQ(answer.status, 503) << answer.body;
  EXPECT_EQ(JsonText(answer.body, "reason"), "DRAINING");
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_TRUE(idle.IsClosed());
  drained.get();
  EXPECT_EQ(CallOnce(world.port(), Get("/version")).status, 0) << "nobody listens any more";
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

}  // namespace
}  // namespace strata::http_test
