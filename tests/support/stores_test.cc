// The stores that lack what an engine need not have keep their own promises.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/hooked_store.h"
#include "tests/support/late_store.h"
#include "tests/support/live_store.h"
#include "tests/support/restarting_stamps.h"
#include "tests/support/shared_store.h"
#include "tests/support/status_matchers.h"

namespace strata::test_support {
namespace {

using store::Keyspace;

std::unique_ptr<store::Store> OpenMemory() { return *engines::OpenEngine("memory", {}); }

// Nothing: there is no record.
std::string StoredAt(const store::Reader& reader, std::string_view key) {
  const auto record = reader.Get(Keyspace::kMeta, key);
  EXPECT_THAT(record, IsOk());
  return record.ok() && *record ? std::string((*record)->value) : "";
}

store::WriteBatch PutBatch(std::string_view key, int64_t value) {
  store::WriteBatch batch;
  batch.Put(Keyspace::kMeta, std::string(key), std::to_string(value));
  return batch;
}

bool Commits(store::Store& store, store::WriteBatch batch) {
  const store::CommitResult result = AwaitCommit(store, std::move(batch));
  return result.status.ok() && result.committed;
}

TEST(LiveStore, ShowsInASnapshotWhatIsWrittenLater) {
  const auto engine = OpenMemory();
  LiveStore store(*engine);
  EXPECT_FALSE(store.capabilities().snapshots);
  EXPECT_TRUE(store.capabilities().atomic_batches);
  const auto reader = store.Snapshot();
  ASSERT_TRUE(Commits(store, PutBatch("a", 1)));
  EXPECT_NE(StoredAt(*reader, "a"), "");
  EXPECT_TRUE(reader->Scan(Keyspace::kMeta, {"a", "b"})->Valid());
}

TEST(LiveStore, ReadsManyAtOneMomentOrOneAfterTheOther) {
  for (const Many many : {Many::kOneMoment, Many::kEach}) {
    const auto engine = OpenMemory();
    HookedStore hooked(*engine);
    LiveStore store(hooked, many);
    ASSERT_TRUE(Commits(*engine, PutBatch("a", 1)));
    StoreHooks hooks;
    hooks.before_get = [&](Keyspace, std::string_view key) {
      if (key != "b") return;
      EXPECT_TRUE(Commits(*engine, PutBatch("b", 1)));
    };
    hooked.set_hooks(std::move(hooks));
    const std::vector<store::RecordKey> keys{{Keyspace::kMeta, "a"}, {Keyspace::kMeta, "b"}};
    const auto records = store.Snapshot()->GetMany(keys);
    EXPECT_TRUE(records[0]->has_value());
    EXPECT_EQ(records[1]->has_value(), many == Many::kEach);
  }
}

TEST(SharedStore, TellsEveryProcessOfEachCommit) {
  const auto engine = OpenMemory();
  Fleet fleet(*engine);
  SharedStore one(*engine, fleet);
  auto other = std::make_unique<SharedStore>(*engine, fleet);
  int told_one = 0;
  int told_other = 0;
  one.OnPosition([&] { ++told_one; });
  other->OnPosition([&] { ++told_other; });
  ASSERT_TRUE(Commits(one, PutBatch("a", 1)));
  EXPECT_GT(told_one, 0);
  EXPECT_GT(told_other, 0);
  one.OnPosition(nullptr);
  told_one = told_other = 0;
  ASSERT_TRUE(Commits(one, PutBatch("a", 2)));
  EXPECT_EQ(told_one, 0);
  EXPECT_GT(told_other, 0);
  told_other = 0;
  other.reset();
  ASSERT_TRUE(Commits(one, PutBatch("a", 3)));
  EXPECT_EQ(told_other, 0);
}

TEST(RestartingStamps, CountsFromOneAgainAfterADeletion) {
  const auto engine = OpenMemory();
  ASSERT_TRUE(Commits(*engine, PutBatch("before", 1)));
  RestartingStamps store(*engine);
  EXPECT_FALSE(store.capabilities().commit_positions);
  const auto stamp_of = [&](const store::Reader& reader, std::string_view key) {
    const auto record = reader.Get(Keyspace::kMeta, key);
    EXPECT_TRUE(record.ok() && *record);
    EXPECT_EQ((*record)->position, 0);
    const auto cursor = reader.Scan(Keyspace::kMeta, {std::string(key), ""});
    EXPECT_EQ(cursor->stamp(), (*record)->stamp);
    const std::vector<store::RecordKey> keys{{Keyspace::kMeta, key}};
    EXPECT_EQ((*reader.GetMany(keys)[0])->stamp, (*record)->stamp);
    return (*record)->stamp;
  };
  EXPECT_EQ(stamp_of(store, "before"), 1);
  for (int stamp = 1; stamp <= 3; ++stamp) {
    ASSERT_TRUE(Commits(store, PutBatch("a", stamp)));
    EXPECT_EQ(stamp_of(store, "a"), stamp);
  }
  const auto snapshot = store.Snapshot();
  const auto replace = [&](store::Stamp stamp) {
    store::WriteBatch batch;
    batch.Replace(Keyspace::kMeta, "a", "replaced", stamp);
    return Commits(store, std::move(batch));
  };
  EXPECT_FALSE(replace(2));
  EXPECT_TRUE(replace(3));
  EXPECT_EQ(stamp_of(*snapshot, "a"), 3);
  store::WriteBatch deletion;
  deletion.DeleteIf(Keyspace::kMeta, "a", 4);
  ASSERT_TRUE(Commits(store, std::move(deletion)));
  ASSERT_TRUE(Commits(store, PutBatch("a", 9)));
  EXPECT_EQ(stamp_of(store, "a"), 1);
}

TEST(LateStore, GoesOnAfterOutcomesThatNobodyKnows) {
  constexpr int kCommits = 3'000;
  const auto engine = OpenMemory();
  LateStore store(*engine, /*seed=*/3, /*share=*/0.5);
  std::vector<int> unknown;
  const auto key_of = [](int number) { return "late" + std::to_string(number); };
  int late = 0;  // that took effect after its answer, and after others
  int last_stored = 0;
  for (int i = 0; i < kCommits; ++i) {
    const store::CommitResult result = AwaitCommit(store, PutBatch(key_of(i), i));
    const bool stored = StoredAt(*engine, key_of(i)) != "";
    if (result.status.ok()) {
      EXPECT_TRUE(result.committed && stored);
    } else {
      EXPECT_THAT(result.status, HasReason(ErrorReason::kOutcomeUnknown));
      if (stored) ++last_stored;
      if (!stored) unknown.push_back(i);
    }
  }
  store.StopLosing();
  EXPECT_THAT(AwaitCommit(store, PutBatch("last", 1)).status, IsOk());
  store.Settle();
  for (const int number : unknown) late += StoredAt(*engine, key_of(number)) != "" ? 1 : 0;
  // About half are unknown, and of those about a third each took effect, does so late, and never.
  EXPECT_NEAR(static_cast<double>(store.unknown()), kCommits / 2, kCommits / 20);
  EXPECT_NEAR(last_stored, kCommits / 6, kCommits / 20);
  EXPECT_NEAR(late, kCommits / 6, kCommits / 20);
  EXPECT_EQ(static_cast<size_t>(late), store.late());
}

TEST(LateStore, HoldsALateBatchToItsGuards) {
  const auto engine = OpenMemory();
  LateStore store(*engine, /*seed=*/1, /*share=*/1);
  for (int i = 0; i < 100; ++i) {
    const std::string key = "key" + std::to_string(i);
    store::WriteBatch batch;
    batch.Insert(Keyspace::kMeta, key, "early or late");
    EXPECT_THAT(AwaitCommit(store, std::move(batch)).status,
                HasReason(ErrorReason::kOutcomeUnknown));
    store::WriteBatch another;
    another.Insert(Keyspace::kMeta, key, "another's");
    const bool early = !Commits(*engine, std::move(another));
    store.Settle();
    EXPECT_EQ(StoredAt(*engine, key), early ? "early or late" : "another's");
  }
  EXPECT_GT(store.late(), 10u);
}

}  // namespace
}  // namespace strata::test_support
