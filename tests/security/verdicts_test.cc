// What is remembered of a policy is never another policy's.
#include "service/security/verdicts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/volume.h"

namespace strata::security {
namespace {

// Names what it permits after enough that it does not, so that asking takes its time.
std::shared_ptr<const Policy> Permitting(const std::string& resource) {
  std::string grants;
  for (int i = 0; i < 2000; ++i) {
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
  for (int i = 0; i < test_support::Sampled(300'000, 100'000); ++i) {
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

// Threads that ask for the same few things all the time.
class Askers {
 public:
  static constexpr int kNames = 64;

  explicit Askers(Verdicts& verdicts) {
    for (std::atomic<int64_t>& asked : asked_) {
      threads_.emplace_back([this, &verdicts, &asked] {
        while (!done_) Permits(verdicts, "user:a", std::to_string(asked++ % kNames));
      });
    }
  }
  ~Askers() {
    done_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  // Until one of them, or each of them, has begun so many more questions.
  void AwaitOne(int64_t more) {
    const int64_t before = asked_[0];
    while (asked_[0] < before + more) std::this_thread::yield();
  }
  void AwaitEach(int64_t more) {
    for (std::atomic<int64_t>& asked : asked_) {
      const int64_t before = asked;
      while (asked < before + more) std::this_thread::yield();
    }
  }

 private:
  std::atomic<bool> done_ = false;
  std::array<std::atomic<int64_t>, 2> asked_{};
  std::vector<std::thread> threads_;
};

// At each change some verdict is half made.
TEST(VerdictsTest, NoneOfAnEarlierPolicyIsLeftWhenTheNextIsInUse) {
  Verdicts verdicts;
  const auto everything = Permitting("*");
  const auto nothing = Permitting("queue/*");
  verdicts.Use(everything);
  Askers askers(verdicts);
  int stale = 0;
  for (int change = 0; change < 150; ++change) {
    verdicts.Use(everything);  // nothing is remembered, so that all of them ask the policy
    askers.AwaitOne(1 + change % 16);
    verdicts.Use(nothing);
    askers.AwaitEach(2);  // what was under way is done
    for (int name = 0; name < Askers::kNames; ++name) {
      stale += Permits(verdicts, "user:a", std::to_string(name)) ? 1 : 0;
    }
  }
  EXPECT_EQ(stale, 0);
}

}  // namespace
}  // namespace strata::security
