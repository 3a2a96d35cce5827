// The doubles keep their own promises.
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/executors.h"
#include "tests/support/hooked_store.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/single_record_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"

namespace strata::test_support {
namespace {

using std::chrono::microseconds;
using store::Keyspace;
using testing::ElementsAre;

std::unique_ptr<store::Store> MemoryStore() { return *engines::OpenEngine("memory", {}); }

std::string ValueAt(const store::Reader& reader, std::string_view key) {
  const auto record = reader.Get(Keyspace::kMeta, key);
  EXPECT_THAT(record, IsOk());
  return record.ok() && *record ? std::string((*record)->value) : "(none)";
}

TEST(ManualClock, MovesOnlyWhenMoved) {
  ManualClock clock;
  EXPECT_EQ(clock.Now(), ManualClock::kStart);
  const auto steady = clock.SteadyNow();
  clock.Advance(microseconds(5));
  clock.SetNow(3);
  EXPECT_EQ(clock.Now(), 3);
  EXPECT_EQ(clock.SteadyNow() - steady, microseconds(5));
  clock.StepAtEachCall(microseconds(2));
  EXPECT_EQ(clock.Now(), 3);
  EXPECT_EQ(clock.Now(), 5);
}

TEST(SeededEntropy, RepeatsItself) {
  EXPECT_EQ(SeededEntropy(7).Bytes(20), SeededEntropy(7).Bytes(20));
  EXPECT_NE(SeededEntropy(7).Bytes(20), SeededEntropy(8).Bytes(20));
}

TEST(ManualExecutor, RunsWorkByDueTimeAndMovesTheClock) {
  ManualClock clock;
  ManualExecutor executor(clock);
  std::vector<int> ran;
  executor.Schedule(microseconds(20), [&] { ran.push_back(20); });
  executor.Schedule([&] {
    ran.push_back(0);
    executor.Schedule(microseconds(10), [&] { ran.push_back(10); });
    executor.Schedule([&] { ran.push_back(1); });
  });
  EXPECT_EQ(executor.RunDue(), 2u);
  EXPECT_THAT(ran, ElementsAre(0, 1));
  EXPECT_EQ(executor.pending(), 2u);
  EXPECT_EQ(executor.RunAll(), 2u);
  EXPECT_THAT(ran, ElementsAre(0, 1, 10, 20));
  EXPECT_EQ(clock.Now(), ManualClock::kStart + 20);
}

TEST(InlineExecutor, RunsNestedWorkAfterItsParent) {
  InlineExecutor executor;
  std::vector<int> ran;
  executor.Schedule([&] {
    executor.Schedule([&] { ran.push_back(2); });
    ran.push_back(1);
  });
  EXPECT_THAT(ran, ElementsAre(1, 2));
}

TEST(ThreadExecutor, RunsWorkInOrder) {
  std::vector<int> ran;
  std::mutex mutex;
  std::condition_variable changed;
  ThreadExecutor executor;
  for (int i = 0; i < 3; ++i) {
    executor.Schedule(microseconds(i), [&, i] {
      const std::lock_guard lock(mutex);
      ran.push_back(i);
      changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return ran.size() == 3; });
  EXPECT_THAT(ran, ElementsAre(0, 1, 2));
}

TEST(TemporaryDirectory, IsGoneAfterwards) {
  std::filesystem::path path;
  {
    const TemporaryDirectory directory;
    path = directory.path();
    std::filesystem::create_directories(path / "a" / "b");
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(SingleRecordStore, StopsAtTheFirstGuardThatFailsAndKeepsThePrefix) {
  const auto inner = MemoryStore();
  SingleRecordStore store(*inner);
  store::WriteBatch taken;
  taken.Put(Keyspace::kMeta, "b", "taken");
  ASSERT_TRUE(AwaitCommit(store, taken).committed);

  store::WriteBatch before;
  before.Insert(Keyspace::kMeta, "a", "1");
  before.Insert(Keyspace::kMeta, "b", "2");
  before.Insert(Keyspace::kMeta, "c", "3");
  store::CommitResult result = AwaitCommit(store, before);
  EXPECT_THAT(result, IsOk());
  EXPECT_FALSE(result.committed);
  EXPECT_EQ(result.applied, 1u);
  EXPECT_EQ(ValueAt(store, "a"), "1");
  EXPECT_EQ(ValueAt(store, "b"), "taken");
  EXPECT_EQ(ValueAt(store, "c"), "(none)");

  store::WriteBatch after;
  after.Put(Keyspace::kMeta, "a", "4");
  after.MarkCommitPoint();
  after.Insert(Keyspace::kMeta, "b", "5");
  result = AwaitCommit(store, after);
  EXPECT_TRUE(result.committed);
  EXPECT_EQ(result.applied, 1u);
}

TEST(SingleRecordStore, DiesBetweenTwoWritesAndStaysDead) {
  const auto inner = MemoryStore();
  SingleRecordStore store(*inner);
  store.CrashAfter(1);
  store::WriteBatch batch;
  batch.Put(Keyspace::kMeta, "a", "1");
  batch.Put(Keyspace::kMeta, "b", "2");
  EXPECT_THAT(AwaitCommit(store, batch), HasReason(ErrorReason::kOutcomeUnknown));
  EXPECT_THAT(AwaitCommit(store, batch), HasReason(ErrorReason::kStoreUnavailable));
  EXPECT_THAT(store.Get(Keyspace::kMeta, "a"), HasReason(ErrorReason::kStoreUnavailable));
  EXPECT_THAT(store.Scan(Keyspace::kMeta, {})->status(), HasReason(ErrorReason::kStoreUnavailable));

  const SingleRecordStore restarted(*inner);
  EXPECT_EQ(ValueAt(restarted, "a"), "1");
  EXPECT_EQ(ValueAt(restarted, "b"), "(none)");
}

TEST(SingleRecordStore, AHookForcesARaceBetweenTwoWrites) {
  const auto inner = MemoryStore();
  SingleRecordStore store(*inner);
  store.set_hooks(
      {.before_get = {}, .before_scan = {}, .before_write = [&](const store::Write&, size_t index) {
         store::WriteBatch rival;
         rival.Put(Keyspace::kMeta, "b", "rival");
         if (index == 1) AwaitCommit(*inner, rival);
         return true;
       }});
  store::WriteBatch batch;
  batch.Insert(Keyspace::kMeta, "a", "1");
  batch.Insert(Keyspace::kMeta, "b", "2");
  const store::CommitResult result = AwaitCommit(store, batch);
  EXPECT_FALSE(result.committed);
  EXPECT_EQ(result.applied, 1u);
  EXPECT_EQ(ValueAt(store, "b"), "rival");
}

TEST(SingleRecordStore, AStaleScanShowsOldStatesWhileGetDoesNot) {
  const auto inner = MemoryStore();
  SingleRecordStore store(*inner, {.stale_writes = 4, .seed = 1});
  int stale = 0;
  for (int i = 0; i < 100; ++i) {
    store::WriteBatch batch;
    batch.Put(Keyspace::kMeta, "a", std::to_string(i));
    ASSERT_TRUE(AwaitCommit(store, batch).committed);
    EXPECT_EQ(ValueAt(store, "a"), std::to_string(i));
    const auto cursor = store.Scan(Keyspace::kMeta, {});
    if (!cursor->Valid()) {
      EXPECT_LT(i, 4);
      continue;
    }
    const int seen = std::stoi(std::string(cursor->value()));
    EXPECT_GE(seen, i - 4);
    if (seen < i) ++stale;
  }
  EXPECT_GT(stale, 10);
  EXPECT_LT(stale, 90);
}

TEST(HookedStore, AnswersInsteadOfTheStoreOrChangesItsAnswer) {
  const auto inner = MemoryStore();
  HookedStore store(*inner);
  StoreHooks hooks;
  hooks.instead_of_commit = [](const store::WriteBatch&) {
    store::CommitResult refused;
    refused.status = Error(ErrorReason::kOverloaded, "Not now.");
    return std::optional(refused);
  };
  store.set_hooks(hooks);
  store::WriteBatch batch;
  batch.Put(Keyspace::kMeta, "a", "1");
  EXPECT_THAT(AwaitCommit(store, batch), HasReason(ErrorReason::kOverloaded));
  EXPECT_EQ(ValueAt(store, "a"), "(none)");

  hooks = {};
  hooks.after_commit = [](store::CommitResult& result) {
    result.status = Error(ErrorReason::kOutcomeUnknown, "Who knows.");
  };
  store.set_hooks(hooks);
  EXPECT_THAT(AwaitCommit(store, batch), HasReason(ErrorReason::kOutcomeUnknown));
  EXPECT_EQ(ValueAt(store, "a"), "1");
}

}  // namespace
}  // namespace strata::test_support
