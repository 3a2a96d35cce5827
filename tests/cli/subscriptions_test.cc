// Claims about subscriptions: what they send and what they print.
#include <gmock/gmock.h>

#include <string>

#include "google/protobuf/util/json_util.h"
#include "tests/cli/command_line.h"

namespace strata::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Message>
Message Parsed(const std::string& json) {
  Message message;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &message).ok()) << json;
  return message;
}

class SubscriptionCommands : public CommandLine {
 protected:
  SubscriptionCommands() {
    feed().subscriptions = {
        Parsed<v1::Subscription>(R"({"name": "mail", "collections": ["orders"], "id_prefix": "a/",
            "partitions": 4, "start_position": "17", "create_time": "2026-01-31T12:00:00Z"})"),
        Parsed<v1::Subscription>(R"({"name": "sums", "partitions": 8})")};
    feed().parked = {
        Parsed<v1::ParkedDocument>(R"({"collection": "orders", "id": "1", "from_version": "3",
            "position": "900", "index": 2, "attempts": 5, "reason": "no paper",
            "park_time": "2026-01-31T12:00:00Z", "action": "PARKED_ACTION_REPLAY"})"),
        Parsed<v1::ParkedDocument>(R"({"collection": "orders", "id": "2"})")};
  }

  FakeFeed& feed() { return server_.feed; }
};

TEST_F(SubscriptionCommands, CreateSaysWhatIsWanted) {
  const Outcome outcome = Run({"subscriptions",
                               "create",
                               "mail",
                               "orders",
                               "returns",
                               "--kind",
                               "created",
                               "--where",
                               "stock<5",
                               "--from",
                               "17",
                               "--partitions",
                               "4",
                               "--backoff",
                               "250ms",
                               "--backoff-max",
                               "1m",
                               "--ack-timeout",
                               "90",
                               "--lease-ttl",
                               "30s",
                               "--max-attempts",
                               "7"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  const v1::CreateSubscriptionRequest& sent = feed().last_create;
  EXPECT_EQ(sent.name(), "mail");
  EXPECT_THAT(sent.collections(), ElementsAre("orders", "returns"));
  EXPECT_THAT(sent.kinds(), ElementsAre(v1::VERSION_KIND_CREATED));
  EXPECT_EQ(sent.filter().fields().count("stock"), 1u);
  EXPECT_EQ(sent.after_position(), 17);
  EXPECT_EQ(sent.partitions(), 4);
  EXPECT_EQ(sent.max_attempts(), 7);
  EXPECT_EQ(sent.backoff_first().nanos(), 250'000'000);
  EXPECT_EQ(sent.backoff_max().seconds(), 60);
  EXPECT_EQ(sent.ack_timeout().seconds(), 90);
  EXPECT_EQ(sent.lease_ttl().seconds(), 30);
  EXPECT_EQ(outcome.out,
            "NAME  COLLECTIONS  PARTITIONS  BEGAN AFTER  MADE\n"
            "mail  orders/a/*            4           17  2026-01-31 12:00:00\n");
}

TEST_F(SubscriptionCommands, WhatIsNotSaidIsTheServersToChoose) {
  ASSERT_EQ(Run({"subscriptions", "create", "all"}).status, kExitOk);
  const v1::CreateSubscriptionRequest& sent = feed().last_create;
  EXPECT_EQ(sent.collections_size(), 0);
  EXPECT_EQ(sent.start_case(), v1::CreateSubscriptionRequest::START_NOT_SET);
  EXPECT_EQ(sent.partitions(), 0);
  EXPECT_FALSE(sent.has_ack_timeout());
  ASSERT_EQ(Run({"subscriptions", "create", "all", "--beginning"}).status, kExitOk);
  EXPECT_EQ(feed().last_create.start_case(), v1::CreateSubscriptionRequest::kAfterPosition);
}

TEST_F(SubscriptionCommands, WrongUsageSendsNothing) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"subscriptions"},
           {"subscriptions", "create"},
           {"subscriptions", "create", "m", "--from", "1", "--beginning"},
           {"subscriptions", "create", "m", "--ack-timeout", "soon"},
           {"subscriptions", "create", "m", "--partitions", "0"},
           {"subscriptions", "create", "m", "--kind", "eaten"},
           {"subscriptions", "replay", "m", "orders"},
           {"consume"},
           {"consume", "m", "--window", "0"},
       }) {
    EXPECT_EQ(Run(arguments).status, kExitUsage) << arguments.back();
  }
  EXPECT_EQ(feed().last_create.name(), "");
}

TEST_F(SubscriptionCommands, GetShowsEachPartition) {
  feed().subscription = Parsed<v1::GetSubscriptionResponse>(
      R"({"subscription": {"name": "mail", "partitions": 2}, "partitions": [
          {"partition": 0, "consumer": "worker-1", "position": "900", "index": 3,
           "lag_positions": "12", "in_flight": 2, "oldest_open_time": "2026-01-31T12:00:00Z",
           "attempts": 2, "reason": "no\npaper"},
          {"partition": 1, "position": "912", "parked": 7, "blocked": true}]})");
  const Outcome outcome = Run({"subscriptions", "get", "mail"});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  EXPECT_EQ(feed().last_get.name(), "mail");
  EXPECT_THAT(outcome.out, HasSubstr("worker-1       900.3   12          2  2026-01-31 12:00:00"));
  EXPECT_THAT(outcome.out, HasSubstr("failed 2 times: no paper"));
  EXPECT_THAT(outcome.out, HasSubstr("blocked"));
  const Outcome json = Run({"subscriptions", "get", "mail", "--json"});
  EXPECT_THAT(json.out, HasSubstr(R"("lag_positions":"12")"));
}

TEST_F(SubscriptionCommands, ListsGoOverAllPages) {
  const Outcome listed = Run({"subscriptions", "list", "m"});
  EXPECT_EQ(listed.status, kExitOk) << listed.err;
  EXPECT_EQ(feed().last_list.prefix(), "m");
  EXPECT_THAT(listed.out, HasSubstr("mail  orders/a/*"));
  EXPECT_THAT(listed.out, HasSubstr("sums  -"));
  const Outcome parked = Run({"subscriptions", "parked", "mail"});
  EXPECT_EQ(parked.status, kExitOk) << parked.err;
  EXPECT_EQ(feed().last_parked.subscription(), "mail");
  EXPECT_THAT(parked.out, HasSubstr("900.2         5  2026-01-31 12:00:00  no paper"));
  EXPECT_THAT(parked.out, HasSubstr("(is to be delivered again)"));
  const Outcome json = Run({"subscriptions", "parked", "mail", "--json"});
  EXPECT_THAT(json.out, HasSubstr(R"("id":"2")"));
}

TEST_F(SubscriptionCommands, ReplayAndDiscardSayHowMany) {
  EXPECT_EQ(Run({"subscriptions", "replay", "mail"}).out, "to be delivered again: 2 documents\n");
  EXPECT_EQ(feed().last_replay.subscription(), "mail");
  EXPECT_EQ(feed().last_replay.id(), "");
  EXPECT_EQ(Run({"subscriptions", "discard", "mail", "orders", "1"}).out, "given up: 1 document\n");
  EXPECT_EQ(feed().last_discard.collection(), "orders");
  EXPECT_EQ(feed().last_discard.id(), "1");
  EXPECT_EQ(Run({"subscriptions", "delete", "mail"}).out, "deleted subscription mail\n");
  EXPECT_EQ(feed().last_delete.name(), "mail");
}

TEST_F(SubscriptionCommands, TheServersRefusalIsTold) {
  feed().end = {grpc::StatusCode::NOT_FOUND, "no such subscription"};
  for (const char* const command : {"get", "delete", "parked", "replay", "discard", "create"}) {
    const Outcome outcome = Run({"subscriptions", command, "mail"});
    EXPECT_EQ(outcome.status, kExitRefused) << command;
    EXPECT_THAT(outcome.err, HasSubstr("no such subscription")) << command;
  }
}

}  // namespace
}  // namespace strata::cli
