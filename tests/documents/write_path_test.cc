// The compare-and-swap loop: races forced at every point, groups, answers that wait for a commit,
// and crowds of writers.
#include "schemas/versioning/write_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "tests/documents/held_commits.h"
#include "tests/documents/world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/status_matchers.h"

namespace strata::versioning::testing {
namespace {

using test_support::HasReason;
using test_support::HookedStore;
using test_support::IsOk;
using test_support::StoreHooks;

// One process whose store a test watches, beside a rival on the same engine.
class RaceTest : public CombinationTest {
 protected:
  RaceTest() : rival_(world.Another()), hooked_(world.process().store()) {
    DocumentsOptions options;
    options.write.default_strategy = FindStrategy(GetParam().strategy);
    options.write.combining = false;
    documents_ = std::make_unique<Documents>(hooked_, world.clock(), entropy_, executor_, options);
  }
  ~RaceTest() override {
    executor_.Stop();
    documents_.reset();
  }

  // Before each of our next `races` commits of a document, the rival updates it first.
  void LoseRaces(int races) {
    races_ = races;
    StoreHooks hooks;
    hooks.before_commit = [this](const store::WriteBatch& batch) {
      if (batch.writes().back().keyspace == store::Keyspace::kCollections || races_ == 0) return;
      --races_;
      EXPECT_THAT(rival_->Update(Request(), Increment("/rival", 1)), IsOk());
    };
    hooked_.set_hooks(hooks);
  }

  absl::StatusOr<WriteResult> Update(WriteRequest request) {
    Answer answer;
    documents_->Update(std::move(request), Increment("/ours", 1), false, answer.Callback());
    return answer.Wait();
  }

  std::unique_ptr<Process> rival_;
  HookedStore hooked_;
  test_support::SeededEntropy entropy_{2};
  test_support::ThreadExecutor executor_;
  std::unique_ptr<Documents> documents_;
  int races_ = 0;
};

TEST_P(RaceTest, ALostRaceIsRunAgainOnTheNewHead) {
  ASSERT_THAT(world->Create(Request(), Number(0)), IsOk());
  LoseRaces(3);
  ASSERT_OK_AND_ASSIGN(const WriteResult written, Update(Request()));
  EXPECT_EQ(written.attempts, 4);
  EXPECT_EQ(written.version.header.version, 5);
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history.size(), 5u);
  document::Content expected = *written.version.content;
  EXPECT_EQ(*history[0].content, expected);
}

TEST_P(RaceTest, AttemptsAreBounded) {
  ASSERT_THAT(world->Create(Request(), Number(0)), IsOk());
  LoseRaces(100);
  WriteRequest request = Request();
  request.max_attempts = 3;
  const auto exhausted = Update(request);
  EXPECT_THAT(exhausted, HasReason(ErrorReason::kRetriesExhausted));
  EXPECT_EQ(MetadataOf(exhausted.status(), "attempts"), "3");
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history.size(), 4u);  // the rival's three and the creation
}

TEST_P(RaceTest, ACallerThatNamedAVersionIsNotRetried) {
  ASSERT_THAT(world->Create(Request(), Number(0)), IsOk());
  LoseRaces(1);
  WriteRequest request = Request();
  request.precondition.version = 1;
  const auto lost = Update(request);
  EXPECT_THAT(lost, HasReason(ErrorReason::kVersionConflict));
  EXPECT_EQ(MetadataOf(lost.status(), "actual"), "2");
  LoseRaces(1);
  request.precondition = {};
  request.precondition.exists = true;
  EXPECT_THAT(Update(request), HasReason(ErrorReason::kVersionConflict));
}

TEST_P(RaceTest, NoWriteStartsAfterTheDeadline) {
  ASSERT_THAT(world->Create(Request(), Number(0)), IsOk());
  WriteRequest request = Request();
  request.deadline = world.clock().SteadyNow() + std::chrono::seconds(1);
  StoreHooks hooks;
  hooks.before_commit = [this](const store::WriteBatch&) {
    world.clock().Advance(std::chrono::seconds(2));
    EXPECT_THAT(rival_->Update(Request(), Increment("/rival", 1)), IsOk());
  };
  hooked_.set_hooks(hooks);
  EXPECT_THAT(Update(request), HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_THAT(Update(request), HasReason(ErrorReason::kDeadlineExceeded));
}

TEST_P(RaceTest, ACollectionDeletedUnderAWriteNeverAnswersOk) {
  ASSERT_THAT(world->Create(Request(), Number(0)), IsOk());
  StoreHooks hooks;
  int deletions = 0;
  hooks.before_commit = [&](const store::WriteBatch&) {
    if (deletions++ > 0) return;
    absl::Status deleted = absl::UnknownError("");
    std::atomic<bool> done = false;
    rival_->documents().collections().Delete({"things", true}, [&](const auto& result) {
      deleted = result.status();
      done = true;
    });
    while (!done) std::this_thread::yield();
    EXPECT_THAT(deleted, IsOk());
  };
  hooked_.set_hooks(hooks);
  const auto written = Update(Request());
  ASSERT_FALSE(written.ok());
  // With atomic batches nothing was written, and the second attempt says what is the matter;
  // without, nobody can tell, unless the sweep was faster than the write.
  if (GetParam().mode == Mode::kAtomic) {
    EXPECT_THAT(written, HasReason(ErrorReason::kCollectionNotFound));
  } else {
    EXPECT_THAT(written, ::testing::AnyOf(HasReason(ErrorReason::kOutcomeUnknown),
                                          HasReason(ErrorReason::kCollectionNotFound)));
  }
}

STRATA_ALL_COMBINATIONS(RaceTest);

class CombiningTest : public ::testing::TestWithParam<std::string> {
 protected:
  CombiningTest() : held_(world_.engine()), executor_(world_.clock()) {
    DocumentsOptions options;
    options.write.default_strategy = FindStrategy(GetParam());
    documents_ = std::make_unique<Documents>(held_, world_.clock(), entropy_, executor_, options);
    Answer created;
    documents_->Create(Request(), Number(0), created.Callback());
    EXPECT_THAT(created.Wait(), IsOk());
    held_.hold = true;
  }

  Answer& Update(WriteRequest request, Documents::NewContent content) {
    answers_.push_back(std::make_unique<Answer>());
    documents_->Update(std::move(request), std::move(content), false, answers_.back()->Callback());
    return *answers_.back();
  }

  World world_;
  HeldCommits held_;
  test_support::ManualExecutor executor_;
  test_support::SeededEntropy entropy_{3};
  std::unique_ptr<Documents> documents_;
  std::vector<std::unique_ptr<Answer>> answers_;
};

TEST_P(CombiningTest, WritesThatWaitBecomeOneCommit) {
  Answer& first = Update(Request(), Increment("/n", 1));
  for (int i = 0; i < 50; ++i) Update(Request(), Increment("/n", 1));
  ASSERT_EQ(held_.held.size(), 1u);
  held_.LetGo();
  EXPECT_EQ(first.Wait()->version.header.version, 2);
  ASSERT_EQ(held_.held.size(), 1u);
  EXPECT_EQ(held_.held[0].first.ledger().size(), 50u);
  held_.LetGo();
  const store::CommitPosition position = answers_[1]->Wait()->position;
  for (size_t i = 0; i < answers_.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const WriteResult result, answers_[i]->Wait());
    EXPECT_EQ(result.version.header.version, static_cast<int64_t>(i + 2));
    EXPECT_EQ(result.attempts, 1);
    if (i > 0) {
      EXPECT_EQ(result.position, position);
    }
  }
  ASSERT_OK_AND_ASSIGN(const StoredVersion head, documents_->Get(kName, {}));
  EXPECT_EQ(head.header.version, 52);
}

TEST_P(CombiningTest, AnAnswerDecidedOnAPlannedVersionWaitsForItsCommit) {
  Update(Request(), Number(1));
  Update(Request(), Number(2));
  Answer& no_op = Update(Request(), Number(2));
  WriteRequest named = Request();
  named.precondition.version = 1;
  Answer& conflict = Update(named, Number(3));
  held_.LetGo();  // version 2; version 3 is planned, and the other two answers hang on it
  ASSERT_EQ(held_.held.size(), 1u);
  EXPECT_FALSE(no_op.ready());
  EXPECT_FALSE(conflict.ready());
  held_.LetGo();
  ASSERT_OK_AND_ASSIGN(const WriteResult same, no_op.Wait());
  EXPECT_FALSE(same.changed);
  EXPECT_EQ(same.version.header.version, 3);
  EXPECT_EQ(MetadataOf(conflict.Wait().status(), "actual"), "3");
}

TEST_P(CombiningTest, IfThatCommitIsLostTheLineStartsAgain) {
  Update(Request(), Number(1));
  Answer& writer = Update(Request(), Number(2));
  Answer& no_op = Update(Request(), Number(2));
  held_.LetGo();
  held_.Lose();
  executor_.RunAll();
  ASSERT_EQ(held_.held.size(), 1u);
  held_.LetGo();
  EXPECT_EQ(writer.Wait()->attempts, 2);
  EXPECT_EQ(no_op.Wait()->version.header.version, 3);
}

TEST_P(CombiningTest, AnUnknownOutcomeIsReportedAsSuchToWhoWroteAndDecidedAnewForOthers) {
  Update(Request(), Number(1));
  Answer& writer = Update(Request(), Number(2));
  Answer& no_op = Update(Request(), Number(1));  // a no-op only if the write before it was lost
  held_.LetGo();
  held_.Fail(Error(ErrorReason::kOutcomeUnknown, "unknown"));
  EXPECT_THAT(writer.Wait(), HasReason(ErrorReason::kOutcomeUnknown));
  // The third planned a version in the lost group too.
  EXPECT_THAT(no_op.Wait(), HasReason(ErrorReason::kOutcomeUnknown));
  Answer& next = Update(Request(), Number(1));
  EXPECT_FALSE(next.Wait()->changed);
}

TEST_P(CombiningTest, DamageThatOneMeetsIsNotTheOthersAnswer) {
  const absl::Status damaged = Error(ErrorReason::kRecordCorrupt, "a record of one of them");
  Update(Request(), Increment("/first", 1));
  Answer& healthy = Update(Request(), Increment("/n", 1));
  Answer& unlucky = Update(Request(), Increment("/n", 1));
  held_.LetGo();
  held_.Fail(damaged);  // of both: each is tried alone
  ASSERT_EQ(held_.held.size(), 1u);
  held_.LetGo();
  held_.Fail(damaged);
  EXPECT_THAT(healthy.Wait(), IsOk());
  EXPECT_THAT(unlucky.Wait(), HasReason(ErrorReason::kRecordCorrupt));
}

TEST_P(CombiningTest, OnlyWhoWouldHaveWrittenHearsOfAFailure) {
  const std::vector<absl::Status> failures = {
      Overloaded(), Unknown(), Error(ErrorReason::kStoreUnavailable, "The disk is gone."),
      Error(ErrorReason::kLayoutLimit, "The record is too large.")};
  int64_t head = 1;
  for (const absl::Status& failure : failures) {
    SCOPED_TRACE(failure.ToString());
    Update(Request(), Increment("/first", 1));
    Answer& writer = Update(Request(), Increment("/n", 1));
    WriteRequest named = Request();
    named.precondition.version = head + 1;
    Answer& conflict = Update(named, Increment("/named", 1));
    Answer& bad = Update(Request(), Increment("/n/deeper", 1));
    held_.LetGo();
    ++head;
    held_.Fail(failure);
    EXPECT_EQ(ReasonOf(writer.Wait().status()), ReasonOf(failure));
    EXPECT_FALSE(conflict.ready());
    EXPECT_FALSE(bad.ready());
    // Without the version that never was, nothing is in its way.
    ASSERT_EQ(held_.held.size(), 1u);
    held_.LetGo();
    ASSERT_OK_AND_ASSIGN(const WriteResult written, conflict.Wait());
    EXPECT_EQ(written.version.header.version, ++head);
    EXPECT_EQ(written.attempts, 1);
    EXPECT_THAT(bad.Wait(), HasReason(ErrorReason::kInvalidPatch));
  }
}

TEST_P(CombiningTest, ANoOpIsDecidedAnewIfWhatItRepeatsIsNotStored) {
  Update(Request(), Number(1));
  Answer& writer = Update(Request(), Number(2));
  Answer& same = Update(Request(), Number(2));
  held_.LetGo();
  held_.Fail(Overloaded());
  EXPECT_THAT(writer.Wait(), HasReason(ErrorReason::kOverloaded));
  EXPECT_FALSE(same.ready());
  held_.LetGo();
  ASSERT_OK_AND_ASSIGN(const WriteResult written, same.Wait());
  EXPECT_TRUE(written.changed);
  EXPECT_EQ(written.version.header.version, 3);
}

// Who repeats a request shares its fate; who uses its id for something else, or only asks what
// would happen, does not.
TEST_P(CombiningTest, AFailureIsTheSameForTheSameRequestAndForNoOther) {
  Update(Request(), Number(1));
  Answer& original = Update(Request("a", "once"), Increment("/n", 5));
  Answer& repeated = Update(Request("a", "once"), Increment("/n", 5));
  Answer& reused = Update(Request("a", "once"), Increment("/n", 6));
  WriteRequest validate = Request("a", "once");
  validate.validate_only = true;
  Answer& validated = Update(validate, Increment("/n", 6));
  held_.LetGo();
  held_.Fail(Overloaded());
  EXPECT_THAT(original.Wait(), HasReason(ErrorReason::kOverloaded));
  EXPECT_THAT(repeated.Wait(), HasReason(ErrorReason::kOverloaded));
  EXPECT_FALSE(reused.ready());
  EXPECT_FALSE(validated.ready());
  held_.LetGo();
  ASSERT_OK_AND_ASSIGN(const WriteResult written, reused.Wait());
  EXPECT_FALSE(written.replayed);
  EXPECT_EQ(written.version.header.version, 3);
  EXPECT_TRUE(validated.Wait()->replayed);
}

TEST_P(CombiningTest, WhatIsOnlyValidatedHasNoPosition) {
  Update(Request(), Number(1));
  Update(Request(), Number(2));
  WriteRequest request = Request();
  request.validate_only = true;
  Answer& validated = Update(request, Number(3));
  held_.LetGo();
  held_.LetGo();
  ASSERT_OK_AND_ASSIGN(const WriteResult result, validated.Wait());
  EXPECT_EQ(result.version.header.version, 4);
  EXPECT_EQ(result.version.position, 0);
  EXPECT_EQ(result.position, 0);
}

TEST_P(CombiningTest, WhoHasTimeLeftGoesOnWithoutWhoHasNot) {
  const auto within = [this](std::chrono::seconds time) {
    WriteRequest request = Request();
    request.deadline = world_.clock().SteadyNow() + time;
    return request;
  };
  Update(Request(), Number(1));
  Answer& patient = Update(within(std::chrono::seconds(30)), Increment("/n", 1));
  Answer& hasty = Update(within(std::chrono::seconds(1)), Increment("/n", 1));
  Answer& free = Update(Request(), Increment("/n", 1));
  held_.LetGo();
  Answer& newcomer = Update(within(std::chrono::seconds(3)), Increment("/n", 1));
  world_.clock().Advance(std::chrono::seconds(2));
  held_.LetGo();
  EXPECT_THAT(hasty.Wait(), HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_EQ(MetadataOf(hasty.Wait().status(), "attempts"), "0");
  // At once, and without newcomers, so that those with little time cannot stop the others for ever.
  ASSERT_EQ(held_.held.size(), 1u);
  EXPECT_EQ(held_.held[0].first.ledger().size(), 2u);
  held_.LetGo();
  EXPECT_EQ(patient.Wait()->version.header.version, 3);
  EXPECT_EQ(patient.Wait()->attempts, 1);
  EXPECT_EQ(free.Wait()->version.header.version, 4);
  held_.LetGo();
  EXPECT_EQ(newcomer.Wait()->version.header.version, 5);
}

// The thread that brings a commit's answer is the one that all other documents' commits wait for.
TEST_P(CombiningTest, OnAFullDiskADeletionIsDoneWithoutTheWritesThatItWasCombinedWith) {
  const absl::Status full = Error(ErrorReason::kDiskFull, "by the test");
  Update(Request(), Number(1));
  Answer& before = Update(Request(), Number(2));
  answers_.push_back(std::make_unique<Answer>());
  Answer& deletion = *answers_.back();
  documents_->Delete(Request(), deletion.Callback());
  Answer& after = Update(Request(), Number(3));
  held_.LetGo();
  ASSERT_EQ(held_.held.size(), 1u);
  EXPECT_FALSE(held_.held[0].first.removal());
  held_.Fail(full);
  EXPECT_THAT(before.Wait(), HasReason(ErrorReason::kDiskFull));
  EXPECT_FALSE(deletion.ready());
  ASSERT_EQ(held_.held.size(), 1u);
  EXPECT_TRUE(held_.held[0].first.removal());
  held_.LetGo();
  ASSERT_OK_AND_ASSIGN(const WriteResult deleted, deletion.Wait());
  EXPECT_EQ(deleted.version.header.version, 3);
  // Nothing was there any more to update.
  EXPECT_THAT(after.Wait(), HasReason(ErrorReason::kDocumentDeleted));
}

TEST_P(CombiningTest, AFullDiskThatTakesNoDeletionSaysSo) {
  answers_.push_back(std::make_unique<Answer>());
  documents_->Delete(Request(), answers_.back()->Callback());
  ASSERT_EQ(held_.held.size(), 1u);
  EXPECT_TRUE(held_.held[0].first.removal());
  held_.Fail(Error(ErrorReason::kDiskFull, "by the test"));
  EXPECT_THAT(answers_.back()->Wait(), HasReason(ErrorReason::kDiskFull));
}

TEST_P(CombiningTest, MuchContentIsLeftToTheExecutorAndALittleIsNot) {
  const std::string large(300'000, 'x');
  Answer& small = Update(Request(), Number(1));
  Answer& little = Update(Request(), Increment("/n", 1));
  held_.LetGo();
  EXPECT_TRUE(small.ready());
  EXPECT_EQ(executor_.pending(), 0u);
  ASSERT_EQ(held_.held.size(), 1u);
  Answer& first = Update(Request(), Text(large));
  Answer& second = Update(Request(), Increment("/n", 1));
  held_.LetGo();
  EXPECT_TRUE(little.ready());
  EXPECT_TRUE(held_.held.empty());
  EXPECT_EQ(executor_.RunDue(), 1u);
  ASSERT_EQ(held_.held.size(), 1u);
  Answer& third = Update(Request(), Increment("/n", 1));
  held_.LetGo();
  EXPECT_FALSE(first.ready());
  EXPECT_TRUE(held_.held.empty());
  EXPECT_EQ(executor_.RunDue(), 2u);  // to answer, and to decide what comes next
  EXPECT_THAT(first.Wait(), IsOk());
  EXPECT_THAT(second.Wait(), IsOk());
  ASSERT_EQ(held_.held.size(), 1u);
  held_.LetGo();
  executor_.RunDue();
  EXPECT_EQ(third.Wait()->version.header.version, 6);
}

TEST_P(CombiningTest, ARepeatedRequestInOneGroupTakesEffectOnce) {
  Update(Request(), Number(1));
  Answer& original = Update(Request("a", "once"), Increment("/n", 5));
  Answer& repeated = Update(Request("a", "once"), Increment("/n", 5));
  Answer& reused = Update(Request("a", "once"), Increment("/n", 6));
  held_.LetGo();
  held_.LetGo();
  EXPECT_FALSE(original.Wait()->replayed);
  ASSERT_OK_AND_ASSIGN(const WriteResult replay, repeated.Wait());
  EXPECT_TRUE(replay.replayed);
  EXPECT_EQ(replay.version.header.version, 3);
  EXPECT_EQ(replay.position, original.Wait()->position);
  EXPECT_THAT(reused.Wait(), HasReason(ErrorReason::kRequestIdReused));
}

TEST_P(CombiningTest, ABadWriteInAGroupAnswersForItselfAlone) {
  Update(Request(), Number(1));
  Answer& good = Update(Request(), Increment("/n", 1));
  Answer& bad = Update(Request(), Increment("/n/deeper", 1));
  Answer& good_too = Update(Request(), Increment("/n", 1));
  held_.LetGo();
  held_.LetGo();
  EXPECT_THAT(good.Wait(), IsOk());
  EXPECT_THAT(bad.Wait(), HasReason(ErrorReason::kInvalidPatch));
  EXPECT_EQ(good_too.Wait()->version.header.version, 4);
}

std::vector<std::string> StrategyNames() {
  std::vector<std::string> names;
  for (const StrategyEntry& entry : AllStrategies()) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, CombiningTest, ::testing::ValuesIn(StrategyNames()),
                         [](const auto& strategy) {
                           std::string name = strategy.param;
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

// A store that is held, over each engine in each mode.
class DeadlineTest : public CombinationTest {
 protected:
  DeadlineTest() : held_(world.process().store()), executor_(world.clock()) {
    documents_ =
        std::make_unique<Documents>(held_, world.clock(), entropy_, executor_, DocumentsOptions{});
  }

  HeldCommits held_;
  test_support::ManualExecutor executor_;
  test_support::SeededEntropy entropy_{3};
  std::unique_ptr<Documents> documents_;
};

TEST_P(DeadlineTest, WhatWaitedBeyondItsDeadlineIsNotStoredAndThePastStaysAsItWas) {
  ASSERT_THAT(world->Create(Request(), Number(0)), IsOk());
  constexpr std::chrono::seconds kLongest{30};
  WriteRequest request = Request();
  request.deadline = world.clock().SteadyNow() + kLongest;
  held_.hold = true;
  Answer late;
  documents_->Update(request, Number(1), false, late.Callback());
  world.clock().Advance(std::chrono::milliseconds(1));
  At then;
  then.time = world.clock().Now();
  world.clock().Advance(kLongest);
  EXPECT_EQ(world->documents().Get(kName, then)->header.version, 1);
  held_.LetGo();
  EXPECT_THAT(late.Wait(), HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_EQ(world->documents().Get(kName, then)->header.version, 1);
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history.size(), 1u);
  EXPECT_EQ(world->Update(Request(), Number(2))->version.header.version, 2);
}

STRATA_ALL_COMBINATIONS(DeadlineTest);

// Crowds: many threads, one document, real time. STRATA_CROWD_SECONDS=10 makes them 64 writers for
// so long, or until the layout is full.
class CrowdTest : public CombinationTest {
 protected:
  // Each update adds one to /n and is acknowledged with a version; all must be there, once, in
  // order.
  void Run(std::vector<Process*> processes, int threads, int updates_each) {
    const char* const seconds = std::getenv("STRATA_CROWD_SECONDS");
    auto end = std::chrono::steady_clock::time_point::max();
    if (seconds != nullptr) {
      threads = 64;
      updates_each = kVersionsMax / threads;
      end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(seconds));
    }
    ASSERT_THAT(world->Create(Request(), Number(0)), IsOk());
    std::vector<std::thread> writers;
    for (int t = 0; t < threads; ++t) {
      writers.emplace_back([&, t] {
        Process& process = *processes[static_cast<size_t>(t) % processes.size()];
        for (int i = 0; i < updates_each && std::chrono::steady_clock::now() < end; ++i) {
          if (!UpdateOnce(process, std::to_string(t) + "/" + std::to_string(i))) return;
        }
      });
    }
    for (std::thread& writer : writers) writer.join();
    ExpectAllAcknowledged();
  }

 private:
  static constexpr int kVersionsMax = 200'000;

  // False: the layout is full.
  bool UpdateOnce(Process& process, const std::string& reason) {
    WriteRequest request = Request();
    request.change.reason = reason;
    request.max_attempts = 1'000'000;
    const auto written = process.Update(request, Increment("/n", 1));
    if (ReasonOf(written.status()) == ErrorReason::kLayoutLimit) return false;
    EXPECT_THAT(written, IsOk());
    if (!written.ok()) return false;
    const std::lock_guard lock(mutex_);
    attempts_ += written->attempts;
    EXPECT_TRUE(acknowledged_.emplace(written->version.header.version, reason).second);
    return true;
  }

  void ExpectAllAcknowledged() {
    const auto total = static_cast<int64_t>(acknowledged_.size());
    ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
    ASSERT_EQ(history.size(), static_cast<size_t>(total + 1));
    for (size_t i = 0; i < history.size() - 1; ++i) {
      const VersionHeader& header = history[i].header;
      ASSERT_EQ(header.version, total + 1 - static_cast<int64_t>(i));
      ASSERT_EQ(acknowledged_[header.version], header.change.reason);
      ASSERT_EQ(*history[i].content, Number(header.version - 1));
    }
    std::printf("%lld versions, %.2f attempts each\n", static_cast<long long>(total),
                static_cast<double>(attempts_) / static_cast<double>(total));
  }

  std::mutex mutex_;
  std::map<int64_t, std::string> acknowledged_;  // version -> reason
  int64_t attempts_ = 0;
};

TEST_P(CrowdTest, EveryAcknowledgedUpdateIsThereOnce) { Run({&world.process()}, 8, 40); }

TEST_P(CrowdTest, TwoProcessesWithoutCombiningLoseNothing) {
  WorldOptions options{GetParam().engine, GetParam().mode, GetParam().strategy, 7, false};
  Process one(world.engine(), options, world.clock());
  Process two(world.engine(), options, world.clock());
  Run({&one, &two}, 6, 20);
}

STRATA_ALL_COMBINATIONS(CrowdTest);

}  // namespace
}  // namespace strata::versioning::testing
