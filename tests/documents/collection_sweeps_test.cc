// What a deleted collection leaves behind goes by itself, at a cost that grows with its size, and
// nobody mistakes what comes later for what was there before.
#include "schemas/versioning/collection_sweeps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/store/key_codec.h"
#include "tests/documents/world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/status_matchers.h"

namespace strata::versioning::testing {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using store::Keyspace;
using test_support::HasReason;
using test_support::IsOk;

constexpr std::array kOfDocuments = {Keyspace::kHeads, Keyspace::kVersions, Keyspace::kRequests};

size_t Count(const store::Reader& reader, Keyspace keyspace, const store::Range& range = {}) {
  size_t count = 0;
  for (auto cursor = reader.Scan(keyspace, range); cursor->Valid(); cursor->Next()) ++count;
  return count;
}

WriteRequest InCollection(const std::string& name) {
  WriteRequest request = Request();
  request.name.collection = name;
  return request;
}

// A server whose executor runs when the test says so.
class ManualServer {
 public:
  ManualServer(store::Store& store, test_support::ManualClock& clock)
      : hooked(store), executor(clock), documents_(hooked, clock, entropy_, executor, Options()) {}

  Collections& collections() { return documents_.collections(); }

  absl::StatusOr<WriteResult> Create(WriteRequest request, int64_t number) {
    Answer answer;
    documents_.Create(std::move(request), Number(number), answer.Callback());
    // Rocksdb answers on a thread of its own; a lost race goes through the executor.
    while (!answer.ready()) {
      executor.RunDue();
      std::this_thread::yield();
    }
    return answer.Wait();
  }
  absl::Status Delete(const std::string& name) {
    std::atomic<bool> done = false;
    absl::Status status;
    collections().Delete({name, /*force=*/true}, [&](const auto& deleted) {
      status = deleted.status();
      done = true;
    });
    while (!done) std::this_thread::yield();
    return status;
  }
  // Runs what is due until `holds`, or fails the test.
  template <typename Condition>
  void RunUntil(Condition&& holds) {
    const auto start = std::chrono::steady_clock::now();
    while (!holds()) {
      ASSERT_LT(std::chrono::steady_clock::now() - start, minutes(1));
      executor.RunDue();
      std::this_thread::yield();
    }
  }

  test_support::HookedStore hooked;
  test_support::ManualExecutor executor;

 private:
  // Nobody moves the clock while a write waits.
  static DocumentsOptions Options() {
    DocumentsOptions options;
    options.write.backoff_max = std::chrono::microseconds(0);
    return options;
  }

  test_support::SeededEntropy entropy_{11};
  Documents documents_;
};

struct SweepCase {
  std::string engine;
  Mode mode;
};

class CollectionSweepsTest : public ::testing::TestWithParam<SweepCase> {
 protected:
  CollectionSweepsTest() : world({GetParam().engine, GetParam().mode}) { Restart(); }

  void Restart() { server = std::make_unique<ManualServer>(world->store(), world.clock()); }

  int64_t Incarnation(const std::string& name = "things") {
    const auto found = server->collections().Require(world->store(), name);
    EXPECT_THAT(found, IsOk());
    return found.ok() ? (*found)->incarnation : 0;
  }
  // Records as documents have them, without the cost of writing documents.
  void Fill(int64_t incarnation, int count) {
    for (int i = 0; i < count;) {
      store::WriteBatch batch;
      for (int k = 0; k < 1000 && i < count; ++k, ++i) {
        const std::string id = "d" + std::to_string(100'000 + i);
        batch.Put(Keyspace::kHeads, store::HeadKey(incarnation, id),
                  document::BsonBuilder().Take());
        batch.Put(Keyspace::kVersions, store::VersionKey(incarnation, id, 1),
                  document::BsonBuilder().Take());
      }
      ASSERT_TRUE(test_support::AwaitCommit(world.engine(), std::move(batch)).committed);
    }
  }
  size_t Left() {
    size_t left = 0;
    for (const Keyspace keyspace : kOfDocuments) left += Count(world.engine(), keyspace);
    return left;
  }
  size_t Records() { return Count(world.engine(), Keyspace::kCollections); }
  size_t SweepRecords(bool swept) {
    size_t count = 0;
    const store::Range range{std::string(kSweepKeyPrefix), store::PrefixEnd(kSweepKeyPrefix)};
    for (auto cursor = world.engine().Scan(Keyspace::kMeta, range); cursor->Valid();
         cursor->Next()) {
      const auto record = SweepRecord::Decode(cursor->value());
      if (record.ok() && record->swept.has_value() == swept) ++count;
    }
    return count;
  }
  bool positions() { return world->store().capabilities().commit_positions; }
  // Until nothing is left to do but to remove the tombstone in a day.
  void RunSweep() {
    const size_t waiting = positions() ? 1 : 0;
    server->RunUntil([&] {
      return SweepRecords(false) == 0 && SweepRecords(true) == waiting &&
             server->executor.pending() == waiting;
    });
  }
  void RunTombstonesRemoval(size_t records_left) {
    server->RunUntil([&] { return SweepRecords(true) == 0 && Records() == records_left; });
  }

  World world;
  std::unique_ptr<ManualServer> server;
};

// Engines keep traces of deleted keys for a while, and a scan that begins before them walks over
// every one: 500 records a chunk, so a scan for each chunk from the first key on is quadratic.
TEST_P(CollectionSweepsTest, NoScanWalksOverWhatWasDeletedBefore) {
  ASSERT_THAT(server->Create(Request(), 1), IsOk());
  constexpr int kDocuments = 10'000;
  Fill(Incarnation(), kDocuments);
  std::map<Keyspace, std::set<std::string>> deleted;
  size_t traces = 0;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch& batch) {
    for (const store::Write& write : batch.writes()) {
      if (write.kind == store::WriteKind::kDelete) deleted[write.keyspace].insert(write.key);
    }
  };
  hooks.before_scan = [&](Keyspace keyspace, const store::Range& range) {
    const std::set<std::string>& keys = deleted[keyspace];
    traces += static_cast<size_t>(
        std::distance(keys.lower_bound(range.begin), keys.lower_bound(range.end)));
  };
  server->hooked.set_hooks(std::move(hooks));
  ASSERT_THAT(server->Delete("things"), IsOk());
  RunSweep();
  EXPECT_EQ(Left(), 0u);
  // Without atomic batches a second pass looks for what a slow writer added: once over everything.
  const bool sure = world->store().capabilities().atomic_batches;
  EXPECT_LE(traces, sure ? 0 : size_t{2} * (kDocuments + 1));
  EXPECT_EQ(deleted[Keyspace::kVersions].size(), kDocuments + 0u);
}

TEST_P(CollectionSweepsTest, WhatIsRefusedIsTriedAgainAtLeastOnceAMinute) {
  ASSERT_THAT(server->Create(Request(), 1), IsOk());
  Fill(Incarnation(), 1200);
  ASSERT_THAT(server->Delete("things"), IsOk());
  constexpr int kRefusals = 30;
  int refused = 0;
  test_support::StoreHooks hooks;
  hooks.instead_of_commit = [&](const store::WriteBatch&) -> std::optional<store::CommitResult> {
    if (refused == kRefusals) return std::nullopt;
    ++refused;
    store::CommitResult result;
    result.status = Error(ErrorReason::kOverloaded, "too many commits wait");
    return result;
  };
  server->hooked.set_hooks(std::move(hooks));
  const auto start = world.clock().SteadyNow();
  while (refused < kRefusals) ASSERT_EQ(server->executor.RunAll(1), 1u) << refused;
  const auto took = world.clock().SteadyNow() - start;
  EXPECT_GE(took, minutes(kRefusals / 2));  // it waits between two tries
  EXPECT_LE(took, minutes(kRefusals));
  world.clock().Advance(minutes(1));
  RunSweep();
  EXPECT_EQ(Left(), 0u);
}

TEST_P(CollectionSweepsTest, ATombstoneGoesADayAfterTheSweepWhereStampsNeverComeBack) {
  ASSERT_THAT(server->Create(Request(), 1), IsOk());
  ASSERT_THAT(server->Delete("things"), IsOk());
  RunSweep();
  world.clock().Advance(hours(24) - seconds(1));
  server->executor.RunDue();
  EXPECT_EQ(Records(), 1u);
  world.clock().Advance(seconds(1));
  if (positions()) {
    RunTombstonesRemoval(0);
  } else {
    EXPECT_EQ(server->executor.RunAll(), 0u);
    EXPECT_EQ(Records(), 1u);
    EXPECT_EQ(SweepRecords(true), 0u);
  }
  ASSERT_THAT(server->Create(Request(), 2), IsOk());
  EXPECT_EQ(Incarnation(), 2);
}

TEST_P(CollectionSweepsTest, ARestartNeitherLosesNorDelaysATombstonesEnd) {
  if (!positions()) GTEST_SKIP() << "tombstones stay";
  ASSERT_THAT(server->Create(Request(), 1), IsOk());
  ASSERT_THAT(server->Delete("things"), IsOk());
  RunSweep();
  world.clock().Advance(hours(20));
  Restart();
  server->collections().ResumeSweeps();
  server->executor.RunDue();
  EXPECT_EQ(Records(), 1u);
  world.clock().Advance(hours(4));
  RunTombstonesRemoval(0);
}

TEST_P(CollectionSweepsTest, ATombstoneWithoutRecordOfItsSweepIsTakenUp) {
  if (!positions()) GTEST_SKIP() << "tombstones stay";
  ASSERT_THAT(server->Create(Request(), 1), IsOk());
  ASSERT_THAT(server->Delete("things"), IsOk());
  ASSERT_THAT(server->Create(InCollection("others"), 1), IsOk());
  RunSweep();
  store::WriteBatch forget;
  forget.Delete(Keyspace::kMeta, SweepKey(1));
  ASSERT_TRUE(test_support::AwaitCommit(world.engine(), std::move(forget)).committed);
  Restart();
  server->collections().ResumeSweeps();
  RunSweep();
  world.clock().Advance(hours(24));
  RunTombstonesRemoval(1);
}

TEST_P(CollectionSweepsTest, ASuccessorIsNotTakenForTheTombstone) {
  ASSERT_THAT(server->Create(Request(), 1), IsOk());
  ASSERT_THAT(server->Delete("things"), IsOk());
  RunSweep();
  ASSERT_THAT(server->Create(Request(), 2), IsOk());
  world.clock().Advance(hours(24));
  RunTombstonesRemoval(1);
  EXPECT_EQ(Incarnation(), 2);
}

// The removal has read the tombstone when a successor replaces it.
TEST_P(CollectionSweepsTest, ASuccessorThatIsMadeWhileTheTombstoneGoesStays) {
  if (!positions()) GTEST_SKIP() << "tombstones stay";
  ASSERT_THAT(server->Create(Request(), 1), IsOk());
  ASSERT_THAT(server->Delete("things"), IsOk());
  RunSweep();
  bool made = false;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch& batch) {
    if (made || batch.writes().front().keyspace != Keyspace::kCollections) return;
    made = true;
    ASSERT_THAT(world->Create(Request(), Number(2)), IsOk());
  };
  server->hooked.set_hooks(std::move(hooks));
  world.clock().Advance(hours(24));
  server->RunUntil([&] { return made; });
  // The removal lost its guard and looks again after a while, counted from when it heard of it.
  server->RunUntil([&] {
    world.clock().Advance(minutes(1));
    return SweepRecords(true) == 0 && Records() == 1;
  });
  EXPECT_EQ(Incarnation(), 2);
  EXPECT_THAT(world->documents().Get({"things", "a"}, {}), IsOk());
}

// Whoever read the collection before it was deleted never commits into nothing, nor into what bears
// its name later, whether the tombstone is still there or not.
TEST_P(CollectionSweepsTest, AWriterOfBeforeLosesAgainstAMissingTombstone) {
  if (!positions()) GTEST_SKIP() << "tombstones stay";
  for (const bool successor : {false, true}) {
    SCOPED_TRACE(successor);
    ASSERT_THAT(server->Create(Request("a"), 1), IsOk());
    const int64_t before = Incarnation();
    ManualServer slow(world->store(), world.clock());
    bool gone = false;
    test_support::StoreHooks hooks;
    hooks.before_commit = [&](const store::WriteBatch&) {
      if (gone) return;
      gone = true;
      ASSERT_THAT(server->Delete("things"), IsOk());
      RunSweep();
      world.clock().Advance(hours(24));
      RunTombstonesRemoval(0);
      if (successor) {
        ASSERT_THAT(server->Create(Request("b"), 1), IsOk());
      }
    };
    slow.hooked.set_hooks(std::move(hooks));
    const std::string id = successor ? "d" : "c";
    ASSERT_OK_AND_ASSIGN(const WriteResult written, slow.Create(Request(id), 1));
    EXPECT_EQ(written.version.header.version, 1);
    EXPECT_GT(Incarnation(), before);
    EXPECT_THAT(world->documents().Get({"things", id}, {}), IsOk());
    for (const Keyspace keyspace : kOfDocuments) {
      EXPECT_EQ(Count(world.engine(), keyspace, store::IncarnationRange(before)), 0u);
    }
  }
}

// Creators that read a tombstone, or nothing, before the collection came and went.
TEST_P(CollectionSweepsTest, ACreatorOfBeforeMakesOneCollection) {
  if (!positions()) GTEST_SKIP() << "tombstones stay";
  for (const bool tombstone : {false, true}) {
    SCOPED_TRACE(tombstone);
    if (tombstone) {
      ASSERT_THAT(server->Create(Request("a"), 1), IsOk());
      ASSERT_THAT(server->Delete("things"), IsOk());
      RunSweep();
    }
    ManualServer slow(world->store(), world.clock());
    bool stepped = false;
    test_support::StoreHooks hooks;
    // It has read the collection's record and goes on to make a new one.
    hooks.before_get = [&](Keyspace /*keyspace*/, std::string_view key) {
      if (stepped || key != kNextIncarnationKey) return;
      stepped = true;
      if (!tombstone) {
        ASSERT_THAT(server->Create(Request("b"), 1), IsOk());
        ASSERT_THAT(server->Delete("things"), IsOk());
        RunSweep();
      }
      world.clock().Advance(hours(24));
      RunTombstonesRemoval(0);
    };
    slow.hooked.set_hooks(std::move(hooks));
    ASSERT_THAT(slow.Create(Request("c"), 1), IsOk());
    EXPECT_TRUE(stepped);
    EXPECT_THAT(world->documents().Get({"things", "b"}, {}),
                HasReason(ErrorReason::kDocumentNotFound));
    EXPECT_EQ(Left(),
              Count(world.engine(), Keyspace::kHeads, store::IncarnationRange(Incarnation())));
    ASSERT_THAT(server->Delete("things"), IsOk());
    RunSweep();
    world.clock().Advance(hours(24));
    RunTombstonesRemoval(0);
  }
}

TEST_P(CollectionSweepsTest, WhatIsDeletedLeavesTheCache) {
  ASSERT_THAT(server->Create(Request(), 1), IsOk());
  ManualServer other(world->store(), world.clock());
  std::weak_ptr<const Collection> here = *server->collections().Find(world->store(), "things");
  std::weak_ptr<const Collection> there = *other.collections().Find(world->store(), "things");
  ASSERT_FALSE(here.expired() || there.expired());
  ASSERT_THAT(server->Delete("things"), IsOk());
  EXPECT_TRUE(here.expired());
  EXPECT_EQ(*other.collections().Find(world->store(), "things"), nullptr);
  EXPECT_TRUE(there.expired());
}

TEST_P(CollectionSweepsTest, TheCacheIsBounded) {
  ASSERT_THAT(server->Create(Request(), 1), IsOk());
  const auto record = world.engine().Get(Keyspace::kCollections, "things");
  std::vector<std::weak_ptr<const Collection>> found;
  constexpr size_t kCollections = 10'100;
  for (size_t i = 0; i < kCollections;) {
    store::WriteBatch batch;
    for (int k = 0; k < 100; ++k, ++i) {
      batch.Put(Keyspace::kCollections, std::to_string(i), std::string((*record)->value));
    }
    ASSERT_TRUE(test_support::AwaitCommit(world.engine(), std::move(batch)).committed);
  }
  for (size_t i = 0; i < kCollections; ++i) {
    found.push_back(*server->collections().Find(world.engine(), std::to_string(i)));
  }
  const auto kept =
      std::count_if(found.begin(), found.end(), [](const auto& each) { return !each.expired(); });
  EXPECT_LE(kept, 10'000);
  EXPECT_GT(kept, 9'000);
}

std::vector<SweepCase> Cases() {
  std::vector<SweepCase> cases;
  for (const engines::Engine& engine : engines::AllEngines()) {
    cases.push_back({std::string(engine.name), Mode::kAtomic});
  }
  cases.push_back({"memory", Mode::kSingle});
  return cases;
}

std::string CaseName(const ::testing::TestParamInfo<SweepCase>& info) {
  return info.param.engine + "_" + std::string(ModeName(info.param.mode));
}

INSTANTIATE_TEST_SUITE_P(All, CollectionSweepsTest, ::testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace strata::versioning::testing
