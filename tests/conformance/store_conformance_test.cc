// The specification of the store port (schemas/store/store.h), run over every registered engine, as
// it is and reduced to single-record writes. A new engine is in it by its line in engines.def.
//
// A test that needs a capability skips the stores without it, naming the capability; what an engine
// is exempt from beyond that stands in ExemptionsOf, by category and with its reason.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/store/key_codec.h"
#include "schemas/store/single_record_store.h"
#include "schemas/store/store.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/ledger_entries.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tested_engines.h"
#include "tests/support/volume.h"

namespace strata::store {
namespace {

using test_support::AwaitCommit;
using test_support::EntryThatSays;
using test_support::HasReason;
using test_support::IsOk;
using test_support::LedgerOf;
using test_support::ManualClock;
using test_support::SaidAt;
using test_support::TemporaryDirectory;
using test_support::TestSeed;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// What an engine may be exempt from, other than by its capabilities.
enum class Exemption {
  kForgets,  // what is committed outlives the store object
};

std::set<Exemption> ExemptionsOf(std::string_view engine) {
  // The others have no place to keep anything.
  if (engine != "rocksdb") return {Exemption::kForgets};
  return {};
}

struct Configuration {
  engines::Engine engine;
  bool single_record = false;
};

// GoogleTest's own would print the bytes.
void PrintTo(const Configuration& configuration, std::ostream* out) {
  *out << configuration.engine.name << (configuration.single_record ? ", single records" : "");
}

std::string NameOf(const testing::TestParamInfo<Configuration>& info) {
  return std::string(info.param.engine.name) + (info.param.single_record ? "_single_record" : "");
}

std::vector<Configuration> AllConfigurations() {
  std::vector<Configuration> all;
  for (const engines::Engine& engine : test_support::TestedEngines()) {
    all.push_back({engine, false});
    all.push_back({engine, true});
  }
  return all;
}

#define REQUIRES_CAPABILITY(capability)                            \
  if (!store().capabilities().capability) {                        \
    GTEST_SKIP() << "The store lacks the capability " #capability; \
  }
#define REQUIRES_NO_CAPABILITY(capability)                       \
  if (store().capabilities().capability) {                       \
    GTEST_SKIP() << "The store has the capability " #capability; \
  }
#define EXEMPT(exemption)                                         \
  if (ExemptionsOf(GetParam().engine.name).contains(exemption)) { \
    GTEST_SKIP() << "The engine is exempt, category " #exemption; \
  }

constexpr Keyspace kKeyspace = Keyspace::kMeta;

class StoreConformanceTest : public testing::TestWithParam<Configuration> {
 protected:
  StoreConformanceTest() { Open(); }

  Store& store() { return decorator_ == nullptr ? *engine_ : *decorator_; }

  void Reopen() {
    Close();
    Open();
  }
  void Close() {
    decorator_.reset();
    engine_.reset();
  }
  void Open() {
    engines::OpenOptions options;
    options.directory = directory_.Join("data");
    options.clock = &clock_;
    auto opened = GetParam().engine.open(options);
    if (!opened.ok()) {
      std::fprintf(stderr, "%s\n", opened.status().ToString().c_str());
      std::abort();
    }
    engine_ = *std::move(opened);
    if (GetParam().single_record) decorator_ = std::make_unique<SingleRecordStore>(*engine_);
  }

  CommitResult Commit(WriteBatch batch) { return AwaitCommit(store(), std::move(batch)); }

  // Commits them one after the other; in one group, if the engine makes groups of what waits.
  std::vector<CommitResult> CommitTogether(const std::vector<WriteBatch>& batches) {
    std::vector<CommitResult> results(batches.size());
    std::mutex mutex;
    std::condition_variable changed;
    size_t answers = 0;
    bool all_given = false;
    WriteBatch first;
    first.Put(kKeyspace, "first", "1");
    // While a callback runs nothing is committed, so what it commits waits. (Where a store answers
    // on several threads the last answer may come while the callback still runs.)
    store().Commit(std::move(first), [&](const CommitResult&) {
      for (size_t i = 0; i < batches.size(); ++i) {
        store().Commit(batches[i], [&, i](CommitResult result) {
          const std::lock_guard lock(mutex);
          results[i] = std::move(result);
          ++answers;
          changed.notify_one();
        });
      }
      const std::lock_guard lock(mutex);
      all_given = true;
      changed.notify_one();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return all_given && answers == batches.size(); });
    return results;
  }

  CommitResult Put(std::string key, std::string value) {
    WriteBatch batch;
    batch.Put(kKeyspace, std::move(key), std::move(value));
    return Commit(std::move(batch));
  }
  CommitResult Delete(std::string key) {
    WriteBatch batch;
    batch.Delete(kKeyspace, std::move(key));
    return Commit(std::move(batch));
  }
  CommitResult Replace(std::string key, std::string value, Stamp stamp) {
    WriteBatch batch;
    batch.Replace(kKeyspace, std::move(key), std::move(value), stamp);
    return Commit(std::move(batch));
  }

  std::optional<Record> Find(std::string_view key, Keyspace keyspace = kKeyspace) {
    return Find(store(), key, keyspace);
  }
  static std::optional<Record> Find(const Reader& reader, std::string_view key,
                                    Keyspace keyspace = kKeyspace) {
    const auto record = reader.Get(keyspace, key);
    EXPECT_THAT(record, IsOk());
    return record.ok() ? *record : std::nullopt;
  }
  std::string ValueAt(std::string_view key) { return ValueAt(store(), key); }
  static std::string ValueAt(const Reader& reader, std::string_view key) {
    const std::optional<Record> record = Find(reader, key);
    return record ? std::string(record->value) : "(none)";
  }
  Stamp StampAt(std::string_view key) {
    const std::optional<Record> record = Find(key);
    return record ? record->stamp : 0;
  }

  using KeysAndValues = std::vector<std::pair<std::string, std::string>>;
  static KeysAndValues Walk(const Reader& reader, const Range& range,
                            Keyspace keyspace = kKeyspace) {
    KeysAndValues found;
    const auto cursor = reader.Scan(keyspace, range);
    for (; cursor->Valid(); cursor->Next()) found.emplace_back(cursor->key(), cursor->value());
    EXPECT_THAT(cursor->status(), IsOk());
    return found;
  }
  static std::vector<std::string> Keys(const Reader& reader, const Range& range,
                                       Keyspace keyspace = kKeyspace) {
    std::vector<std::string> keys;
    for (auto& [key, value] : Walk(reader, range, keyspace)) keys.push_back(std::move(key));
    return keys;
  }

  ManualClock clock_;
  TemporaryDirectory directory_;
  std::unique_ptr<Store> engine_;
  std::unique_ptr<SingleRecordStore> decorator_;
};

INSTANTIATE_TEST_SUITE_P(Engines, StoreConformanceTest, testing::ValuesIn(AllConfigurations()),
                         NameOf);

void ExpectCommitted(const CommitResult& result, size_t writes) {
  EXPECT_THAT(result, IsOk());
  EXPECT_TRUE(result.committed);
  EXPECT_EQ(result.applied, writes);
}

void ExpectRefused(const CommitResult& result, size_t applied) {
  EXPECT_THAT(result, IsOk());
  EXPECT_FALSE(result.committed);
  EXPECT_EQ(result.applied, applied);
  EXPECT_EQ(result.position, 0);
  EXPECT_TRUE(result.refused.has_value()) << "which guard failed";
}

// --- One write and its guard -------------------------------------------------------------------

TEST_P(StoreConformanceTest, AKeyNeverWrittenHoldsNothing) {
  EXPECT_EQ(Find("a"), std::nullopt);
  EXPECT_EQ(Find(""), std::nullopt);
}

TEST_P(StoreConformanceTest, AStoreThatWorksIsReady) {
  EXPECT_THAT(store().Ready(), IsOk());
  ExpectCommitted(Put("a", "1"), 1);
  // A batch that loses is no failure of the store.
  WriteBatch lost;
  lost.Insert(Keyspace::kMeta, "a", "2");
  ExpectRefused(Commit(std::move(lost)), 0);
  EXPECT_THAT(store().Ready(), IsOk());
}

// Where there is room, it makes no difference.
TEST_P(StoreConformanceTest, ABatchThatRemovesIsTakenAsAnyOther) {
  ExpectCommitted(Put("a", "1"), 1);
  WriteBatch removal;
  removal.Delete(Keyspace::kMeta, "a");
  removal.MarkAsRemoval();
  ExpectCommitted(Commit(std::move(removal)), 1);
  EXPECT_EQ(Find("a"), std::nullopt);
}

TEST_P(StoreConformanceTest, WhatIsCommittedIsRead) {
  ExpectCommitted(Put("a", "1"), 1);
  EXPECT_EQ(ValueAt("a"), "1");
  ExpectCommitted(Put("a", "2"), 1);
  EXPECT_EQ(ValueAt("a"), "2");
  ExpectCommitted(Put("a", ""), 1);
  EXPECT_EQ(ValueAt("a"), "");
}

TEST_P(StoreConformanceTest, KeyspacesAreApart) {
  for (const Keyspace keyspace : kAllKeyspaces) {
    if (TraitsOf(keyspace).append_only) continue;
    WriteBatch batch;
    batch.Put(keyspace, "a", std::string(KeyspaceName(keyspace)));
    ExpectCommitted(Commit(std::move(batch)), 1);
  }
  for (const Keyspace keyspace : kAllKeyspaces) {
    if (TraitsOf(keyspace).append_only) continue;
    const std::optional<Record> record = Find("a", keyspace);
    ASSERT_TRUE(record);
    EXPECT_EQ(record->value, KeyspaceName(keyspace));
    EXPECT_THAT(Keys(store(), {}, keyspace), ElementsAre("a"));
  }
}

TEST_P(StoreConformanceTest, AnInsertNeedsAnAbsentKey) {
  WriteBatch insert;
  insert.Insert(kKeyspace, "a", "1");
  ExpectCommitted(Commit(insert), 1);
  ExpectRefused(Commit(insert), 0);
  ExpectCommitted(Delete("a"), 1);
  ExpectCommitted(Commit(insert), 1);
}

TEST_P(StoreConformanceTest, AReplaceNeedsTheStampThatWasRead) {
  Put("a", "1");
  const Stamp first = StampAt("a");
  EXPECT_GE(first, 1);
  ExpectCommitted(Replace("a", "2", first), 1);
  const Stamp second = StampAt("a");
  ExpectRefused(Replace("a", "3", first), 0);
  ExpectRefused(Replace("a", "3", second + 1), 0);
  EXPECT_EQ(ValueAt("a"), "2");
  EXPECT_EQ(StampAt("a"), second);
  ExpectRefused(Replace("b", "1", 0), 0);
  ExpectRefused(Replace("b", "1", second), 0);
}

TEST_P(StoreConformanceTest, AnEnsureInsertsOrSkips) {
  WriteBatch ensure;
  ensure.Ensure(kKeyspace, "a", "1");
  ensure.Put(kKeyspace, "b", "1");
  ExpectCommitted(Commit(ensure), 2);
  EXPECT_EQ(ValueAt("a"), "1");
  const Stamp stamp = StampAt("a");

  WriteBatch again;
  again.Ensure(kKeyspace, "a", "2");
  again.Put(kKeyspace, "b", "2");
  ExpectCommitted(Commit(again), 2);
  EXPECT_EQ(ValueAt("a"), "1");
  EXPECT_EQ(StampAt("a"), stamp);
  EXPECT_EQ(ValueAt("b"), "2");
}

TEST_P(StoreConformanceTest, ASkippedCommitPointCommits) {
  Put("a", "1");
  WriteBatch batch;
  batch.Ensure(kKeyspace, "a", "2");
  ExpectCommitted(Commit(batch), 1);
  EXPECT_EQ(ValueAt("a"), "1");
}

TEST_P(StoreConformanceTest, ADeleteRemovesAndOfNothingIsNoError) {
  ExpectCommitted(Delete("a"), 1);
  Put("a", "1");
  ExpectCommitted(Delete("a"), 1);
  EXPECT_EQ(Find("a"), std::nullopt);
  EXPECT_THAT(Walk(store(), {}), IsEmpty());
}

TEST_P(StoreConformanceTest, ADeleteCanBeGuardedByTheStamp) {
  Put("a", "1");
  const Stamp stamp = StampAt("a");
  WriteBatch wrong;
  wrong.DeleteIf(kKeyspace, "a", stamp + 1);
  ExpectRefused(Commit(wrong), 0);
  EXPECT_EQ(ValueAt("a"), "1");
  WriteBatch right;
  right.DeleteIf(kKeyspace, "a", stamp);
  ExpectCommitted(Commit(right), 1);
  EXPECT_EQ(Find("a"), std::nullopt);
  ExpectRefused(Commit(right), 0);
}

TEST_P(StoreConformanceTest, AStampGrowsAtEveryReplacementWhateverWasChanged) {
  Stamp last = 0;
  for (int i = 0; i < 5; ++i) {
    Put("a", "the same");
    EXPECT_GT(StampAt("a"), last);
    last = StampAt("a");
    ExpectCommitted(Replace("a", "the same", last), 1);
    EXPECT_GT(StampAt("a"), last);
    last = StampAt("a");
  }
}

TEST_P(StoreConformanceTest, AnExpiryTimeDoesNotHideARecordBefore) {
  WriteBatch batch;
  batch.Put(kKeyspace, "a", "1").expire_time = clock_.Now() + 1'000'000;
  ExpectCommitted(Commit(batch), 1);
  Put("b", "1");
  EXPECT_EQ(ValueAt("a"), "1");
  // A record written anew without a time stays for ever.
  Put("a", "2");
  clock_.Advance(std::chrono::hours(48));
  for (int i = 0; i < 10; ++i) Put("b", "2");
  EXPECT_EQ(ValueAt("a"), "2");
}

// Also one whose stamp an engine remembers because it was replaced.
TEST_P(StoreConformanceTest, GuardsCountAReplacedMessageThatHasExpiredAsAbsent) {
  WriteBatch insert;
  insert.Insert(Keyspace::kMessages, "a", "inserted");
  ExpectCommitted(Commit(insert), 1);
  WriteBatch replace;
  replace.Replace(Keyspace::kMessages, "a", "replaced", Find("a", Keyspace::kMessages)->stamp)
      .expire_time = clock_.Now() + 1'000;
  ExpectCommitted(Commit(std::move(replace)), 1);
  WriteBatch remove;
  remove.DeleteIf(Keyspace::kMessages, "a", Find("a", Keyspace::kMessages)->stamp);
  clock_.Advance(std::chrono::microseconds(999));
  ExpectRefused(Commit(insert), 0);
  clock_.Advance(std::chrono::microseconds(1));
  ExpectRefused(Commit(remove), 0);
  ExpectCommitted(Commit(insert), 1);
  EXPECT_EQ(Find("a", Keyspace::kMessages)->value, "inserted");
  ExpectRefused(Commit(remove), 0);
}

TEST_P(StoreConformanceTest, GuardsCountAnExpiredRecordAsAbsent) {
  const auto put_expiring = [this] {
    WriteBatch batch;
    batch.Put(kKeyspace, "a", "old").expire_time = clock_.Now() + 1'000;
    ExpectCommitted(Commit(std::move(batch)), 1);
  };
  WriteBatch insert;
  insert.Insert(kKeyspace, "a", "inserted");
  WriteBatch ensure;
  ensure.Ensure(kKeyspace, "a", "ensured");

  put_expiring();
  const Stamp stamp = StampAt("a");
  clock_.Advance(std::chrono::microseconds(999));
  ExpectRefused(Commit(insert), 0);
  ExpectCommitted(Commit(ensure), 1);
  EXPECT_EQ(ValueAt("a"), "old");
  clock_.Advance(std::chrono::microseconds(1));
  ExpectRefused(Replace("a", "replaced", stamp), 0);
  ExpectCommitted(Commit(insert), 1);
  EXPECT_EQ(ValueAt("a"), "inserted");

  put_expiring();
  clock_.Advance(std::chrono::microseconds(1'000));
  ExpectCommitted(Commit(ensure), 1);
  EXPECT_EQ(ValueAt("a"), "ensured");
}

// Whether it was stored before, or has just been written.
TEST_P(StoreConformanceTest, WhatIsWrittenExpiredCountsAsAbsentForTheRestOfItsBatch) {
  REQUIRES_CAPABILITY(atomic_batches);
  WriteBatch batch;
  batch.Ensure(kKeyspace, "ensured", "1").expire_time = clock_.Now() - 1;
  batch.Put(kKeyspace, "put", "1").expire_time = clock_.Now();
  for (const char* const key : {"ensured", "put"}) {
    batch.CheckAbsent(kKeyspace, key);
  }
  ExpectCommitted(Commit(batch), 4);
}

TEST_P(StoreConformanceTest, WhatIsWrittenExpiredCountsAsAbsentForTheBatchesBehind) {
  WriteBatch expired;
  expired.Ensure(kKeyspace, "a", "old").expire_time = clock_.Now() - 1;
  expired.Ensure(kKeyspace, "b", "old").expire_time = clock_.Now();
  expired.Ensure(kKeyspace, "c", "old").expire_time = clock_.Now() + 1'000'000;
  WriteBatch ensure;
  for (const char* const key : {"a", "b", "c"}) ensure.Ensure(kKeyspace, key, "new");
  WriteBatch insert;
  insert.Insert(kKeyspace, "d", "new");
  WriteBatch taken;
  taken.Insert(kKeyspace, "c", "new");
  WriteBatch expired_too;
  expired_too.Ensure(kKeyspace, "d", "old").expire_time = clock_.Now() - 1;
  const std::vector<CommitResult> results =
      CommitTogether({expired, ensure, expired_too, insert, taken});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(results[i], IsOk());
    EXPECT_TRUE(results[i].committed) << i;
  }
  ExpectRefused(results[4], 0);
  EXPECT_EQ(ValueAt("a"), "new");
  EXPECT_EQ(ValueAt("b"), "new");
  EXPECT_EQ(ValueAt("c"), "old");
  EXPECT_EQ(ValueAt("d"), "new");
}

TEST_P(StoreConformanceTest, AJumpOfTheWallClockExpiresNothing) {
  WriteBatch batch;
  batch.Put(kKeyspace, "a", "1").expire_time = clock_.Now() + 1'000'000;
  ExpectCommitted(Commit(batch), 1);
  WriteBatch insert;
  insert.Insert(kKeyspace, "a", "inserted");
  clock_.SetNow(clock_.Now() + 2'000'000);
  for (int i = 0; i < 10; ++i) Put("b", std::to_string(i));
  ExpectRefused(Commit(insert), 0);
  EXPECT_EQ(ValueAt("a"), "1");
  clock_.Advance(std::chrono::seconds(1));
  ExpectCommitted(Commit(insert), 1);
}

// --- Batches -----------------------------------------------------------------------------------

TEST_P(StoreConformanceTest, ABatchAppliesAllItsWrites) {
  Put("gone", "1");
  WriteBatch batch;
  batch.Insert(Keyspace::kHeads, "a", "1");
  batch.Put(Keyspace::kVersions, "a", "2");
  batch.Ensure(Keyspace::kRequests, "a", "3");
  batch.Delete(kKeyspace, "gone");
  ExpectCommitted(Commit(batch), 4);
  EXPECT_EQ(Find("a", Keyspace::kHeads)->value, "1");
  EXPECT_EQ(Find("a", Keyspace::kVersions)->value, "2");
  EXPECT_EQ(Find("a", Keyspace::kRequests)->value, "3");
  EXPECT_EQ(Find("gone"), std::nullopt);
}

TEST_P(StoreConformanceTest, ACheckMustHoldAndWritesNothing) {
  REQUIRES_CAPABILITY(atomic_batches);
  Put("checked", "1");
  const Stamp stamp = StampAt("checked");
  WriteBatch holds;
  holds.Check(kKeyspace, "checked", stamp);
  holds.Put(kKeyspace, "a", "1");
  ExpectCommitted(Commit(holds), 2);
  EXPECT_EQ(StampAt("checked"), stamp);
  EXPECT_EQ(ValueAt("checked"), "1");

  WriteBatch fails;
  fails.Put(kKeyspace, "a", "2");
  fails.Check(kKeyspace, "checked", stamp + 1);
  ExpectRefused(Commit(fails), 0);
  EXPECT_EQ(ValueAt("a"), "1");

  WriteBatch absent;
  absent.Put(kKeyspace, "a", "3");
  absent.CheckAbsent(kKeyspace, "checked");
  ExpectRefused(Commit(absent), 0);
  Delete("checked");
  ExpectCommitted(Commit(absent), 2);
  ExpectRefused(Commit(holds), 0);
}

TEST_P(StoreConformanceTest, ACheckSeesWhatItsBatchWroteBefore) {
  REQUIRES_CAPABILITY(atomic_batches);
  Put("a", "1");
  const Stamp stamp = StampAt("a");
  WriteBatch deleted;
  deleted.Check(kKeyspace, "a", stamp);
  deleted.Delete(kKeyspace, "a");
  deleted.CheckAbsent(kKeyspace, "a");
  WriteBatch replaced;
  replaced.Put(kKeyspace, "a", "2");
  replaced.Check(kKeyspace, "a", stamp);
  ExpectRefused(Commit(replaced), 0);
  EXPECT_EQ(ValueAt("a"), "1");
  ExpectCommitted(Commit(deleted), 3);
  EXPECT_EQ(Find("a"), std::nullopt);
}

TEST_P(StoreConformanceTest, WithoutAtomicBatchesACheckIsRefusedBeforeAnythingIsWritten) {
  REQUIRES_NO_CAPABILITY(atomic_batches);
  Put("checked", "1");
  WriteBatch batch;
  batch.Put(kKeyspace, "a", "1");
  batch.Check(kKeyspace, "checked", StampAt("checked"));
  EXPECT_THAT(Commit(batch), HasReason(ErrorReason::kUnsupportedByEngine));
  EXPECT_EQ(Find("a"), std::nullopt);
}

TEST_P(StoreConformanceTest, ARefusedBatchLeavesNothingWhicheverWriteFailed) {
  REQUIRES_CAPABILITY(atomic_batches);
  Put("taken", "1");
  const CommitPosition last = store().LastPosition();
  for (size_t bad = 0; bad < 4; ++bad) {
    WriteBatch batch;
    for (size_t i = 0; i < 4; ++i) {
      if (i == bad) {
        batch.Insert(kKeyspace, "taken", "2");
      } else {
        batch.Put(kKeyspace, "a" + std::to_string(i), "1");
      }
      if (i == 1) batch.MarkCommitPoint();
    }
    batch.AppendToLedger(EntryThatSays("entry"));
    ExpectRefused(Commit(batch), 0);
    EXPECT_THAT(Keys(store(), {}), ElementsAre("taken"));
    EXPECT_THAT(Keys(store(), {}, Keyspace::kLedger), IsEmpty());
    EXPECT_EQ(store().LastPosition(), last);
    EXPECT_EQ(ValueAt("taken"), "1");
  }
}

// An engine may leave it open; none of these does.
TEST_P(StoreConformanceTest, ALostBatchIsToldWhichGuardFailed) {
  Put("taken", "1");
  const auto losing_at = [&](size_t bad, Guard guard) {
    WriteBatch batch;
    for (size_t i = 0; i < 4; ++i) {
      Write& write = batch.Put(kKeyspace, "a" + std::to_string(i), "1");
      if (i != bad) continue;
      write.key = "taken";
      write.guard = guard;
      write.stamp = StampAt("taken") + 1;
    }
    return batch;
  };
  for (const Guard guard : {Guard::kAbsent, Guard::kStamp}) {
    for (size_t bad = 0; bad < 4; ++bad) {
      const CommitResult result = Commit(losing_at(bad, guard));
      EXPECT_FALSE(result.committed);
      EXPECT_EQ(result.refused, bad);
    }
  }
  EXPECT_EQ(Commit(losing_at(4, Guard::kAbsent)).refused, std::nullopt) << "it committed";
  // Also within one group, where a batch may lose against one that is not durable yet.
  WriteBatch first;
  first.Put(kKeyspace, "b", "1");
  first.Insert(kKeyspace, "c", "1");
  const std::vector<CommitResult> results =
      CommitTogether({losing_at(2, Guard::kStamp), first, first, losing_at(3, Guard::kAbsent)});
  EXPECT_EQ(results[0].refused, 2u);
  EXPECT_EQ(results[1].refused, std::nullopt);
  EXPECT_EQ(results[2].refused, 1u);
  EXPECT_EQ(results[3].refused, 3u);
}

TEST_P(StoreConformanceTest, ACheckThatFailsIsTheWriteThatIsNamed) {
  REQUIRES_CAPABILITY(atomic_batches);
  Put("taken", "1");
  WriteBatch batch;
  batch.Put(kKeyspace, "a", "1");
  batch.Ensure(kKeyspace, "taken", "2");
  batch.CheckAbsent(kKeyspace, "b");
  batch.Check(kKeyspace, "taken", StampAt("taken"));
  batch.CheckAbsent(kKeyspace, "taken");
  EXPECT_EQ(Commit(batch).refused, 4u);
  Delete("taken");
  EXPECT_EQ(Commit(batch).refused, 3u) << "the batch itself wrote it anew";
}

TEST_P(StoreConformanceTest, ACheckOfAbsenceFailsOnceThereIsARecord) {
  REQUIRES_CAPABILITY(atomic_batches);
  for (const Keyspace keyspace : kAllKeyspaces) {
    if (TraitsOf(keyspace).append_only) continue;
    SCOPED_TRACE(KeyspaceName(keyspace));
    WriteBatch batch;
    batch.CheckAbsent(keyspace, "a");
    batch.Put(kKeyspace, "written", "1");
    ExpectCommitted(Commit(batch), 2);
    EXPECT_EQ(Find("a", keyspace), std::nullopt);
    WriteBatch put;
    put.Put(keyspace, "a", "1");
    ExpectCommitted(Commit(std::move(put)), 1);
    ExpectRefused(Commit(batch), 0);
  }
}

TEST_P(StoreConformanceTest, ABatchThatIsAppendedCommitsWithTheOther) {
  Put("taken", "1");
  WriteBatch joined;
  joined.Insert(kKeyspace, "c", "3");
  joined.Insert(kKeyspace, "d", "4");
  joined.AppendToLedger(EntryThatSays("third"));
  WriteBatch batch;
  batch.Insert(kKeyspace, "a", "1");
  batch.Insert(kKeyspace, "b", "2");
  batch.AppendToLedger(EntryThatSays("first"));
  batch.AppendToLedger(EntryThatSays("second"));
  WriteBatch losing = batch;
  batch.Append(joined);
  const CommitResult result = Commit(batch);
  ExpectCommitted(result, 4);
  EXPECT_THAT(Walk(store(), {}), ElementsAre(Pair("a", "1"), Pair("b", "2"), Pair("c", "3"),
                                             Pair("d", "4"), Pair("taken", "1")));
  if (store().capabilities().commit_positions) {
    EXPECT_THAT(LedgerOf(store()), ElementsAre(SaidAt(result.position, 0, "first"),
                                               SaidAt(result.position, 1, "second"),
                                               SaidAt(result.position, 2, "third")));
  }

  for (const char* const key : {"a", "b", "c", "d"}) Delete(key);
  WriteBatch lost;
  lost.Insert(kKeyspace, "c", "3");
  lost.Insert(kKeyspace, "taken", "4");
  losing.Append(lost);
  const CommitResult refused = Commit(losing);
  EXPECT_FALSE(refused.committed);
  EXPECT_EQ(refused.refused, 3u) << "counted from the first of the whole batch";
}

TEST_P(StoreConformanceTest, WithoutAtomicBatchesThePrefixStandsAndTheCommitPointDecides) {
  REQUIRES_NO_CAPABILITY(atomic_batches);
  Put("taken", "1");
  constexpr size_t kCommitPoint = 1;
  for (size_t bad = 0; bad < 4; ++bad) {
    WriteBatch batch;
    std::vector<std::string> prefix;
    for (size_t i = 0; i < 4; ++i) {
      const std::string key = std::to_string(bad) + std::to_string(i);
      if (i == bad) {
        batch.Insert(kKeyspace, "taken", "2");
      } else {
        batch.Put(kKeyspace, key, "1");
        if (i < bad) prefix.push_back(key);
      }
      if (i == kCommitPoint) batch.MarkCommitPoint();
    }
    const CommitResult result = Commit(batch);
    EXPECT_THAT(result, IsOk());
    EXPECT_EQ(result.applied, bad);
    EXPECT_EQ(result.committed, bad > kCommitPoint);
    EXPECT_EQ(Keys(store(), {.begin = std::to_string(bad), .end = std::to_string(bad) + "9"}),
              prefix);
  }
}

TEST_P(StoreConformanceTest, TheCommitPointIsTheLastWriteUnlessMarked) {
  REQUIRES_NO_CAPABILITY(atomic_batches);
  Put("taken", "1");
  WriteBatch batch;
  batch.Put(kKeyspace, "a", "1");
  batch.Insert(kKeyspace, "taken", "2");
  ExpectRefused(Commit(batch), 1);
}

TEST_P(StoreConformanceTest, ABatchWhoseDeadlineHasPassedIsNotBegun) {
  const auto put = [this](const char* key, std::chrono::microseconds left) {
    WriteBatch batch;
    batch.Put(kKeyspace, key, "1");
    batch.Put(kKeyspace, std::string(key) + " too", "1");
    batch.AppendToLedger(EntryThatSays("entry"));
    batch.set_deadline(clock_.SteadyNow() + left);
    return Commit(std::move(batch));
  };
  const CommitPosition last = store().LastPosition();
  for (const int left : {-1, 0}) {
    const CommitResult result = put("late", std::chrono::microseconds(left));
    EXPECT_THAT(result, HasReason(ErrorReason::kDeadlineExceeded));
    EXPECT_FALSE(result.committed);
    EXPECT_EQ(result.applied, 0u);
  }
  EXPECT_THAT(Walk(store(), {}), IsEmpty());
  EXPECT_THAT(Walk(store(), {}, Keyspace::kLedger), IsEmpty());
  EXPECT_EQ(store().LastPosition(), last);
  ExpectCommitted(put("in time", std::chrono::microseconds(1)), 2);
  ExpectCommitted(Put("without", "1"), 1);
}

TEST_P(StoreConformanceTest, TwoRefusalsInARowLeaveNoTraceForTheNext) {
  // An engine that decides many batches together must forget what it assumed for a refused one.
  Put("a", "1");
  const Stamp stamp = StampAt("a");
  std::vector<CommitResult> results(3);
  std::mutex mutex;
  std::condition_variable changed;
  size_t answers = 0;
  for (size_t i = 0; i < 3; ++i) {
    WriteBatch batch;
    if (store().capabilities().atomic_batches) {
      batch.Insert(kKeyspace, "b", "by " + std::to_string(i));
      batch.Replace(kKeyspace, "a", "by " + std::to_string(i), i < 2 ? stamp + 100 : stamp);
    } else {
      batch.Replace(kKeyspace, "a", "by " + std::to_string(i), i < 2 ? stamp + 100 : stamp);
      batch.Insert(kKeyspace, "b", "by " + std::to_string(i));
    }
    store().Commit(std::move(batch), [&, i](CommitResult result) {
      const std::lock_guard lock(mutex);
      results[i] = std::move(result);
      ++answers;
      changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return answers == 3; });
  ExpectRefused(results[0], 0);
  ExpectRefused(results[1], 0);
  ExpectCommitted(results[2], 2);
  EXPECT_EQ(ValueAt("a"), "by 2");
  EXPECT_EQ(ValueAt("b"), "by 2");
}

// --- Keys, values, scans -----------------------------------------------------------------------

TEST_P(StoreConformanceTest, KeysAndValuesAreAnyBytesInUnsignedOrder) {
  const std::vector<std::string> keys = {std::string(1, '\0'),
                                         std::string("\0\0", 2),
                                         std::string("\0a", 2),
                                         "a",
                                         std::string("a\0", 2),
                                         std::string("a\0b", 3),
                                         "a/b",
                                         "ab",
                                         "\x7F",
                                         "\x80",
                                         "\xFE\xFF",
                                         "\xFF",
                                         std::string(3, '\xFF'),
                                         std::string(1000, '\xFF')};
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) Put(*key, every_byte + *key);
  for (const std::string& key : keys) EXPECT_EQ(ValueAt(key), every_byte + key);
  EXPECT_EQ(Keys(store(), {}), keys);
}

TEST_P(StoreConformanceTest, AValueMayHaveSeveralMegabytes) {
  if (test_support::LeftOut(GetParam().engine.name != "rocksdb")) GTEST_SKIP() << "sampled";
  std::string value(size_t{13} << 20, '\0');
  std::mt19937_64 generator(1);
  for (char& byte : value) byte = static_cast<char>(generator());
  ExpectCommitted(Put("a", value), 1);
  EXPECT_EQ(ValueAt("a") == value, true);
  value[0] = static_cast<char>(value[0] + 1);
  ExpectCommitted(Replace("a", value, StampAt("a")), 1);
  const auto cursor = store().Scan(kKeyspace, {});
  ASSERT_TRUE(cursor->Valid());
  EXPECT_EQ(cursor->value() == value, true);
}

TEST_P(StoreConformanceTest, AScanWalksItsRangeInItsDirection) {
  for (const char* key : {"a", "b", "c", "d", "e"}) Put(key, std::string("value ") + key);
  EXPECT_THAT(Keys(store(), {}), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(Keys(store(), {.begin = "", .end = "", .reverse = true}),
              ElementsAre("e", "d", "c", "b", "a"));
  EXPECT_THAT(Walk(store(), {.begin = "b", .end = "d"}),
              ElementsAre(Pair("b", "value b"), Pair("c", "value c")));
  EXPECT_THAT(Keys(store(), {.begin = "b", .end = "d", .reverse = true}), ElementsAre("c", "b"));
  EXPECT_THAT(Keys(store(), {.begin = "bb", .end = ""}), ElementsAre("c", "d", "e"));
  EXPECT_THAT(Keys(store(), {.begin = "bb", .end = "", .reverse = true}),
              ElementsAre("e", "d", "c"));
  EXPECT_THAT(Keys(store(), {.begin = "", .end = "bb"}), ElementsAre("a", "b"));
}

TEST_P(StoreConformanceTest, AnEmptyRangeHoldsNothingInBothDirections) {
  for (const char* key : {"a", "c"}) Put(key, "1");
  for (const bool reverse : {false, true}) {
    EXPECT_THAT(Keys(store(), {.begin = "b", .end = "c", .reverse = reverse}), IsEmpty());
    EXPECT_THAT(Keys(store(), {.begin = "a", .end = "a", .reverse = reverse}), IsEmpty());
    EXPECT_THAT(Keys(store(), {.begin = "d", .end = "a", .reverse = reverse}), IsEmpty());
    EXPECT_THAT(Keys(store(), {.begin = "d", .end = "", .reverse = reverse}), IsEmpty());
    const auto cursor = store().Scan(kKeyspace, {.begin = "c", .end = "a", .reverse = reverse});
    cursor->Seek("a");
    EXPECT_FALSE(cursor->Valid());
    EXPECT_THAT(cursor->status(), IsOk());
  }
}

TEST_P(StoreConformanceTest, ASeekStaysInsideTheRangeAndMovesBothWays) {
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) Put(key, "1");
  const auto at = [](const Cursor& cursor) {
    EXPECT_THAT(cursor.status(), IsOk());
    return cursor.Valid() ? std::string(cursor.key()) : "(end)";
  };
  const auto forward = store().Scan(kKeyspace, {.begin = "b", .end = "e"});
  EXPECT_EQ(at(*forward), "b");
  for (const auto& [target, expected] :
       std::vector<std::pair<std::string, std::string>>{{"d", "d"},
                                                        {"c", "c"},
                                                        {"a", "b"},
                                                        {"bb", "c"},
                                                        {"dd", "(end)"},
                                                        {"e", "(end)"},
                                                        {"z", "(end)"},
                                                        {"c", "c"},
                                                        {"", "b"}}) {
    forward->Seek(target);
    EXPECT_EQ(at(*forward), expected) << target;
  }
  forward->Seek("d");
  forward->Next();
  EXPECT_EQ(at(*forward), "(end)");
  forward->Seek("c");
  forward->Next();
  EXPECT_EQ(at(*forward), "d");

  const auto reverse = store().Scan(kKeyspace, {.begin = "b", .end = "e", .reverse = true});
  EXPECT_EQ(at(*reverse), "d");
  for (const auto& [target, expected] :
       std::vector<std::pair<std::string, std::string>>{{"b", "b"},
                                                        {"c", "c"},
                                                        {"z", "d"},
                                                        {"e", "d"},
                                                        {"dd", "d"},
                                                        {"bb", "b"},
                                                        {"a", "(end)"},
                                                        {"", "(end)"},
                                                        {"cc", "c"}}) {
    reverse->Seek(target);
    EXPECT_EQ(at(*reverse), expected) << target;
  }
  reverse->Next();
  EXPECT_EQ(at(*reverse), "b");
  reverse->Next();
  EXPECT_EQ(at(*reverse), "(end)");
}

TEST_P(StoreConformanceTest, ACursorTellsStampAndPositionAsGetDoes) {
  for (const char* key : {"a", "b", "c"}) Put(key, "1");
  Put("b", "2");
  int records = 0;
  for (auto cursor = store().Scan(kKeyspace, {}); cursor->Valid(); cursor->Next()) {
    const std::optional<Record> record = Find(cursor->key());
    ASSERT_TRUE(record);
    EXPECT_EQ(cursor->stamp(), record->stamp);
    EXPECT_EQ(cursor->position(), record->position);
    ++records;
  }
  EXPECT_EQ(records, 3);
}

TEST_P(StoreConformanceTest, AFreshScanSeesEveryAcknowledgedWrite) {
  REQUIRES_CAPABILITY(fresh_scans);
  for (int i = 0; i < 50; ++i) {
    Put(std::to_string(i % 7), std::to_string(i));
    bool seen = false;
    for (const auto& [key, value] : Walk(store(), {})) seen |= value == std::to_string(i);
    EXPECT_TRUE(seen) << i;
  }
}

TEST_P(StoreConformanceTest, AnEstimateIsOfTheRightOrder) {
  constexpr int kRecords = 4'000;
  constexpr int kValueBytes = 200;
  for (int i = 0; i < kRecords; i += 100) {
    WriteBatch batch;
    for (int j = i; j < i + 100; ++j)
      batch.Put(kKeyspace, std::to_string(100'000 + j), std::string(kValueBytes, 'x'));
    ExpectCommitted(Commit(std::move(batch)), 100);
  }
  const RangeEstimate all = store().Estimate(kKeyspace, {});
  EXPECT_GT(all.records, kRecords / 4);
  EXPECT_LT(all.records, kRecords * 4);
  EXPECT_GT(all.bytes, 0);
  EXPECT_LT(all.bytes, 4 * kRecords * (kValueBytes + 50));
  const RangeEstimate half = store().Estimate(kKeyspace, {.begin = "", .end = "102000"});
  EXPECT_LE(half.records, all.records);
  EXPECT_GT(half.records, kRecords / 20);
  EXPECT_EQ(store().Estimate(kKeyspace, {.begin = "b", .end = "a"}).records, 0);
  EXPECT_EQ(store().Estimate(Keyspace::kRequests, {}).records, 0);
}

// --- Many records at once ----------------------------------------------------------------------

TEST_P(StoreConformanceTest, ManyRecordsAreReadAsOneAfterTheOther) {
  for (const Keyspace keyspace : {Keyspace::kHeads, Keyspace::kVersions, Keyspace::kRequests}) {
    for (const char* const key : {"a", "b"}) {
      WriteBatch batch;
      batch.Put(keyspace, key, std::string(KeyspaceName(keyspace)) + key);
      ExpectCommitted(Commit(std::move(batch)), 1);
    }
  }
  ExpectCommitted(Put("", "the empty key"), 1);
  const std::vector<RecordKey> keys = {{Keyspace::kVersions, "b"},   {Keyspace::kHeads, "a"},
                                       {kKeyspace, "missing"},       {kKeyspace, ""},
                                       {Keyspace::kHeads, "a"},      {Keyspace::kRequests, "b"},
                                       {Keyspace::kVersions, "a"},   {Keyspace::kHeads, "z"},
                                       {Keyspace::kHeads, "b"},      {Keyspace::kHeads, ""},
                                       {Keyspace::kCollections, "a"}};
  const auto expect_as_gets = [&](const Reader& reader) {
    const auto many = reader.GetMany(keys);
    ASSERT_EQ(many.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_THAT(many[i], IsOk()) << i;
      const std::optional<Record> one = Find(reader, keys[i].key, keys[i].keyspace);
      ASSERT_EQ(many[i]->has_value(), one.has_value()) << i;
      if (!one) continue;
      EXPECT_EQ((*many[i])->value, one->value) << i;
      EXPECT_EQ((*many[i])->stamp, one->stamp) << i;
      EXPECT_EQ((*many[i])->position, one->position) << i;
    }
    EXPECT_EQ((*many[0])->value, "versionsb");
    EXPECT_EQ((*many[4])->value, "headsa");
    EXPECT_THAT(reader.GetMany({}), IsEmpty());
    EXPECT_EQ(reader.GetMany({{keys[3]}}).size(), 1u);
  };
  const auto snapshot = store().Snapshot();
  expect_as_gets(store());
  expect_as_gets(*snapshot);
  // What is written later, many see at once; a snapshot never does.
  WriteBatch later;
  later.Put(Keyspace::kHeads, "a", "headsa");
  later.Delete(Keyspace::kVersions, "a");
  ExpectCommitted(Commit(std::move(later)), 2);
  expect_as_gets(store());
  expect_as_gets(*snapshot);
  EXPECT_FALSE((*store().GetMany(keys)[6]).has_value());
  EXPECT_EQ(snapshot->GetMany(keys)[6]->has_value(), store().capabilities().snapshots);
}

// --- Snapshots ---------------------------------------------------------------------------------

TEST_P(StoreConformanceTest, ASnapshotIsOneMoment) {
  REQUIRES_CAPABILITY(snapshots);
  Put("a", "1");
  Put("b", "1");
  const auto snapshot = store().Snapshot();
  const auto cursor = snapshot->Scan(kKeyspace, {});
  Put("a", "2");
  Delete("b");
  Put("c", "2");
  EXPECT_EQ(ValueAt(*snapshot, "a"), "1");
  EXPECT_EQ(ValueAt(*snapshot, "b"), "1");
  EXPECT_EQ(Find(*snapshot, "c"), std::nullopt);
  EXPECT_THAT(Walk(*snapshot, {}), ElementsAre(Pair("a", "1"), Pair("b", "1")));
  EXPECT_THAT(Keys(*snapshot, {.begin = "", .end = "", .reverse = true}), ElementsAre("b", "a"));
  ASSERT_TRUE(cursor->Valid());
  EXPECT_EQ(cursor->value(), "1");
  EXPECT_THAT(Walk(*store().Snapshot(), {}), ElementsAre(Pair("a", "2"), Pair("c", "2")));
}

TEST_P(StoreConformanceTest, ASnapshotSeesBatchesWhole) {
  REQUIRES_CAPABILITY(snapshots);
  REQUIRES_CAPABILITY(atomic_batches);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      WriteBatch batch;
      batch.Put(Keyspace::kHeads, "a", std::to_string(i));
      batch.Put(Keyspace::kVersions, "a", std::to_string(i));
      AwaitCommit(store(), std::move(batch));
    }
  });
  for (int i = 0; i < 500; ++i) {
    const auto snapshot = store().Snapshot();
    const std::optional<Record> head = Find(*snapshot, "a", Keyspace::kHeads);
    const std::optional<Record> version = Find(*snapshot, "a", Keyspace::kVersions);
    ASSERT_EQ(head.has_value(), version.has_value());
    if (head) {
      ASSERT_EQ(head->value, version->value);
    }
  }
  stop = true;
  writer.join();
}

TEST_P(StoreConformanceTest, WithoutSnapshotsTheViewIsLive) {
  REQUIRES_NO_CAPABILITY(snapshots);
  const auto view = store().Snapshot();
  Put("a", "1");
  EXPECT_EQ(ValueAt(*view, "a"), "1");
}

// --- Positions and the ledger ------------------------------------------------------------------

TEST_P(StoreConformanceTest, PositionsGrowFromTheStartAndRecordsCarryThem) {
  REQUIRES_CAPABILITY(commit_positions);
  CommitPosition last = store().StartPosition();
  EXPECT_EQ(store().LastPosition(), last);
  for (int i = 0; i < 10; ++i) {
    WriteBatch batch;
    batch.Put(Keyspace::kHeads, "a", "1");
    batch.Put(Keyspace::kVersions, "a", "1");
    const CommitResult result = Commit(batch);
    EXPECT_GT(result.position, last);
    last = result.position;
    EXPECT_EQ(store().LastPosition(), last);
    EXPECT_EQ(Find("a", Keyspace::kHeads)->position, last);
    EXPECT_EQ(Find("a", Keyspace::kVersions)->position, last);
  }
}

TEST_P(StoreConformanceTest, StampsGrowThroughADeletion) {
  REQUIRES_CAPABILITY(commit_positions);
  Stamp last = 0;
  for (int i = 0; i < 5; ++i) {
    Put("a", "1");
    EXPECT_GT(StampAt("a"), last);
    last = StampAt("a");
    Delete("a");
  }
}

TEST_P(StoreConformanceTest, TheLedgerHoldsTheEntriesOfWhatCommitted) {
  REQUIRES_CAPABILITY(commit_positions);
  WriteBatch two;
  two.Put(kKeyspace, "a", "1");
  two.AppendToLedger(EntryThatSays("first"));
  two.AppendToLedger(EntryThatSays("second"));
  const CommitPosition p = Commit(two).position;
  WriteBatch none;
  none.Put(kKeyspace, "b", "1");
  Commit(none);
  WriteBatch refused;
  refused.Insert(kKeyspace, "a", "2");
  refused.AppendToLedger(EntryThatSays("never"));
  ExpectRefused(Commit(refused), 0);
  WriteBatch one;
  one.Put(kKeyspace, "c", "1");
  one.AppendToLedger(EntryThatSays("third"));
  const CommitPosition q = Commit(one).position;
  EXPECT_THAT(LedgerOf(store()),
              ElementsAre(SaidAt(p, 0, "first"), SaidAt(p, 1, "second"), SaidAt(q, 0, "third")));
}

TEST_P(StoreConformanceTest, WithoutPositionsThereIsNoLedgerAndEveryPositionIsZero) {
  REQUIRES_NO_CAPABILITY(commit_positions);
  WriteBatch batch;
  batch.Put(kKeyspace, "a", "1");
  batch.AppendToLedger(EntryThatSays("entry"));
  const CommitResult result = Commit(batch);
  ExpectCommitted(result, 1);
  EXPECT_EQ(result.position, 0);
  EXPECT_EQ(store().LastPosition(), 0);
  EXPECT_EQ(Find("a")->position, 0);
  EXPECT_EQ(store().Scan(kKeyspace, {})->position(), 0);
  EXPECT_THAT(Keys(store(), {}, Keyspace::kLedger), IsEmpty());
}

TEST_P(StoreConformanceTest, WhenAPositionIsReadableAllBelowAre) {
  REQUIRES_CAPABILITY(commit_positions);
  REQUIRES_CAPABILITY(fresh_scans);
  constexpr int kThreads = 4;
  constexpr int kCommits = 100;
  std::atomic<int> running = kThreads;
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      for (int i = 0; i < kCommits; ++i) {
        WriteBatch batch;
        batch.Put(kKeyspace, std::to_string(t), std::to_string(i));
        batch.AppendToLedger(EntryThatSays("entry"));
        AwaitCommit(store(), std::move(batch));
      }
      --running;
    });
  }
  // Every commit has an entry here, so the readable positions are without a gap from the start on.
  const CommitPosition start = store().StartPosition();
  const auto check = [&] {
    const CommitPosition announced = store().LastPosition();
    CommitPosition expected = start + 1;
    for (const auto& [position, index, said] : LedgerOf(store())) ASSERT_EQ(position, expected++);
    ASSERT_GE(expected - 1, announced);
  };
  while (running > 0) check();
  for (std::thread& writer : writers) writer.join();
  check();
  EXPECT_EQ(store().LastPosition(), start + kThreads * kCommits);
}

// --- Concurrency, callbacks, durability --------------------------------------------------------

TEST_P(StoreConformanceTest, OfManyRivalsForOneStampExactlyOneWins) {
  constexpr int kThreads = 8;
  constexpr int kWins = 25;
  Put("a", "0");
  std::mutex mutex;
  std::set<Stamp> won;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int wins = 0; wins < kWins;) {
        const std::optional<Record> read = Find("a");
        const CommitResult result =
            Replace("a", std::to_string(std::stoi(std::string(read->value)) + 1), read->stamp);
        ASSERT_THAT(result, IsOk());
        if (!result.committed) continue;
        ++wins;
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(won.insert(read->stamp).second) << "two writers won on " << read->stamp;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ValueAt("a"), std::to_string(kThreads * kWins));
}

TEST_P(StoreConformanceTest, OfManyInsertsExactlyOneWins) {
  constexpr int kThreads = 8;
  for (int round = 0; round < 10; ++round) {
    const std::string key = std::to_string(round);
    std::atomic<int> winners = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        WriteBatch batch;
        batch.Insert(kKeyspace, key, std::to_string(t));
        if (Commit(std::move(batch)).committed) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(winners, 1);
  }
}

TEST_P(StoreConformanceTest, CommitsOfManyThreadsAllStand) {
  constexpr int kThreads = 8;
  constexpr int kCommits = 100;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCommits; ++i) {
        const std::string key = std::to_string(t) + "/" + std::to_string(i);
        WriteBatch batch;
        batch.Insert(kKeyspace, key, key);
        ExpectCommitted(Commit(std::move(batch)), 1);
        EXPECT_EQ(ValueAt(key), key);  // what is acknowledged is visible, to this thread at once
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Keys(store(), {}).size(), size_t{kThreads * kCommits});
}

TEST_P(StoreConformanceTest, BatchesOfOneThreadOnOneKeyKeepTheirOrder) {
  constexpr int kCommits = 300;
  std::mutex mutex;
  std::condition_variable changed;
  int answers = 0;
  for (int i = 1; i <= kCommits; ++i) {
    WriteBatch batch;
    // One that comes to the key late is not overtaken.
    for (int j = i % 3; j > 0; --j) batch.Put(kKeyspace, "before " + std::to_string(j), "1");
    batch.Put(kKeyspace, "a", std::to_string(i));
    store().Commit(std::move(batch), [&](const CommitResult& result) {
      EXPECT_TRUE(result.committed);
      const std::lock_guard lock(mutex);
      ++answers;
      changed.notify_one();
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return answers == kCommits; });
  EXPECT_EQ(ValueAt("a"), std::to_string(kCommits));
}

TEST_P(StoreConformanceTest, ACallbackComesOnceAndMayCommitAgain) {
  constexpr int kCommits = 1'000;
  std::mutex mutex;
  std::condition_variable changed;
  int answers = 0;
  bool finished = false;
  std::function<void(int)> commit = [&](int number) {
    WriteBatch batch;
    batch.Insert(kKeyspace, std::to_string(number), "1");
    store().Commit(std::move(batch), [&, number](const CommitResult& result) {
      EXPECT_TRUE(result.committed);
      EXPECT_EQ(ValueAt(std::to_string(number)), "1");
      {
        const std::lock_guard lock(mutex);
        ++answers;
      }
      if (number < kCommits) {
        commit(number + 1);
        return;
      }
      const std::lock_guard lock(mutex);
      finished = true;
      changed.notify_one();
    });
  };
  commit(1);
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return finished; });
  EXPECT_EQ(answers, kCommits);
}

TEST_P(StoreConformanceTest, TheDestructorCompletesWhatWaits) {
  constexpr int kCommits = 200;
  std::vector<int> answers(kCommits, 0);
  for (int i = 0; i < kCommits; ++i) {
    WriteBatch batch;
    batch.Put(kKeyspace, std::to_string(i), "1");
    store().Commit(std::move(batch), [&answers, i](const CommitResult& result) {
      EXPECT_TRUE(result.committed);
      ++answers[static_cast<size_t>(i)];
    });
  }
  Close();
  for (const int count : answers) EXPECT_EQ(count, 1);
}

TEST_P(StoreConformanceTest, WhatIsAcknowledgedOutlivesTheStore) {
  EXEMPT(Exemption::kForgets);
  WriteBatch batch;
  batch.Put(Keyspace::kHeads, "a", "1");
  batch.Put(Keyspace::kVersions, std::string("a\0b", 3), std::string(100'000, 'x'));
  batch.AppendToLedger(EntryThatSays("entry"));
  const CommitResult result = Commit(batch);
  Put("deleted", "1");
  Delete("deleted");
  const std::optional<Record> before = Find("a", Keyspace::kHeads);
  const CommitPosition last = store().LastPosition();
  for (int i = 0; i < 3; ++i) {
    Reopen();
    const std::optional<Record> after = Find("a", Keyspace::kHeads);
    ASSERT_TRUE(after);
    EXPECT_EQ(after->value, before->value);
    EXPECT_EQ(after->stamp, before->stamp);
    EXPECT_EQ(after->position, before->position);
    EXPECT_EQ(Find(std::string("a\0b", 3), Keyspace::kVersions)->value, std::string(100'000, 'x'));
    EXPECT_EQ(Find("deleted"), std::nullopt);
    EXPECT_EQ(store().LastPosition(), last);
    if (store().capabilities().commit_positions) {
      EXPECT_THAT(LedgerOf(store()), ElementsAre(SaidAt(result.position, 0, "entry")));
    }
  }
  // Neither stamps nor positions start again.
  const CommitResult next = Put("a", "2");
  if (store().capabilities().commit_positions) {
    EXPECT_GT(next.position, last);
  }
  ExpectRefused(Replace("a", "3", before->stamp), 0);
}

// --- All of it at random against a model -------------------------------------------------------

// What the store must hold: the port's rules once more, for one keyspace, in their plainest form.
class Model {
 public:
  struct Outcome {
    bool committed = false;
    size_t applied = 0;
    std::optional<size_t> refused;
    std::vector<std::string> written;  // keys whose stamps are to be learned
  };

  Outcome Apply(const WriteBatch& batch, bool atomic) {
    Outcome outcome;
    std::map<std::string, Record> next = records_;
    for (const Write& write : batch.writes()) {
      const auto found = next.find(write.key);
      const bool present = found != next.end();
      if (write.guard == Guard::kAbsent && present) break;
      if (write.guard == Guard::kStamp && !(present && found->second.stamp == write.stamp)) break;
      ++outcome.applied;
      if (write.guard == Guard::kEnsure && present) continue;
      if (write.kind == WriteKind::kPut) {
        next[write.key] = {write.value, -1, 0};
        outcome.written.push_back(write.key);
      } else if (write.kind == WriteKind::kDelete) {
        next.erase(write.key);
      }
    }
    const bool ended = outcome.applied < batch.writes().size();
    outcome.committed = !(atomic && ended) && outcome.applied > batch.commit_point();
    if (!outcome.committed) outcome.refused = outcome.applied;
    if (atomic && ended) return {outcome.committed, 0, outcome.refused, {}};
    records_ = std::move(next);
    return outcome;
  }

  std::map<std::string, Record>& records() { return records_; }
  const std::map<std::string, Record>& records() const { return records_; }

  std::vector<std::pair<std::string, std::string>> Walk(const Range& range) const {
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& [key, record] : records_) {
      if (key >= range.begin && (range.end.empty() || key < range.end))
        found.emplace_back(key, record.value);
    }
    if (range.reverse) std::reverse(found.begin(), found.end());
    return found;
  }

 private:
  std::map<std::string, Record> records_;
};

TEST_P(StoreConformanceTest, RandomOperationsAgreeWithTheModel) {
  const uint64_t seed = TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 generator(seed);
  const auto random = [&](size_t below) { return static_cast<size_t>(generator() % below); };
  const Capabilities capabilities = store().capabilities();
  const bool durable = !ExemptionsOf(GetParam().engine.name).contains(Exemption::kForgets);

  std::vector<std::string> keys;
  for (int i = 0; i < 24; ++i) {
    std::string key;
    for (size_t length = random(4); length-- > 0;) key += std::string("\0ab\xFF", 4)[random(4)];
    keys.push_back(key + static_cast<char>('a' + i));
  }
  const auto any_key = [&] { return keys[random(keys.size())]; };

  // Engines keep what they know of records in other ways from one keyspace to the other.
  for (const Keyspace keyspace : {Keyspace::kMeta, Keyspace::kHeads, Keyspace::kMessages}) {
    SCOPED_TRACE(KeyspaceName(keyspace));
    Model model;
    std::unique_ptr<Reader> snapshot;
    Model snapshot_model;
    for (int step = 0; step < test_support::Sampled(700, 150); ++step) {
      WriteBatch batch;
      std::set<std::string> used;
      for (size_t writes = 1 + random(4); writes-- > 0;) {
        const std::string key = any_key();
        if (!used.insert(key).second) continue;
        const auto stored = model.records().find(key);
        Stamp stamp = stored == model.records().end() ? 1 : stored->second.stamp;
        if (random(8) == 0) stamp += random(2) == 0 ? 1 : -1;
        const std::string value = std::to_string(step) + std::string(random(40), 'x');
        switch (random(capabilities.atomic_batches ? 8 : 7)) {
          case 0:
            batch.Insert(keyspace, key, value);
            break;
          case 1:
          case 2:
            batch.Replace(keyspace, key, value, stamp);
            break;
          case 3:
            batch.Ensure(keyspace, key, value);
            break;
          case 4:
            batch.Put(keyspace, key, value);
            break;
          case 5:
            batch.Delete(keyspace, key);
            break;
          case 6:
            batch.DeleteIf(keyspace, key, stamp);
            break;
          default:
            batch.Check(keyspace, key, stamp);
            break;
        }
        if (random(4) == 0) batch.MarkCommitPoint();
      }
      const CommitResult result = Commit(batch);
      const Model::Outcome expected = model.Apply(batch, capabilities.atomic_batches);
      ASSERT_THAT(result, IsOk());
      ASSERT_EQ(result.committed, expected.committed) << "step " << step;
      ASSERT_EQ(result.applied, expected.applied) << "step " << step;
      ASSERT_EQ(result.refused, expected.refused) << "step " << step;
      for (const std::string& key : expected.written) {
        const std::optional<Record> record = Find(key, keyspace);
        ASSERT_TRUE(record) << "step " << step;
        model.records()[key].stamp = record->stamp;
      }

      const std::string key = any_key();
      const auto stored = model.records().find(key);
      const std::optional<Record> record = Find(key, keyspace);
      ASSERT_EQ(record.has_value(), stored != model.records().end()) << "step " << step;
      if (record) {
        ASSERT_EQ(record->value, stored->second.value) << "step " << step;
        ASSERT_EQ(record->stamp, stored->second.stamp) << "step " << step;
      }
      const Range range{random(3) == 0 ? "" : any_key(), random(3) == 0 ? "" : any_key(),
                        random(2) == 0};
      ASSERT_EQ(Walk(store(), range, keyspace), model.Walk(range)) << "step " << step;
      if (snapshot != nullptr) {
        ASSERT_EQ(Walk(*snapshot, range, keyspace), snapshot_model.Walk(range)) << "step " << step;
      }
      if (capabilities.snapshots && random(50) == 0) {
        snapshot = store().Snapshot();
        snapshot_model = model;
      }
      if (durable && random(300) == 0) {
        snapshot.reset();
        Reopen();
      }
    }
  }
}

}  // namespace
}  // namespace strata::store
