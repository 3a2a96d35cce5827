// What the caches have to leave to the rest of the process.
#include "service/engines/rocksdb/memory_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace strata::engines::rocks {
namespace {

using std::chrono::milliseconds;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiven = 256 * kMiB;
constexpr uint64_t kProcessMax = kGiven + kGiven / 8;

TEST(CacheBudgetTest, CachesHaveAllWhileThereIsRoom) {
  CacheBudget budget(kGiven);
  for (const uint64_t process : {uint64_t{0}, 30 * kMiB, kGiven, kProcessMax}) {
    EXPECT_EQ(budget.Look(process), kGiven) << process;
  }
}

TEST(CacheBudgetTest, WhatIsTooMuchIsTakenOnceUntilItCanBeBack) {
  CacheBudget budget(kGiven);
  EXPECT_EQ(budget.Look(kProcessMax + 20 * kMiB), kGiven - 20 * kMiB);
  for (size_t look = 0; look < CacheBudget::kLooksUntilReturned; ++look) {
    EXPECT_EQ(budget.Look(kProcessMax + 20 * kMiB), kGiven - 20 * kMiB) << look;
  }
  EXPECT_EQ(budget.Look(kProcessMax + 20 * kMiB), kGiven - 40 * kMiB);
  EXPECT_EQ(budget.Look(kProcessMax + 23 * kMiB), kGiven - 43 * kMiB) << "what came meanwhile";
}

TEST(CacheBudgetTest, CachesKeepHalf) {
  CacheBudget budget(kGiven);
  for (int look = 0; look < 100; ++look) {
    EXPECT_EQ(budget.Look(uint64_t{1} << 62), kGiven / 2);
  }
}

TEST(CacheBudgetTest, WhatWasTakenComesBackByAndBy) {
  CacheBudget budget(kGiven);
  budget.Look(kProcessMax + 20 * kMiB);
  EXPECT_EQ(budget.Look(kProcessMax - kMiB), kGiven - 20 * kMiB) << "as good as full";
  EXPECT_EQ(budget.Look(kProcessMax - 20 * kMiB), kGiven - 19 * kMiB);
  for (int look = 0; look < 19; ++look) budget.Look(kGiven);
  EXPECT_EQ(budget.bytes(), kGiven);
  EXPECT_EQ(budget.Look(kGiven), kGiven);
}

TEST(CacheBudgetTest, BesideSmallCachesAProcessHasWhatItNeeds) {
  CacheBudget budget(8 * kMiB);
  EXPECT_EQ(budget.Look(8 * kMiB + CacheBudget::kBesideMin), 8 * kMiB);
  EXPECT_EQ(budget.Look(9 * kMiB + CacheBudget::kBesideMin), 7 * kMiB);
}

// A process whose freed pages go back to the system when they are said to, and in which so much
// comes on top of the caches as `beside` says.
TEST(CacheBudgetTest, AProcessComesToRestWithinItsBounds) {
  CacheBudget budget(kGiven);
  std::vector<uint64_t> held(CacheBudget::kLooksUntilReturned, kGiven);  // by the caches, lately
  uint64_t process = 0;
  const auto look = [&](uint64_t beside) {
    const auto lately = held.end() - CacheBudget::kLooksUntilReturned;
    process = *std::max_element(lately, held.end()) + beside;
    held.push_back(budget.Look(process));
  };
  for (int i = 0; i < 60; ++i) look(140 * kMiB);
  EXPECT_LE(process, kProcessMax);
  EXPECT_GE(budget.bytes(), kProcessMax - 140 * kMiB - 2 * kMiB) << "and no more is taken";
  for (int i = 0; i < 1000; ++i) look(30 * kMiB);
  EXPECT_EQ(budget.bytes(), kGiven);
}

TEST(MemoryWatchTest, LooksAndTellsTheCaches) {
  std::promise<uint64_t> told;
  bool first = true;
  {
    const MemoryWatch watch(
        kGiven, milliseconds(1), [] { return 10 * kGiven; },
        [&](uint64_t bytes) {
          if (std::exchange(first, false)) told.set_value(bytes);
        });
    EXPECT_EQ(told.get_future().get(), kGiven / 2);
  }
}

TEST(MemoryWatchTest, EndsAtOnce) {
  const auto start = std::chrono::steady_clock::now();
  {
    const MemoryWatch watch(kGiven, std::chrono::hours(1), &ProcessBytes, [](uint64_t) {});
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(1));
}

TEST(MemoryWatchTest, ThisProcessHasSome) {
  EXPECT_GT(ProcessBytes(), kMiB);
  EXPECT_LT(ProcessBytes(), uint64_t{1} << 40);
}

}  // namespace
}  // namespace strata::engines::rocks
