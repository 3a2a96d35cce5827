// What is particular to the memory engine.
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/engines/engines.h"
#include "service/engines/memory/tree.h"
#include "tests/support/await_commit.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::engines::memory {
namespace {

using store::Keyspace;
using test_support::AwaitCommit;
using test_support::IsOk;

TEST(Tree, RandomUpdatesAgreeWithAMapAndLeaveOldTreesAlone) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 generator(seed);
  Tree tree;
  std::map<std::string, std::string> model;
  Tree old_tree;
  std::map<std::string, std::string> old_model;

  const auto expect_equal = [](const Tree& actual, const std::map<std::string, std::string>& map) {
    ASSERT_EQ(actual.All().records, static_cast<int64_t>(map.size()));
    const Item* item = actual.FirstAtOrAfter("");
    for (const auto& [key, value] : map) {
      ASSERT_NE(item, nullptr);
      ASSERT_EQ(item->key, key);
      ASSERT_EQ(item->record.value, value);
      item = actual.FirstAfter(item->key);
    }
    ASSERT_EQ(item, nullptr);
    item = actual.Last();
    for (auto entry = map.rbegin(); entry != map.rend(); ++entry) {
      ASSERT_EQ(item->key, entry->first);
      item = actual.LastBefore(item->key);
    }
    ASSERT_EQ(item, nullptr);
  };

  for (int step = 0; step < 3'000; ++step) {
    const std::string key = std::to_string(generator() % 200);
    if (generator() % 3 == 0) {
      tree = tree.Without(key);
      model.erase(key);
    } else {
      const std::string value = std::to_string(step);
      tree = tree.With(std::make_shared<Item>(Item{key, {value, 1, 1}, 0}));
      model[key] = value;
    }
    const std::string probe = std::to_string(generator() % 220);
    const auto at = model.lower_bound(probe);
    const Item* found = tree.FirstAtOrAfter(probe);
    ASSERT_EQ(found == nullptr ? "" : found->key, at == model.end() ? "" : at->first);
    ASSERT_EQ(tree.Find(probe) != nullptr, model.contains(probe));
    const Item* before = tree.LastBefore(probe);
    ASSERT_EQ(before == nullptr ? "" : before->key,
              at == model.begin() ? "" : std::prev(at)->first);
    ASSERT_EQ(tree.Below(probe).records, std::distance(model.begin(), at));
    if (step % 100 == 0) {
      expect_equal(tree, model);
      expect_equal(old_tree, old_model);
      old_tree = tree;
      old_model = model;
    }
  }
}

TEST(Tree, KeysInOrderDoNotMakeAList) {
  Tree tree;
  for (int i = 0; i < 100'000; ++i)
    tree = tree.With(
        std::make_shared<Item>(Item{std::to_string(1'000'000 + i), {std::string(), 1, 1}, 0}));
  EXPECT_EQ(tree.All().records, 100'000);  // a list would have taken minutes, or the stack
}

TEST(MemoryStore, AnExpiredRecordIsDroppedWithALaterCommit) {
  test_support::ManualClock clock;
  OpenOptions options;
  options.clock = &clock;
  ASSERT_OK_AND_ASSIGN(const auto store, OpenEngine("memory", options));
  store::WriteBatch batch;
  batch.Put(Keyspace::kRequests, "a", "1").expire_time = clock.Now() + 1'000;
  ASSERT_TRUE(AwaitCommit(*store, batch).committed);
  store::WriteBatch other;
  other.Put(Keyspace::kMeta, "b", "1");
  AwaitCommit(*store, other);
  EXPECT_TRUE((*store->Get(Keyspace::kRequests, "a")).has_value());
  clock.Advance(std::chrono::microseconds(1'001));
  AwaitCommit(*store, other);
  EXPECT_FALSE((*store->Get(Keyspace::kRequests, "a")).has_value());
}

TEST(MemoryStore, ALongChainOfCommitsFromCallbacksDoesNotGrowTheStack) {
  ASSERT_OK_AND_ASSIGN(const auto store, OpenEngine("memory", {}));
  constexpr int kCommits = 200'000;
  int answers = 0;
  std::function<void()> commit = [&] {
    store::WriteBatch batch;
    batch.Put(Keyspace::kMeta, "a", "1");
    store->Commit(std::move(batch), [&](const store::CommitResult& result) {
      EXPECT_TRUE(result.committed);
      if (++answers < kCommits) commit();
    });
  };
  commit();
  EXPECT_EQ(answers, kCommits);
}

TEST(Engines, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto opened = OpenEngine("paper", {});
  EXPECT_THAT(opened, test_support::HasReason(ErrorReason::kInvalidField));
  for (const Engine& engine : AllEngines())
    EXPECT_THAT(std::string(opened.status().message()), testing::HasSubstr(engine.name.data()));
}

}  // namespace
}  // namespace strata::engines::memory
