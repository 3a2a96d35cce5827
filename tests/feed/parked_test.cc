// Documents whose event fails for good, over the engines: what is parked, what goes on, and what a
// replay delivers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/feed/subscription_record.h"
#include "tests/feed/consumers_world.h"
#include "tests/feed/counted_scans.h"
#include "tests/support/await_commit.h"
#include "tests/support/hooked_store.h"

namespace strata::feed::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using test_support::IsOkAndHolds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Asked = Subscriptions::ParkedRequest;
using Taken = std::pair<int32_t, Delivery>;

class ParkedTest : public ConsumersTest {
 protected:
  using ConsumersTest::Make;
  Subscription Make(int32_t partitions, int32_t max_attempts) {
    CreateSubscription request = Wanted("mail", FromPosition{0}, partitions);
    request.subscription.selection.collections = {"things"};
    request.subscription.max_attempts = max_attempts;
    request.subscription.ack_timeout = seconds(5);
    request.subscription.lease_ttl = seconds(3);
    return Make(std::move(request));
  }
  static bool IsPoison(const Taken& taken) {
    return taken.second.event.id == "bad" && taken.second.event.version.header.version == 2;
  }
  // Handles what comes, for so long as `wanted`, with "bad" as what cannot be handled.
  bool Handle(const std::function<bool()>& wanted, const std::function<void(const Taken&)>& fail) {
    return world.RunUntil([&] {
      if (consumer == nullptr) consumer = Open(window);
      while (auto next = consumer->Next()) {
        if (poisoned && IsPoison(*next)) {
          attempts.push_back(next->second.attempt);
          fail(*next);
          break;
        }
        done.push_back(NameOf(next->second.event));
        if (next->second.replay) replayed.push_back(done.back());
        EXPECT_EQ(next->second.lease.place.has_value(), !next->second.replay);
        EXPECT_THAT(consumer->Ack(*next), IsOk());
      }
      return wanted();
    });
  }
  void Nack() {
    EXPECT_TRUE(Handle([&] { return !server->Parked("mail").empty(); },
                       [&](const Taken& taken) {
                         consumer->told().deliveries.clear();
                         EXPECT_THAT(consumer->Nack(taken, "no such mailbox"), IsOk());
                       }));
  }
  bool IsDone(const std::string& event) const {
    return std::find(done.begin(), done.end(), event) != done.end();
  }
  // "bad" has three versions, the second of which fails; others come before, between and behind.
  void WritePoison() {
    world.Put("good", 1);
    world.Put("bad", 1);
    poison = world.Put("bad", 2);
    world.Put("good", 2);
    world.Put("other", 1);
    world.Put("bad", 3);
    world.Put("good", 3);
  }
  void ExpectOnlyPoisonIsParked(const std::vector<int32_t>& its_attempts = {1, 2, 3}) {
    EXPECT_TRUE(Handle([&] { return IsDone("things/good@3") && IsDone("things/other@1"); },
                       [](const Taken&) { FAIL() << "it comes again"; }));
    world.Settle();
    EXPECT_EQ(attempts, its_attempts);
    EXPECT_FALSE(IsDone("things/bad@2"));
    EXPECT_FALSE(IsDone("things/bad@3"));
    const std::vector<ParkedDocument> parked = server->Parked("mail");
    ASSERT_THAT(parked, SizeIs(1));
    EXPECT_EQ(parked[0].id, "bad");
    EXPECT_EQ(parked[0].collection, "things");
    EXPECT_EQ(parked[0].from_version, 2);
    EXPECT_EQ(parked[0].place, (lease::Place{poison, 0}));
    EXPECT_EQ(parked[0].attempts, 3);
    EXPECT_EQ(parked[0].partition, 0);
    EXPECT_FALSE(parked[0].replay);
    EXPECT_EQ(StateOf().parked, 1);
    EXPECT_FALSE(StateOf().blocked);
  }

  int32_t window = 10;
  bool poisoned = true;
  store::CommitPosition poison = 0;
  std::unique_ptr<TestConsumer> consumer;
  std::vector<std::string> done;
  std::vector<std::string> replayed;
  std::vector<int32_t> attempts;
};
INSTANTIATE_TEST_SUITE_P(Engines, ParkedTest, ::testing::Values("memory", "rocksdb", "live"),
                         [](const auto& engine) { return engine.param; });

TEST_P(ParkedTest, WhatIsNackedTooOftenIsParkedAndNothingElse) {
  WritePoison();
  Make(1, 3);
  Nack();
  ExpectOnlyPoisonIsParked();
  EXPECT_EQ(server->Parked("mail")[0].reason, "no such mailbox");
  EXPECT_THAT(done, ElementsAre("things/good@1", "things/bad@1", "things/good@2", "things/other@1",
                                "things/good@3"));
}

TEST_P(ParkedTest, WhatIsNotAcknowledgedInTimeTooOftenIsParkedAndNothingElse) {
  WritePoison();
  Make(1, 3);
  // It is held, and so is what came behind it.
  EXPECT_TRUE(Handle([&] { return !server->Parked("mail").empty(); },
                     [&](const Taken&) { consumer->told().deliveries.clear(); }));
  EXPECT_GE(consumer->told().revoked.size(), 2u);
  ExpectOnlyPoisonIsParked();
}

TEST_P(ParkedTest, WhatEndsItsConsumersIsParkedAndNothingElse) {
  WritePoison();
  Make(1, 3);
  EXPECT_TRUE(Handle([&] { return !server->Parked("mail").empty(); },
                     [&](const Taken&) { Close(consumer); }));
  ExpectOnlyPoisonIsParked();
}

TEST_P(ParkedTest, WhatKillsItsServersIsParkedAndNothingElse) {
  WritePoison();
  Make(1, 3);
  std::vector<std::unique_ptr<Server>> dead;
  std::vector<std::unique_ptr<TestConsumer>> dead_consumers;
  const auto start = [&] {
    world.Watch(*dead.emplace_back(world.NewServer(dead.size() + 50)));
    consumer = Open(*dead.back(), 10);
  };
  start();
  EXPECT_TRUE(Handle([&] { return !server->Parked("mail").empty(); },
                     [&](const Taken&) {
                       world.Stop(*dead.back());
                       world.Forget(*consumer);
                       dead_consumers.push_back(std::move(consumer));
                       start();
                     }));
  // The first time it was one of a window, so the first of that counted.
  ExpectOnlyPoisonIsParked({1, 1, 2, 3});
  EXPECT_EQ(dead.size(), 5u);
}

TEST_P(ParkedTest, AServerThatIsGoneBeforeAnEventComesAgainCountsNothing) {
  world.Put("good");
  Make(1, 3);
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::unique_ptr<TestConsumer>> consumers;
  const auto start = [&]() -> TestConsumer& {
    world.Watch(*servers.emplace_back(world.NewServer(servers.size() + 50)));
    return *consumers.emplace_back(Open(*servers.back(), 10));
  };
  const auto kill = [&] {
    world.Stop(*servers.back());
    world.Forget(*consumers.back());
  };
  for (int32_t attempt = 1; attempt < 3; ++attempt) {
    TestConsumer& has_it = start();
    AwaitDeliveries(has_it, 1);
    ASSERT_THAT(has_it.told().deliveries, SizeIs(1));
    EXPECT_EQ(has_it.told().deliveries.front().second.attempt, attempt);
    kill();
    // This one counts what the other had, and is gone before the event comes again.
    TestConsumer& waits = start();
    ASSERT_TRUE(world.RunUntil([&] { return StateOf().attempts == attempt; }));
    EXPECT_THAT(waits.told().deliveries, IsEmpty());
    kill();
  }
  TestConsumer& last = start();
  AwaitDeliveries(last, 1);
  ASSERT_THAT(last.told().deliveries, SizeIs(1));
  EXPECT_EQ(last.told().deliveries.front().second.attempt, 3);
  EXPECT_THAT(last.TakeAll(), ElementsAre("things/good@1"));
  EXPECT_TRUE(world.RunUntil([&] { return !last.told().acknowledged.empty(); }));
  EXPECT_THAT(server->Parked("mail"), IsEmpty());
}

TEST_P(ParkedTest, OneThatIsNotTheFirstOfTheWindowIsTheOneThatCounts) {
  for (int i = 0; i < 7; ++i) world.Put("good" + std::to_string(i));
  WritePoison();
  Make(1, 3);
  window = 20;
  EXPECT_TRUE(Handle([&] { return !server->Parked("mail").empty(); },
                     [&](const Taken&) { Close(consumer); }));
  ExpectOnlyPoisonIsParked();
}

TEST_P(ParkedTest, AConsumerCanHaveItParkedAtOnce) {
  WritePoison();
  Make(1, 3);
  EXPECT_TRUE(Handle([&] { return !server->Parked("mail").empty(); },
                     [&](const Taken& taken) {
                       consumer->told().deliveries.clear();
                       EXPECT_THAT(consumer->Nack(taken, "never", true), IsOk());
                     }));
  EXPECT_THAT(attempts, ElementsAre(1));
  EXPECT_EQ(server->Parked("mail")[0].attempts, 1);
}

TEST_P(ParkedTest, WithOneAttemptAnInnocentOneIsNotParkedForItsNeighbour) {
  world.Put("good", 1);
  world.Put("good", 2);
  Make(1, 1);
  consumer = Open();
  AwaitDeliveries(*consumer, 2);
  Close(consumer);
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@2"); }, [](const Taken&) {}));
  EXPECT_THAT(server->Parked("mail"), IsEmpty());
}

TEST_P(ParkedTest, AReplayDeliversItsVersionsInOrderAndThenNothingIsParked) {
  WritePoison();
  Make(1, 3);
  Nack();
  ExpectOnlyPoisonIsParked();
  poisoned = false;
  EXPECT_THAT(server->Request("mail", Asked::kReplay, DocumentToReplay{"things", "bad"}),
              IsOkAndHolds(1));
  EXPECT_TRUE(Handle([&] { return server->Parked("mail").empty(); }, [](const Taken&) {}));
  EXPECT_THAT(replayed, ElementsAre("things/bad@2", "things/bad@3"));
  // What comes now comes as ever.
  world.Put("bad", 4);
  EXPECT_TRUE(Handle([&] { return IsDone("things/bad@4"); }, [](const Taken&) {}));
  EXPECT_THAT(replayed, SizeIs(2));
  EXPECT_EQ(StateOf().parked, 0);
}

TEST_P(ParkedTest, WhatIsWrittenWhileItIsReplayedComesBehindIt) {
  WritePoison();
  Make(1, 3);
  Nack();
  poisoned = false;
  EXPECT_THAT(server->Request("mail", Asked::kReplay), IsOkAndHolds(1));
  int64_t version = 3;
  EXPECT_TRUE(Handle(
      [&] {
        if (version < 12) {
          world.Put("bad", ++version);
          world.Put("good", version);
        }
        return server->Parked("mail").empty() && IsDone("things/bad@12");
      },
      [](const Taken&) {}));
  std::vector<std::string> of_bad;
  for (const std::string& event : done) {
    if (event.starts_with("things/bad@")) of_bad.push_back(event);
  }
  std::vector<std::string> wanted;
  for (int i = 1; i <= 12; ++i) wanted.push_back("things/bad@" + std::to_string(i));
  EXPECT_EQ(of_bad, wanted);
}

TEST_P(ParkedTest, AReplayThatFailsStaysParkedUntilItIsAskedForAgain) {
  WritePoison();
  Make(1, 3);
  Nack();
  ASSERT_THAT(server->Request("mail", Asked::kReplay), IsOkAndHolds(1));
  EXPECT_TRUE(Handle([&] { return server->Parked("mail")[0].attempts == 4; },
                     [&](const Taken& taken) {
                       EXPECT_TRUE(taken.second.replay);
                       EXPECT_EQ(taken.second.attempt, 4);
                       EXPECT_THAT(consumer->Nack(taken, "still none"), IsOk());
                     }));
  EXPECT_FALSE(server->Parked("mail")[0].replay);
  EXPECT_EQ(server->Parked("mail")[0].reason, "still none");
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@3"); }, [](const Taken&) {}));
  // One that is not acknowledged in time, and one whose consumer ends.
  for (const bool ends : {false, true}) {
    ASSERT_THAT(server->Request("mail", Asked::kReplay), IsOkAndHolds(1));
    const int32_t before = server->Parked("mail")[0].attempts;
    EXPECT_TRUE(Handle([&] { return server->Parked("mail")[0].attempts == before + 1; },
                       [&](const Taken&) {
                         if (ends) Close(consumer);
                       }));
    EXPECT_FALSE(server->Parked("mail")[0].replay);
  }
  poisoned = false;
  ASSERT_THAT(server->Request("mail", Asked::kReplay), IsOkAndHolds(1));
  EXPECT_TRUE(Handle([&] { return server->Parked("mail").empty(); }, [](const Taken&) {}));
  EXPECT_THAT(replayed, ElementsAre("things/bad@2", "things/bad@3"));
}

TEST_P(ParkedTest, AReplayIsOnlyForWhoMayStillHaveIt) {
  WritePoison();
  Make(1, 3);
  Nack();
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@3"); }, [](const Taken&) {}));
  consumer->sink->is_admitted = false;
  ASSERT_THAT(server->Request("mail", Asked::kReplay), IsOkAndHolds(1));
  ASSERT_TRUE(world.RunUntil([&] { return consumer->told().finished.has_value(); }));
  EXPECT_THAT(*consumer->told().finished, HasReason(ErrorReason::kPermissionDenied));
  EXPECT_THAT(consumer->told().deliveries, IsEmpty());
}

TEST_P(ParkedTest, AReplayThatKillsItsServerIsNotBegunForEver) {
  WritePoison();
  Make(1, 3);
  Nack();
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@3"); }, [](const Taken&) {}));
  Close(consumer);
  auto dying = world.NewServer(77);
  world.Watch(*dying);
  ASSERT_THAT(server->Request("mail", Asked::kReplay), IsOkAndHolds(1));
  auto killed = Open(*dying, 10);
  AwaitDeliveries(*killed, 1);
  EXPECT_TRUE(killed->told().deliveries.front().second.replay);
  world.Stop(*dying);
  world.Forget(*killed);
  EXPECT_TRUE(Handle([&] { return server->Parked("mail")[0].attempts == 4; },
                     [](const Taken&) { FAIL() << "it comes again"; }));
  EXPECT_FALSE(server->Parked("mail")[0].replay);
}

// Its collection is made anew and the document is parked again, between the decision to give the
// old one up and the commit that does.
TEST_P(ParkedTest, GivingUpLeavesWhatWasParkedSince) {
  WritePoison();
  Make(1, 3);
  Nack();
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@3"); }, [](const Taken&) {}));
  Close(consumer);
  const std::string key = ParkedKey(State().subscription.incarnation, 0, {"things", "bad"});
  store::Store& engine = world.world->store();
  test_support::HookedStore hooked(engine);
  const auto shaky = world.NewServer(hooked, 7);
  world.Watch(*shaky);
  std::atomic<bool> parked_again = false;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch& batch) {
    const bool gives_up =
        std::any_of(batch.writes().begin(), batch.writes().end(), [&](const store::Write& write) {
          return write.keyspace == store::Keyspace::kFeed && write.key == key &&
                 write.kind == store::WriteKind::kDelete;
        });
    if (!gives_up || parked_again.exchange(true)) return;
    const auto record = engine.Get(store::Keyspace::kFeed, key);
    StoredParked parked = *DecodeParked(key, (*record)->value, (*record)->stamp);
    ++parked.document.incarnation;
    parked.discard = false;
    store::WriteBatch again;
    again.Put(store::Keyspace::kFeed, key, EncodeParked(parked));
    again.MarkAsBackground();
    test_support::AwaitCommit(engine, std::move(again));
  };
  hooked.set_hooks(hooks);
  auto elsewhere = Open(*shaky);
  AwaitAssigned(*elsewhere, 1);
  EXPECT_THAT(shaky->Request("mail", Asked::kDiscard), IsOkAndHolds(1));
  EXPECT_TRUE(world.RunUntil([&] { return parked_again.load(); }));
  world.Settle();
  EXPECT_TRUE(engine.Get(store::Keyspace::kFeed, key)->has_value());
  Close(elsewhere);
  world.Settle();
  world.Stop(*shaky);
}

TEST_P(ParkedTest, WhatIsGivenUpIsNeverDeliveredAndWhatComesLaterIs) {
  WritePoison();
  Make(1, 3);
  Nack();
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@3"); }, [](const Taken&) {}));
  EXPECT_THAT(server->Request("mail", Asked::kDiscard), IsOkAndHolds(1));
  EXPECT_THAT(server->Parked("mail"), IsEmpty());
  EXPECT_EQ(StateOf().parked, 0);
  const std::string key = ParkedKey(State().subscription.incarnation, 0, {"things", "bad"});
  EXPECT_TRUE(world.RunUntil([&] {
    const auto record = world.world->store().Get(store::Keyspace::kFeed, key);
    return record.ok() && !record->has_value();
  }));
  world.Put("bad", 4);
  EXPECT_TRUE(Handle([&] { return IsDone("things/bad@4"); }, [](const Taken&) {}));
  EXPECT_FALSE(IsDone("things/bad@2"));
  EXPECT_FALSE(IsDone("things/bad@3"));
}

TEST_P(ParkedTest, WhoTakesOverKnowsWhatIsParked) {
  WritePoison();
  Make(1, 3);
  Nack();
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@3"); }, [](const Taken&) {}));
  Close(consumer);
  world.Put("bad", 4);
  world.Put("good", 4);
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@4"); }, [](const Taken&) {}));
  EXPECT_FALSE(IsDone("things/bad@4"));
}

TEST_P(ParkedTest, AFullListBlocksThePartitionAndSkipsNothing) {
  world.Stop(*server);
  server = world.NewServer(1, {.parked_max = 2});
  world.Watch(*server);
  std::set<std::string> failing = {"p0", "p1", "p2"};
  int64_t number = 0;
  for (const char* id : {"p0", "good", "p1", "good", "p2", "good", "good"}) world.Put(id, ++number);
  Make(1, 2);
  consumer = Open(10);
  const auto handle = [&](const std::function<bool()>& wanted) {
    return world.RunUntil([&] {
      while (auto next = consumer->Next()) {
        if (failing.contains(next->second.event.id)) {
          consumer->told().deliveries.clear();
          EXPECT_THAT(consumer->Nack(*next), IsOk());
          break;
        }
        done.push_back(NameOf(next->second.event));
        EXPECT_THAT(consumer->Ack(*next), IsOk());
      }
      return wanted();
    });
  };
  EXPECT_TRUE(handle([&] { return StateOf().blocked; }));
  const lease::Place place = StateOf().place;
  const UnixMicros later = world.world.clock().Now() + 30'000'000;
  EXPECT_TRUE(handle([&] { return world.world.clock().Now() > later; }));
  EXPECT_TRUE(StateOf().blocked);
  EXPECT_EQ(StateOf().attempts, 2);
  EXPECT_EQ(StateOf().place, place);
  EXPECT_THAT(server->Parked("mail"), SizeIs(2));
  EXPECT_THAT(done, ElementsAre("things/good@1", "things/good@2"));
  // Whoever has it next knows.
  Close(consumer);
  consumer = Open(10);
  AwaitAssigned(*consumer, 1);
  world.Pass(seconds(5));
  EXPECT_THAT(consumer->told().deliveries, IsEmpty());
  // There is room once something is given up.
  EXPECT_THAT(server->Request("mail", Asked::kDiscard, DocumentToReplay{"things", "p0"}),
              IsOkAndHolds(1));
  EXPECT_TRUE(handle([&] { return IsDone("things/good@4"); }));
  EXPECT_FALSE(StateOf().blocked);
  std::vector<std::string> parked;
  for (const ParkedDocument& document : server->Parked("mail")) parked.push_back(document.id);
  EXPECT_THAT(parked, ElementsAre("p1", "p2"));
}

TEST_P(ParkedTest, TenThousandAreParkedAndTheNextOneBlocks) {
  const Subscription subscription = Make(1, 2);
  const auto handle = [&](const std::function<bool()>& wanted) {
    return world.RunUntil([&] {
      while (auto next = consumer->Next()) {
        if (next->second.event.id != "good") {
          consumer->told().deliveries.clear();
          EXPECT_THAT(consumer->Nack(*next, "no such mailbox", /*park=*/true), IsOk());
          break;
        }
        done.push_back(NameOf(next->second.event));
        EXPECT_THAT(consumer->Ack(*next), IsOk());
      }
      return wanted();
    });
  };
  world.Put("first");
  consumer = Open(10);
  EXPECT_TRUE(handle([&] { return StateOf().parked == 1; }));
  Close(consumer);
  // All but two of the others are stored as that one was.
  StoredParked stored;
  stored.document = server->Parked("mail").front();
  store::WriteBatch batch;
  for (int i = 2; i < kParkedMax; ++i) {
    batch.Insert(store::Keyspace::kFeed,
                 ParkedKey(subscription.incarnation, 0, {"things", "another " + std::to_string(i)}),
                 EncodeParked(stored));
  }
  ASSERT_TRUE(test_support::AwaitCommit(world.world->store(), std::move(batch)).committed);
  int64_t number = 0;
  for (const char* id : {"good", "last", "good", "too many", "good"}) world.Put(id, ++number);
  consumer = Open(10);
  EXPECT_TRUE(handle([&] { return StateOf().blocked; }));
  EXPECT_EQ(server->Parked("mail").size(), size_t{kParkedMax});
  const store::CommitPosition place = StateOf().place.position;
  const UnixMicros later = world.world.clock().Now() + 10'000'000;
  EXPECT_TRUE(handle([&] { return world.world.clock().Now() > later; }));
  EXPECT_TRUE(StateOf().blocked);
  EXPECT_EQ(StateOf().place.position, place);
  EXPECT_THAT(done, ElementsAre("things/good@1", "things/good@2"));
  // There is room once something is given up.
  EXPECT_THAT(server->Request("mail", Asked::kDiscard, DocumentToReplay{"things", "first"}),
              IsOkAndHolds(1));
  EXPECT_TRUE(handle([&] { return IsDone("things/good@3"); }));
  EXPECT_FALSE(StateOf().blocked);
  EXPECT_EQ(server->Parked("mail").size(), size_t{kParkedMax});
}

TEST_P(ParkedTest, ADeletionOfACollectionIsNotParkedButComesUntilItIsTaken) {
  world.Put("a", 1);
  world.DeleteCollection("things");
  Make(1, 2);
  consumer = Open(10);
  int failed = 0;
  EXPECT_TRUE(world.RunUntil([&] {
    while (auto next = consumer->Next()) {
      if (next->second.event.type == EventType::kVersion || failed == 4) {
        EXPECT_THAT(consumer->Ack(*next), IsOk());
        done.push_back(NameOf(next->second.event));
        continue;
      }
      EXPECT_EQ(next->second.attempt, ++failed);
      EXPECT_THAT(consumer->Nack(*next), IsOk());
      break;
    }
    return done.size() == 2;
  }));
  EXPECT_THAT(done, ElementsAre("things/a@1", "things"));
  EXPECT_THAT(server->Parked("mail"), IsEmpty());
}

TEST_P(ParkedTest, WhatIsParkedOfADeletedCollectionGoesWithIt) {
  WritePoison();
  Make(1, 3);
  Nack();
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@3"); }, [](const Taken&) {}));
  world.DeleteCollection("things");
  world.Put("bad", 1);  // another one
  EXPECT_TRUE(Handle([&] { return std::count(done.begin(), done.end(), "things/bad@1") == 2; },
                     [](const Taken&) {}));
  EXPECT_TRUE(Handle([&] { return server->Parked("mail").empty(); }, [](const Taken&) {}));
  EXPECT_EQ(StateOf().parked, 0);
  EXPECT_THAT(replayed, IsEmpty());
  poisoned = false;
  world.Put("bad", 2);
  EXPECT_TRUE(Handle([&] { return std::count(done.begin(), done.end(), "things/bad@2") == 1; },
                     [](const Taken&) {}));
}

TEST_P(ParkedTest, WhatIsParkedOfADeletedCollectionStaysUntilItsEventsArePassed) {
  world.Put("bad", 1);
  world.Put("good", 1);
  world.Put("bad", 2);
  world.DeleteCollection("things");
  Make(1, 3);
  consumer = Open(10);
  AwaitDeliveries(*consumer, 1);
  const Taken bad = *consumer->Next();
  consumer->told().deliveries.clear();
  EXPECT_THAT(consumer->Nack(bad, "never", true), IsOk());
  // What comes behind it waits for "good", which nobody acknowledges yet.
  AwaitDeliveries(*consumer, 1);
  const Taken good = *consumer->Next();
  EXPECT_EQ(NameOf(good.second.event), "things/good@1");
  world.Pass(seconds(4));
  EXPECT_THAT(server->Parked("mail"), SizeIs(1));
  EXPECT_THAT(consumer->Ack(good), IsOk());
  EXPECT_TRUE(Handle([&] { return server->Parked("mail").empty(); }, [](const Taken&) {}));
  EXPECT_THAT(done, ElementsAre("things"));
}

TEST_P(ParkedTest, ParkingReadsNothingOfWhatIsParked) {
  constexpr int kParked = 20;
  for (int i = 0; i < kParked; ++i) world.Put("bad" + std::to_string(i));
  world.Put("good");
  Make(1, 3);
  CountedScans counted(world.world->store(), store::Keyspace::kFeed, "parked");
  const auto counting = world.NewServer(counted, 3);
  world.Watch(*counting);
  consumer = Open(*counting, 10);
  int parked = 0;
  EXPECT_TRUE(world.RunUntil([&] {
    while (auto next = consumer->Next()) {
      if (next->second.event.id == "good") return true;
      consumer->told().deliveries.clear();
      EXPECT_THAT(consumer->Nack(*next, "never", true), IsOk());
      ++parked;
    }
    return false;
  }));
  EXPECT_EQ(parked, kParked);
  EXPECT_EQ(counted.count(), 1);  // when it took the partition
  // All is known all the same: later versions are passed over.
  world.Put("bad0", 2);
  world.Put("good", 2);
  Close(consumer);
  consumer = Open(*counting, 10);
  EXPECT_TRUE(Handle([&] { return IsDone("things/good@2"); }, [](const Taken&) {}));
  EXPECT_FALSE(IsDone("things/bad0@2"));
  Close(consumer);
  world.Settle();
  world.Stop(*counting);
}

}  // namespace
}  // namespace strata::feed::testing
