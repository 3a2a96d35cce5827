// A disk without room for a table: what RocksDB writes by itself, behind what is acknowledged.
#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/disk/disk_world.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::rocks {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using Call = FaultFileSystem::Call;
using CallKind = FaultFileSystem::CallKind;

// The parameter: how many more tables there is room for, while the disk is full.
class NoRoomTest : public testing::TestWithParam<int> {
 protected:
  NoRoomTest() {
    world_.options.beacon_behind_max = std::chrono::hours(1);
    world_.options.disk_look_interval = std::chrono::milliseconds(1);
    world_.options.disk_space = [this] {
      const bool none = full_ && full_disk_is_known_;
      return DiskSpace{.free_bytes = none ? 0 : uint64_t{1} << 30,
                       .total_bytes = uint64_t{1} << 31};
    };
    world_.files->SetFault([this](const Call& call) {
      if (call.kind != CallKind::kWrite) return rocksdb::IOStatus::OK();
      if (log_full_ && call.path.ends_with(".log"))
        return rocksdb::IOStatus::NoSpace("by the test");
      if (!full_ || !call.path.ends_with(".sst")) return rocksdb::IOStatus::OK();
      tables_.emplace(call.path);
      return static_cast<int>(tables_.size()) <= GetParam()
                 ? rocksdb::IOStatus::OK()
                 : rocksdb::IOStatus::NoSpace("by the test");
    });
  }
  ~NoRoomTest() override { world_.files->SetFault(nullptr); }

  void Commit(int count) {
    for (int i = 0; i < count; ++i) world_.commits.CommitSome(*world_.store, 1, chance_);
    ASSERT_FALSE(world_.commits.failed());
  }
  // All that was committed is written into tables, as far as there is room; then there is no more.
  void FillDisk() {
    tables_.clear();
    full_ = true;
    EXPECT_FALSE(world_.store->CompactAll().ok());
  }

  std::atomic<bool> full_ = false;
  std::atomic<bool> full_disk_is_known_ = true;
  std::atomic<bool> log_full_ = false;
  std::set<std::string, std::less<>>
      tables_;  // begun since; the file system takes one call at a time
  DiskWorld world_{StoredCommits(300)};
  std::mt19937_64 chance_{1};
};

TEST_P(NoRoomTest, ItGoesOnOnceThereIsRoomAgain) {
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(20);
  FillDisk();
  full_ = false;
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!world_.store->CompactAll().ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    // Compactions that are asked for without a pause keep RocksDB 9 from going on.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  Commit(20);
  world_.commits.ExpectStored(*world_.store);
  world_.Close();
  ASSERT_THAT(world_.Open(), IsOk());
  world_.commits.ExpectStored(*world_.store);
}

// None of the answers says otherwise than what is stored: those that were refused are not, and
// those that came before or after are.
TEST_P(NoRoomTest, WhatComesMeanwhileIsRefusedOrStoredAndWritesGoOnAfterwards) {
  STRATA_TRACE_SEED(test_support::TestSeed());
  chance_.seed(test_support::TestSeed());
  for (int round = 0; round < 20; ++round) {
    ASSERT_THAT(world_.Open(), IsOk());
    Commit(round == 0 ? 3 : 30);  // a few leave keyspaces to be made
    FillDisk();
    // Else what failed was a compaction of what was there before.
    const bool writes_stop = !world_.store->Ready().ok();
    if (round == 0 && GetParam() == 0) {
      ASSERT_TRUE(writes_stop);
    }
    const store::CommitPosition before = world_.store->LastPosition();
    for (int i = 0; i < 50; ++i) {
      world_.commits.CommitSome(*world_.store, writes_stop ? 1 + i % 4 : 1, chance_);
      ASSERT_FALSE(world_.commits.failed());
    }
    if (writes_stop) {
      ASSERT_EQ(world_.store->LastPosition(), before);
      ASSERT_THAT(world_.store->Ready(), HasReason(ErrorReason::kDiskFull));
    }
    world_.commits.ExpectStored(*world_.store);
    full_ = false;
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (world_.store->LastPosition() < before + 20) {
      world_.commits.CommitSome(*world_.store, 1, chance_);
      ASSERT_FALSE(world_.commits.failed());
      ASSERT_LT(std::chrono::steady_clock::now(), give_up) << world_.store->Ready();
    }
    while (!world_.store->Ready().ok()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      std::this_thread::yield();
    }
    world_.commits.ExpectStored(*world_.store);
    world_.Close();
    ASSERT_THAT(world_.Open(), IsOk());
    world_.commits.ExpectStored(*world_.store);
    world_.Close();
  }
}

// Of a write that is in the log, or in part, nobody knows: it is not one that was refused.
TEST_P(NoRoomTest, AWriteForWhichTheLogHasNoRoomIsTheLast) {
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(20);
  FillDisk();
  full_ = false;
  const store::CommitPosition before = world_.store->LastPosition();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (world_.store->LastPosition() == before) {
    world_.commits.CommitSome(*world_.store, 1, chance_);
    ASSERT_LT(std::chrono::steady_clock::now(), give_up) << world_.store->Ready();
  }
  log_full_ = true;
  // Those that a guard refuses are not written.
  for (int i = 0; i < 50 && !world_.commits.failed(); ++i) {
    world_.commits.CommitSome(*world_.store, 1, chance_);
  }
  EXPECT_TRUE(world_.commits.failed());
  EXPECT_THAT(world_.store->Ready(), HasReason(ErrorReason::kStoreUnavailable));
  world_.Close();
  log_full_ = false;
  ASSERT_THAT(world_.Open(), IsOk());
  world_.commits.ExpectStored(*world_.store);
}

// What is free is not what a table can have, or somebody else takes it: it tries to go on, in vain.
TEST_P(NoRoomTest, ItCanBeClosedAlthoughItTriesToGoOnWithoutRoom) {
  full_disk_is_known_ = false;
  for (int i = 0; i < 30; ++i) {
    ASSERT_THAT(world_.Open(), IsOk());
    Commit(30);
    FillDisk();
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(i);
    while (std::chrono::steady_clock::now() < until) {
      world_.commits.CommitSome(*world_.store, 1, chance_);
      ASSERT_FALSE(world_.commits.failed());
    }
    world_.Close();
    full_ = false;
  }
  ASSERT_THAT(world_.Open(), IsOk());
  world_.commits.ExpectStored(*world_.store);
}

// RocksDB's own way of going on could leave closing to wait for ever.
TEST_P(NoRoomTest, ItCanBeClosedAtAnyMomentAfterwards) {
  const int64_t closings = Volume("STRATA_NO_ROOM_CLOSINGS", 40);
  for (int64_t i = 0; i < closings; ++i) {
    ASSERT_THAT(world_.Open(), IsOk());
    Commit(3);
    FillDisk();
    full_ = false;
    // Right after the failure, and after a few looks at the disk.
    std::uniform_int_distribution wait(0, i % 2 == 0 ? 300 : 8000);
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(wait(chance_));
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    world_.Close();
  }
  ASSERT_THAT(world_.Open(), IsOk());
  world_.commits.ExpectStored(*world_.store);
}

// None: a flush fails, which stops all writes; one: a compaction, which stops none, or another
// flush.
INSTANTIATE_TEST_SUITE_P(Tables, NoRoomTest, testing::Values(0, 1));

}  // namespace
}  // namespace strata::engines::rocks
