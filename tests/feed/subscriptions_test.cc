// What is stored of subscriptions, over the engines: made, read, listed and deleted, and what a
// race and a crash leave.
#include "schemas/feed/subscriptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/base/sha256.h"
#include "schemas/feed/subscription_record.h"
#include "schemas/versioning/ledger_trimming.h"
#include "tests/feed/subscriptions_world.h"
#include "tests/support/await_commit.h"
#include "tests/support/hooked_store.h"

namespace strata::feed::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using test_support::HasReason;
using test_support::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

class SubscriptionsTest : public ::testing::TestWithParam<std::string> {
 protected:
  lease::Lease Hold(const std::string& name) {
    auto promise = std::make_shared<std::promise<absl::StatusOr<lease::Lease>>>();
    auto future = promise->get_future();
    lease::AcquireRequest request;
    request.name = name;
    request.holder = "somebody";
    server->leases().Acquire(std::move(request),
                             [promise](const auto& lease) { promise->set_value(lease); });
    const auto lease = server->Await(std::move(future));
    EXPECT_THAT(lease, IsOk());
    return *lease;
  }
  size_t Records(store::Keyspace keyspace, const std::string& prefix) {
    size_t records = 0;
    const auto cursor =
        world.world->store().Scan(keyspace, {prefix, store::PrefixEnd(prefix), false});
    for (; cursor->Valid(); cursor->Next()) ++records;
    return records;
  }

  // What is left of deleted ones goes in the background.
  void RunUntilCleanedUp() {
    const auto give_up = std::chrono::steady_clock::now() + seconds(20);
    while (Records(store::Keyspace::kFeed, "deleted") > 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      if (server->executor().RunDue() == 0) std::this_thread::yield();
    }
  }

  SubscriptionsWorld world{GetParam()};
  std::unique_ptr<Server> server = world.NewServer();
};
INSTANTIATE_TEST_SUITE_P(Engines, SubscriptionsTest, ::testing::Values("memory", "rocksdb", "live"),
                         [](const auto& engine) { return engine.param; });

TEST(Partitions, ADocumentsIsTheFirstEightBytesOfItsHash) {
  const Hash hash = Sha256().Update(std::string_view("things\0a", 8)).Finish();
  uint64_t number = 0;
  for (int i = 0; i < 8; ++i) number = number << 8 | hash[static_cast<size_t>(i)];
  EXPECT_EQ(PartitionOf("things", "a", 64), static_cast<int32_t>(number % 64));
  EXPECT_EQ(PartitionOf("things", "a", 7), static_cast<int32_t>(number % 7));
  std::set<int32_t> partitions;
  for (int i = 0; i < 100; ++i) partitions.insert(PartitionOf("things", std::to_string(i), 8));
  EXPECT_EQ(partitions.size(), 8u);
}

TEST(Partitions, TheirLeasesAreKnownByTheirNames) {
  EXPECT_EQ(PartitionLeaseName(17, 3), "$sub/17/3");
  EXPECT_EQ(MemberLeasePrefix(17), "$sub/17/member/");
  EXPECT_THAT(IncarnationOfPartitionLease("$sub/17/3"), Optional(17));
  for (const char* other :
       {"$sub/17/member/1", "$sub/17/", "$sub/17", "$sub//3", "sub/17/3", "$sub/17/03",
        "$sub/17/64", "$sub/-1/3", "$sub/17/3/", "$sub/x/3", "$sub/99999999999999999999/3"}) {
    EXPECT_EQ(IncarnationOfPartitionLease(other), std::nullopt) << other;
  }
}

TEST(Partitions, ASelectionTakesItsOwnDocumentsAndEveryDeletionOfACollection) {
  std::map<std::string, int> taken;
  for (int32_t partition = 0; partition < 8; ++partition) {
    Selection selection;
    selection.partitions = 8;
    selection.partition = partition;
    for (int i = 0; i < 50; ++i) {
      Entry entry;
      entry.type = EventType::kVersion;
      entry.collection = "things";
      entry.id = std::to_string(i);
      // Asked twice, as the hash is kept.
      EXPECT_EQ(selection.Wants(entry), selection.Wants(entry));
      if (!selection.Wants(entry)) continue;
      ++taken[entry.id];
      EXPECT_EQ(PartitionOf(entry.collection, entry.id, 8), partition);
    }
    Entry deleted;
    deleted.type = EventType::kCollectionDeleted;
    EXPECT_TRUE(selection.Wants(deleted));
  }
  for (const auto& [id, times] : taken) EXPECT_EQ(times, 1) << id;
  EXPECT_EQ(taken.size(), 50u);
}

TEST_P(SubscriptionsTest, OneIsAsItWasMade) {
  const store::CommitPosition position = world.Put("a");
  CreateSubscription request = Wanted("mail", FromPosition{position}, 5);
  request.subscription.selection.collections = {"other", "things"};
  request.subscription.selection.kinds = {versioning::VersionKind::kCreated};
  request.subscription.filter = versioning::testing::Number(1);
  request.subscription.max_attempts = 3;
  request.subscription.backoff_first = microseconds(1500);
  request.subscription.backoff_max = seconds(7);
  request.subscription.ack_timeout = seconds(8);
  request.subscription.lease_ttl = seconds(9);
  const auto made = server->Create(request);
  ASSERT_THAT(made, IsOk());
  const auto state = (*server)->Get("mail");
  ASSERT_THAT(state, IsOk());
  for (const Subscription& each : {*made, state->subscription}) {
    EXPECT_EQ(each.name, "mail");
    EXPECT_EQ(each.incarnation, made->incarnation);
    EXPECT_EQ(each.selection.collections, request.subscription.selection.collections);
    EXPECT_EQ(each.selection.kinds, request.subscription.selection.kinds);
    EXPECT_EQ(each.filter, request.subscription.filter);
    EXPECT_EQ(each.start_position, position);
    EXPECT_EQ(each.partitions, 5);
    EXPECT_EQ(each.max_attempts, 3);
    EXPECT_EQ(each.backoff_first, microseconds(1500));
    EXPECT_EQ(each.backoff_max, seconds(7));
    EXPECT_EQ(each.ack_timeout, seconds(8));
    EXPECT_EQ(each.lease_ttl, seconds(9));
    EXPECT_GT(each.create_time, 0);
  }
  ASSERT_EQ(state->partitions.size(), 5u);
  for (const PartitionState& partition : state->partitions) {
    EXPECT_EQ(partition.place, (lease::Place{position, std::nullopt}));
    EXPECT_EQ(partition.consumer, "");
    EXPECT_EQ(partition.token, 0);
    EXPECT_EQ(partition.oldest_open_time, std::nullopt);
  }
  EXPECT_THAT((*server)->NameOf(made->incarnation),
              test_support::IsOkAndHolds(Optional(std::string("mail"))));
  EXPECT_THAT((*server)->NameOf(made->incarnation + 1), test_support::IsOkAndHolds(std::nullopt));
}

TEST_P(SubscriptionsTest, TheStartIsAPositionFromThenOn) {
  const store::CommitPosition before = world.Put("a");
  const UnixMicros between = world.world.clock().Now();
  world.world.clock().Advance(seconds(5));
  const store::CommitPosition last = world.Put("b");
  EXPECT_EQ(server->Create(Wanted("now", FromNow()))->start_position, last);
  EXPECT_EQ(server->Create(Wanted("beginning"))->start_position, 0);
  const store::CommitPosition since =
      server->Create(Wanted("time", FromTime{between}))->start_position;
  EXPECT_GE(since, before);
  EXPECT_LT(since, last);
  EXPECT_THAT(server->Create(Wanted("beyond", FromPosition{last + 1'000'000})),
              HasReason(ErrorReason::kPositionUnknown));
  EXPECT_THAT(server->Create(Wanted(
                  "future", FromTime{world.world.clock().Now() + seconds(60) / microseconds(1)})),
              HasReason(ErrorReason::kInvalidField));
}

TEST_P(SubscriptionsTest, WhatCannotBeIsRefusedWithFieldAndLimit) {
  const auto refused = [&](const auto& change, std::string_view field, ErrorReason reason) {
    CreateSubscription request = Wanted("mail");
    change(request.subscription);
    const auto made = server->Create(request);
    EXPECT_THAT(made, HasReason(reason));
    EXPECT_EQ(MetadataOf(made.status(), "field"), field);
  };
  using S = Subscription;
  const auto invalid = ErrorReason::kInvalidField;
  refused([](S& s) { s.name = ""; }, "name", ErrorReason::kInvalidName);
  refused([](S& s) { s.name = "$mail"; }, "name", ErrorReason::kInvalidName);
  refused([](S& s) { s.partitions = 0; }, "partitions", invalid);
  refused([](S& s) { s.partitions = 65; }, "partitions", invalid);
  refused([](S& s) { s.max_attempts = 1001; }, "max_attempts", invalid);
  refused([](S& s) { s.backoff_first = microseconds(0); }, "backoff_first", invalid);
  refused([](S& s) { s.backoff_max = microseconds(1); }, "backoff_max", invalid);
  refused([](S& s) { s.ack_timeout = microseconds(1); }, "ack_timeout", invalid);
  refused([](S& s) { s.lease_ttl = std::chrono::hours(2); }, "lease_ttl", invalid);
  refused([](S& s) { s.selection.id_prefix = "a"; }, "id_prefix", invalid);
  EXPECT_THAT((*server)->Get("mail"), HasReason(ErrorReason::kSubscriptionNotFound));
}

TEST_P(SubscriptionsTest, ANameIsTakenUntilItIsDeletedAndNoIncarnationComesAgain) {
  const auto first = server->Create(Wanted("mail"));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(server->Create(Wanted("mail")), HasReason(ErrorReason::kSubscriptionExists));
  EXPECT_THAT(server->Delete("mail"), IsOk());
  EXPECT_THAT(server->Delete("mail"), HasReason(ErrorReason::kSubscriptionNotFound));
  EXPECT_THAT((*server)->Get("mail"), HasReason(ErrorReason::kSubscriptionNotFound));
  EXPECT_THAT((*server)->NameOf(first->incarnation), test_support::IsOkAndHolds(std::nullopt));
  const auto second = server->Create(Wanted("mail"));
  ASSERT_THAT(second, IsOk());
  EXPECT_GT(second->incarnation, first->incarnation);
}

// All of them write the counter of incarnations, and none is refused for it.
TEST_P(SubscriptionsTest, ManyAreMadeAtOnce) {
  constexpr int kAtOnce = 60;
  std::vector<std::promise<absl::StatusOr<Subscription>>> answers(kAtOnce);
  for (int i = 0; i < kAtOnce; ++i) {
    auto& answer = answers[static_cast<size_t>(i)];
    (*server)->Create(Wanted("s" + std::to_string(i)),
                      [&answer](auto made) { answer.set_value(std::move(made)); });
  }
  std::set<int64_t> incarnations;
  for (auto& answer : answers) {
    const auto made = server->Await(answer.get_future());
    ASSERT_THAT(made, IsOk());
    incarnations.insert(made->incarnation);
  }
  EXPECT_EQ(incarnations.size(), size_t{kAtOnce});
}

TEST_P(SubscriptionsTest, ThereAreSoManyAtMost) {
  SubscriptionsOptions options;
  options.subscriptions_max = 2;
  const auto limited = world.NewServer(2, options);
  ASSERT_THAT(limited->Create(Wanted("a")), IsOk());
  ASSERT_THAT(server->Create(Wanted("b")), IsOk());
  EXPECT_THAT(limited->Create(Wanted("c")), HasReason(ErrorReason::kSubscriptionLimit));
  EXPECT_THAT(limited->Create(Wanted("a")), HasReason(ErrorReason::kSubscriptionExists));
  ASSERT_THAT(server->Delete("b"), IsOk());
  EXPECT_THAT(limited->Create(Wanted("c")), IsOk());
}

TEST_P(SubscriptionsTest, TheyAreListedInTheOrderOfTheirNames) {
  for (const char* name : {"b", "a/b", "a", "c", "a0"}) {
    ASSERT_THAT(server->Create(Wanted(name)), IsOk());
  }
  const auto names = [&](const std::string& prefix, const std::string& after, size_t most) {
    std::vector<std::string> listed;
    const auto page = (*server)->List(prefix, after, most, {});
    EXPECT_THAT(page, IsOk());
    for (const Subscription& each : *page) listed.push_back(each.name);
    return listed;
  };
  EXPECT_THAT(names("", "", 100), ElementsAre("a", "a/b", "a0", "b", "c"));
  EXPECT_THAT(names("a", "", 100), ElementsAre("a", "a/b", "a0"));
  EXPECT_THAT(names("a", "a/b", 100), ElementsAre("a0"));
  EXPECT_THAT(names("", "a", 2), ElementsAre("a/b", "a0"));
}

TEST_P(SubscriptionsTest, TheLowestPlaceHoldsTheLedger) {
  const auto lowest = [&] { return *(*server)->LowestPlace(world.world->store()); };
  EXPECT_EQ(lowest(), std::nullopt);
  const store::CommitPosition first = world.Put("a");
  const store::CommitPosition second = world.Put("b");
  ASSERT_THAT(server->Create(Wanted("late", FromPosition{second})), IsOk());
  ASSERT_TRUE(lowest().has_value());
  EXPECT_EQ(lowest()->position, second + 1);
  EXPECT_EQ(lowest()->name, "subscription/late");
  ASSERT_THAT(server->Create(Wanted("early", FromPosition{first})), IsOk());
  EXPECT_EQ(lowest()->position, first + 1);
  EXPECT_EQ(lowest()->name, "subscription/early");
  ASSERT_THAT(server->Delete("early"), IsOk());
  EXPECT_EQ(lowest()->name, "subscription/late");
}

TEST_P(SubscriptionsTest, OneThatIsMadeWhileTheLedgerIsTrimmedIsHeldOrRefused) {
  const store::CommitPosition first = world.Put("a");
  world.world.clock().Advance(std::chrono::hours(2));
  for (int i = 0; i < 3; ++i) world.Put("b", i);
  versioning::FloorHolders holders;
  holders.Add([&](const store::Reader& reader) { return (*server)->LowestPlace(reader); });
  versioning::LedgerTrimmer trimmer(world.world->store(), world.world.clock(),
                                    std::chrono::hours(1), holders);
  // Between the look of Create and its commit.
  test_support::HookedStore hooked(world.world->store());
  bool trimmed = false;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch&) {
    if (std::exchange(trimmed, true)) return;
    EXPECT_THAT(trimmer.Trim({}), IsOk());
  };
  hooked.set_hooks(hooks);
  const auto racing = world.NewServer(hooked);
  const auto made = racing->Create(Wanted("mail", FromPosition{first - 1}));
  EXPECT_TRUE(trimmed);
  EXPECT_THAT(made, HasReason(ErrorReason::kPositionTrimmed));
  hooked.set_hooks({});
  EXPECT_THAT(racing->Create(Wanted("mail", FromNow())), IsOk());
}

TEST_P(SubscriptionsTest, DeletionReleasesItsLeasesAndFencesWhoHadThem) {
  const auto made = server->Create(Wanted("mail"));
  ASSERT_THAT(made, IsOk());
  const lease::Lease held = Hold(PartitionLeaseName(made->incarnation, 3));
  ASSERT_THAT(server->Delete("mail"), IsOk());
  versioning::WriteRequest request = versioning::testing::Request("a");
  request.joined.push_back(server->leases().Fence({held.name, held.token, {}, {}}));
  EXPECT_THAT(world.world->Update(std::move(request), versioning::testing::Number(1), true),
              HasReason(ErrorReason::kLeaseLost));
  RunUntilCleanedUp();
  EXPECT_EQ(Records(store::Keyspace::kLeases, SubscriptionLeasePrefix(made->incarnation)), 0u);
}

TEST_P(SubscriptionsTest, ALeaseAcquiredBetweenTheLookOfADeletionAndItsCommitIsReleasedToo) {
  const auto made = server->Create(Wanted("mail"));
  test_support::HookedStore hooked(world.world->store());
  std::optional<lease::Lease> held;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch&) {
    if (!held) held = Hold(PartitionLeaseName(made->incarnation, 3));
  };
  hooked.set_hooks(hooks);
  const auto racing = world.NewServer(hooked);
  ASSERT_THAT(racing->Delete("mail"), IsOk());
  ASSERT_TRUE(held.has_value());
  versioning::WriteRequest request = versioning::testing::Request("a");
  request.joined.push_back(server->leases().Fence({held->name, held->token, {}, {}}));
  EXPECT_THAT(world.world->Update(std::move(request), versioning::testing::Number(1), true),
              HasReason(ErrorReason::kLeaseLost));
}

TEST_P(SubscriptionsTest, WhatACrashLeftOfADeletedOneTheNextDeletionTakesAlong) {
  const auto made = server->Create(Wanted("mail"));
  Hold(PartitionLeaseName(made->incarnation, 0));
  store::WriteBatch batch;
  for (int i = 0; i < 1000; ++i) {
    StoredParked parked;
    parked.document.from_version = 1;
    batch.Put(store::Keyspace::kFeed,
              ParkedKey(made->incarnation, i % 8, {"things", std::to_string(i)}),
              EncodeParked(parked));
  }
  ASSERT_TRUE(test_support::AwaitCommit(world.world->store(), std::move(batch)).committed);
  {
    // Stops when the deletion itself is done.
    auto stopped = world.NewServer();
    ASSERT_THAT(stopped->Delete("mail"), IsOk());
  }
  EXPECT_EQ(Records(store::Keyspace::kFeed, "parked"), 1000u);
  EXPECT_EQ(Records(store::Keyspace::kFeed, "deleted"), 1u);
  ASSERT_THAT(server->Create(Wanted("other")), IsOk());
  RunUntilCleanedUp();
  EXPECT_EQ(Records(store::Keyspace::kFeed, "parked"), 0u);
  EXPECT_EQ(Records(store::Keyspace::kLeases, SubscriptionLeasePrefix(made->incarnation)), 0u);
}

TEST_P(SubscriptionsTest, WhatIsParkedIsListedByPartitionAndAskedForInOneGo) {
  const auto made = server->Create(Wanted("mail"));
  store::WriteBatch batch;
  for (int32_t partition = 0; partition < 8; ++partition) {
    for (int i = 0; i < 1000; ++i) {
      const std::string id = std::to_string(i);
      if (PartitionOf("things", id, 8) != partition) continue;
      StoredParked parked;
      parked.document.from_version = 1;
      batch.Put(store::Keyspace::kFeed, ParkedKey(made->incarnation, partition, {"things", id}),
                EncodeParked(parked));
    }
  }
  ASSERT_TRUE(test_support::AwaitCommit(world.world->store(), std::move(batch)).committed);
  using Request = Subscriptions::ParkedRequest;
  EXPECT_THAT(server->Request("mail", Request::kReplay, DocumentToReplay{"things", "17"}),
              test_support::IsOkAndHolds(1));
  EXPECT_THAT(server->Request("mail", Request::kReplay, DocumentToReplay{"things", "1001"}),
              test_support::IsOkAndHolds(0));
  EXPECT_THAT(server->Request("none", Request::kReplay),
              HasReason(ErrorReason::kSubscriptionNotFound));
  EXPECT_THAT(server->Request("mail", Request::kDiscard, DocumentToReplay{"things", "18"}),
              test_support::IsOkAndHolds(1));
  std::optional<ParkedDocument> after;
  size_t listed = 0;
  while (true) {
    const auto page = (*server)->ListParked("mail", after, 300, {});
    ASSERT_THAT(page, IsOk());
    for (const ParkedDocument& document : *page) {
      EXPECT_NE(document.id, "18");
      EXPECT_EQ(document.replay, document.id == "17");
      EXPECT_EQ(document.partition, PartitionOf("things", document.id, 8));
      EXPECT_GE(document.partition, after ? after->partition : 0);
      after = document;
    }
    listed += page->size();
    if (page->size() < 300) break;
  }
  EXPECT_EQ(listed, 999u);
  EXPECT_THAT(server->Request("mail", Request::kReplay), test_support::IsOkAndHolds(999));
  for (const ParkedDocument& document : server->Parked("mail")) EXPECT_TRUE(document.replay);
  const auto state = (*server)->Get("mail");
  int32_t parked = 0;
  for (const PartitionState& partition : state->partitions) parked += partition.parked;
  EXPECT_EQ(parked, 999);
}

TEST(SubscriptionsOfWeakEngines, AreRefused) {
  SubscriptionsWorld world("memory", versioning::testing::Mode::kSingle);
  const auto server = world.NewServer();
  EXPECT_THAT(server->Create(Wanted("mail")), HasReason(ErrorReason::kUnsupportedByEngine));
  EXPECT_THAT((*server)->Get("mail"), HasReason(ErrorReason::kUnsupportedByEngine));
  EXPECT_THAT(server->Delete("mail"), HasReason(ErrorReason::kUnsupportedByEngine));
}

}  // namespace
}  // namespace strata::feed::testing
