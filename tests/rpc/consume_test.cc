// Consume over a real server: who gets what, in which order, how often, and what a delivery's lease
// lets its consumer write.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/rpc/consuming.h"
#include "tests/rpc/secured_server.h"
#include "tests/support/moved_clock.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

std::string PutOf(const std::string& id, const std::string& text,
                  const std::string& collection = "books") {
  return R"({"collection": ")" + collection + R"(", "id": ")" + id +
         R"(", "allow_missing": true, "keep_unchanged": true,
            "replace": {"json": {"text": ")" +
         text + "\"}}}";
}

// A write that is the effect of a delivery.
std::string EffectOf(const Delivered& delivered) {
  std::string lease;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(delivered.delivery.lease(), &lease).ok());
  return R"({"collection": "effects", "id": ")" + delivered.event().id() +
         R"(", "allow_missing": true,
            "patch": {"operations": [{"path": "/n", "increment": 1}]}, "lease": )" +
         lease + "}";
}

v1::GetSubscriptionResponse Get(TestServer& server, const std::string& name = "mail") {
  auto got = server.GetSubscription(R"({"name": ")" + name + "\"}");
  EXPECT_TRUE(got.ok()) << got.status.error_message();
  return std::move(got.response);
}

std::string ReasonOfEffect(TestServer& server, const Delivered& delivered) {
  return DetailsOf(server.Update(EffectOf(delivered)).status).reason;
}

// A server with the subscription "mail" to books.
class Consume : public testing::Test {
 protected:
  explicit Consume(const std::string& members = R"("partitions": 1)") { Subscribe(members); }

  void Subscribe(const std::string& members) {
    const auto created = server_.CreateSubscription(
        R"({"name": "mail", "collections": ["books"], "after_position": 0,
            "backoff_first": "0.001s", "backoff_max": "0.001s", )" +
        members + "}");
    ASSERT_TRUE(created.ok()) << created.status.error_message();
    subscription_ = created.response.subscription();
  }
  void Resubscribe(const std::string& members) {
    ASSERT_TRUE(server_.DeleteSubscription(R"({"name": "mail"})").ok());
    Subscribe(members);
  }
  int64_t Put(const std::string& id, const std::string& text = "x") {
    const auto written = server_.Update(PutOf(id, text));
    EXPECT_TRUE(written.ok()) << written.status.error_message();
    return written.response.commit_position();
  }
  std::unique_ptr<Consuming> Open(const std::string& consumer = "c",
                                  const std::string& members = "") {
    return std::make_unique<Consuming>(
        server_.Connect(), R"({"subscription": "mail", "consumer": ")" + consumer + "\"" +
                               (members.empty() ? "" : ", ") + members + "}");
  }
  std::vector<Delivered> Take(Consuming& consuming, size_t count) {
    std::vector<Delivered> taken;
    while (taken.size() < count) {
      auto delivered = consuming.NextDelivery();
      if (!delivered) {
        ADD_FAILURE() << consuming.AwaitEnd().error_message();
        break;
      }
      taken.push_back(*std::move(delivered));
    }
    return taken;
  }
  std::vector<v1::ParkedDocument> Parked() {
    const auto listed = server_.ListParked(R"({"subscription": "mail"})");
    EXPECT_TRUE(listed.ok()) << listed.status.error_message();
    return {listed.response.documents().begin(), listed.response.documents().end()};
  }

  TestServer server_;
  v1::Subscription subscription_;
};

TEST_F(Consume, DeliversInOrderAndKeepsThePlace) {
  const std::vector<int64_t> positions = {Put("a"), Put("b"), Put("a")};
  auto consuming = Open();
  const auto assigned = consuming->Await(v1::ConsumeResponse::kAssigned);
  ASSERT_TRUE(assigned);
  EXPECT_EQ(assigned->assigned().partition(), 0);
  EXPECT_GT(assigned->assigned().token(), 0);
  EXPECT_EQ(assigned->assigned().position(), 0);
  const std::vector<Delivered> taken = Take(*consuming, 3);
  ASSERT_THAT(taken, SizeIs(3));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(taken[i].partition, 0);
    EXPECT_EQ(taken[i].event().position(), positions[i]);
    EXPECT_EQ(taken[i].delivery.attempt(), 1);
    EXPECT_FALSE(taken[i].delivery.replay());
    EXPECT_FALSE(taken[i].event().version().has_content());
    const v1::LeaseToken& lease = taken[i].delivery.lease();
    EXPECT_EQ(lease.name(), "$sub/" + std::to_string(subscription_.incarnation()) + "/0");
    EXPECT_EQ(lease.token(), assigned->assigned().token());
    EXPECT_EQ(lease.position(), positions[i]);
    EXPECT_EQ(lease.index(), taken[i].event().index());
  }
  EXPECT_EQ(Get(server_).partitions(0).consumer(), "c");
  consuming->Ack(taken[1]);
  const auto acknowledged = consuming->AwaitAcknowledged();
  ASSERT_TRUE(acknowledged);
  EXPECT_EQ(acknowledged->position(), positions[1]);
  const v1::GetSubscriptionResponse state = Get(server_);
  EXPECT_EQ(state.consumers(), 1);
  EXPECT_EQ(state.events_acknowledged(), 2);
  EXPECT_EQ(state.acknowledging_commits(), 1);
  consuming->HalfClose();
  EXPECT_TRUE(consuming->AwaitEnd().ok());
  EXPECT_EQ(Get(server_).partitions(0).consumer(), "");
  const std::vector<Delivered> rest = Take(*Open(), 1);
  ASSERT_THAT(rest, SizeIs(1));
  EXPECT_EQ(rest[0].event().position(), positions[2]);
  EXPECT_EQ(rest[0].delivery.attempt(), 1);  // given back in order: no failure
}

TEST_F(Consume, SaysAtOnceThatItIsOpen) {
  auto first = Open("first");
  ASSERT_TRUE(first->Await(v1::ConsumeResponse::kAssigned));
  auto waits = Open("waits");  // there is one partition
  const auto message = waits->Next();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->message_case(), v1::ConsumeResponse::MESSAGE_NOT_SET);
  first->HalfClose();
  EXPECT_TRUE(waits->Await(v1::ConsumeResponse::kAssigned));
}

TEST_F(Consume, TellsOfAnEventWhatWatchTells) {
  Put("a", "one");
  Put("a", "two");
  auto consuming =
      Open("c", R"("include_content": true, "include_before": true, "include_changes": true)");
  const std::vector<Delivered> taken = Take(*consuming, 2);
  ASSERT_THAT(taken, SizeIs(2));
  const v1::Event& event = taken[1].event();
  EXPECT_EQ(event.type(), v1::EVENT_TYPE_VERSION);
  EXPECT_EQ(event.version().kind(), v1::VERSION_KIND_UPDATED);
  EXPECT_EQ(event.version().content().json().fields().at("text").string_value(), "two");
  EXPECT_EQ(event.before().json().fields().at("text").string_value(), "one");
  ASSERT_EQ(event.version().changes_size(), 1);
  EXPECT_THAT(event.version().content_hash(), SizeIs(32));
}

TEST_F(Consume, EventsThatAreCommittedMeanwhileCome) {
  auto consuming = Open();
  ASSERT_TRUE(consuming->Await(v1::ConsumeResponse::kAssigned));
  for (int i = 0; i < 20; ++i) {
    const int64_t position = Put("a", std::to_string(i));
    const std::vector<Delivered> taken = Take(*consuming, 1);
    ASSERT_THAT(taken, SizeIs(1));
    EXPECT_EQ(taken[0].event().position(), position);
    consuming->Ack(taken[0]);
  }
}

// More acknowledgements than messages: none of them waits for an answer of its own.
TEST_F(Consume, TakesAnAckForEachOfManyEvents) {
  constexpr int kEvents = 2000;
  for (int i = 0; i < kEvents; ++i) Put(std::to_string(i % 10), std::to_string(i));
  auto consuming = Open("c", R"("window": 1000)");
  int64_t last = 0;
  for (int i = 0; i < kEvents; ++i) {
    const std::optional<Delivered> delivered = consuming->NextDelivery();
    ASSERT_TRUE(delivered) << i << ": " << consuming->AwaitEnd().error_message();
    last = delivered->event().position();
    consuming->Ack(*delivered);
  }
  consuming->HalfClose();
  EXPECT_TRUE(consuming->AwaitEnd().ok());
  const v1::GetSubscriptionResponse state = Get(server_);
  EXPECT_GE(state.partitions(0).position(), last);
  EXPECT_EQ(state.events_acknowledged(), kEvents);
  EXPECT_LT(state.acknowledging_commits(), kEvents);
}

TEST_F(Consume, NoMoreThanTheWindowIsOnItsWay) {
  Resubscribe(R"("partitions": 1, "lease_ttl": "1s")");  // as of the last renewal is soon
  for (int i = 0; i < 10; ++i) Put("a", std::to_string(i));
  auto consuming = Open("c", R"("window": 2)");
  std::vector<Delivered> taken = Take(*consuming, 2);
  v1::SubscriptionPartition state;
  while (state.in_flight() == 0) state = Get(server_).partitions(0);
  EXPECT_EQ(state.in_flight(), 2);
  EXPECT_TRUE(state.has_oldest_open_time());
  for (int i = 0; i < 4; ++i) {
    consuming->Ack(taken.at(1));
    taken = Take(*consuming, 2);
  }
}

TEST_F(Consume, EachDocumentsVersionsComeInOrderToOneOfSeveral) {
  Resubscribe(R"("partitions": 4)");
  std::map<std::string, std::vector<int64_t>> expected;
  for (int i = 0; i < 200; ++i) expected["id" + std::to_string(i % 20)].push_back(i / 20 + 1);
  for (int i = 0; i < 200; ++i) Put("id" + std::to_string(i % 20), std::to_string(i));
  std::map<std::string, std::vector<int64_t>> got;
  std::map<std::string, std::set<int32_t>> partitions;
  auto consuming = Open();
  for (const Delivered& delivered : Take(*consuming, 200)) {
    got[delivered.event().id()].push_back(delivered.event().version().version());
    partitions[delivered.event().id()].insert(delivered.partition);
  }
  EXPECT_EQ(got, expected);
  for (const auto& [id, of_one] : partitions) EXPECT_THAT(of_one, SizeIs(1)) << id;
}

// Waits until the consumers hold so many partitions each.
void AwaitShares(TestServer& server, const std::map<std::string, int>& wanted) {
  std::map<std::string, int> shares;
  do {
    shares.clear();
    const v1::GetSubscriptionResponse state = Get(server);
    for (const v1::SubscriptionPartition& partition : state.partitions()) {
      if (!partition.consumer().empty()) ++shares[partition.consumer()];
    }
    std::this_thread::yield();
  } while (shares != wanted);
}

TEST_F(Consume, ConsumersShareEvenlyAndTakeOverWhatIsLeft) {
  Resubscribe(R"("partitions": 4)");
  auto first = Open("first");
  AwaitShares(server_, {{"first", 4}});
  auto second = Open("second");
  AwaitShares(server_, {{"first", 2}, {"second", 2}});
  const auto revoked = first->Await(v1::ConsumeResponse::kRevoked);
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->revoked().reason(), v1::REVOKE_REASON_BALANCE);
  EXPECT_EQ(Get(server_).consumers(), 2);
  second->HalfClose();
  EXPECT_TRUE(second->AwaitEnd().ok());
  AwaitShares(server_, {{"first", 4}});
  EXPECT_EQ(Get(server_).consumers(), 1);
  EXPECT_EQ(Get(server_).take_overs(), 0);
}

TEST_F(Consume, AStreamThatBreaksCountsAnAttempt) {
  Put("a");
  Put("b");
  {
    auto breaks = Open();
    EXPECT_THAT(Take(*breaks, 2), SizeIs(2));
    breaks->Cancel();
  }
  auto next = Open();
  const std::vector<Delivered> first = Take(*next, 1);
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0].event().id(), "a");
  EXPECT_EQ(first[0].delivery.attempt(), 2);
  next->Ack(first[0]);
  const std::vector<Delivered> second = Take(*next, 1);
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].delivery.attempt(), 1);  // it was not the first that was open
}

TEST_F(Consume, WhatFailedComesAgain) {
  Put("a");
  Put("b");
  auto consuming = Open();
  std::vector<Delivered> taken = Take(*consuming, 2);
  consuming->Nack(taken[0], "no paper");
  for (int attempt = 2; attempt <= 4; ++attempt) {
    const std::vector<Delivered> again = Take(*consuming, 1);
    ASSERT_THAT(again, SizeIs(1));
    EXPECT_EQ(again[0].event().id(), "a");
    EXPECT_EQ(again[0].delivery.attempt(), attempt);
    const v1::SubscriptionPartition state = Get(server_).partitions(0);
    EXPECT_EQ(state.attempts(), attempt - 1);
    EXPECT_EQ(state.reason(), "no paper");
    if (attempt < 4) {
      consuming->Nack(again[0], "no paper");
    } else {
      consuming->Ack(again[0]);
    }
  }
  const std::vector<Delivered> next = Take(*consuming, 1);
  ASSERT_THAT(next, SizeIs(1));
  EXPECT_EQ(next[0].event().id(), "b");
  EXPECT_EQ(next[0].delivery.attempt(), 1);
}

TEST_F(Consume, ADocumentThatFailsTooOftenIsParkedAndReplayed) {
  Resubscribe(R"("partitions": 1, "max_attempts": 2)");
  Put("a", "one");
  Put("b", "one");
  Put("a", "two");
  Put("b", "two");
  auto consuming = Open();
  for (int attempt = 1; attempt <= 2; ++attempt) {
    Delivered delivered = Take(*consuming, 1).at(0);
    while (delivered.event().id() != "a" || delivered.delivery.attempt() != attempt) {
      delivered = Take(*consuming, 1).at(0);  // of before it failed
    }
    consuming->Nack(delivered, "try " + std::to_string(attempt));
  }
  // The other document goes on; what was delivered before the failure does not count.
  std::vector<Delivered> others;
  while (others.size() < 2) {
    Delivered delivered = Take(*consuming, 1).at(0);
    ASSERT_EQ(delivered.event().id(), "b");
    consuming->Ack(delivered);
    others.push_back(std::move(delivered));
  }
  EXPECT_EQ(others[1].event().version().version(), 2);
  const std::vector<v1::ParkedDocument> parked = Parked();
  ASSERT_THAT(parked, SizeIs(1));
  EXPECT_EQ(parked[0].collection(), "books");
  EXPECT_EQ(parked[0].id(), "a");
  EXPECT_EQ(parked[0].from_version(), 1);
  EXPECT_EQ(parked[0].attempts(), 2);
  EXPECT_EQ(parked[0].reason(), "try 2");
  EXPECT_EQ(parked[0].action(), v1::PARKED_ACTION_UNSPECIFIED);
  EXPECT_EQ(Get(server_).parked(), 1);
  EXPECT_EQ(server_.ReplayParked(R"({"subscription": "mail", "collection": "books", "id": "a"})")
                .response.documents(),
            1);
  for (int64_t version = 1; version <= 2; ++version) {
    const Delivered replayed = Take(*consuming, 1).at(0);
    EXPECT_TRUE(replayed.delivery.replay());
    EXPECT_EQ(replayed.event().id(), "a");
    EXPECT_EQ(replayed.event().version().version(), version);
    EXPECT_FALSE(replayed.delivery.lease().has_position());
    consuming->Ack(replayed);
  }
  while (!Parked().empty()) std::this_thread::yield();
  Put("a", "three");
  const Delivered later = Take(*consuming, 1).at(0);
  EXPECT_EQ(later.event().version().version(), 3);
  EXPECT_FALSE(later.delivery.replay());
}

TEST_F(Consume, WhatIsParkedAtOnceAndDiscardedIsNotDelivered) {
  Put("a", "one");
  Put("b", "one");
  auto consuming = Open("c", R"("window": 1)");
  consuming->Nack(Take(*consuming, 1).at(0), "poison", /*park=*/true);
  const Delivered other = Take(*consuming, 1).at(0);
  EXPECT_EQ(other.event().id(), "b");
  ASSERT_THAT(Parked(), SizeIs(1));
  EXPECT_EQ(Parked()[0].attempts(), 1);
  EXPECT_EQ(server_.DiscardParked(R"({"subscription": "mail"})").response.documents(), 1);
  EXPECT_THAT(Parked(), IsEmpty());
  EXPECT_EQ(server_.DiscardParked(R"({"subscription": "mail"})").response.documents(), 0);
  consuming->Ack(other);
  // What comes later is delivered, as soon as the mark has been seen.
  for (;;) {
    Put("a", "later");
    Put("b", "later");
    const Delivered delivered = Take(*consuming, 1).at(0);
    consuming->Ack(delivered);
    EXPECT_GT(delivered.event().version().version(), 1);
    if (delivered.event().id() == "a") break;
  }
}

TEST_F(Consume, ParkedDocumentsAreListedPageByPage) {
  Resubscribe(R"("partitions": 3, "max_attempts": 1)");
  std::set<std::string> ids;
  for (int i = 0; i < 25; ++i) ids.insert("id" + std::to_string(i));
  for (const std::string& id : ids) Put(id);
  auto consuming = Open("c", R"("window": 1)");
  for (size_t i = 0; i < ids.size(); ++i) consuming->Nack(Take(*consuming, 1).at(0), "bad");
  while (Parked().size() < ids.size()) std::this_thread::yield();
  std::vector<std::pair<int32_t, std::string>> listed;
  std::string token;
  do {
    const auto page = server_.ListParked(
        R"({"subscription": "mail", "page_size": 4, "page_token": ")" + token + "\"}");
    ASSERT_TRUE(page.ok()) << page.status.error_message();
    EXPECT_LE(page.response.documents_size(), 4);
    for (const v1::ParkedDocument& document : page.response.documents()) {
      listed.emplace_back(document.partition(), document.id());
    }
    token = page.response.next_page_token();
  } while (!token.empty());
  EXPECT_TRUE(std::is_sorted(listed.begin(), listed.end()));
  std::set<std::string> of_all;
  for (const auto& [partition, id] : listed) of_all.insert(id);
  EXPECT_EQ(of_all, ids);
  EXPECT_THAT(listed, SizeIs(ids.size()));
}

TEST_F(Consume, WhoTakesTooLongLosesThePartition) {
  Resubscribe(R"("partitions": 1, "ack_timeout": "1s")");
  Put("a");
  auto consuming = Open();
  const Delivered slow = Take(*consuming, 1).at(0);
  const auto revoked = consuming->Await(v1::ConsumeResponse::kRevoked);
  ASSERT_TRUE(revoked);
  EXPECT_EQ(revoked->revoked().reason(), v1::REVOKE_REASON_ACK_TIMEOUT);
  EXPECT_EQ(ReasonOfEffect(server_, slow), "LEASE_LOST");
  consuming->Ack(slow);  // of a partition that it no longer has: nothing
  const Delivered again = Take(*consuming, 1).at(0);
  EXPECT_EQ(again.event().id(), "a");
  EXPECT_EQ(again.delivery.attempt(), 2);
  EXPECT_GT(again.delivery.lease().token(), slow.delivery.lease().token());
}

TEST_F(Consume, AnEffectWithItsLeaseTakesPlaceOnceAndInOrder) {
  Put("a");
  Put("b");
  auto consuming = Open();
  const std::vector<Delivered> taken = Take(*consuming, 2);
  EXPECT_EQ(ReasonOfEffect(server_, taken[1]), "EVENT_OUT_OF_ORDER");
  EXPECT_EQ(ReasonOfEffect(server_, taken[0]), "");
  EXPECT_EQ(ReasonOfEffect(server_, taken[0]), "ALREADY_ACKNOWLEDGED");
  EXPECT_EQ(ReasonOfEffect(server_, taken[1]), "");
  consuming->Ack(taken[1]);
  const auto acknowledged = consuming->AwaitAcknowledged();
  ASSERT_TRUE(acknowledged);
  EXPECT_EQ(acknowledged->position(), taken[1].event().position());
  EXPECT_EQ(Get(server_).acknowledging_commits(), 0);  // the effects were
  consuming->HalfClose();
  EXPECT_TRUE(consuming->AwaitEnd().ok());
  EXPECT_EQ(ReasonOfEffect(server_, taken[1]), "LEASE_LOST");
  const int64_t later = Put("a");
  EXPECT_EQ(Take(*Open(), 1).at(0).event().position(), later);
  for (const char* const id : {"a", "b"}) {
    EXPECT_EQ(server_.Get(R"({"collection": "effects", "id": ")" + std::string(id) + "\"}")
                  .response.document()
                  .content()
                  .json()
                  .fields()
                  .at("n")
                  .number_value(),
              1);
  }
}

TEST_F(Consume, AZombiesEffectIsRefused) {
  Put("a");
  auto zombie = Open("zombie");
  const Delivered old = Take(*zombie, 1).at(0);
  zombie->Cancel();
  auto next = Open("next");
  const Delivered taken = Take(*next, 1).at(0);
  EXPECT_EQ(ReasonOfEffect(server_, old), "LEASE_LOST");
  EXPECT_EQ(ReasonOfEffect(server_, taken), "");
  EXPECT_GE(server_.GetFeed("{}").response.lease_lost(), 1);
}

TEST_F(Consume, EndsWithTheSubscription) {
  Put("a");
  auto consuming = Open();
  const Delivered taken = Take(*consuming, 1).at(0);
  ASSERT_TRUE(server_.DeleteSubscription(R"({"name": "mail"})").ok());
  EXPECT_EQ(DetailsOf(consuming->AwaitEnd()).reason, "SUBSCRIPTION_NOT_FOUND");
  EXPECT_EQ(ReasonOfEffect(server_, taken), "LEASE_LOST");
}

// One event is open when the server ends the stream: had that been its consumer's end, the only
// attempt would be spent, and its document parked.
TEST(ConsumeCall, WhatTheServerEndsForItsAgeHasNotFailed) {
  app::ServerOptions options = TestOptions();
  options.loop.connection_age_max = std::chrono::seconds(1);
  TestServer server(options);
  ASSERT_TRUE(server.Update(PutOf("a", "x")).ok());
  ASSERT_TRUE(server
                  .CreateSubscription(R"({"name": "mail", "partitions": 1, "after_position": 0,
                                          "max_attempts": 1})")
                  .ok());
  for (int i = 0; i < 2; ++i) {
    Consuming consuming(server.Connect(), R"({"subscription": "mail", "consumer": "c"})");
    const auto taken = consuming.NextDelivery();
    ASSERT_TRUE(taken) << consuming.AwaitEnd().error_message();
    EXPECT_EQ(taken->delivery.attempt(), 1);
    EXPECT_EQ(DetailsOf(consuming.AwaitEnd()).reason, "DRAINING");
  }
  const v1::GetSubscriptionResponse state = Get(server);
  EXPECT_EQ(state.partitions(0).attempts(), 0);
  EXPECT_EQ(state.partitions(0).parked(), 0);
  EXPECT_EQ(state.partitions(0).consumer(), "");
}

TEST(ConsumeCall, EndsWithTheServerAndGoesOnWithTheNext) {
  const test_support::TemporaryDirectory directory;
  app::ServerOptions options = TestOptions();
  options.engine = "rocksdb";
  options.data = directory.Join("data");
  int64_t second = 0;
  {
    TestServer server(options);
    ASSERT_TRUE(
        server.CreateSubscription(R"({"name": "mail", "partitions": 1, "lease_ttl": "3600s"})")
            .ok());
    ASSERT_TRUE(server.Update(PutOf("a", "one")).ok());
    second = server.Update(PutOf("a", "two")).response.commit_position();
    Consuming consuming(server.channel(), R"({"subscription": "mail", "consumer": "c"})");
    const auto taken = consuming.NextDelivery();
    ASSERT_TRUE(taken);
    consuming.Ack(*taken);
    ASSERT_TRUE(consuming.AwaitAcknowledged());
    std::thread ending([&] { server.server().Shutdown(); });
    EXPECT_EQ(DetailsOf(consuming.AwaitEnd()).reason, "DRAINING");
    ending.join();
  }
  // It was given back: nobody waits for an hour.
  TestServer server(options);
  Consuming consuming(server.channel(), R"({"subscription": "mail", "consumer": "c"})");
  const auto taken = consuming.NextDelivery();
  ASSERT_TRUE(taken) << consuming.AwaitEnd().error_message();
  EXPECT_EQ(taken->event().position(), second);
  EXPECT_EQ(server.GetFeed("{}").response.take_overs(), 0);
}

TEST(ConsumeCall, NothingIsTrimmedThatASubscriptionHasNotSeen) {
  const test_support::TemporaryDirectory directory;
  app::ServerOptions options = TestOptions();
  options.engine = "rocksdb";
  options.data = directory.Join("data");
  int64_t place = 0;
  std::vector<int64_t> open;
  {
    TestServer server(options);
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(server.Update(PutOf("a", std::to_string(i))).ok());
    ASSERT_TRUE(
        server.CreateSubscription(R"({"name": "mail", "partitions": 1, "collections": ["books"]})")
            .ok());
    Consuming consuming(server.channel(),
                        R"({"subscription": "mail", "consumer": "c", "window": 1})");
    for (int i = 0; i < 20; ++i) {
      open.push_back(server.Update(PutOf("a", "x" + std::to_string(i))).response.commit_position());
    }
    for (int i = 0; i < 5; ++i) {
      const auto taken = consuming.NextDelivery();
      ASSERT_TRUE(taken);
      ASSERT_EQ(taken->event().position(), open[static_cast<size_t>(i)]);
      consuming.Ack(*taken);
      ASSERT_TRUE(consuming.AwaitAcknowledged());
    }
    place = open[4];
    consuming.HalfClose();
    ASSERT_TRUE(consuming.AwaitEnd().ok());
  }
  test_support::MovedClock clock;
  clock.Move(std::chrono::hours(24));
  options.clock = &clock;
  options.ledger_retention = std::chrono::hours(1);
  TestServer server(options);
  while (server.GetFeed("{}").response.oldest_position() < place) std::this_thread::yield();
  const v1::GetFeedResponse feed = server.GetFeed("{}").response;
  EXPECT_LE(feed.oldest_position(), place + 1);
  EXPECT_EQ(feed.held_by(), "subscription/mail");
  EXPECT_EQ(feed.held_position(), place + 1);
  Consuming consuming(server.channel(), R"({"subscription": "mail", "consumer": "c"})");
  for (size_t i = 5; i < open.size(); ++i) {
    const auto taken = consuming.NextDelivery();
    ASSERT_TRUE(taken) << consuming.AwaitEnd().error_message();
    EXPECT_EQ(taken->event().position(), open[i]);
  }
}

// Whom a policy lets consume, and write with what was delivered.
class ConsumeUnderPolicy : public testing::Test {
 protected:
  ConsumeUnderPolicy() {
    Must("owner", "FeedService/CreateSubscription",
         R"({"name": "mail", "partitions": 1, "collections": ["books"], "after_position": 0})");
    Must("owner", "DocumentService/Update", PutOf("a", "one"));
  }

  grpc::Status Call(const std::string& user, const std::string& method,
                    const std::string& request) {
    return CallAnything(server_.Connect({}), "strata.v1." + method, request, Bearer(user)).status;
  }
  void Must(const std::string& user, const std::string& method, const std::string& request) {
    const grpc::Status status = Call(user, method, request);
    ASSERT_TRUE(status.ok()) << method << ": " << status.error_message();
  }
  std::string Bearer(const std::string& user) { return "Bearer " + server_.token(user); }
  std::unique_ptr<Consuming> Open(const std::string& user) {
    return std::make_unique<Consuming>(
        server_.Connect({}), R"({"subscription": "mail", "consumer": "c"})", Bearer(user));
  }

  SecuredServer server_{R"(
      {"principals": ["user:owner"], "role": "admin",
       "resources": ["subscription/*", "collection/*"]},
      {"principals": ["user:late"], "role": "writer",
       "resources": ["subscription/mail", "collection/books", "collection/effects"]},
      {"principals": ["user:blind"], "role": "writer",
       "resources": ["subscription/mail", "collection/effects"]},
      {"principals": ["user:reader"], "role": "reader",
       "resources": ["subscription/mail", "collection/*"]},
      {"principals": ["user:leaser"], "role": "writer",
       "resources": ["lease/*", "collection/*", "subscription/other"]})",
                        {"owner", "late", "blind", "reader", "leaser"}};
};

TEST_F(ConsumeUnderPolicy, ItTakesTheSubscriptionAndTheCollections) {
  for (const auto& [user, resource] :
       std::map<std::string, std::string>{{"blind", "collection/books"},
                                          {"reader", "subscription/mail"},
                                          {"leaser", "subscription/mail"}}) {
    const Details details = DetailsOf(Open(user)->AwaitEnd());
    EXPECT_EQ(details.reason, "PERMISSION_DENIED") << user;
    EXPECT_EQ(details.metadata.at("resource"), resource) << user;
  }
  EXPECT_TRUE(Open("late")->NextDelivery());
}

TEST_F(ConsumeUnderPolicy, WhoLosesItsCredentialsLosesTheStream) {
  auto consuming = Open("late");
  const auto taken = consuming->NextDelivery();
  ASSERT_TRUE(taken);
  server_.LetTokensEnd();
  consuming->Ack(*taken);
  EXPECT_EQ(DetailsOf(consuming->AwaitEnd()).reason, "CREDENTIALS_INVALID");
}

TEST_F(ConsumeUnderPolicy, EventsEndForWhoLostItsCredentials) {
  auto consuming = Open("late");
  const auto taken = consuming->NextDelivery();
  ASSERT_TRUE(taken);
  server_.LetTokensEnd();
  Must("owner", "DocumentService/Update", PutOf("a", "two"));
  EXPECT_FALSE(consuming->NextDelivery());
  EXPECT_EQ(DetailsOf(consuming->AwaitEnd()).reason, "CREDENTIALS_INVALID");
}

TEST_F(ConsumeUnderPolicy, ADeliverysLeaseTakesTheSubscription) {
  auto consuming = Open("late");
  const auto taken = consuming->NextDelivery();
  ASSERT_TRUE(taken);
  const std::string effect = EffectOf(*taken);
  for (const char* const user : {"reader", "leaser"}) {
    const Details details = DetailsOf(Call(user, "DocumentService/Update", effect));
    EXPECT_EQ(details.reason, "PERMISSION_DENIED") << user;
  }
  // Whose it is it is not told.
  const grpc::Status refused = Call("leaser", "DocumentService/Update", effect);
  EXPECT_EQ(DetailsOf(refused).metadata.at("resource"), "subscription/*");
  EXPECT_EQ(DetailsOf(refused).metadata.at("permission"), "write");
  // Of one that is no longer there everybody's is lost: a consumer that outlived it learns just
  // that.
  std::string of_none = effect;
  const std::string name = taken->delivery.lease().name();
  of_none.replace(of_none.find(name), name.size(), "$sub/99/0");
  for (const char* const user : {"leaser", "owner"}) {
    EXPECT_EQ(DetailsOf(Call(user, "DocumentService/Update", of_none)).reason, "LEASE_LOST")
        << user;
  }
  Must("late", "DocumentService/Update", effect);
}

}  // namespace
}  // namespace strata::rpc_test
