// The feed and subscriptions over a store that loses outcomes and goes on: watchers see what took
// effect, once and in order, and effects that move the lease's place happen once, however late
// commits of writers, consumers and servers take effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/feed/subscription_record.h"
#include "schemas/lease/lease_record.h"
#include "schemas/versioning/ledger.h"
#include "tests/feed/consumers_world.h"
#include "tests/feed/feed_world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/late_store.h"
#include "tests/support/ledger_entries.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::feed::testing {
namespace {

using test_support::IsOk;

class LateOutcomesOfFeed : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr double kLost = 0.2;
  static constexpr int32_t kPartitions = 2;
  static constexpr int kDocuments = 6;

  // A server that shares the store, and its consumer.
  struct Party {
    std::unique_ptr<Server> server;
    std::unique_ptr<TestConsumer> consumer;
  };
  // An event as the ledger has it.
  struct Written {
    store::CommitPosition position = 0;
    std::string name;  // "things/a@1"
    int32_t partition = 0;
  };

  LateOutcomesOfFeed() {
    if (GetParam() != "rocksdb") world.patience = microseconds(0);
    for (uint64_t i = 0; i < 2; ++i) {
      writers.push_back(std::make_unique<versioning::testing::Process>(
          late, versioning::testing::WorldOptions{.engine = GetParam(), .seed = seed + i},
          world.world.clock()));
      parties.push_back({world.NewServer(late, seed + i), nullptr});
      world.Watch(*parties.back().server);
    }
  }

  static bool IsUnknown(const absl::Status& status) {
    return ReasonOf(status) == ErrorReason::kOutcomeUnknown;
  }
  versioning::testing::Process& AnyWriter() { return *writers[random() % 2]; }
  Party& AnyParty() { return parties[random() % 2]; }

  // Calls until the outcome is known.
  template <typename Call>
  auto Repeated(Call call) {
    auto result = call();
    for (int i = 0; i < 200 && IsUnknown(result.status()); ++i) {
      world.world.clock().Advance(milliseconds(1));
      result = call();
    }
    return result;
  }
  void Write() {
    const std::string id = std::to_string(random() % kDocuments);
    const std::string request = "r" + std::to_string(written++);
    ASSERT_THAT(Repeated([&] {
                  return AnyWriter().Update(versioning::testing::Request(id, request),
                                            versioning::testing::Increment("/n", 1), true);
                }),
                IsOk());
  }
  void Subscribe(int32_t max_attempts) {
    CreateSubscription request = Wanted("mail", FromPosition{0}, kPartitions);
    request.subscription.selection.collections = {"things"};
    request.subscription.max_attempts = max_attempts;
    request.subscription.backoff_first = request.subscription.backoff_max = milliseconds(1);
    request.subscription.lease_ttl = seconds(3);
    request.subscription.ack_timeout = std::chrono::hours(1);
    const auto made = Repeated([&] { return AnyParty().server->Create(request); });
    ASSERT_TRUE(made.ok() || ReasonOf(made.status()) == ErrorReason::kSubscriptionExists)
        << made.status();
  }
  // Opens it anew if it has ended, which a lost outcome may do when it begins.
  void KeepOpen(Party& party) {
    if (party.consumer != nullptr) {
      if (!party.consumer->told().finished) return;
      EXPECT_TRUE(IsUnknown(*party.consumer->told().finished)) << *party.consumer->told().finished;
      Close(party);
    }
    party.consumer = std::make_unique<TestConsumer>(
        *party.server, "mail", 1 + static_cast<int32_t>(random() % 5), "worker", 1 + random() % 4);
    world.Watch(*party.consumer);
  }
  void Close(Party& party) {
    if (party.consumer == nullptr) return;
    world.Forget(*party.consumer);
    party.consumer.reset();
  }
  // A server stands still until the other one has taken over.
  void StandStill(Party& party) {
    world.Stop(*party.server);
    if (party.consumer != nullptr) world.Forget(*party.consumer);
    world.Pass(seconds(4), milliseconds(200));
    world.Watch(*party.server);
    if (party.consumer != nullptr) world.Watch(*party.consumer);
  }

  std::vector<Written> Ledger() {
    std::vector<Written> all;
    versioning::LedgerCursor cursor(world.world.engine(), 1, 0);
    while (cursor.Next()) {
      const Entry entry = Entry::Of(cursor.entry());
      if (entry.type != EventType::kVersion || entry.collection != "things") continue;
      all.push_back(
          {cursor.position(),
           "things/" + std::string(entry.id) + "@" + std::to_string(cursor.entry().version),
           PartitionOf("things", entry.id, kPartitions)});
    }
    EXPECT_THAT(cursor.status(), IsOk());
    return all;
  }
  // What the effect of an event of the partition says.
  static std::string EffectOf(int32_t partition, store::CommitPosition position) {
    return std::to_string(partition) + " at " + std::to_string(position);
  }
  void EndLosing() {
    EXPECT_GT(late.unknown(), 5u);
    late.StopLosing();
    late.Settle();
  }

  const uint64_t seed = test_support::TestSeed();
  std::mt19937_64 random{seed};
  ConsumersWorld world{GetParam()};
  test_support::LateStore late{world.world.engine(), seed, kLost};
  std::vector<std::unique_ptr<versioning::testing::Process>> writers;
  std::vector<Party> parties;
  int written = 0;
};
INSTANTIATE_TEST_SUITE_P(Engines, LateOutcomesOfFeed, ::testing::Values("memory", "live"),
                         [](const auto& engine) { return engine.param; });

TEST_P(LateOutcomesOfFeed, WatchersSeeWhatTookEffectOnceAndInOrder) {
  STRATA_TRACE_SEED(seed);
  struct Following {
    Server& server;
    Watcher watcher;
    std::vector<std::string> seen;
    store::CommitPosition resume = 0;
  };
  std::vector<Following> all;
  for (Party& party : parties) all.push_back({*party.server, {}, {}, 0});
  const auto look = [&] {
    for (bool more = true; more;) {
      more = world.Run() > 0;
      for (Following& each : all) {
        if (each.watcher.watch == nullptr) continue;
        for (; each.watcher.inbox->waiting > 0; --each.watcher.inbox->waiting) {
          each.watcher.watch->Ready();
          more = true;
        }
      }
    }
  };
  const auto close = [&](Following& each) {
    if (each.watcher.watch == nullptr) return;
    EXPECT_FALSE(each.watcher.inbox->end) << *each.watcher.inbox->end;
    for (const std::string& name : each.watcher.Seen()) each.seen.push_back(name);
    if (!each.watcher.inbox->messages.empty()) each.resume = each.watcher.resume();
    each.watcher = {};
  };
  const auto open = [&](Following& each) {
    each.watcher.inbox = std::make_shared<Inbox>(1 + random() % 4);
    WatchQuery query = From(each.resume);
    query.selection.collections = {"things"};
    auto opened = each.server.feed().Open(std::move(query), each.watcher.inbox);
    ASSERT_THAT(opened, IsOk());
    each.watcher.watch = *std::move(opened);
    each.watcher.watch->Ready();
  };
  const int writes = test_support::Sampled(150, 60);
  while (written < writes) {
    // One goes on for as long as all are written, the other comes again and again.
    if (all[0].watcher.watch == nullptr) open(all[0]);
    if (random() % 4 == 0) {
      close(all[1]);
      open(all[1]);
    }
    ASSERT_NO_FATAL_FAILURE(Write());
    if (random() % 3 > 0) look();
  }
  EndLosing();
  ASSERT_NO_FATAL_FAILURE(Write());  // which wakes those that wait for what came late
  std::vector<std::string> expected;
  for (const Written& each : Ledger()) expected.push_back(each.name);
  EXPECT_EQ(expected.size(), static_cast<size_t>(written));
  for (Following& each : all) {
    if (each.watcher.watch == nullptr) open(each);
    EXPECT_TRUE(world.RunUntil([&] {
      look();
      return each.seen.size() + each.watcher.Seen().size() >= expected.size();
    }));
    look();
    close(each);
    EXPECT_EQ(each.seen, expected);
  }
}

TEST_P(LateOutcomesOfFeed, EffectsThatMoveThePlaceHappenOnceAndInOrder) {
  STRATA_TRACE_SEED(seed);
  ASSERT_NO_FATAL_FAILURE(Subscribe(/*max_attempts=*/100));
  std::map<std::string, int> done;
  int tries = 0;
  // Each try a document of its own, without a request id: the place alone tells what was done
  // before.
  const auto write_effect = [&](Party& party, int32_t partition, const Delivery& delivery) {
    const auto effect = Repeated([&] {
      versioning::WriteRequest write = versioning::testing::Request(std::to_string(tries++));
      write.name.collection = "effects";
      write.change.reason = EffectOf(partition, delivery.event.position);
      write.joined.push_back(party.server->leases().Fence(delivery.lease));
      return AnyWriter().Update(std::move(write),
                                versioning::testing::Number(delivery.event.position), true);
    });
    const std::optional<ErrorReason> reason = ReasonOf(effect.status());
    EXPECT_TRUE(effect.ok() || reason == ErrorReason::kAlreadyAcknowledged ||
                reason == ErrorReason::kLeaseLost || reason == ErrorReason::kEventOutOfOrder)
        << effect.status();
    return effect.ok() || reason == ErrorReason::kAlreadyAcknowledged;
  };
  const auto handle = [&](Party& party, size_t most) {
    KeepOpen(party);
    for (size_t i = 0; i < most; ++i) {
      const auto taken = party.consumer->Next();
      if (!taken) return;
      const auto& [partition, delivery] = *taken;
      if (random() % 10 == 0) {
        std::erase_if(party.consumer->told().deliveries,
                      [of = partition](const auto& each) { return each.first == of; });
        (void)party.consumer->Nack(*taken);
        continue;
      }
      if (!write_effect(party, partition, delivery)) continue;
      ++done[NameOf(delivery.event)];
      if (random() % 4 > 0) (void)party.consumer->Ack(*taken);
    }
  };
  const int writes = test_support::Sampled(150, 50);
  while (written < writes) {
    ASSERT_NO_FATAL_FAILURE(Write());
    world.Run();
    handle(AnyParty(), random() % 4);
    if (random() % 2 > 0) world.world.clock().Advance(milliseconds(random() % 300));
    if (random() % 15 == 0) StandStill(AnyParty());
    if (random() % 15 == 0) Close(AnyParty());
  }
  EXPECT_TRUE(world.RunUntil([&] {
    for (Party& party : parties) handle(party, 100);
    return done.size() == static_cast<size_t>(written);
  })) << done.size()
      << " of " << written;
  EndLosing();
  std::map<int32_t, std::vector<std::string>> expected;
  for (const Written& each : Ledger()) {
    expected[each.partition].push_back(EffectOf(each.partition, each.position));
  }
  std::map<int32_t, std::vector<std::string>> effects;
  for (const auto& [position, index, reason] : test_support::LedgerOf(world.world.engine())) {
    if (!reason.empty()) effects[reason.front() - '0'].push_back(reason);
  }
  EXPECT_EQ(effects, expected);
  EXPECT_TRUE(parties[0].server->Parked("mail").empty());
}

// A failure whose outcome is lost is one failure: attempts are counted right, and a replay that is
// asked for next is not taken for the one that failed.
TEST_P(LateOutcomesOfFeed, AReplayThatFailsIsCountedOnce) {
  STRATA_TRACE_SEED(seed);
  ASSERT_NO_FATAL_FAILURE(Subscribe(/*max_attempts=*/1));
  ASSERT_NO_FATAL_FAILURE(Write());
  Party& party = parties[0];
  const auto parked = [&] { return party.server->Parked("mail"); };
  // The attempt that it was.
  const auto fail_next = [&] {
    int32_t attempt = 0;
    EXPECT_TRUE(world.RunUntil([&] {
      KeepOpen(party);
      const auto taken = party.consumer->Next();
      if (!taken) return false;
      attempt = taken->second.attempt;
      EXPECT_THAT(party.consumer->Nack(*taken), IsOk());
      return true;
    }));
    return attempt;
  };
  fail_next();
  ASSERT_TRUE(world.RunUntil([&] { return parked().size() == 1; }));
  int32_t attempts = parked()[0].attempts;
  for (int replay = 0; replay < test_support::Sampled(60, 40); ++replay) {
    ASSERT_THAT(Repeated([&] {
                  return party.server->Request("mail", Subscriptions::ParkedRequest::kReplay);
                }),
                IsOk());
    ASSERT_EQ(fail_next(), attempts + 1) << replay;
    ASSERT_TRUE(world.RunUntil([&] { return !parked()[0].replay; }));
    ASSERT_EQ(parked()[0].attempts, ++attempts) << replay;
  }
  EndLosing();
}

// One that the consumer took without hearing of it: nobody renews its lease, and when that has
// expired it is taken anew, though its holder is alive.
TEST_P(LateOutcomesOfFeed, APartitionThatWasTakenUnheardDoesNotStandStill) {
  late.StopLosing();
  ASSERT_NO_FATAL_FAILURE(Subscribe(/*max_attempts=*/1));
  const auto state = (*parties[0].server)->Get("mail");
  ASSERT_THAT(state, IsOk());
  const std::string owner =
      lease::OwnerKey(PartitionLeaseName(state->subscription.incarnation, /*partition=*/0));
  std::atomic<int> takes = 0;
  std::atomic<bool> unheard = false;
  test_support::HookedStore store(
      world.world.engine(),
      {.before_commit =
           [&](const store::WriteBatch& batch) {
             for (const store::Write& write : batch.writes()) {
               if (write.kind == store::WriteKind::kPut && write.key == owner) {
                 unheard = ++takes == 1;
               }
             }
           },
       .after_commit =
           [&](store::CommitResult& result) {
             if (unheard.exchange(false))
               result = {.status = Error(ErrorReason::kOutcomeUnknown, "lost")};
           }});
  const auto server = world.NewServer(store);
  world.Watch(*server);
  TestConsumer consumer(*server, "mail");
  world.Watch(consumer);
  EXPECT_TRUE(world.RunUntil([&] { return takes == 1; }));
  world.Pass(seconds(10), milliseconds(100));
  EXPECT_EQ(consumer.told().assigned.size(), static_cast<size_t>(kPartitions));
  EXPECT_EQ(takes, 2);
}

}  // namespace
}  // namespace strata::feed::testing
