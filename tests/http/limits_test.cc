// Limits of time, of connections and of memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <list>
#include <string>

#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr char kWatch[] = "FeedService/Watch";

app::ServerOptions With(const std::function<void(http::Limits&)>& change) {
  app::ServerOptions options = HttpOptions();
  change(options.http.limits);
  return options;
}

// A byte now and then keeps no connection: the whole request has its time.
TEST(Limits, ASlowRequestEnds) {
  HttpWorld world(With([](http::Limits& limits) { limits.request = milliseconds(600); }));
  const std::string request = Post(PathOf("DocumentService/Get"), std::string(2'000, ' '));
  for (const size_t at_once : {size_t{10}, request.size() - 1'990}) {  // in the head, in the body
    HttpClient client(world.port());
    const Clock::time_point start = Clock::now();
    client.Send(request.substr(0, at_once));
    size_t sent = at_once;
    while (!client.HasMore(milliseconds(20)) && Clock::now() - start < kPatience) {
      if (!client.Send(request.substr(sent++, 1))) break;
    }
    EXPECT_LT(sent, request.size());
    const Response response = client.Read();
    EXPECT_EQ(response.status, 408);
    EXPECT_THAT(JsonText(response.body, "message"), HasSubstr("0.6 s"));
    EXPECT_GE(Clock::now() - start, milliseconds(550));
    EXPECT_TRUE(client.IsClosed());
  }
}

TEST(Limits, AConnectionWithoutARequestEnds) {
  HttpWorld world(With([](http::Limits& limits) {
    limits.request = milliseconds(100);
    limits.idle = milliseconds(300);
  }));
  HttpClient silent(world.port());
  EXPECT_TRUE(silent.IsClosed());
  HttpClient idle(world.port());
  EXPECT_EQ(idle.Call(Get("/version")).status, 200);
  const Clock::time_point answered = Clock::now();
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_GE(Clock::now() - answered, milliseconds(250));
}

// Of somebody who takes nothing in: neither a call's answer nor a stream's message is kept for him.
TEST(Limits, AnAnswerThatIsNotTakenEnds) {
  HttpWorld world(With([](http::Limits& limits) { limits.answer = milliseconds(300); }));
  const std::string text(900'000, 'x');
  for (int i = 0; i < 12; ++i) {
    // By gRPC, whose answers may take their time on a machine that stalls.
    ASSERT_TRUE(world.grpc()
                    .Create(R"({"collection": "books", "id": "d)" + std::to_string(i) +
                            R"(", "content": {"json": {"a": ")" + text + "\"}}}")
                    .ok());
  }
  const std::string list = Post(PathOf("DocumentService/List"), R"({"collection": "books"})");
  const std::string watch = PostStream(kWatch, R"({"snapshot": {}})");
  for (const std::string& request : {list, watch}) {
    SCOPED_TRACE(request.substr(0, 60));
    HttpClient client(world.port());
    client.ShrinkWindow();
    // Many times, as the kernel keeps some for it.
    for (int i = 0; i < 10; ++i) client.Send(request);
    ASSERT_TRUE(client.HasMore(kPatience));
    const Clock::time_point start = Clock::now();
    // It is the server that ends it: whatever is asked for then is asked of nobody.
    EXPECT_TRUE(ComesTrue([&] { return !client.Send(Get("/version")); }));
    EXPECT_LT(Clock::now() - start, kPatience);
  }
}

std::list<HttpClient> Watches(HttpWorld& world, int count) {
  std::list<HttpClient> watches;
  for (int i = 0; i < count; ++i) {
    watches.emplace_back(world.port());
    // From the beginning: a watch from now on may begin after its head has come.
    watches.back().Send(PostStream(kWatch, R"({"after_position": 0, "bookmark_interval": "1s"})"));
    EXPECT_EQ(watches.back().ReadHead().status, 200) << i;
  }
  return watches;
}

TEST(Limits, ThereAreSixtyFourWatchesAndTheNextIsToldSo) {
  HttpWorld world;
  std::list<HttpClient> watches = Watches(world, 64);
  HttpClient next(world.port());
  next.Send(PostStream(kWatch, "{}"));
  const Response refused = next.Read();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(JsonText(refused.body, "code"), "unavailable");
  EXPECT_THAT(JsonText(refused.body, "message"), HasSubstr("as many connections as it serves"));
  EXPECT_EQ(refused.header("connection"), "close");
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_TRUE(next.IsClosed());
  // All of them hear what is written meanwhile, and gRPC is not concerned.
  ASSERT_TRUE(
      world.grpc().Create(R"({"collection": "books", "id": "a", "content": {"json": {}}})").ok());
  for (HttpClient& watch : watches) {
    Message message = watch.ReadMessage();
    while (message.flags == 0 && message.text.find("\"id\":\"a\"") == std::string::npos) {
      message = watch.ReadMessage();
    }
    EXPECT_EQ(message.flags, 0);
  }
}

TEST(Limits, AWatchThatIsGoneMakesRoomForAnother) {
  HttpWorld world(With([](http::Limits& limits) { limits.connections_max = 2; }));
  std::list<HttpClient> watches = Watches(world, 2);
  EXPECT_EQ(CallOnce(world.port(), Get("/version")).status, 503);
  watches.pop_front();
  // Nothing is sent to it that could fail: the server looks.
  EXPECT_TRUE(ComesTrue([&] { return CallOnce(world.port(), Get("/version")).status == 200; },
                        seconds(10)));
}

// Those who find the port full wait in their turn for the answer; beyond a few they are reset.
TEST(Limits, AFloodOfConnectionsIsHeldOff) {
  HttpWorld world(With([](http::Limits& limits) { limits.connections_max = 1; }));
  std::list<HttpClient> watches = Watches(world, 1);
  std::list<HttpClient> flood;
  for (int i = 0; i < 100; ++i) flood.emplace_back(world.port());
  int reset = 0;
  for (HttpClient& client : flood) reset += client.IsClosed(milliseconds(0)) ? 1 : 0;
  EXPECT_TRUE(ComesTrue([&] {
    reset = 0;
    for (HttpClient& client : flood) reset += client.IsClosed(milliseconds(60)) ? 1 : 0;
    return reset >= 90;
  }));
  flood.clear();
  watches.clear();
  EXPECT_TRUE(ComesTrue([&] { return CallOnce(world.port(), Get("/version")).status == 200; }));
}

// Where two bodies grow at once, neither may find room for its rest.
TEST(Limits, BodiesTogetherTakeNoMoreThanTheyMay) {
  HttpWorld world(With([](http::Limits& limits) { limits.bytes_held_max = size_t{3} << 20; }));
  const std::string request =
      Post(PathOf("DocumentService/Get"), std::string(size_t{2} << 20, ' '));
  EXPECT_TRUE(ComesTrue([&] {
    // Each waits with all but its last byte; the one for which there is no room hears so.
    std::array<HttpClient, 2> clients{HttpClient(world.port()), HttpClient(world.port())};
    for (HttpClient& client : clients) client.Send(request.substr(0, request.size() - 1));
    EXPECT_TRUE(ComesTrue([&] {
      return clients[0].HasMore(milliseconds(10)) || clients[1].HasMore(milliseconds(10));
    }));
    const size_t refused = clients[0].HasMore(milliseconds(0)) ? 0 : 1;
    const Response refusal = clients[refused].Read();
    EXPECT_EQ(refusal.status, 429);
    EXPECT_EQ(JsonText(refusal.body, "code"), "resource_exhausted");
    HttpClient& other = clients[1 - refused];
    other.Send(" ");
    const int status = other.Read().status;
    EXPECT_THAT(status, testing::AnyOf(400, 429)) << "400 is what the blanks deserve";
    return status == 400;
  }));
  EXPECT_TRUE(ComesTrue([&] { return CallOnce(world.port(), request).status == 400; }));
}

TEST(Limits, ACallWhoseCallerIsGoneIsGivenUp) {
  HttpWorld world(With([](http::Limits& limits) { limits.connections_max = 1; }));
  ASSERT_TRUE(world.grpc().CreateQueue(R"({"name": "jobs"})").ok());
  {
    HttpClient client(world.port());
    client.Send(Post(PathOf("QueueService/Reserve"), R"({"queue": "jobs", "wait": "20s"})"));
    EXPECT_FALSE(client.HasMore(milliseconds(100)));
  }
  // Its thread is free long before it would have been answered.
  EXPECT_TRUE(ComesTrue([&] { return CallOnce(world.port(), Get("/version")).status == 200; },
                        seconds(10)));
}

}  // namespace
}  // namespace strata::http_test
