// Consumers of a subscription over the engines: who gets which partition, what is delivered, and
// what an acknowledgement, a failure and an end do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/feed/subscription_record.h"
#include "schemas/store/forwarding_store.h"
#include "tests/feed/consumers_world.h"
#include "tests/feed/counted_scans.h"
#include "tests/support/hooked_store.h"
#include "tests/support/volume.h"

namespace strata::feed::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

INSTANTIATE_TEST_SUITE_P(Engines, ConsumersTest, ::testing::Values("memory", "rocksdb", "live"),
                         [](const auto& engine) { return engine.param; });

TEST_P(ConsumersTest, OneGetsEveryPartitionAndEveryEventInOrder) {
  std::map<std::string, int64_t> versions;
  for (int i = 0; i < 40; ++i) {
    world.Put(std::to_string(i % 10), i);
    world.Put("not wanted", i, "other");
  }
  Make(8);
  auto consumer = Open();
  AwaitAssigned(*consumer, 8);
  AwaitDeliveries(*consumer, 40);
  world.Settle();
  EXPECT_THAT(consumer->told().deliveries, SizeIs(40));
  std::map<int32_t, lease::Place> last;
  while (auto next = consumer->Next()) {
    const auto& [partition, delivery] = *next;
    EXPECT_EQ(partition, PartitionOf("things", delivery.event.id, 8));
    EXPECT_EQ(delivery.event.version.header.version, ++versions[delivery.event.id]);
    EXPECT_EQ(delivery.attempt, 1);
    EXPECT_FALSE(delivery.replay);
    EXPECT_EQ(delivery.lease.name, PartitionLeaseName(State().subscription.incarnation, partition));
    EXPECT_EQ(delivery.lease.token, consumer->told().assigned.at(partition).token);
    EXPECT_EQ(delivery.lease.place, PlaceOf(delivery.event));
    EXPECT_GT(PlaceOf(delivery.event), last[partition]);
    last[partition] = PlaceOf(delivery.event);
    EXPECT_THAT(consumer->Ack(*next), IsOk());
  }
  EXPECT_TRUE(world.RunUntil([&] { return consumer->told().acknowledged == last; }));
  for (const auto& [partition, place] : last) EXPECT_GE(StateOf(partition).place, place);
  EXPECT_EQ(State().events_acknowledged, 40);
  EXPECT_EQ(State().consumers, 1);
}

TEST_P(ConsumersTest, AWindowIsNotExceededAndAnAckMakesRoom) {
  for (int i = 0; i < 10; ++i) world.Put("a", i);
  Make();
  auto consumer = Open(3);
  AwaitDeliveries(*consumer, 3);
  world.Settle();
  ASSERT_THAT(consumer->told().deliveries, SizeIs(3));
  EXPECT_EQ(consumer->told().messages, 1);
  const auto first = consumer->Next();
  const auto second = consumer->Next();
  EXPECT_THAT(consumer->Ack(*second), IsOk());  // both
  AwaitDeliveries(*consumer, 3);
  world.Settle();
  EXPECT_THAT(consumer->TakeAll(), ElementsAre("things/a@3", "things/a@4", "things/a@5"));
}

TEST_P(ConsumersTest, AFullMessageIsFollowedByAnotherAndLosesNothing) {
  for (int i = 0; i < 25; ++i) world.Put("a" + std::to_string(i % 3), i);
  Make(4);
  auto consumer = Open(100, 2);
  AwaitDeliveries(*consumer, 25);
  world.Settle();
  EXPECT_THAT(consumer->TakeAll(), SizeIs(25));
  EXPECT_GE(consumer->told().messages, 13);
}

TEST_P(ConsumersTest, WhatComesLaterIsDelivered) {
  Make(2);
  auto consumer = Open();
  AwaitAssigned(*consumer, 2);
  for (int i = 0; i < 20; ++i) {
    world.Put("a" + std::to_string(i));
    AwaitDeliveries(*consumer, 1);
    EXPECT_THAT(consumer->TakeAll(), ElementsAre("things/a" + std::to_string(i) + "@1"));
  }
}

TEST_P(ConsumersTest, OnlyWhatWasDeliveredIsAcknowledged) {
  world.Put("a");
  world.Put("a", 2);
  Make();
  auto consumer = Open(1);
  AwaitDeliveries(*consumer, 1);
  const auto first = *consumer->Next();
  const store::CommitPosition position = first.second.event.position;
  for (const auto& place : {lease::Place{position, 1}, lease::Place{position + 1, 0}}) {
    EXPECT_THAT(consumer->consumer->Ack(0, place), HasReason(ErrorReason::kInvalidField));
    EXPECT_THAT(consumer->consumer->Nack(0, place, "", false),
                HasReason(ErrorReason::kInvalidField));
  }
  EXPECT_THAT(consumer->consumer->Ack(1, {position, 0}), HasReason(ErrorReason::kInvalidField));
  EXPECT_THAT(consumer->consumer->Nack(0, {position, 0}, std::string(1025, 'x'), false),
              HasReason(ErrorReason::kInvalidField));
  EXPECT_THAT(consumer->Ack(first), IsOk());
  EXPECT_THAT(consumer->Ack(first), IsOk());  // once more
  AwaitDeliveries(*consumer, 1);
  EXPECT_THAT(consumer->TakeAll(), ElementsAre("things/a@2"));
}

TEST_P(ConsumersTest, WhoComesNextGoesOnBehindWhatWasAcknowledged) {
  for (int i = 0; i < 6; ++i) world.Put("a", i);
  Make();
  auto first = Open();
  AwaitDeliveries(*first, 6);
  const auto one = *first->Next();
  const auto two = *first->Next();
  EXPECT_THAT(first->Ack(two), IsOk());
  first->consumer->Leave();
  EXPECT_TRUE(world.RunUntil([&] { return first->told().finished.has_value(); }));
  EXPECT_THAT(*first->told().finished, IsOk());
  EXPECT_EQ(first->told().acknowledged[0], PlaceOf(two.second.event));
  EXPECT_EQ(State().consumers, 0);
  EXPECT_EQ(StateOf().attempts, 0);
  Close(first);
  auto second = Open();
  AwaitDeliveries(*second, 4);
  EXPECT_EQ(second->told().deliveries.front().second.attempt, 1);
  EXPECT_THAT(second->TakeAll(),
              ElementsAre("things/a@3", "things/a@4", "things/a@5", "things/a@6"));
}

TEST_P(ConsumersTest, ABrokenStreamGivesBackAtOnceAndCountsAnAttempt) {
  for (int i = 0; i < 3; ++i) world.Put("a", i);
  Make();
  auto first = Open();
  AwaitDeliveries(*first, 3);
  const auto one = *first->Next();
  EXPECT_THAT(first->Ack(one), IsOk());
  Close(first);
  EXPECT_TRUE(world.RunUntil([&] { return StateOf().consumer.empty(); }));
  EXPECT_EQ(StateOf().attempts, 1);
  EXPECT_EQ(StateOf().place, PlaceOf(one.second.event));
  auto second = Open();
  AwaitDeliveries(*second, 1);
  world.Settle();
  // One by one, so that the one that kills is the one that counts.
  ASSERT_THAT(second->told().deliveries, SizeIs(1));
  EXPECT_EQ(second->told().deliveries.front().second.attempt, 2);
  EXPECT_THAT(second->TakeAll(), ElementsAre("things/a@2"));
  AwaitDeliveries(*second, 1);
  EXPECT_EQ(second->told().deliveries.front().second.attempt, 1);
}

TEST_P(ConsumersTest, AStreamThatBreaksWithNothingOpenCountsNothing) {
  world.Put("a");
  Make();
  auto first = Open();
  AwaitDeliveries(*first, 1);
  first->TakeAll();
  EXPECT_TRUE(world.RunUntil([&] { return !first->told().acknowledged.empty(); }));
  Close(first);
  EXPECT_TRUE(world.RunUntil([&] { return StateOf().consumer.empty(); }));
  EXPECT_EQ(StateOf().attempts, 0);
}

TEST_P(ConsumersTest, ANackComesAgainAfterTheBackoffAndThePartitionWaits) {
  for (int i = 0; i < 3; ++i) world.Put("a", i);
  Make();
  auto consumer = Open();
  AwaitDeliveries(*consumer, 3);
  const auto first = *consumer->Next();
  const auto second = *consumer->Next();
  EXPECT_THAT(consumer->Nack(first, "no such mailbox"), IsOk());
  consumer->told().deliveries.clear();
  // What was delivered behind it is void.
  EXPECT_THAT(consumer->Ack(second), HasReason(ErrorReason::kInvalidField));
  EXPECT_TRUE(world.RunUntil([&] { return StateOf().attempts == 1; }));
  EXPECT_EQ(StateOf().reason, "no such mailbox");
  EXPECT_TRUE(StateOf().retry_time.has_value());
  EXPECT_THAT(consumer->told().deliveries, IsEmpty());
  const UnixMicros failed = world.world.clock().Now();
  AwaitDeliveries(*consumer, 1);
  EXPECT_GE(world.world.clock().Now() - failed, 900'000);
  EXPECT_EQ(consumer->told().deliveries.front().second.attempt, 2);
  for (const char* name : {"things/a@1", "things/a@2", "things/a@3"}) {
    AwaitDeliveries(*consumer, 1);
    EXPECT_THAT(consumer->TakeAll(), ElementsAre(name));
  }
  EXPECT_TRUE(world.RunUntil([&] { return StateOf().attempts == 0; }));
}

TEST_P(ConsumersTest, WhoDoesNotAcknowledgeInTimeLosesThePartition) {
  world.Put("a");
  world.Put("a", 2);
  CreateSubscription request = Wanted("mail", FromPosition{0}, 1);
  request.subscription.ack_timeout = seconds(5);
  Make(request);
  auto stuck = Open();
  AwaitDeliveries(*stuck, 2);
  const auto late = *stuck->Next();
  const store::Stamp token = late.second.lease.token;
  world.Pass(seconds(4));
  EXPECT_THAT(stuck->told().revoked, IsEmpty());
  ASSERT_TRUE(world.RunUntil([&] { return !stuck->told().revoked.empty(); }));
  EXPECT_EQ(stuck->told().revoked.front().second, RevokeReason::kAckTimeout);
  EXPECT_EQ(StateOf().attempts, 1);
  // A write under the old token changes nothing.
  versioning::WriteRequest write = versioning::testing::Request("effect");
  write.name.collection = "effects";
  write.joined.push_back(server->leases().Fence(late.second.lease));
  EXPECT_THAT(world.world->Update(std::move(write), versioning::testing::Number(1), true),
              HasReason(ErrorReason::kLeaseLost));
  EXPECT_THAT(stuck->Ack(late), IsOk());  // quietly nothing
  // The only one there is gets it again.
  AwaitDeliveries(*stuck, 1);
  EXPECT_GT(stuck->told().deliveries.front().second.lease.token, token);
  EXPECT_EQ(stuck->told().deliveries.front().second.attempt, 2);
  EXPECT_THAT(stuck->TakeAll(), ElementsAre("things/a@1"));
}

TEST_P(ConsumersTest, AWriteThatIsTheEffectIsTheAcknowledgement) {
  for (int i = 0; i < 3; ++i) world.Put("a", i);
  Make();
  auto consumer = Open();
  AwaitDeliveries(*consumer, 3);
  const auto effect = [&](const Delivery& delivery) {
    versioning::WriteRequest write = versioning::testing::Request("effect");
    write.name.collection = "effects";
    write.joined.push_back(server->leases().Fence(delivery.lease));
    return world.world->Update(std::move(write), versioning::testing::Number(1), true).status();
  };
  const auto first = *consumer->Next();
  const auto second = *consumer->Next();
  EXPECT_THAT(effect(second.second), HasReason(ErrorReason::kEventOutOfOrder));
  EXPECT_THAT(effect(first.second), IsOk());
  EXPECT_THAT(effect(first.second), HasReason(ErrorReason::kAlreadyAcknowledged));
  EXPECT_THAT(effect(second.second), IsOk());
  EXPECT_EQ(StateOf().place, PlaceOf(second.second.event));
  EXPECT_THAT(consumer->Ack(second), IsOk());
  EXPECT_TRUE(world.RunUntil(
      [&] { return consumer->told().acknowledged[0] == PlaceOf(second.second.event); }));
  EXPECT_EQ(State().acknowledging_commits, 0);
  EXPECT_EQ(State().events_acknowledged, 2);
}

TEST_P(ConsumersTest, WhatAWriteHasAcknowledgedDoesNotTimeOutNorFail) {
  for (int i = 0; i < 2; ++i) world.Put("a", i);
  CreateSubscription request = Wanted("mail", FromPosition{0}, 1);
  request.subscription.selection.collections = {"things"};
  request.subscription.ack_timeout = seconds(5);
  request.subscription.lease_ttl = seconds(60);  // no renewal in between
  Make(request);
  auto consumer = Open();
  AwaitDeliveries(*consumer, 2);
  const auto first = *consumer->Next();
  const auto second = *consumer->Next();
  for (const auto& each : {first, second}) {
    versioning::WriteRequest write = versioning::testing::Request("effect");
    write.name.collection = "effects";
    write.joined.push_back(server->leases().Fence(each.second.lease));
    ASSERT_THAT(world.world->Update(std::move(write), versioning::testing::Number(1), true),
                IsOk());
  }
  world.Pass(seconds(6));
  EXPECT_THAT(consumer->told().revoked, IsEmpty());
  EXPECT_EQ(StateOf().attempts, 0);
  world.Put("a", 3);
  AwaitDeliveries(*consumer, 1);
  EXPECT_THAT(consumer->TakeAll(), ElementsAre("things/a@3"));
}

TEST_P(ConsumersTest, BehindWhatAWriteHasAcknowledgedNothingComesAgain) {
  for (int i = 0; i < 3; ++i) world.Put("a", i);
  CreateSubscription request = Wanted("mail", FromPosition{0}, 1);
  request.subscription.selection.collections = {"things"};
  request.subscription.ack_timeout = seconds(5);
  request.subscription.lease_ttl = seconds(60);  // no renewal in between
  Make(request);
  auto consumer = Open();
  AwaitDeliveries(*consumer, 3);
  const auto first = *consumer->Next();
  const auto second = *consumer->Next();
  const auto third = *consumer->Next();
  versioning::WriteRequest write = versioning::testing::Request("effect");
  write.name.collection = "effects";
  write.joined.push_back(server->leases().Fence(first.second.lease));
  ASSERT_THAT(world.world->Update(std::move(write), versioning::testing::Number(1), true), IsOk());
  world.Pass(seconds(7));
  EXPECT_THAT(consumer->told().deliveries, IsEmpty());
  EXPECT_THAT(consumer->Ack(first), IsOk());
  EXPECT_THAT(consumer->Ack(second), IsOk());
  EXPECT_TRUE(world.RunUntil(
      [&] { return consumer->told().acknowledged[0] == PlaceOf(second.second.event); }));
  EXPECT_THAT(consumer->told().revoked, IsEmpty());
  // What nobody has written is late in its turn.
  ASSERT_TRUE(world.RunUntil([&] { return !consumer->told().revoked.empty(); }));
  EXPECT_EQ(consumer->told().revoked.front().second, RevokeReason::kAckTimeout);
  AwaitDeliveries(*consumer, 1);
  EXPECT_EQ(consumer->told().deliveries.front().second.attempt, 2);
  EXPECT_THAT(consumer->TakeAll(), ElementsAre(NameOf(third.second.event)));
}

TEST_P(ConsumersTest, ANackOfWhatAWriteHasAcknowledgedFailsNothing) {
  for (int i = 0; i < 2; ++i) world.Put("a", i);
  CreateSubscription request = Wanted("mail", FromPosition{0}, 1);
  request.subscription.selection.collections = {"things"};
  Make(request);
  auto consumer = Open();
  AwaitDeliveries(*consumer, 2);
  const auto first = *consumer->Next();
  versioning::WriteRequest write = versioning::testing::Request("effect");
  write.name.collection = "effects";
  write.joined.push_back(server->leases().Fence(first.second.lease));
  ASSERT_THAT(world.world->Update(std::move(write), versioning::testing::Number(1), true), IsOk());
  world.Pass(seconds(20));  // renewals find it
  EXPECT_THAT(consumer->Nack(first), IsOk());
  EXPECT_TRUE(world.RunUntil(
      [&] { return consumer->told().acknowledged[0] >= PlaceOf(first.second.event); }));
  EXPECT_EQ(StateOf().attempts, 0);
  EXPECT_THAT(consumer->TakeAll(), ElementsAre("things/a@2"));
}

// A consumer whose writes acknowledge says nothing of them itself.
TEST_P(ConsumersTest, ANackOfTheEventAfterAnEffectCounts) {
  for (int i = 0; i < 3; ++i) world.Put("a", i);
  CreateSubscription request = Wanted("mail", FromPosition{0}, 1);
  request.subscription.selection.collections = {"things"};
  request.subscription.lease_ttl = seconds(60);  // no renewal in between
  Make(request);
  auto consumer = Open();
  AwaitDeliveries(*consumer, 3);
  const auto first = *consumer->Next();
  const auto second = *consumer->Next();
  versioning::WriteRequest write = versioning::testing::Request("effect");
  write.name.collection = "effects";
  write.joined.push_back(server->leases().Fence(first.second.lease));
  ASSERT_THAT(world.world->Update(std::move(write), versioning::testing::Number(1), true), IsOk());
  EXPECT_THAT(consumer->Nack(second, "poison"), IsOk());
  consumer->told().deliveries.clear();
  ASSERT_TRUE(world.RunUntil([&] { return StateOf().attempts == 1; }));
  EXPECT_EQ(StateOf().reason, "poison");
  EXPECT_FALSE(consumer->told().finished.has_value());
  AwaitDeliveries(*consumer, 1);
  EXPECT_EQ(consumer->told().deliveries.front().second.attempt, 2);
  EXPECT_THAT(consumer->TakeAll(), ElementsAre(NameOf(second.second.event)));
}

TEST_P(ConsumersTest, ANackOfAnEventAfterAnOpenOneEndsTheConsumer) {
  for (int i = 0; i < 2; ++i) world.Put("a", i);
  Make();
  auto consumer = Open();
  AwaitDeliveries(*consumer, 2);
  const auto first = *consumer->Next();
  EXPECT_THAT(consumer->Nack(*consumer->Next()), IsOk());
  ASSERT_TRUE(world.RunUntil([&] { return consumer->told().finished.has_value(); }));
  EXPECT_THAT(*consumer->told().finished, HasReason(ErrorReason::kInvalidField));
  EXPECT_EQ(StateOf().attempts, 0);
}

TEST_P(ConsumersTest, QuietPartitionsMoveWithTheRenewalsAndWakeNobody) {
  Make(2);
  auto consumer = Open();
  AwaitAssigned(*consumer, 2);
  store::CommitPosition last = 0;
  for (int i = 0; i < 5; ++i) last = world.Put("a", i, "other");
  EXPECT_TRUE(world.RunUntil(
      [&] { return StateOf(0).place.position >= last && StateOf(1).place.position >= last; }));
  EXPECT_THAT(consumer->told().deliveries, IsEmpty());
  // What is written then are renewals: three each ttl of each of three leases.
  const store::CommitPosition before = world.world->store().LastPosition();
  world.Pass(seconds(60), milliseconds(200));
  const int64_t commits = world.world->store().LastPosition() - before;
  EXPECT_GE(commits, 45);
  EXPECT_LE(commits, 55);
}

TEST_P(ConsumersTest, TwoShareAndWhoIsLeftGetsAll) {
  Make(8);
  auto other_server = world.NewServer(2);
  world.Watch(*other_server);
  auto first = Open();
  AwaitAssigned(*first, 8);
  auto second = Open(*other_server);
  ASSERT_TRUE(world.RunUntil(
      [&] { return first->told().assigned.size() == 4 && second->told().assigned.size() == 4; }));
  EXPECT_THAT(first->told().revoked, SizeIs(4));
  for (const auto& [partition, reason] : first->told().revoked) {
    EXPECT_EQ(reason, RevokeReason::kBalance);
    EXPECT_TRUE(second->told().assigned.contains(partition));
  }
  EXPECT_EQ(State().consumers, 2);
  Close(second);
  AwaitAssigned(*first, 8);
}

TEST_P(ConsumersTest, WhoGivesAPartitionToAnotherWaitsForWhatIsOpen) {
  for (int i = 0; i < 20; ++i) world.Put(std::to_string(i));
  Make(2);
  auto first = Open();
  AwaitAssigned(*first, 2);
  AwaitDeliveries(*first, 20);
  auto second = Open();
  world.Pass(seconds(3));
  EXPECT_THAT(first->told().revoked, IsEmpty());
  EXPECT_THAT(first->TakeAll(), SizeIs(20));
  AwaitAssigned(*second, 1);
  AwaitAssigned(*first, 1);
  world.Pass(seconds(1));
  EXPECT_THAT(second->told().deliveries, IsEmpty());
}

TEST_P(ConsumersTest, WhoDoesNotAcknowledgeKeepsNobodyWaitingForLong) {
  for (int i = 0; i < 20; ++i) world.Put(std::to_string(i));
  Make(2);
  auto first = Open();
  AwaitDeliveries(*first, 20);
  auto second = Open();
  world.Pass(seconds(7));
  AwaitAssigned(*second, 1);
  AwaitDeliveries(*second, 1);
  EXPECT_EQ(second->told().deliveries.front().second.attempt, 1);
}

TEST_P(ConsumersTest, NoneIsLeftWithNothingWhileOthersHaveTwo) {
  Make(8);
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::unique_ptr<TestConsumer>> consumers;
  for (uint64_t i = 0; i < 5; ++i) {
    servers.push_back(world.NewServer(10 + i));
    world.Watch(*servers.back());
    consumers.push_back(Open(*servers.back()));
  }
  EXPECT_TRUE(world.RunUntil([&] {
    size_t all = 0;
    bool fair = true;
    for (const auto& consumer : consumers) {
      all += consumer->told().assigned.size();
      fair &= consumer->told().assigned.size() == 1 || consumer->told().assigned.size() == 2;
    }
    return fair && all == 8;
  }));
  consumers.clear();
}

TEST_P(ConsumersTest, ADrainGivesEverythingBackAndTakesNobodyIn) {
  for (int i = 0; i < 3; ++i) world.Put("a", i);
  Make();
  auto consumer = Open();
  AwaitDeliveries(*consumer, 3);
  const auto first = *consumer->Next();
  EXPECT_THAT(consumer->Ack(first), IsOk());
  (*server)->StopConsumers();
  ASSERT_TRUE(world.RunUntil([&] { return consumer->told().finished.has_value(); }));
  EXPECT_THAT(*consumer->told().finished, HasReason(ErrorReason::kDraining));
  EXPECT_EQ(StateOf().consumer, "");
  EXPECT_EQ(StateOf().place, PlaceOf(first.second.event));
  EXPECT_EQ(StateOf().attempts, 0);
  EXPECT_THAT(
      (*server)->Open({.subscription = "mail", .consumer = "late"}, std::make_shared<TestSink>(1)),
      HasReason(ErrorReason::kDraining));
}

TEST_P(ConsumersTest, AStreamThatIsOldEndsInOrderAndCountsNothing) {
  world.Put("a");
  CreateSubscription request = Wanted("mail", FromPosition{0}, 1);
  request.subscription.selection.collections = {"things"};
  request.subscription.max_attempts = 1;
  Make(request);
  const auto aging = world.NewServer(4, {.consumer_age_max = std::chrono::seconds(50)});
  world.Watch(*aging);
  auto consumer = Open(*aging);
  AwaitDeliveries(*consumer, 1);
  world.Pass(seconds(38), milliseconds(500));
  EXPECT_FALSE(consumer->told().finished);
  world.Pass(seconds(8));
  ASSERT_TRUE(consumer->told().finished);
  EXPECT_THAT(*consumer->told().finished, HasReason(ErrorReason::kDraining));
  EXPECT_EQ(StateOf().consumer, "");
  Close(consumer);
  world.Settle();
  EXPECT_EQ(StateOf().attempts, 0);
  EXPECT_THAT(server->Parked("mail"), IsEmpty());
  auto next = Open();
  AwaitDeliveries(*next, 1);
  EXPECT_EQ(next->told().deliveries.front().second.attempt, 1);
  world.Stop(*aging);
}

TEST_P(ConsumersTest, ADeletionEndsItsStreams) {
  world.Put("a");
  Make(2);
  auto consumer = Open();
  AwaitDeliveries(*consumer, 1);
  ASSERT_THAT(server->Delete("mail"), IsOk());
  ASSERT_TRUE(world.RunUntil([&] { return consumer->told().finished.has_value(); }));
  EXPECT_THAT(*consumer->told().finished, HasReason(ErrorReason::kSubscriptionNotFound));
}

TEST_P(ConsumersTest, AStoreThatRefusesForAWhileStopsNobody) {
  for (int i = 0; i < 4; ++i) world.Put("a", i);
  Make();
  test_support::HookedStore hooked(world.world->store());
  const auto shaky = world.NewServer(hooked, 7);
  world.Watch(*shaky);
  auto consumer = Open(*shaky);
  AwaitDeliveries(*consumer, 4);
  std::atomic<bool> down = true;
  test_support::StoreHooks hooks;
  hooks.instead_of_commit = [&](const store::WriteBatch&) -> std::optional<store::CommitResult> {
    if (!down) return std::nullopt;
    store::CommitResult result;
    result.status = Error(ErrorReason::kStoreUnavailable, "down");
    return result;
  };
  hooked.set_hooks(hooks);
  consumer->TakeAll();
  world.Pass(seconds(2));
  EXPECT_THAT(consumer->told().acknowledged, IsEmpty());
  down = false;
  EXPECT_TRUE(world.RunUntil([&] { return !consumer->told().acknowledged.empty(); }));
  EXPECT_THAT(consumer->told().revoked, IsEmpty());
  Close(consumer);
  world.Settle();
  world.Stop(*shaky);
}

TEST_P(ConsumersTest, APartitionWhoseFailureCannotBeStoredIsReleasedWithItsStream) {
  world.Put("a");
  const Subscription made = Make();
  test_support::HookedStore hooked(world.world->store());
  const auto shaky = world.NewServer(hooked, 7);
  world.Watch(*shaky);
  auto consumer = Open(*shaky);
  AwaitDeliveries(*consumer, 1);
  const std::string lease = PartitionLeaseName(made.incarnation, 0);
  std::atomic<bool> damaged = true;
  test_support::StoreHooks hooks;
  hooks.instead_of_commit =
      [&](const store::WriteBatch& batch) -> std::optional<store::CommitResult> {
    const bool meant =
        std::any_of(batch.writes().begin(), batch.writes().end(), [&](const store::Write& write) {
          return write.keyspace == store::Keyspace::kLeases && write.key.starts_with(lease);
        });
    if (!meant || !damaged.exchange(false)) return std::nullopt;
    store::CommitResult result;
    result.status = Error(ErrorReason::kRecordCorrupt, "of another record");
    return result;
  };
  hooked.set_hooks(hooks);
  Close(consumer);
  EXPECT_TRUE(world.RunUntil([&] { return !damaged && StateOf().consumer.empty(); }));
  world.Settle();
  world.Stop(*shaky);
}

TEST_P(ConsumersTest, MembersThatAreDeadForAnHourAreForgotten) {
  const Subscription made = Make(2);
  auto dead_server = world.NewServer(5);
  world.Watch(*dead_server);
  auto dead = Open(*dead_server);
  AwaitAssigned(*dead, 2);
  world.Stop(*dead_server);
  world.Forget(*dead);
  const auto members = [&] {
    size_t records = 0;
    const std::string prefix = MemberLeasePrefix(made.incarnation);
    const auto cursor = world.world->store().Scan(store::Keyspace::kLeases,
                                                  {prefix, store::PrefixEnd(prefix), false});
    for (; cursor->Valid(); cursor->Next()) ++records;
    return records;
  };
  EXPECT_EQ(members(), 2u);
  world.world.clock().Advance(std::chrono::minutes(59));
  auto consumer = Open();
  AwaitAssigned(*consumer, 2);
  EXPECT_EQ(members(), 4u);
  world.Pass(std::chrono::minutes(2), seconds(1));
  EXPECT_EQ(members(), 2u);
}

TEST_P(ConsumersTest, MembersThatOnlySeemDeadAreLeftAlone) {
  Make(2);
  auto alive = Open();
  AwaitAssigned(*alive, 2);
  // By its clock all leases expired long ago.
  const auto ahead = world.NewServer(world.world->store(), 6, {}, std::chrono::hours(2));
  world.Watch(*ahead);
  auto hasty = Open(*ahead);
  AwaitAssigned(*hasty, 1);  // its share, which the other lets go
  world.Pass(seconds(60), milliseconds(500));
  EXPECT_FALSE(alive->told().finished);
  EXPECT_THAT(alive->told().assigned, SizeIs(1));
  EXPECT_THAT(hasty->told().assigned, SizeIs(1));
  Close(hasty);
  AwaitAssigned(*alive, 2);
  world.Stop(*ahead);
}

// Keeps what is committed until it goes on.
class StallingStore final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  ~StallingStore() override { GoOn(); }

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    {
      const std::lock_guard lock(mutex_);
      if (stalls_) {
        waiting_.emplace_back(std::move(batch), std::move(done));
        return;
      }
    }
    ForwardingStore::Commit(std::move(batch), std::move(done));
  }
  void Stall() {
    const std::lock_guard lock(mutex_);
    stalls_ = true;
  }
  void GoOn() {
    std::deque<std::pair<store::WriteBatch, store::CommitCallback>> waiting;
    {
      const std::lock_guard lock(mutex_);
      stalls_ = false;
      waiting.swap(waiting_);
    }
    for (auto& [batch, done] : waiting) ForwardingStore::Commit(std::move(batch), std::move(done));
  }

 private:
  std::mutex mutex_;
  bool stalls_ = false;
  std::deque<std::pair<store::WriteBatch, store::CommitCallback>> waiting_;
};

// Consumers of two servers over one store, each with work in its hands, while all of them seem to
// be dead.
class SeeminglyDead : public ConsumersTest {
 protected:
  SeeminglyDead() {
    for (int i = 0; i < 8; ++i) world.Put(std::to_string(i), i);
    CreateSubscription request = Wanted("mail", FromPosition{0}, 4);
    request.subscription.selection.collections = {"things"};
    request.subscription.max_attempts = 1;
    request.subscription.lease_ttl = seconds(3);
    request.subscription.ack_timeout =
        std::chrono::minutes(10);  // which is not what takes them away
    Make(std::move(request));
    for (uint64_t i = 0; i < 2; ++i) {
      servers_.push_back(world.NewServer(store_, 20 + i));
      world.Watch(*servers_[i]);
      for (int each = 0; each < 2; ++each) consumers_.push_back(Open(*servers_[i]));
    }
    for (const auto& consumer : consumers_) AwaitAssigned(*consumer, 1);
    EXPECT_TRUE(world.RunUntil([&] { return Delivered() == 8; }));
    for (const auto& consumer : consumers_) {
      consumer->told().revoked.clear();
      had_.push_back(consumer->told().assigned.begin()->second.token);
    }
  }
  ~SeeminglyDead() override {
    for (auto& consumer : consumers_) {
      if (consumer != nullptr) Close(consumer);
    }
    world.Settle();
    for (const auto& each : servers_) world.Stop(*each);
  }

  size_t Delivered() const {
    size_t delivered = 0;
    for (const auto& consumer : consumers_) delivered += consumer->told().deliveries.size();
    return delivered;
  }
  void ExpectAllAsItWas() {
    world.Pass(5 * Ttl(), milliseconds(200));
    for (size_t i = 0; i < consumers_.size(); ++i) {
      ASSERT_THAT(consumers_[i]->told().assigned, SizeIs(1));
      EXPECT_EQ(consumers_[i]->told().assigned.begin()->second.token, had_[i]);
      EXPECT_THAT(consumers_[i]->told().revoked, IsEmpty());
    }
    EXPECT_EQ(Delivered(), 8u);
    EXPECT_THAT(server->Parked("mail"), IsEmpty());
    for (const auto& consumer : consumers_) EXPECT_FALSE(consumer->TakeAll().empty());
    EXPECT_TRUE(world.RunUntil([&] {
      int64_t done = 0;
      for (const auto& each : servers_) done += (*each)->Get("mail")->events_acknowledged;
      return done == 8;
    }));
  }
  microseconds Ttl() { return State().subscription.lease_ttl; }

  StallingStore store_{world.world->store()};
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<TestConsumer>> consumers_;
  std::vector<store::Stamp> had_;  // the token of each one's partition
};

INSTANTIATE_TEST_SUITE_P(Engines, SeeminglyDead, ::testing::Values("memory", "rocksdb", "live"),
                         [](const auto& engine) { return engine.param; });

TEST_P(SeeminglyDead, AStoreThatTakesNoWritesForLongIsNobodysDeath) {
  for (int stall = 0; stall < 3; ++stall) {
    store_.Stall();
    world.Pass(Ttl() * 5 / 2, milliseconds(200));
    store_.GoOn();
    world.Pass(Ttl(), milliseconds(200));
  }
  ExpectAllAsItWas();
}

TEST_P(SeeminglyDead, TimeThatPassesAtOnceIsNobodysDeath) {
  for (int stop = 0; stop < 3; ++stop) {
    world.world.clock().Advance(Ttl() * 5 / 2);  // all were suspended
    world.Pass(Ttl(), milliseconds(200));
  }
  ExpectAllAsItWas();
}

TEST_P(SeeminglyDead, AClockThatIsSetIsNobodysDeath) {
  for (const auto by : {std::chrono::hours(1), std::chrono::hours(-2), std::chrono::hours(3)}) {
    world.world.clock().SetNow(world.world.clock().Now() + by / microseconds(1));
    for (int i = 0; i < 20; ++i) {
      world.world.clock().Advance(milliseconds(200));
      world.Settle();
    }
  }
  ExpectAllAsItWas();
}

// Of the two servers one is really gone, also where it went while the store stood still.
TEST_P(SeeminglyDead, TheDeadAreFoundAllTheSame) {
  store_.Stall();
  world.Pass(Ttl(), milliseconds(200));
  world.Stop(*servers_[0]);
  for (size_t i = 0; i < 2; ++i) world.Forget(*consumers_[i]);
  world.Pass(Ttl(), milliseconds(200));
  store_.GoOn();
  EXPECT_TRUE(world.RunUntil([&] {
    return consumers_[2]->told().assigned.size() + consumers_[3]->told().assigned.size() == 4;
  }));
  world.Watch(*servers_[0]);
  for (size_t i = 0; i < 2; ++i) world.Watch(*consumers_[i]);
}

TEST_P(ConsumersTest, WhatIsCountedOfDeletedSubscriptionsIsForgotten) {
  const auto other = world.NewServer(9);
  for (int i = 0; i < 10; ++i) {
    world.Put("a", i);
    Make();
    auto consumer = Open();
    AwaitDeliveries(*consumer, 1);
    consumer->TakeAll();
    EXPECT_TRUE(world.RunUntil([&] { return State().events_acknowledged > 0; }));
    Close(consumer);
    EXPECT_TRUE(world.RunUntil([&] { return State().consumers == 0; }));
    // Here or elsewhere.
    ASSERT_THAT((i % 2 == 0 ? *server : *other).Delete("mail"), IsOk());
    EXPECT_TRUE(world.RunUntil([&] { return (*server)->counted() == (i % 2 == 0 ? 0u : 1u); }));
  }
  Make();
  auto consumer = Open();
  EXPECT_TRUE(world.RunUntil([&] { return (*server)->counted() == 1; }));
  // Whoever only asks of one makes nothing to keep.
  Make(Wanted("other"));
  EXPECT_EQ((*server)->Get("other")->events_acknowledged, 0);
  EXPECT_EQ((*server)->counted(), 1u);
}

// How many that are is what it costs, as each visits every member.
TEST_P(ConsumersTest, OneLookIsForAllConsumersOfAServer) {
  if (GetParam() != "memory") GTEST_SKIP() << "what is scanned does not depend on the engine";
  constexpr int kConsumers = test_support::Sampled(1000, 150);
  const Subscription made = Make(8);
  CountedScans counted(world.world->store(), store::Keyspace::kLeases,
                       SubscriptionLeasePrefix(made.incarnation));
  const auto crowded = world.NewServer(counted, 2);
  world.Watch(*crowded);
  std::vector<std::unique_ptr<TestConsumer>> consumers;
  for (int i = 0; i < kConsumers; ++i) consumers.push_back(Open(*crowded));
  const auto assigned = [&] {
    size_t all = 0;
    for (const auto& consumer : consumers) all += consumer->told().assigned.size();
    return all;
  };
  EXPECT_TRUE(world.RunUntil([&] { return assigned() == 8; }));
  const int64_t beginning = counted.count();
  world.idle_step = world.patience = microseconds(0);
  world.Pass(made.lease_ttl, made.lease_ttl / 10);
  const int64_t quiet = counted.count() - beginning;
  std::printf("scans of %d consumers: %lld until they share, %lld in a ttl\n", kConsumers,
              static_cast<long long>(beginning), static_cast<long long>(quiet));
  EXPECT_LE(quiet, 5);
  EXPECT_LE(beginning, 100);
  EXPECT_EQ(assigned(), 8u);
  for (auto& consumer : consumers) Close(consumer);
  world.Settle();
  world.Stop(*crowded);
}

TEST_P(ConsumersTest, TooManyAreRefusedAndRoomComesBack) {
  Make();
  auto small = world.NewServer(3, {.consumers_max = 1});
  world.Watch(*small);
  auto first = Open(*small);
  AwaitAssigned(*first, 1);
  EXPECT_THAT(
      (*small)->Open({.subscription = "mail", .consumer = "second"}, std::make_shared<TestSink>(1)),
      HasReason(ErrorReason::kOverloaded));
  EXPECT_THAT(
      (*small)->Open({.subscription = "none", .consumer = "second"}, std::make_shared<TestSink>(1)),
      HasReason(ErrorReason::kSubscriptionNotFound));
  EXPECT_THAT(
      (*small)->Open({.subscription = "mail", .consumer = ""}, std::make_shared<TestSink>(1)),
      HasReason(ErrorReason::kInvalidName));
  EXPECT_THAT((*small)->Open({.subscription = "mail", .consumer = "x", .window = 1001},
                             std::make_shared<TestSink>(1)),
              HasReason(ErrorReason::kInvalidField));
  Close(first);
  EXPECT_TRUE(world.RunUntil([&] {
    return (*small)
        ->Open({.subscription = "mail", .consumer = "second"}, std::make_shared<TestSink>(1))
        .ok();
  }));
}

TEST_P(ConsumersTest, AServerThatEndsWithConsumersUnderWayLeavesNothingBehind) {
  for (int i = 0; i < 20; ++i) world.Put(std::to_string(i));
  Make(8);
  for (int steps = 0; steps < 60; ++steps) {
    auto ending = world.NewServer(static_cast<uint64_t>(steps) + 100);
    auto consumer = std::make_unique<TestConsumer>(*ending, "mail");
    for (int i = 0; i < steps; ++i) ending->executor().RunDue(), std::this_thread::yield();
    consumer.reset();
    if (steps % 3 == 0) ending->executor().RunDue();
    ending.reset();
    world.world.clock().Advance(seconds(1));
  }
  world.world.clock().Advance(seconds(11));
  auto consumer = Open();
  AwaitAssigned(*consumer, 8);
}

}  // namespace
}  // namespace strata::feed::testing
