// A disk without room for a table: what RocksDB writes by itself, behind what is acknowledged.
#include <atomic>
#include <chrono>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "tests/disk/disk_world.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::rocks {
namespace {

using test_support::IsOk;
using Call = FaultFileSystem::Call;
using CallKind = FaultFileSystem::CallKind;

// The parameter: how many more tables there is room for, while the disk is full.
class NoRoomTest : public testing::TestWithParam<int> {
 protected:
  NoRoomTest() {
    world_.options.beacon_behind_max = std::chrono::hours(1);
    world_.options.disk_look_interval = std::chrono::milliseconds(1);
    world_.options.disk_space = [] {
      return DiskSpace{.free_bytes = uint64_t{1} << 30, .total_bytes = uint64_t{1} << 31};
    };
    world_.files->SetFault([this](const Call& call) {
      if (!full_ || call.kind != CallKind::kWrite || !call.path.ends_with(".sst")) {
        return rocksdb::IOStatus::OK();
      }
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
  // All that was committed is written into tables, as far as there is room.
  void FillDisk() {
    tables_.clear();
    full_ = true;
    EXPECT_FALSE(world_.store->CompactAll().ok());
    full_ = false;
  }

  std::atomic<bool> full_ = false;
  std::set<std::string, std::less<>>
      tables_;  // begun since; the file system takes one call at a time
  DiskWorld world_{StoredCommits(300)};
  std::mt19937_64 chance_{1};
};

TEST_P(NoRoomTest, ItGoesOnOnceThereIsRoomAgain) {
  ASSERT_THAT(world_.Open(), IsOk());
  Commit(20);
  FillDisk();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!world_.store->CompactAll().ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    std::this_thread::yield();
  }
  Commit(20);
  world_.commits.ExpectStored(*world_.store);
  world_.Close();
  ASSERT_THAT(world_.Open(), IsOk());
  world_.commits.ExpectStored(*world_.store);
}

// RocksDB's own way of going on could leave closing to wait for ever.
TEST_P(NoRoomTest, ItCanBeClosedAtAnyMomentAfterwards) {
  const int64_t closings = Volume("STRATA_NO_ROOM_CLOSINGS", 100);
  for (int64_t i = 0; i < closings; ++i) {
    ASSERT_THAT(world_.Open(), IsOk());
    Commit(3);
    FillDisk();
    // Right after the failure, and after a few looks at the disk.
    std::uniform_int_distribution wait(0, i % 2 == 0 ? 300 : 8000);
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(wait(chance_));
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
    world_.Close();
  }
  ASSERT_THAT(world_.Open(), IsOk());
  world_.commits.ExpectStored(*world_.store);
}

// None: a flush fails, which ends all writes; one: a compaction, which ends none.
INSTANTIATE_TEST_SUITE_P(Tables, NoRoomTest, testing::Values(0, 1));

}  // namespace
}  // namespace strata::engines::rocks
