// What whoever reaches the port can have of it without credentials: an answer, and no more than its
// share of slots and time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "service/http/slots.h"
#include "tests/http/http_world.h"

namespace strata::http_test {
namespace {

using http::Slots;
using rpc_test::Presented;
using rpc_test::SecuredServer;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

class Strangers : public testing::Test {
 protected:
  Target TargetFor(const Presented& presented) {
    return {.port = server_.server().http_port(),
            .ca = server_.ca().pem(),
            .certificate = presented.certificate};
  }

  SecuredServer server_{
      R"({"principals": ["user:ann"], "role": "writer", "resources": ["collection/*", "queue/*"]})",
      {"ann"},
      R"({"principals": ["user:ann"], "calls_per_second": 0.001})",
      1,
      false,
      [](app::ServerOptions& options) {
        options.http.listen = "127.0.0.1:0";
        options.http.access = "all";
      }};
};

// The head alone is sent: who has the answer was not asked for the rest.
std::string HeadOnly(const std::string& authorization) {
  RequestHeaders headers{{"Content-Length", "4000000"}};
  if (!authorization.empty()) headers.emplace_back("Authorization", authorization);
  std::string request = Post(PathOf("DocumentService/Create"), "", headers);
  const size_t own = request.find("Content-Length: 0\r\n");
  if (own != std::string::npos) request.erase(own, 19);
  return request;
}

TEST_F(Strangers, AreAnsweredBeforeTheirBodyIsTakenIn) {
  HttpClient nobody(TargetFor({}));
  nobody.Send(HeadOnly(""));
  EXPECT_EQ(nobody.Read().status, 401);
  HttpClient guess(TargetFor({}));
  guess.Send(HeadOnly("Bearer strata_of_nobody"));
  EXPECT_EQ(guess.Read().status, 401);
}

TEST_F(Strangers, AndWhoHasUsedUpItsQuotaIsToo) {
  const Presented ann = server_.User("ann");
  const std::string create = R"({"collection": "a", "id": "b", "content": {"json": {}}})";
  const Response first = CallOnce(TargetFor(ann), Post(PathOf("DocumentService/Create"), create,
                                                       {{"Authorization", ann.authorization}}));
  EXPECT_EQ(first.status, 200) << first.body;
  HttpClient again(TargetFor(ann));
  again.Send(HeadOnly(ann.authorization));
  const Response refused = again.Read();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(JsonText(refused.body, "reason"), "QUOTA_EXCEEDED") << refused.body;
}

// Each of these took protobuf's reader seconds, or memory without a bound.
TEST(Json, ThatIsDeepOrGrowsIsRefusedByName) {
  HttpWorld world;
  const auto refused = [&](const std::string& method, const std::string& json,
                           const std::string& words) {
    const Response response = world.Call(method, json);
    EXPECT_EQ(response.status, 400) << response.body;
    EXPECT_THAT(JsonText(response.body, "message"), HasSubstr(words));
  };
  const auto nested = [](int levels) {
    const auto count = static_cast<size_t>(levels);
    return R"({"collection":"a","content":{"json":{"a":)" + std::string(count, '[') +
           std::string(count, ']') + "}}}";
  };
  refused("DocumentService/Create", nested(16'000), "more than 100 levels");
  refused("DocumentService/Create", nested(2'000'000), "more than 100 levels");
  refused("DocumentService/List", R"({"filter":{"a":)" + std::string(48'000, '['),
          "more than 100 levels");
  std::string mask;
  for (int i = 0; i < 2'000; ++i) mask += "a(";
  refused("QueueService/UpdateQueue", R"({"update_mask":")" + mask + "\"}", "parenthesis");
  for (int i = 0; i < 100'000; ++i) mask += "a(";
  refused("QueueService/UpdateQueue", R"({"updateMask":")" + mask + "\"}",
          "at most 4096 are allowed");
  std::string numbers = "0";
  for (int i = 0; i < 1'000'000; ++i) numbers += ",0";
  refused("DocumentService/Create",
          R"({"collection":"a","content":{"json":{"a":[)" + numbers + "]}}}",
          "more than 4194304 bytes");
  refused("DocumentService/Create", R"({"collection":"a","collection":"b"})",
          "collection: stands there twice");
  refused("DocumentService/List", R"({"page_size":1,"pageSize":2})",
          "twice, as page_size or pageSize");
  refused("DocumentService/Create", R"({"collection":"a","content":{"json":{"p":"C:\apps"}}})",
          "unknown escape");
}

TEST(HealthWatches, AreFewAndTheirNamesShort) {
  HttpWorld world;
  const std::string watch = Post("/grpc.health.v1.Health/Watch", Enveloped("{}"),
                                 {{"Content-Type", "application/connect+json"}});
  std::list<HttpClient> watches;
  for (int i = 0; i < 4; ++i) {
    watches.emplace_back(world.port());
    watches.back().Send(watch);
    EXPECT_EQ(watches.back().ReadHead().status, 200);
    EXPECT_THAT(watches.back().ReadMessage().text, HasSubstr("SERVING"));
  }
  HttpClient fifth(world.port());
  fifth.Send(watch);
  EXPECT_EQ(fifth.ReadHead().status, 200);
  EXPECT_THAT(fifth.ReadMessage().text, HasSubstr("4 health watches at a time"));
  const Response named = CallOnce(
      world.port(),
      Post("/grpc.health.v1.Health/Check", R"({"service": ")" + std::string(257, 'a') + "\"}"));
  EXPECT_EQ(named.status, 400);
  EXPECT_EQ(JsonText(named.body, "field"), "service");
  watches.pop_front();
  EXPECT_TRUE(ComesTrue([&] {
    HttpClient next(world.port());
    next.Send(watch);
    next.ReadHead();
    return next.ReadMessage().flags == 0;
  }));
}

// Browsers keep connections that they may never use again.
TEST(IdleConnections, GiveWayToNewOnes) {
  HttpWorld world;
  std::list<HttpClient> idle;
  for (int i = 0; i < 64; ++i) {
    idle.emplace_back(world.port());
    EXPECT_EQ(idle.back().Call(Get("/version")).status, 200) << i;
  }
  EXPECT_TRUE(
      ComesTrue([&] { return CallOnce(world.port(), Get("/version")).status == 200; }, seconds(5)));
}

std::vector<Slots::Slot> TakeMany(Slots& slots, const std::string& address, int count) {
  std::vector<Slots::Slot> taken;
  for (int i = 0; i < count; ++i) {
    std::optional<Slots::Slot> slot = slots.Take(address);
    if (slot && !slot->at_door()) taken.push_back(std::move(*slot));
  }
  return taken;
}

TEST(Slots, HalfAreForWhoeverComesAndTheRestInShares) {
  Slots slots(128, 8, /*principals=*/false);
  const auto flood = TakeMany(slots, "flood", 200);
  EXPECT_EQ(flood.size(), 64u);
  const auto one = TakeMany(slots, "one", 200);
  EXPECT_EQ(one.size(), 16u);
  EXPECT_EQ(TakeMany(slots, "flood", 10).size(), 0u);
}

TEST(Slots, AHalfIsLeftForPrincipals) {
  Slots slots(128, 8, /*principals=*/true);
  std::vector<Slots::Slot> strangers;
  for (int i = 0; i < 200; ++i) {
    for (Slots::Slot& slot : TakeMany(slots, "address " + std::to_string(i), 1))
      strangers.push_back(std::move(slot));
  }
  EXPECT_EQ(strangers.size(), 64u);
  std::optional<Slots::Slot> ann = slots.Take("of ann");
  ASSERT_TRUE(ann);
  EXPECT_TRUE(ann->at_door());
  EXPECT_FALSE(ann->Introduce("of ann", false));
  EXPECT_TRUE(ann->Introduce("user:ann", true));
  EXPECT_FALSE(ann->at_door());
  // Whoever was known all along makes room for strangers.
  EXPECT_TRUE(strangers.back().Introduce("user:bob", true));
  EXPECT_EQ(TakeMany(slots, "late", 2).size(), 1u);
}

TEST(Slots, APrincipalHasItsShareHoweverManyAddressesItComesFrom) {
  Slots slots(128, 8, /*principals=*/true);
  std::vector<Slots::Slot> of_ann;
  for (int i = 0; i < 200; ++i) {
    for (Slots::Slot& slot : TakeMany(slots, "address " + std::to_string(i), 1)) {
      if (slot.Introduce("user:ann", true)) of_ann.push_back(std::move(slot));
    }
  }
  EXPECT_EQ(of_ann.size(), 64u);
  EXPECT_EQ(TakeMany(slots, "bob", 20).size(), 16u);
}

TEST(Slots, ThoseAtTheDoorAreFewToo) {
  Slots slots(1, 8, /*principals=*/false);
  std::optional<Slots::Slot> one = slots.Take("a");
  ASSERT_TRUE(one && !one->at_door());
  std::list<Slots::Slot> waiting;
  for (int i = 0; i < 20; ++i) {
    if (auto slot = slots.Take("flood")) waiting.push_back(std::move(*slot));
  }
  EXPECT_EQ(waiting.size(), 4u);
  for (int i = 0; i < 20; ++i) {
    if (auto slot = slots.Take("address " + std::to_string(i))) waiting.push_back(std::move(*slot));
  }
  EXPECT_EQ(waiting.size(), 8u);
  one.reset();
  EXPECT_TRUE(waiting.back().Introduce("address 3", false));
  waiting.clear();
  EXPECT_TRUE(slots.Take("flood"));
}

}  // namespace
}  // namespace strata::http_test
