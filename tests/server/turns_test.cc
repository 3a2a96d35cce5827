// Callers take turns on an executor.
#include "service/server/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "schemas/base/error.h"
#include "service/app/executor.h"
#include "tests/support/executors.h"
#include "tests/support/manual_clock.h"

namespace strata::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::shared_ptr<Caller> Named(const std::string& name) { return std::make_shared<Caller>(name); }

// Callers' work that says when it runs, on the test's own thread.
class TurnsOrder : public testing::Test {
 protected:
  absl::Status Give(const std::shared_ptr<Caller>& caller, const std::string& name) {
    return turns_->Schedule(caller, [this, name] { ran_.push_back(name); });
  }

  test_support::ManualClock clock_;
  test_support::ManualExecutor executor_{clock_};
  std::shared_ptr<Turns> turns_ = std::make_shared<Turns>(executor_, 1);
  const std::shared_ptr<Caller> anne_ = Named("anne");
  const std::shared_ptr<Caller> bob_ = Named("bob");
  const std::shared_ptr<Caller> cleo_ = Named("cleo");
  std::vector<std::string> ran_;
};

TEST_F(TurnsOrder, IsRoundRobinByCallerAndOfOneCallerItsOwn) {
  for (const char* const name : {"a1", "a2", "a3", "a4"}) ASSERT_TRUE(Give(anne_, name).ok());
  for (const char* const name : {"b1", "b2"}) ASSERT_TRUE(Give(bob_, name).ok());
  ASSERT_TRUE(Give(cleo_, "c1").ok());
  executor_.RunAll();
  EXPECT_THAT(ran_, ElementsAre("a1", "b1", "c1", "a2", "b2", "a3", "a4"));
}

TEST_F(TurnsOrder, LetsWhoComesLateGoBeforeWhatOthersHaveWaiting) {
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(Give(anne_, "a").ok());
  executor_.RunDue();
  ran_.clear();
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(Give(anne_, "a").ok());
  ASSERT_TRUE(Give(bob_, "b").ok());
  executor_.RunAll();
  ASSERT_EQ(ran_.size(), 501u);
  EXPECT_LE(std::find(ran_.begin(), ran_.end(), "b") - ran_.begin(), 1);
}

TEST_F(TurnsOrder, OfWhatElseTheExecutorDoesIsNotHeldUp) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Give(anne_, "a").ok());
  executor_.Schedule([this] { ran_.push_back("sweep"); });
  executor_.RunAll();
  ASSERT_EQ(ran_.size(), 101u);
  EXPECT_LE(std::find(ran_.begin(), ran_.end(), "sweep") - ran_.begin(), 1);
}

TEST_F(TurnsOrder, RefusesACallerThatHasAThousandWaitingAndNobodyElse) {
  for (size_t i = 0; i < Turns::kWaitingMax; ++i) ASSERT_TRUE(Give(anne_, "a").ok());
  const absl::Status refused = Give(anne_, "one too many");
  EXPECT_EQ(ReasonOf(refused), ErrorReason::kOverloaded);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("anne has 1000 long calls waiting"));
  EXPECT_TRUE(Give(bob_, "b").ok());
  executor_.RunAll();
  EXPECT_EQ(ran_.size(), Turns::kWaitingMax + 1);
  EXPECT_TRUE(Give(anne_, "again").ok());
}

TEST_F(TurnsOrder, EndsWithStopWhichDropsWhatWaits) {
  const auto held = std::make_shared<int>();
  ASSERT_TRUE(turns_->Schedule(anne_, [held] {}).ok());
  EXPECT_EQ(held.use_count(), 2);
  turns_->Stop();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_TRUE(turns_->Schedule(anne_, [held] {}).ok());
  EXPECT_EQ(held.use_count(), 1);
  executor_.RunAll();
  EXPECT_TRUE(ran_.empty());
}

TEST_F(TurnsOrder, ForgetsCallersThatHaveNothingLeft) {
  ASSERT_TRUE(Give(anne_, "a").ok());
  executor_.RunAll();
  EXPECT_EQ(anne_.use_count(), 1);
}

// On real threads: how much of whom is at work.
class TurnsAtWork : public testing::TestWithParam<int> {
 protected:
  void Give(const std::shared_ptr<Caller>& caller) {
    const absl::Status taken = turns_->Schedule(caller, [this, name = caller->name()] {
      std::unique_lock lock(mutex_);
      ++at_work_[name];
      most_[name] = std::max(most_[name], at_work_[name]);
      most_together_ = std::max(most_together_, ++together_);
      changed_.notify_all();
      changed_.wait(lock, [this] { return let_go_; });
      --at_work_[name];
      --together_;
      ++done_;
      changed_.notify_all();
    });
    ASSERT_TRUE(taken.ok()) << taken;
  }
  void AwaitAtWork(const std::string& name, int count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(30), [&] { return at_work_[name] == count; }));
  }
  void LetGo(int count) {
    std::unique_lock lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(30), [&] { return done_ == count; }));
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> at_work_;
  std::map<std::string, int> most_;
  int together_ = 0;
  int most_together_ = 0;
  int done_ = 0;
  bool let_go_ = false;
  app::ThreadPool pool_{GetParam()};
  std::shared_ptr<Turns> turns_ = std::make_shared<Turns>(pool_, GetParam());
};

TEST_P(TurnsAtWork, LeavesOneThreadToOthers) {
  const int own = std::max(GetParam() - 1, 1);
  const auto greedy = Named("greedy");
  for (int i = 0; i < 20; ++i) Give(greedy);
  AwaitAtWork("greedy", own);
  const auto honest = Named("honest");
  for (int i = 0; i < 20; ++i) Give(honest);
  if (GetParam() > 1) AwaitAtWork("honest", 1);
  LetGo(40);
  EXPECT_EQ(most_["greedy"], own);
  EXPECT_LE(most_together_, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Threads, TurnsAtWork, testing::Values(1, 2, 4),
                         [](const auto& tested) { return std::to_string(tested.param); });

}  // namespace
}  // namespace strata::server
