// What the committer knows of the stamps of records that were replaced lately. That guards decide
// alike with and without it is tests/conformance/store_conformance_test.cc's.
#include "service/engines/rocksdb/recent_stamps.h"

#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::rocks {
namespace {

using store::Keyspace;
using test_support::TestSeed;

TEST(RecentStamps, KeepsMessagesOnly) {
  for (const Keyspace keyspace : store::kAllKeyspaces) {
    EXPECT_EQ(RecentStamps::Keeps(keyspace), keyspace == Keyspace::kMessages);
  }
}

TEST(RecentStamps, TellsPlacesOfOtherKeyspacesApart) {
  RecentStamps stamps;
  stamps.Set({Keyspace::kMessages, "a"}, {7, 0});
  EXPECT_FALSE(stamps.Find({Keyspace::kMeta, "a"}));
  EXPECT_FALSE(stamps.Find({Keyspace::kMessages, "b"}));
  ASSERT_TRUE(stamps.Find({Keyspace::kMessages, "a"}));
  EXPECT_EQ(stamps.Find({Keyspace::kMessages, "a"})->stamp, 7);
}

// Of whatever it says, it says what came last; it knows the last ones, and no more than two
// generations.
TEST(RecentStamps, KnowsTheLastOnesAndNothingThatIsOutdated) {
  constexpr size_t kGeneration = 8;
  const uint64_t seed = TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  RecentStamps stamps(kGeneration);
  std::unordered_map<std::string, int64_t> all;  // 0: forgotten
  std::vector<std::string> set;                  // in their order
  for (int64_t step = 1; step <= 20'000; ++step) {
    const std::string key = std::to_string(random() % 40);
    if (random() % 4 == 0) {
      stamps.Forget({Keyspace::kMessages, key});
      all[key] = 0;
    } else {
      stamps.Set({Keyspace::kMessages, key}, {step, step + 1});
      all[key] = step;
      set.push_back(key);
    }
    ASSERT_LE(stamps.size(), 2 * kGeneration);
    for (const auto& [known, stamp] : all) {
      const auto found = stamps.Find({Keyspace::kMessages, known});
      if (!found) continue;
      ASSERT_EQ(found->stamp, stamp) << known << " after step " << step;
      ASSERT_EQ(found->expire_time, stamp + 1);
    }
    for (size_t i = set.size(); i > 0 && i + kGeneration > set.size(); --i) {
      const std::string& recent = set[i - 1];
      if (all[recent] == 0) continue;
      ASSERT_TRUE(stamps.Find({Keyspace::kMessages, recent})) << recent << " after step " << step;
    }
  }
}

}  // namespace
}  // namespace strata::engines::rocks
