// What the committer knows of the stamps of records that were written or read lately. That guards
// decide alike with and without it is tests/conformance/store_conformance_test.cc's.
#include "service/engines/rocksdb/recent_stamps.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::rocks {
namespace {

using store::Keyspace;
using store::RecordKey;
using test_support::TestSeed;

TEST(RecentStamps, KeepsMessagesOnly) {
  for (const Keyspace keyspace : store::kAllKeyspaces) {
    EXPECT_EQ(RecentStamps::Keeps(keyspace), keyspace == Keyspace::kMessages);
  }
}

RecordKey Message(std::string_view key) { return {Keyspace::kMessages, key}; }

void Set(RecentStamps& stamps, std::string_view key, int64_t position, UnixMicros expire_time = 0) {
  stamps.Set({{Message(key), RecentStamps::Stamped{position, expire_time}}}, position);
}

void Forget(RecentStamps& stamps, std::string_view key, int64_t position) {
  stamps.Set({{Message(key), std::nullopt}}, position);
}

TEST(RecentStamps, TellsPlacesOfOtherKeyspacesApart) {
  RecentStamps stamps;
  Set(stamps, "a", 7);
  EXPECT_FALSE(stamps.Find({Keyspace::kMeta, "a"}));
  EXPECT_FALSE(stamps.Find(Message("b")));
  ASSERT_TRUE(stamps.Find(Message("a")));
  EXPECT_EQ(stamps.Find(Message("a"))->stamp, 7);
}

TEST(RecentStamps, LearnsWhatWasReadSinceTheLastWrite) {
  RecentStamps stamps;
  Set(stamps, "other", 7);
  stamps.Learn(Message("a"), {3, 30}, /*read_at=*/7);
  ASSERT_TRUE(stamps.Find(Message("a")));
  EXPECT_EQ(stamps.Find(Message("a"))->stamp, 3);
  EXPECT_EQ(stamps.Find(Message("a"))->expire_time, 30);
}

// The reader may have seen what was there before the write, which it does not tell from its own.
TEST(RecentStamps, DoesNotLearnWhatWasReadBeforeAWrite) {
  RecentStamps stamps;
  Set(stamps, "a", 7);
  Forget(stamps, "a", 8);
  stamps.Learn(Message("a"), {7, 0}, /*read_at=*/7);
  EXPECT_FALSE(stamps.Find(Message("a")));
}

TEST(RecentStamps, PutsRightWhatWasReadBesideAWrite) {
  RecentStamps stamps;
  stamps.Learn(Message("gone"), {3, 0}, /*read_at=*/7);
  stamps.Learn(Message("replaced"), {3, 0}, /*read_at=*/7);
  stamps.Set({{Message("gone"), std::nullopt}, {Message("replaced"), RecentStamps::Stamped{8, 0}}},
             8);
  EXPECT_FALSE(stamps.Find(Message("gone")));
  EXPECT_EQ(stamps.Find(Message("replaced"))->stamp, 8);
}

TEST(RecentStamps, PrefersWhatWasWritten) {
  RecentStamps stamps;
  Set(stamps, "a", 7);
  stamps.Learn(Message("a"), {3, 0}, /*read_at=*/7);
  EXPECT_EQ(stamps.Find(Message("a"))->stamp, 7);
}

// Of whatever it says, it says what came last, whatever readers tell of it; and it knows no more
// than two generations.
TEST(RecentStamps, KnowsNothingThatIsOutdated) {
  constexpr size_t kGeneration = 8;
  constexpr size_t kStates = 4;
  const uint64_t seed = TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  RecentStamps stamps(kGeneration);
  using State = std::map<std::string, int64_t>;  // stamps; 0: gone
  std::deque<State> states{{}};                  // the last one is after the step before
  size_t told = 0;
  for (int64_t step = 1; step <= 20'000; ++step) {
    const std::string key = std::to_string(random() % 40);
    State now = states.back();
    switch (random() % 4) {
      case 0:
        Forget(stamps, key, step);
        now[key] = 0;
        break;
      case 1: {
        const size_t ago = random() % states.size();
        const int64_t stored = states[states.size() - 1 - ago][key];
        if (stored == 0) break;
        stamps.Learn(Message(key), {stored, stored + 1}, step - 1 - static_cast<int64_t>(ago));
        break;
      }
      default:
        Set(stamps, key, step, step + 1);
        now[key] = step;
        break;
    }
    states.push_back(std::move(now));
    if (states.size() > kStates) states.pop_front();
    ASSERT_LE(stamps.size(), 2 * kGeneration);
    for (const auto& [known, stamp] : states.back()) {
      const auto found = stamps.Find(Message(known));
      if (!found) continue;
      ++told;
      ASSERT_EQ(found->stamp, stamp) << known << " after step " << step;
      ASSERT_EQ(found->expire_time, stamp + 1);
    }
  }
  EXPECT_GT(told, 100'000U);
}

TEST(RecentStamps, KnowsTheLastGeneration) {
  constexpr int64_t kGeneration = 8;
  RecentStamps stamps(kGeneration);
  for (int64_t step = 1; step <= 10 * kGeneration; ++step) {
    Set(stamps, std::to_string(step), step);
    for (int64_t last = std::max(int64_t{1}, step - kGeneration + 1); last <= step; ++last) {
      ASSERT_TRUE(stamps.Find(Message(std::to_string(last)))) << last << " after step " << step;
    }
  }
}

}  // namespace
}  // namespace strata::engines::rocks
