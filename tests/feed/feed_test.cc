// Watches over the engines: what comes, in which order, from where on, and what it costs.
#include "schemas/feed/feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schemas/document/filter.h"
#include "schemas/versioning/ledger_floor.h"
#include "tests/feed/feed_world.h"
#include "tests/support/await_commit.h"
#include "tests/support/hooked_store.h"
#include "tests/support/status_matchers.h"

namespace strata::feed::testing {
namespace {

using std::chrono::seconds;
using test_support::HasReason;
using test_support::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::SizeIs;

document::Filter NumberIs(int64_t number) {
  return *document::Filter::Compile(versioning::testing::Number(number));
}

class FeedTest : public ::testing::TestWithParam<std::string> {
 protected:
  FeedWorld world{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Engines, FeedTest, ::testing::Values("memory", "rocksdb", "live"),
                         [](const auto& engine) { return engine.param; });

TEST_P(FeedTest, TheFirstMessageTellsThePlaceBeforeAnyEvent) {
  const store::CommitPosition position = world.Create("a");
  Watcher from_now = world.Open();
  Watcher from_the_beginning = world.Open(From(0));
  world.Run({&from_now, &from_the_beginning});
  EXPECT_THAT(from_now.inbox->messages, SizeIs(1));
  EXPECT_EQ(from_now.resume(), position);
  ASSERT_THAT(from_the_beginning.inbox->messages, SizeIs(2));
  const Message& first = from_the_beginning.inbox->messages.front();
  EXPECT_EQ(first.progress.resume_position, 0);
  EXPECT_EQ(first.progress.last_position, position);
  EXPECT_THAT(first.events, IsEmpty());
  EXPECT_THAT(from_the_beginning.Seen(), ElementsAre("things/a@1"));
}

TEST_P(FeedTest, AWatcherFromNowThatDiesBeforeItsFirstEventMissesNothing) {
  world.Create("a");
  Watcher first = world.Open();
  world.Run({&first});
  const store::CommitPosition resume = first.resume();
  first.watch.reset();
  world.Create("b");
  world.Update("a", 2);
  Watcher second = world.Open(From(resume));
  world.RunToEnd(second);
  EXPECT_THAT(second.Seen(), ElementsAre("things/b@1", "things/a@2"));
}

TEST_P(FeedTest, EachVersionComesOnceInTheOrderOfCommits) {
  Watcher watcher = world.Open(From(0));
  world.Create("a");
  world.RunToEnd(watcher);
  world.Create("b");
  world.Update("a", 2);
  world.RunToEnd(watcher);
  ASSERT_THAT(world.world->Delete(versioning::testing::Request("a")), IsOk());
  world.RunToEnd(watcher);
  EXPECT_THAT(watcher.Seen(), ElementsAre("things/a@1", "things/b@1", "things/a@2", "things/a@3"));
  EXPECT_EQ(watcher.resume(), world.world->store().LastPosition());
}

TEST_P(FeedTest, OnlyTheLastMessageOfACommitMovesThePlace) {
  const store::CommitPosition before = world.Create("before");
  std::vector<versioning::Change> changes;
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    changes.push_back(versioning::testing::Adding(versioning::testing::Named(id), 1));
  }
  ASSERT_THAT(versioning::testing::Commit(world.world.process(),
                                          versioning::testing::UnitOf(std::move(changes))),
              IsOk());
  const store::CommitPosition commit = world.world->store().LastPosition();
  Watcher watcher = world.Open(From(before), 2);
  world.RunToEnd(watcher);
  ASSERT_THAT(watcher.inbox->messages, SizeIs(4));
  EXPECT_EQ(watcher.inbox->messages[1].progress.resume_position, commit - 1);
  EXPECT_EQ(watcher.inbox->messages[2].progress.resume_position, commit - 1);
  EXPECT_EQ(watcher.inbox->messages[3].progress.resume_position, commit);
  EXPECT_THAT(watcher.Seen(),
              ElementsAre("things/a@1", "things/b@1", "things/c@1", "things/d@1", "things/e@1"));
  std::vector<uint32_t> indexes;
  for (const Message& message : watcher.inbox->messages) {
    for (const Event& event : message.events) indexes.push_back(event.index);
  }
  EXPECT_THAT(indexes, ElementsAre(0, 1, 2, 3, 4));
}

TEST_P(FeedTest, ASlowWatcherHoldsOneMessageAndNobodyElse) {
  Watcher slow = world.Open(From(0), 1);
  Watcher fast = world.Open(From(0), 1);
  for (int i = 0; i < 20; ++i) {
    world.Create("id" + std::to_string(i));
    world.RunToEnd(fast);
  }
  EXPECT_THAT(fast.Seen(), SizeIs(20));
  EXPECT_THAT(slow.inbox->messages, SizeIs(1));
  world.RunToEnd(slow);
  EXPECT_EQ(slow.Seen(), fast.Seen());
}

TEST_P(FeedTest, ContentsAreThoseOfEachVersion) {
  world.Create("a", 1);
  for (int i = 2; i <= 40; ++i) world.Update("a", i);
  ASSERT_THAT(world.world->Delete(versioning::testing::Request("a")), IsOk());
  WatchQuery query = From(0);
  query.include_content = true;
  query.include_before = true;
  query.include_changes = true;
  Watcher watcher = world.Open(std::move(query), 7);
  world.RunToEnd(watcher);
  int64_t version = 0;
  for (const Message& message : watcher.inbox->messages) {
    for (const Event& event : message.events) {
      ++version;
      EXPECT_EQ(event.version.header.version, version);
      EXPECT_NE(event.version.header.content_hash, document::Hash());
      if (version <= 40) {
        EXPECT_EQ(versioning::testing::NumberIn(event.version), version);
      }
      EXPECT_EQ(event.before.has_value(), version > 1);
      if (event.before) {
        EXPECT_EQ(*event.before, versioning::testing::Number(version - 1));
      }
      EXPECT_THAT(event.changes.list, SizeIs(1)) << version;
    }
  }
  EXPECT_EQ(version, 41);
}

TEST_P(FeedTest, AFilterSeesTheContentAndTheOneBefore) {
  world.Create("a", 1);
  world.Update("a", 2);
  world.Update("a", 3);
  world.Create("b", 2);
  ASSERT_THAT(world.world->Delete(versioning::testing::Request("b")), IsOk());
  WatchQuery query = From(0);
  query.filter = NumberIs(2);
  Watcher watcher = world.Open(std::move(query));
  world.RunToEnd(watcher);
  EXPECT_THAT(watcher.Seen(), ElementsAre("things/a@2", "things/a@3", "things/b@1", "things/b@2"));
  std::vector<bool> left;
  for (const Message& message : watcher.inbox->messages) {
    for (const Event& event : message.events) {
      left.push_back(event.left_filter);
      EXPECT_FALSE(event.version.content);
      EXPECT_EQ(event.version.header.content_hash, document::Hash());
    }
  }
  EXPECT_THAT(left, ElementsAre(false, true, false, true));
}

TEST_P(FeedTest, ASelectionPassesOverTheRest) {
  world.Create("a/1");
  world.Create("b/1");
  world.Create("a/1", 1, "others");
  world.Update("a/1", 2);
  WatchQuery query = From(0);
  query.selection.collections = {"things"};
  query.selection.id_prefix = "a/";
  query.selection.kinds = {versioning::VersionKind::kUpdated};
  Watcher watcher = world.Open(std::move(query));
  world.RunToEnd(watcher);
  EXPECT_THAT(watcher.Seen(), ElementsAre("things/a/1@2"));
  EXPECT_EQ(watcher.resume(), world.world->store().LastPosition());
}

TEST_P(FeedTest, ACollectionsEndPassesAllButItsName) {
  world.Create("a", 1);
  world.Create("a", 1, "others");
  world.DeleteCollection("things");
  world.DeleteCollection("others");
  WatchQuery query = From(0);
  query.selection.collections = {"things"};
  query.selection.id_prefix = "b";
  query.selection.kinds = {versioning::VersionKind::kDeleted};
  query.filter = NumberIs(2);
  Watcher watcher = world.Open(std::move(query));
  world.RunToEnd(watcher);
  EXPECT_THAT(watcher.Seen(), ElementsAre("things"));
}

TEST_P(FeedTest, WhatTheLedgerNoLongerHasIsTrimmed) {
  for (int i = 0; i < 5; ++i) world.Create("id" + std::to_string(i));
  const store::CommitPosition floor = world.Create("kept");
  Watcher asleep = world.Open(From(floor - 2), 1);
  Watcher awake = world.Open(From(floor - 1), 1);
  world.executor.RunDue();
  const UnixMicros now = world.world.clock().Now();
  store::WriteBatch batch;
  batch.Put(
      store::Keyspace::kFeed, std::string(versioning::kLedgerFloorKey),
      versioning::LedgerFloor{.position = floor, .trimmed = floor - 1, .latest = now}.Encode());
  ASSERT_THAT(test_support::AwaitCommit(world.world->store(), std::move(batch)), IsOk());
  world.RunToEnd(awake);
  EXPECT_THAT(awake.Seen(), ElementsAre("things/kept@1"));
  world.RunToEnd(asleep);
  ASSERT_TRUE(asleep.inbox->end);
  EXPECT_THAT(*asleep.inbox->end, HasReason(ErrorReason::kPositionTrimmed));
  EXPECT_EQ(MetadataOf(*asleep.inbox->end, "oldest"), std::to_string(floor - 1));
  Watcher from_the_beginning = world.Open(From(0));
  world.Run({&from_the_beginning});
  EXPECT_THAT(from_the_beginning.inbox->end, Optional(HasReason(ErrorReason::kPositionTrimmed)));
  EXPECT_EQ(world.feed.GetState()->oldest_position, floor);
  WatchQuery query;
  query.start = FromTime{now};
  Watcher from_a_time = world.Open(query);
  world.Run({&from_a_time});
  EXPECT_THAT(from_a_time.inbox->end, Optional(HasReason(ErrorReason::kPositionTrimmed)));
  query.start = FromTime{now + 1};
  Watcher from_a_later_one = world.Open(query);
  world.Run({&from_a_later_one});
  EXPECT_EQ(from_a_later_one.inbox->end, std::nullopt);
}

TEST_P(FeedTest, ContentsOfADeletedCollectionAreMissingAndTheFilterIsNotAsked) {
  world.Create("a", 1);
  world.DeleteCollection("things");
  world.Create("a", 2);
  WatchQuery query = From(0);
  query.include_content = true;
  query.filter = NumberIs(2);
  Watcher watcher = world.Open(std::move(query));
  world.RunToEnd(watcher);
  std::vector<std::pair<int64_t, bool>> versions;
  for (const Message& message : watcher.inbox->messages) {
    for (const Event& event : message.events) {
      if (event.type != EventType::kVersion) continue;
      versions.emplace_back(
          event.version.content ? versioning::testing::NumberIn(event.version) : 0,
          event.content_missing);
    }
  }
  EXPECT_THAT(versions, ElementsAre(std::pair(0, true), std::pair(2, false)));
}

TEST_P(FeedTest, ATimeBeginsWithTheFirstCommitOfItOrLater) {
  world.Create("a");
  world.world.clock().Advance(seconds(3600));
  world.Create("b");
  const UnixMicros time = world.world.clock().Now();
  world.world.clock().Advance(seconds(1));
  world.Create("c");
  world.Create("d");
  WatchQuery query;
  query.start = FromTime{time};
  Watcher watcher = world.Open(query);
  world.RunToEnd(watcher);
  EXPECT_THAT(watcher.Seen(), ElementsAre("things/c@1", "things/d@1"));
  query.start = FromTime{world.world.clock().Now()};
  Watcher late = world.Open(query);
  world.RunToEnd(late);
  EXPECT_THAT(late.Seen(), IsEmpty());
  world.Create("e");
  world.RunToEnd(late);
  EXPECT_THAT(late.Seen(), ElementsAre("things/e@1"));
  query.start = FromTime{world.world.clock().Now() + 1'000'000};
  EXPECT_THAT(world.feed.Open(query, std::make_shared<Inbox>(1)).status(),
              HasReason(ErrorReason::kInvalidField));
}

TEST_P(FeedTest, APlaceBehindTheEndIsUnknown) {
  const store::CommitPosition position = world.Create("a");
  Watcher at_the_end = world.Open(From(position));
  Watcher behind = world.Open(From(position + 1));
  world.Run({&at_the_end, &behind});
  EXPECT_EQ(at_the_end.inbox->end, std::nullopt);
  EXPECT_THAT(behind.inbox->messages, IsEmpty());
  ASSERT_TRUE(behind.inbox->end);
  EXPECT_THAT(*behind.inbox->end, HasReason(ErrorReason::kPositionUnknown));
  EXPECT_EQ(MetadataOf(*behind.inbox->end, "last"), std::to_string(position));
}

TEST_P(FeedTest, ACopyIsAsOfItsPositionAndTheTailFollows) {
  world.Create("a");
  world.Create("b");
  world.Update("a", 2);
  WatchQuery query;
  query.start = FromCopy{};
  Watcher watcher = world.Open(query, 1);
  world.executor.RunDue();
  ASSERT_THAT(watcher.inbox->messages, SizeIs(1));
  const store::CommitPosition at = watcher.inbox->messages[0].progress.copy->at;
  EXPECT_EQ(at, world.world->store().LastPosition());
  world.Update("a", 3);
  world.Create("c");
  world.RunToEnd(watcher);
  std::vector<std::string> documents;
  for (const Message& message : watcher.inbox->messages) {
    documents.insert(documents.end(), message.documents.begin(), message.documents.end());
  }
  EXPECT_THAT(documents, ElementsAre("things/a@2", "things/b@1"));
  EXPECT_THAT(watcher.Seen(), ElementsAre("things/a@3", "things/c@1"));
  // Cut off behind its first document and gone on with.
  FromCopy rest = *watcher.inbox->messages[1].progress.copy;
  EXPECT_FALSE(rest.complete);
  EXPECT_EQ(watcher.inbox->messages[1].progress.resume_position, 0);
  query.start = rest;
  Watcher second = world.Open(query);
  world.RunToEnd(second);
  documents.clear();
  for (const Message& message : second.inbox->messages) {
    documents.insert(documents.end(), message.documents.begin(), message.documents.end());
  }
  EXPECT_THAT(documents, ElementsAre("things/b@1"));
  EXPECT_THAT(second.Seen(), ElementsAre("things/a@3", "things/c@1"));
}

TEST_P(FeedTest, AQuietFeedDoesNothingForAThousandWatchers) {
  world.Create("a");
  std::vector<Watcher> watchers;
  std::vector<Watcher*> all;
  for (int i = 0; i < 1000; ++i) watchers.push_back(world.Open());
  for (Watcher& watcher : watchers) all.push_back(&watcher);
  world.Run(all);
  EXPECT_EQ(world.feed.tail().parked(), 1000u);
  const int64_t turns = world.feed.turns();
  const int64_t looks = world.feed.tail().looks();
  for (int i = 0; i < 100; ++i) {
    world.world.clock().Advance(seconds(60));
    world.Run(all);
  }
  EXPECT_EQ(world.feed.turns(), turns);
  EXPECT_EQ(world.feed.tail().looks(), looks);
  EXPECT_EQ(world.executor.pending(), 0u);
}

TEST_P(FeedTest, OnlyThoseWakeWhomAnEventConcerns) {
  world.Create("a", 1, "ones");
  WatchQuery query;
  query.selection.collections = {"ones"};
  Watcher ones = world.Open(query);
  query.selection.collections = {"twos"};
  Watcher twos = world.Open(query);
  world.Run({&ones, &twos});
  const int64_t turns = world.feed.turns();
  world.Update("a", 2, "ones");
  world.RunToEnd(ones);
  world.Run({&ones, &twos});
  EXPECT_EQ(world.feed.turns(), turns + 1);
  EXPECT_THAT(ones.Seen(), ElementsAre("ones/a@2"));
  EXPECT_THAT(twos.inbox->messages, SizeIs(1));
}

TEST_P(FeedTest, ABookmarkTellsHowFarWasLookedAndOnlyOnce) {
  world.Create("a", 1, "ones");
  WatchQuery query;
  query.selection.collections = {"twos"};
  Watcher watcher = world.Open(query);
  world.RunToEnd(watcher);
  const store::CommitPosition position = world.Update("a", 2, "ones");
  world.RunToEnd(watcher);
  world.world.clock().Advance(seconds(9));
  world.Run({&watcher});
  EXPECT_THAT(watcher.inbox->messages, SizeIs(1));
  world.world.clock().Advance(seconds(2));
  world.Run({&watcher});
  EXPECT_THAT(watcher.inbox->messages, SizeIs(2));
  EXPECT_EQ(watcher.resume(), position);
  for (int i = 0; i < 100; ++i) {
    world.world.clock().Advance(seconds(10));
    world.Run({&watcher});
  }
  EXPECT_THAT(watcher.inbox->messages, SizeIs(2));
  EXPECT_EQ(world.executor.pending(), 0u);
  // There is something to tell again, and it is long due.
  world.Update("a", 3, "ones");
  world.RunToEnd(watcher);
  world.world.clock().Advance(seconds(1));
  world.Run({&watcher});
  EXPECT_THAT(watcher.inbox->messages, SizeIs(3));
}

TEST_P(FeedTest, WhileNobodyFollowsNothingIsRead) {
  { Watcher watcher = world.Open(); }
  const int64_t looks = world.feed.tail().looks();
  for (int i = 0; i < 10; ++i) world.Create("id" + std::to_string(i));
  world.executor.RunDue();
  EXPECT_EQ(world.feed.tail().looks(), looks);
  Watcher again = world.Open(From(0));
  world.RunToEnd(again);
  EXPECT_THAT(again.Seen(), SizeIs(10));
}

TEST_P(FeedTest, WhatEndsWhileItsTurnRunsSendsNoMore) {
  for (int i = 0; i < 10; ++i) world.Create("id" + std::to_string(i));
  Watcher watcher = world.Open(From(0), 4);
  world.executor.RunDue();  // the first message
  watcher.inbox->before_add = [&] {
    watcher.inbox->is_closed = true;
    watcher.watch.reset();
  };
  watcher.watch->Ready();
  world.executor.RunDue();
  EXPECT_THAT(watcher.inbox->messages, SizeIs(1));
  EXPECT_EQ(watcher.inbox->end, std::nullopt);
  EXPECT_EQ(world.feed.tail().parked(), 0u);
  EXPECT_EQ(world.feed.GetState()->watchers, 0);
}

TEST_P(FeedTest, WhoMayNoLongerReadIsToldSoAndNothingElse) {
  Watcher watcher = world.Open();
  world.Run({&watcher});
  watcher.inbox->admitted = Error(ErrorReason::kPermissionDenied, "no");
  world.Create("a");
  world.RunToEnd(watcher);
  EXPECT_THAT(watcher.Seen(), IsEmpty());
  EXPECT_THAT(watcher.inbox->end, Optional(HasReason(ErrorReason::kPermissionDenied)));
}

TEST_P(FeedTest, TellsOfItself) {
  EXPECT_EQ(world.feed.GetState()->oldest_position, 0);
  const store::CommitPosition first = world.Create("a");
  Watcher watcher = world.Open(From(0));
  world.RunToEnd(watcher);
  const store::CommitPosition last = world.Update("a", 2);
  world.RunToEnd(watcher);
  const absl::StatusOr<FeedState> state = world.feed.GetState();
  ASSERT_THAT(state, IsOk());
  EXPECT_LE(state->oldest_position, first);
  EXPECT_EQ(state->last_position, last);
  EXPECT_EQ(state->watchers, 1);
  EXPECT_EQ(state->parked_watchers, 1);
  EXPECT_EQ(state->events_sent, 2);
  EXPECT_EQ(state->catch_up_reads, 1);
}

TEST(Feed, APlaceOfAnEarlierLifeIsTrimmed) {
  FeedWorld world;
  const store::CommitPosition start = world.world->store().StartPosition();
  ASSERT_GT(start, 1);
  Watcher earlier = world.Open(From(start - 1));
  Watcher first = world.Open(From(start));
  world.Run({&earlier, &first});
  ASSERT_TRUE(earlier.inbox->end);
  EXPECT_THAT(*earlier.inbox->end, HasReason(ErrorReason::kPositionTrimmed));
  EXPECT_EQ(MetadataOf(*earlier.inbox->end, "oldest"), std::to_string(start));
  EXPECT_EQ(first.inbox->end, std::nullopt);
}

TEST(Feed, AnOverrunRingCostsNoEvent) {
  FeedOptions options;
  options.ring.entries_max = 8;
  FeedWorld world("memory", options);
  Watcher slow = world.Open(From(0), 3);
  world.Run({&slow});
  for (int i = 0; i < 100; ++i) world.Create("id" + std::to_string(i));
  EXPECT_EQ(world.feed.tail().looks(), 0) << "the tail has looked where it was not let";
  world.RunToEnd(slow);
  ASSERT_THAT(slow.Seen(), SizeIs(100));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(slow.Seen()[i], "things/id" + std::to_string(i) + "@1");
  EXPECT_GT(world.feed.GetState()->catch_up_reads, 0);
}

// Commits come exactly where a wake could get lost: while the tail reads, and while a reader does.
TEST(Feed, ACommitInBetweenIsNotMissed) {
  for (int at = 0; at < 12; ++at) {
    versioning::testing::World world;
    test_support::HookedStore hooked(world.engine());
    test_support::ManualExecutor executor(world.clock());
    versioning::testing::Process reading(hooked, {}, world.clock());
    int scans = 0;
    Feed feed(hooked, reading.documents(), world.clock(), executor);
    Watcher watcher{std::make_shared<Inbox>(1000), nullptr};
    watcher.watch = *feed.Open({}, watcher.inbox);
    watcher.watch->Ready();
    const auto run = [&] {
      size_t done = 1;
      while (done > 0) {
        done = executor.RunDue();
        for (; watcher.inbox->waiting > 0; --watcher.inbox->waiting, ++done) watcher.watch->Ready();
      }
    };
    run();
    test_support::StoreHooks hooks;
    hooks.before_scan = [&](store::Keyspace keyspace, const store::Range&) {
      if (keyspace != store::Keyspace::kLedger || scans++ != at) return;
      ASSERT_THAT(
          world->Create(versioning::testing::Request("between"), versioning::testing::Number(1)),
          IsOk());
    };
    hooked.set_hooks(hooks);
    for (int i = 0; i < 6; ++i) {
      ASSERT_THAT(world->Create(versioning::testing::Request("id" + std::to_string(i)),
                                versioning::testing::Number(1)),
                  IsOk());
      run();
    }
    hooked.set_hooks({});
    EXPECT_THAT(watcher.Seen(), SizeIs(7)) << "a commit before scan " << at << " of " << scans;
    watcher.watch.reset();
  }
}

TEST(Feed, TakesSoManyWatchersAndNoMore) {
  FeedOptions options;
  options.watchers_max = 2;
  FeedWorld world("memory", options);
  Watcher one = world.Open();
  Watcher two = world.Open();
  EXPECT_THAT(world.feed.Open({}, std::make_shared<Inbox>(1)).status(),
              HasReason(ErrorReason::kOverloaded));
  two.watch.reset();
  Watcher three = world.Open();
}

// A commit that does not fit into a turn as a whole, and is gone from the ring before it is sent.
TEST(Feed, AWatcherKeepsWhatItIsAboutToSend) {
  FeedOptions options;
  options.ring.entries_max = 300;
  FeedWorld world("memory", options);
  Watcher watcher = world.Open();
  world.Run({&watcher});
  for (int i = 0; i < 254; ++i) world.Create("id" + std::to_string(i));
  std::vector<versioning::Change> changes;
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    changes.push_back(versioning::testing::Adding(versioning::testing::Named(id), 1));
  }
  ASSERT_THAT(versioning::testing::Commit(world.world.process(),
                                          versioning::testing::UnitOf(std::move(changes))),
              IsOk());
  watcher.inbox->before_add = [&] {
    if (std::exchange(watcher.inbox->before_add, nullptr) == nullptr) return;
    for (int i = 0; i < 320; ++i) world.Create("later" + std::to_string(i));
    world.executor.RunDue();
  };
  world.RunToEnd(watcher);
  const std::vector<std::string> seen = watcher.Seen();
  ASSERT_THAT(seen, SizeIs(254 + 5 + 320));
  EXPECT_EQ(seen[253], "things/id253@1");
  EXPECT_EQ(seen[254], "things/a@1");
  EXPECT_EQ(seen[258], "things/e@1");
  EXPECT_EQ(seen[259], "things/later0@1");
}

// However little of it is sent.
TEST(Feed, ATurnEndsWithWhatItMayLookAt) {
  FeedWorld world;
  constexpr int kDocuments = 40;
  const std::string large((size_t{1} << 20) - 100, 'x');
  for (int i = 0; i < kDocuments; ++i) {
    const auto created = world.world->Create(versioning::testing::Request(std::to_string(i)),
                                             versioning::testing::Text(large));
    ASSERT_THAT(created, IsOk());
  }
  WatchQuery query = From(0);
  query.filter = NumberIs(2);
  Watcher tail = world.Open(query);
  int64_t turns = world.feed.turns();
  world.RunToEnd(tail);
  EXPECT_THAT(tail.Seen(), IsEmpty());
  EXPECT_GE(world.feed.turns() - turns, 5);
  query.start = FromCopy{};
  Watcher copy = world.Open(query);
  turns = world.feed.turns();
  world.RunToEnd(copy);
  EXPECT_TRUE(copy.inbox->messages.back().progress.copy->complete);
  EXPECT_GE(world.feed.turns() - turns, 5);
}

TEST(Feed, NeedsPositions) {
  versioning::testing::World world({"memory", versioning::testing::Mode::kSingle});
  test_support::ManualExecutor executor(world.clock());
  Feed feed(world->store(), world->documents(), world.clock(), executor);
  EXPECT_THAT(feed.Open({}, std::make_shared<Inbox>(1)).status(),
              HasReason(ErrorReason::kUnsupportedByEngine));
  EXPECT_THAT(feed.GetState().status(), HasReason(ErrorReason::kUnsupportedByEngine));
}

}  // namespace
}  // namespace strata::feed::testing
