// The loop around a guarded commit, over a store whose answers are the test's.
#include "schemas/store/guarded_commit.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/store/forwarding_store.h"
#include "service/engines/engines.h"
#include "tests/support/executors.h"
#include "tests/support/status_matchers.h"

namespace strata::store {
namespace {

using std::chrono::steady_clock;
using test_support::HasReason;
using test_support::IsOk;

// Keeps each batch until the test answers it.
class AnsweredStore final : public ForwardingStore {
 public:
  AnsweredStore() : ForwardingStore(*engines::OpenEngine("memory", {})) {}

  Capabilities capabilities() const override {
    Capabilities capabilities = inner().capabilities();
    capabilities.blocking_reads = reads_block;
    return capabilities;
  }
  void Commit(WriteBatch batch, CommitCallback done) override {
    EXPECT_EQ(done_, nullptr) << "two at once";
    batches.push_back(std::move(batch));
    done_ = std::move(done);
  }

  // REQUIRES: a batch has no answer.
  void Answer(const CommitResult& result) { std::exchange(done_, nullptr)(result); }

  bool reads_block = false;
  std::vector<WriteBatch> batches;

 private:
  CommitCallback done_;
};

// What the plan and the answer belong to.
struct GatedOwner {
  Doors doors;
};

class GuardedCommitTest : public testing::Test {
 protected:
  // Its plans are numbered from 1, and that is their value.
  void Begin(std::optional<steady_clock::time_point> deadline = steady_clock::time_point::max(),
             int attempts_max = kAttemptsMax) {
    CommitGuarded(
        {store_, executor_, {owner_, &owner_->doors}}, {"lease jobs", deadline, attempts_max},
        [this](WriteBatch& batch) -> absl::StatusOr<int> {
          ++plans_;
          if (!refusal_.ok()) return refusal_;
          if (writes_) batch.Insert(Keyspace::kLeases, "jobs", std::to_string(plans_));
          return plans_;
        },
        [this](absl::StatusOr<int> planned, CommitPosition position) {
          EXPECT_FALSE(answer_) << "answered twice";
          answer_ = std::move(planned);
          position_ = position;
        });
  }

  static CommitResult Lost() { return {}; }
  static CommitResult Committed() {
    return {absl::OkStatus(), /*committed=*/true, /*applied=*/1, std::nullopt, /*position=*/7};
  }

  test_support::ManualClock clock_;
  test_support::ManualExecutor executor_{clock_};
  AnsweredStore store_;
  std::shared_ptr<GatedOwner> owner_ = std::make_shared<GatedOwner>();
  int plans_ = 0;
  bool writes_ = true;
  absl::Status refusal_;
  std::optional<absl::StatusOr<int>> answer_;
  CommitPosition position_ = -1;
};

TEST_F(GuardedCommitTest, WhatIsCommittedIsTheAnswerWithItsPosition) {
  Begin();
  EXPECT_EQ(plans_, 1) << "on the caller's thread";
  EXPECT_FALSE(answer_);
  store_.Answer(Committed());
  ASSERT_TRUE(answer_) << "on the thread that ends the commit";
  EXPECT_EQ(**answer_, 1);
  EXPECT_EQ(position_, 7);
  EXPECT_EQ(executor_.pending(), 0u);
}

TEST_F(GuardedCommitTest, AfterALostRaceItIsPlannedAnewOnTheExecutor) {
  Begin();
  for (int race = 1; race <= 3; ++race) {
    store_.Answer(Lost());
    EXPECT_EQ(plans_, race) << "the engine's thread plans nothing";
    EXPECT_EQ(executor_.RunDue(), 1u);
    EXPECT_EQ(plans_, race + 1);
    EXPECT_EQ(store_.batches.back().writes().front().value, std::to_string(race + 1));
  }
  store_.Answer(Committed());
  ASSERT_TRUE(answer_);
  EXPECT_EQ(**answer_, 4) << "what was planned last";
}

TEST_F(GuardedCommitTest, WhoAlwaysLosesIsToldWhoseRaceItWas) {
  Begin(steady_clock::time_point::max(), /*attempts_max=*/3);
  for (int race = 1; race <= 3; ++race) {
    EXPECT_FALSE(answer_);
    store_.Answer(Lost());
    executor_.RunDue();
  }
  ASSERT_TRUE(answer_);
  EXPECT_THAT(*answer_, HasReason(ErrorReason::kRetriesExhausted));
  EXPECT_EQ(answer_->status().message(), "lost the race for lease jobs 3 times");
  EXPECT_EQ(MetadataOf(answer_->status(), "attempts"), "3");
  EXPECT_EQ(store_.batches.size(), 3u);
}

TEST_F(GuardedCommitTest, SixteenRacesAreLostAtMostUnlessMoreAreAskedFor) {
  Begin();
  while (!answer_) {
    store_.Answer(Lost());
    executor_.RunDue();
  }
  EXPECT_EQ(store_.batches.size(), 16u);
  EXPECT_EQ(plans_, 16);
}

TEST_F(GuardedCommitTest, EachBatchHasTheDeadline) {
  const auto deadline = clock_.SteadyNow() + std::chrono::seconds(1);
  Begin(deadline);
  store_.Answer(Lost());
  executor_.RunDue();
  ASSERT_EQ(store_.batches.size(), 2u);
  for (const WriteBatch& batch : store_.batches) {
    EXPECT_EQ(batch.deadline(), deadline);
    EXPECT_FALSE(batch.background());
  }
}

TEST_F(GuardedCommitTest, WithoutADeadlineNoCallWaits) {
  Begin(std::nullopt);
  store_.Answer(Lost());
  executor_.RunDue();
  ASSERT_EQ(store_.batches.size(), 2u);
  for (const WriteBatch& batch : store_.batches) EXPECT_TRUE(batch.background());
}

TEST_F(GuardedCommitTest, WhatTheEngineAnswersIsNotRepeated) {
  for (const ErrorReason reason : {ErrorReason::kOutcomeUnknown, ErrorReason::kDeadlineExceeded,
                                   ErrorReason::kDiskFull, ErrorReason::kStoreUnavailable}) {
    answer_.reset();
    Begin();
    store_.Answer({.status = Error(reason, "the engine's")});
    ASSERT_TRUE(answer_);
    EXPECT_THAT(*answer_, HasReason(reason));
    EXPECT_EQ(executor_.pending(), 0u);
  }
  EXPECT_EQ(store_.batches.size(), 4u);
}

TEST_F(GuardedCommitTest, APlanThatWritesNothingIsTheAnswer) {
  writes_ = false;
  Begin();
  ASSERT_TRUE(answer_);
  EXPECT_EQ(**answer_, 1);
  EXPECT_EQ(position_, 0);
  EXPECT_TRUE(store_.batches.empty());
}

TEST_F(GuardedCommitTest, APlanThatFailsIsTheAnswerAlsoAfterALostRace) {
  Begin();
  refusal_ = Error(ErrorReason::kLeaseLost, "another has it");
  store_.Answer(Lost());
  executor_.RunDue();
  ASSERT_TRUE(answer_);
  EXPECT_THAT(*answer_, HasReason(ErrorReason::kLeaseLost));
  EXPECT_EQ(store_.batches.size(), 1u);
}

TEST_F(GuardedCommitTest, OnceTheGateIsClosedNothingIsScheduled) {
  Begin();
  owner_->doors.Close();
  store_.Answer(Lost());
  ASSERT_TRUE(answer_);
  EXPECT_THAT(*answer_, HasReason(ErrorReason::kDraining));
  EXPECT_EQ(executor_.pending(), 0u) << "it may be gone";
  EXPECT_EQ(plans_, 1);
}

TEST_F(GuardedCommitTest, AGateThatClosesMeanwhileStopsTheRepetition) {
  Begin();
  store_.Answer(Lost());
  owner_->doors.Close();
  EXPECT_EQ(executor_.RunDue(), 1u);
  ASSERT_TRUE(answer_);
  EXPECT_THAT(*answer_, HasReason(ErrorReason::kDraining));
  EXPECT_EQ(plans_, 1) << "the store may be gone";
}

TEST_F(GuardedCommitTest, WhatWasCommittedIsTheAnswerAlsoWhenTheGateIsClosed) {
  store_.reads_block = true;
  Begin();
  owner_->doors.Close();
  store_.Answer(Committed());
  ASSERT_TRUE(answer_);
  EXPECT_EQ(**answer_, 1);
  EXPECT_EQ(executor_.pending(), 0u);
}

TEST_F(GuardedCommitTest, WhereReadsBlockTheAnswerComesOnTheExecutor) {
  store_.reads_block = true;
  for (const CommitResult& result :
       {Committed(), CommitResult{.status = Error(ErrorReason::kDiskFull, "full")}}) {
    answer_.reset();
    Begin();
    store_.Answer(result);
    EXPECT_FALSE(answer_) << "it may read, and the engine's thread must not wait";
    EXPECT_EQ(executor_.RunDue(), 1u);
    EXPECT_TRUE(answer_);
  }
}

TEST_F(GuardedCommitTest, TheOwnerLivesUntilTheAnswer) {
  std::weak_ptr<GatedOwner> owner = owner_;
  Begin();
  owner_.reset();
  EXPECT_FALSE(owner.expired());
  store_.Answer(Lost());
  EXPECT_FALSE(owner.expired());
  executor_.RunDue();
  EXPECT_FALSE(owner.expired());
  store_.Answer(Committed());
  EXPECT_TRUE(owner.expired());
}

}  // namespace
}  // namespace strata::store
