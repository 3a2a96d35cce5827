// Making, reading, listing and deleting subscriptions over a real server; whom the fences of their
// deliveries let through is in consume_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/rpc/secured_server.h"
#include "tests/rpc/test_server.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::string Named(const std::string& name) { return R"({"name": ")" + name + "\"}"; }

TEST(Subscriptions, AreAnsweredAsTheyWereAskedFor) {
  TestServer server;
  const int64_t last = server.Create(R"({"collection": "books", "content": {"json": {}}})")
                           .response.commit_position();
  const auto created = server.CreateSubscription(
      R"({"name": "mail", "collections": ["books", "a", "books"],
          "kinds": ["VERSION_KIND_CREATED"], "filter": {"stock": {"$gt": 1}},
          "partitions": 3, "max_attempts": 7, "backoff_first": "0.5s", "backoff_max": "10s",
          "ack_timeout": "20s", "lease_ttl": "3s"})");
  ASSERT_TRUE(created.ok()) << created.status.error_message();
  const v1::Subscription& made = created.response.subscription();
  EXPECT_EQ(made.name(), "mail");
  EXPECT_GT(made.incarnation(), 0);
  EXPECT_THAT(made.collections(), ElementsAre("a", "books"));
  EXPECT_THAT(made.kinds(), ElementsAre(v1::VERSION_KIND_CREATED));
  EXPECT_EQ(made.filter().fields().at("stock").struct_value().fields().at("$gt").number_value(), 1);
  EXPECT_EQ(made.start_position(), last);
  EXPECT_EQ(made.partitions(), 3);
  EXPECT_EQ(made.max_attempts(), 7);
  EXPECT_EQ(made.backoff_first().nanos(), 500'000'000);
  EXPECT_EQ(made.backoff_max().seconds(), 10);
  EXPECT_EQ(made.ack_timeout().seconds(), 20);
  EXPECT_EQ(made.lease_ttl().seconds(), 3);
  EXPECT_TRUE(made.has_create_time());
  const auto got = server.GetSubscription(Named("mail"));
  ASSERT_TRUE(got.ok()) << got.status.error_message();
  EXPECT_EQ(got.response.subscription().SerializeAsString(), made.SerializeAsString());
}

TEST(Subscriptions, BeginWhereTheyWereMade) {
  TestServer server;
  EXPECT_TRUE(server.CreateSubscription(R"({"name": "all", "after_position": 0})").ok());
  EXPECT_TRUE(server.CreateSubscription(R"({"name": "from-now"})").ok());
  const std::string document = R"({"collection": "books", "content": {"json": {}}})";
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(server.Create(document).ok());
  const auto now = server.GetSubscription(Named("from-now")).response;
  ASSERT_EQ(now.partitions_size(), 8);
  EXPECT_EQ(now.consumers(), 0);
  int waiting = 0;
  for (const v1::SubscriptionPartition& partition : now.partitions()) {
    EXPECT_EQ(partition.consumer(), "");
    EXPECT_EQ(partition.token(), 0);
    EXPECT_EQ(partition.position(), now.subscription().start_position());
    EXPECT_FALSE(partition.has_index());
    const bool waits = partition.has_oldest_open_time();
    waiting += waits ? 1 : 0;
    EXPECT_EQ(partition.lag_positions(), waits ? now.last_position() - partition.position() : 0);
  }
  EXPECT_GE(waiting, 1);
  EXPECT_LE(waiting, 3);
  EXPECT_EQ(server.GetSubscription(Named("all")).response.subscription().start_position(), 0);
}

// What is written elsewhere is nothing that a consumer has missed.
TEST(Subscriptions, LagOnlyWhereSomethingIsToCome) {
  TestServer server;
  ASSERT_TRUE(
      server.CreateSubscription(R"({"name": "mail", "collections": ["books"], "partitions": 1})")
          .ok());
  const auto partition = [&] {
    return server.GetSubscription(Named("mail")).response.partitions(0);
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(server.Create(R"({"collection": "others", "content": {"json": {}}})").ok());
  }
  EXPECT_EQ(partition().lag_positions(), 0);
  EXPECT_FALSE(partition().has_oldest_open_time());
  const auto book = server.Create(R"({"collection": "books", "content": {"json": {}}})");
  ASSERT_TRUE(book.ok());
  EXPECT_EQ(partition().lag_positions(), book.response.commit_position() - partition().position());
  EXPECT_TRUE(partition().has_oldest_open_time());
}

TEST(Subscriptions, HoldTheLedgerAsGetFeedTells) {
  TestServer server;
  ASSERT_TRUE(server.Create(R"({"collection": "books", "content": {"json": {}}})").ok());
  EXPECT_EQ(server.GetFeed("{}").response.held_by(), "");
  const int64_t start =
      server.CreateSubscription(Named("mail")).response.subscription().start_position();
  const v1::GetFeedResponse held = server.GetFeed("{}").response;
  EXPECT_EQ(held.held_by(), "subscription/mail");
  EXPECT_EQ(held.held_position(), start + 1);
  ASSERT_TRUE(server.DeleteSubscription(Named("mail")).ok());
  const v1::GetFeedResponse free = server.GetFeed("{}").response;
  EXPECT_EQ(free.held_by(), "");
  EXPECT_EQ(free.held_position(), 0);
}

TEST(Subscriptions, MadeAnewAreOthers) {
  TestServer server;
  const int64_t first =
      server.CreateSubscription(Named("mail")).response.subscription().incarnation();
  EXPECT_FALSE(server.CreateSubscription(Named("mail")).ok());
  ASSERT_TRUE(server.DeleteSubscription(Named("mail")).ok());
  EXPECT_FALSE(server.GetSubscription(Named("mail")).ok());
  EXPECT_FALSE(server.DeleteSubscription(Named("mail")).ok());
  const auto again = server.CreateSubscription(Named("mail"));
  ASSERT_TRUE(again.ok()) << again.status.error_message();
  EXPECT_GT(again.response.subscription().incarnation(), first);
}

std::vector<std::string> Names(const v1::ListSubscriptionsResponse& page) {
  std::vector<std::string> names;
  for (const v1::Subscription& subscription : page.subscriptions()) {
    names.push_back(subscription.name());
  }
  return names;
}

TEST(Subscriptions, AreListedByName) {
  TestServer server;
  EXPECT_THAT(Names(server.ListSubscriptions("{}").response), IsEmpty());
  for (const char* const name : {"b2", "a", "b10", "b1", "c"}) {
    ASSERT_TRUE(server.CreateSubscription(Named(name)).ok());
  }
  EXPECT_THAT(Names(server.ListSubscriptions("{}").response),
              ElementsAre("a", "b1", "b10", "b2", "c"));
  const auto first = server.ListSubscriptions(R"({"prefix": "b", "page_size": 2})").response;
  EXPECT_THAT(Names(first), ElementsAre("b1", "b10"));
  const auto next = server.ListSubscriptions(R"({"prefix": "b", "page_size": 2, "page_token": ")" +
                                             first.next_page_token() + "\"}");
  EXPECT_THAT(Names(next.response), ElementsAre("b2"));
  EXPECT_EQ(next.response.next_page_token(), "");
  EXPECT_EQ(DetailsOf(server
                          .ListSubscriptions(R"({"prefix": "c", "page_size": 2, "page_token": ")" +
                                             first.next_page_token() + "\"}")
                          .status)
                .reason,
            "INVALID_PAGE_TOKEN");
}

TEST(Subscriptions, ManyAreListedPageByPage) {
  TestServer server;
  for (int i = 0; i < 250; ++i) {
    ASSERT_TRUE(server.CreateSubscription(Named(std::to_string(1000 + i))).ok());
  }
  std::vector<std::string> names;
  std::string token;
  do {
    const auto page =
        server.ListSubscriptions(R"({"page_size": 99, "page_token": ")" + token + "\"}");
    ASSERT_TRUE(page.ok()) << page.status.error_message();
    for (std::string& name : Names(page.response)) names.push_back(std::move(name));
    token = page.response.next_page_token();
  } while (!token.empty());
  EXPECT_THAT(names, SizeIs(250));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(Subscriptions, ThoseThatMayNotBeReadAreLeftOut) {
  SecuredServer server(R"({"principals": ["user:anna"], "role": "reader",
                           "resources": ["subscription/a*", "collection/*"]},
                          {"principals": ["user:owner"], "role": "admin",
                           "resources": ["subscription/*", "collection/*"]})",
                       {"anna", "owner"});
  const auto call = [&](const std::string& user, const std::string& method,
                        const std::string& request) {
    return CallAnything(server.Connect({}), "strata.v1.FeedService/" + method, request,
                        "Bearer " + server.token(user));
  };
  for (const char* const name : {"a1", "b", "a2"}) {
    ASSERT_TRUE(call("owner", "CreateSubscription", Named(name)).status.ok());
  }
  const Answered listed = call("anna", "ListSubscriptions", R"({"page_size": 1})");
  ASSERT_TRUE(listed.status.ok()) << listed.status.error_message();
  v1::ListSubscriptionsResponse page;
  ASSERT_TRUE(page.ParseFromString(listed.messages.at(0)));
  EXPECT_THAT(Names(page), ElementsAre("a1"));
  const Answered rest =
      call("anna", "ListSubscriptions",
           R"({"page_size": 1, "page_token": ")" + page.next_page_token() + "\"}");
  ASSERT_TRUE(rest.status.ok()) << rest.status.error_message();
  ASSERT_TRUE(page.ParseFromString(rest.messages.at(0)));
  EXPECT_THAT(Names(page), ElementsAre("a2"));
}

}  // namespace
}  // namespace strata::rpc_test
