// What is remembered of a policy is never another policy's.
#include "service/security/verdicts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace strata::security {
namespace {

// Names what it permits after enough that it does not, so that asking takes its time.
std::shared_ptr<const Policy> Permitting(const std::string& resource) {
  std::string grants;
  for (int i = 0; i < 200; ++i) {
    grants += R"({"principals": ["user:x)" + std::to_string(i) +
              R"("], "role": "reader", "resources": ["*"]},)";
  }
  auto policy = Policy::Parse(R"({"grants": [)" + grants +
                              R"({"principals": ["user:*"], "role": "reader", "resources": [")" +
                              resource + R"("]}]})");
  EXPECT_TRUE(policy.ok()) << policy.status();
  return std::make_shared<Policy>(*std::move(policy));
}

bool Permits(Verdicts& verdicts, const std::string& principal, const std::string& collection) {
  return verdicts.Permits(principal, {Permission::kRead, {ResourceKind::kCollection, collection}});
}

TEST(VerdictsTest, OfOneThingIsNotOfAnother) {
  Verdicts verdicts;
  EXPECT_TRUE(Permits(verdicts, "user:a", "b"));
  verdicts.Use(Permitting("collection/b"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(Permits(verdicts, "user:a", "b"));
    EXPECT_FALSE(Permits(verdicts, "user:a", "c"));
    EXPECT_FALSE(Permits(verdicts, "user:ab", ""));
    EXPECT_FALSE(Permits(verdicts, "dns:a", "b"));
    EXPECT_FALSE(
        verdicts.Permits("user:a", {Permission::kWrite, {ResourceKind::kCollection, "b"}}));
    EXPECT_FALSE(verdicts.Permits("user:a", {Permission::kRead, {ResourceKind::kQueue, "b"}}));
  }
  EXPECT_EQ(verdicts.size(), 6u);
}

TEST(VerdictsTest, AnotherPolicyForgetsThemAll) {
  Verdicts verdicts;
  verdicts.Use(Permitting("collection/b"));
  EXPECT_TRUE(Permits(verdicts, "user:a", "b"));
  EXPECT_FALSE(Permits(verdicts, "user:a", "c"));
  verdicts.Use(Permitting("collection/c"));
  EXPECT_EQ(verdicts.size(), 0u);
  EXPECT_FALSE(Permits(verdicts, "user:a", "b"));
  EXPECT_TRUE(Permits(verdicts, "user:a", "c"));
  verdicts.Use(nullptr);
  EXPECT_TRUE(Permits(verdicts, "user:a", "b"));
}

TEST(VerdictsTest, TheyAreBoundedHoweverMuchIsAskedFor) {
  Verdicts verdicts;
  auto policy = Policy::Parse(
      R"({"grants": [{"principals": ["*"], "role": "reader", "resources": ["collection/1*"]}]})");
  ASSERT_TRUE(policy.ok());
  verdicts.Use(std::make_shared<Policy>(*std::move(policy)));
  size_t most = 0;
  for (int i = 0; i < 300'000; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_EQ(Permits(verdicts, "user:a", name), name[0] == '1');
    if (i % 1000 == 0) most = std::max(most, verdicts.size());
  }
  EXPECT_GT(most, Verdicts::kVerdictsMax / 2);
  EXPECT_LE(most, Verdicts::kVerdictsMax);
  verdicts.Use(nullptr);
  EXPECT_EQ(verdicts.size(), 0u);
}

TEST(VerdictsTest, ANameAsLongAsARequestIsJudgedButNotRemembered) {
  Verdicts verdicts;
  verdicts.Use(Permitting("collection/b*"));
  EXPECT_TRUE(Permits(verdicts, "user:a", std::string(4 << 20, 'b')));
  EXPECT_FALSE(Permits(verdicts, "user:a", std::string(4 << 20, 'c')));
  EXPECT_EQ(verdicts.size(), 0u);
  EXPECT_TRUE(Permits(verdicts, "user:a", std::string(Verdicts::kNameBytesMax, 'b')));
  EXPECT_EQ(verdicts.size(), 1u);
}

// Others ask all the time, so that at each change some verdict is half made.
TEST(VerdictsTest, NoneOfAnEarlierPolicyIsLeftWhenTheNextIsInUse) {
  constexpr int kNames = 8;
  Verdicts verdicts;
  const std::shared_ptr<const Policy> policies[] = {Permitting("collection/*"),
                                                    Permitting("queue/*")};
  verdicts.Use(policies[0]);
  std::atomic<bool> done = false;
  std::atomic<int64_t> asked = 0;
  std::vector<std::thread> askers;
  for (int i = 0; i < 3; ++i) {
    askers.emplace_back([&] {
      while (!done) {
        for (int name = 0; name < kNames; ++name) {
          Permits(verdicts, "user:a", std::to_string(name));
          ++asked;
        }
      }
    });
  }
  int stale = 0;
  // As many changes as it takes for everybody to have asked amid many of them.
  for (int change = 1; change < 2000 || asked < 100'000; ++change) {
    verdicts.Use(policies[change % 2]);
    for (int name = 0; name < kNames; ++name) {
      stale += Permits(verdicts, "user:a", std::to_string(name)) == (change % 2 == 0) ? 0 : 1;
    }
  }
  done = true;
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(stale, 0);
}

}  // namespace
}  // namespace strata::security
