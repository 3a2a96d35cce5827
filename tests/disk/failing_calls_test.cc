// A disk that fails: each call of a short life of the store in turn, once or from then on.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "schemas/base/error.h"
#include "tests/disk/disk_world.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

// RocksDB sleeps for a second after each failure in its background; here that is all there is.
extern "C" int usleep(useconds_t /*microseconds*/) { return sched_yield(); }

namespace strata::engines::rocks {
namespace {

using test_support::IsOk;
using Call = FaultFileSystem::Call;
using CallKind = FaultFileSystem::CallKind;

struct Failure {
  std::string_view name;
  CallKind kind;
  bool no_space;  // ENOSPC instead of EIO
  bool lasts;     // from that call on
};

constexpr Failure kFailures[] = {
    {"a write, EIO", CallKind::kWrite, false, false},
    {"all writes, ENOSPC", CallKind::kWrite, true, true},
    {"a sync, EIO", CallKind::kSync, false, false},
    {"all syncs, EIO", CallKind::kSync, false, true},
    {"a name, EIO", CallKind::kName, false, false},
    {"all names, ENOSPC", CallKind::kName, true, true},
    {"a read, EIO", CallKind::kRead, false, false},
};

// Values that can be read are right, and what cannot be read is refused.
void ExpectNoWrongAnswer(const DiskWorld& world) {
  const auto stored = ReadAll(*world.store);
  if (!stored.ok()) return;
  const store::CommitPosition position = world.store->LastPosition();
  ASSERT_GE(position, world.commits.acknowledged());
  ExpectSame(*stored, world.commits.StateAt(position));
}

// Opened, filled, written to tables, filled, opened again: as far as it gets.
void Live(DiskWorld& world, int at_once) {
  std::mt19937_64 chance(7);
  for (int life = 0; life < 2; ++life) {
    if (!world.Open().ok()) return;
    for (int i = 0; i < 3; ++i) world.commits.CommitSome(*world.store, at_once, chance);
    (void)world.store->CompactAll();
    for (int i = 0; i < 3; ++i) world.commits.CommitSome(*world.store, at_once, chance);
    ASSERT_NO_FATAL_FAILURE(ExpectNoWrongAnswer(world));
    // After a write whose outcome is not known there is none; reads go on.
    if (world.commits.failed()) world.commits.CommitSome(*world.store, at_once, chance);
    world.Close();
    if (world.commits.failed()) return;
  }
}

// True if the life was over before the call.
bool FailAt(const Failure& failure, int64_t call) {
  SCOPED_TRACE(testing::Message() << failure.name << ", call " << call);
  DiskWorld world(StoredCommits(2000));
  // Its own thread would make the calls come in another order each time.
  world.options.beacon_behind_max = std::chrono::hours(1);
  // It goes on after what had no room while the store lives.
  world.options.disk_look_interval = std::chrono::milliseconds(1);
  std::atomic<int64_t> calls = 0;
  world.files->SetFault([&](const Call& each) {
    if (each.kind != failure.kind) return rocksdb::IOStatus::OK();
    const int64_t number = ++calls;
    if (number != call && !(failure.lasts && number > call)) return rocksdb::IOStatus::OK();
    return failure.no_space ? rocksdb::IOStatus::NoSpace("by the test")
                            : rocksdb::IOStatus::IOError("by the test");
  });
  // A guard that cannot be read refuses its own batch only.
  Live(world, failure.kind == CallKind::kRead ? 1 : 2);
  world.Close();
  world.files->SetFault(nullptr);
  const absl::Status opened = world.Open();
  EXPECT_THAT(opened, IsOk());
  if (!opened.ok()) return true;
  world.commits.ExpectStored(*world.store);
  world.commits.RestartAt(world.store->LastPosition());
  std::mt19937_64 chance(8);
  world.commits.CommitSome(*world.store, 1, chance);
  EXPECT_FALSE(world.commits.failed());
  return calls < call;
}

constexpr int kThreads = 8;

TEST(FailingCalls, LeaveWhatWasAcknowledgedAndAStoreThatOpensAgain) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  // One in so many calls, from another one on in each run.
  const int64_t every = test_support::NumberOr("STRATA_FAIL_EVERY", 4 * test_support::kOneIn);
  for (const Failure& failure : kFailures) {
    std::atomic<int64_t> next = 1 + static_cast<int64_t>(seed % static_cast<uint64_t>(every));
    std::atomic<bool> clean = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        while (!clean && !testing::Test::HasFailure()) {
          if (FailAt(failure, next.fetch_add(every))) clean = true;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_FALSE(testing::Test::HasFailure());
    std::printf("%s: about %jd calls\n", std::string(failure.name).c_str(),
                intmax_t{next} - kThreads * every);
  }
}

}  // namespace
}  // namespace strata::engines::rocks
