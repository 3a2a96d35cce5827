// One Commit in two phases, step by step: what it is answered when, where its work is done, and
// what it leaves alone once nobody waits for it.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/waiter.h"
#include "schemas/document/filter.h"
#include "tests/transaction/stepped_world.h"

namespace strata::transaction::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using versioning::testing::Request;
using versioning::testing::Text;

class DeadlineTest : public SteppedTest {};
STRATA_STEPPED(DeadlineTest);

TEST_P(DeadlineTest, WhatHasBegunGoesOnWithoutItsCaller) {
  Create({"a", "b"});
  CommitWithin(seconds(1), Transfer());
  LetGo(1);
  ASSERT_FALSE(gate.empty());
  EXPECT_FALSE(answer.has_value());
  world.clock().Advance(seconds(2));
  RunDue();
  EXPECT_EQ(reason(), ErrorReason::kOutcomeUnknown);
  EXPECT_EQ(MetadataOf(answer->status(), "transaction_id"), "id");
  Finish();
  EXPECT_EQ(NumberIn("a"), 2);
  EXPECT_EQ(NumberIn("b"), 2);
  EXPECT_EQ(transactions->Get("id")->record.status, TransactionStatus::kDone);
}

TEST_P(DeadlineTest, WhatHasNotBegunNeverBegins) {
  Create({"a", "b"});
  CommitWithin(seconds(1), Transfer());
  world.clock().Advance(seconds(2));
  RunDue();
  EXPECT_EQ(reason(), ErrorReason::kDeadlineExceeded);
  EXPECT_TRUE(gate.empty());
}

TEST_P(DeadlineTest, BetweenTwoAttemptsNothingIsUnderWay) {
  Create({"a", "b"});
  CommitWithin(seconds(1), Transfer(""));
  LetGo(2);
  ASSERT_TRUE(world->Update(Request("b"), Number(10)).ok());
  LetGo(100);
  ASSERT_FALSE(answer.has_value());
  world.clock().Advance(seconds(2));
  Finish();
  EXPECT_EQ(reason(), ErrorReason::kDeadlineExceeded) << answer->status();
  EXPECT_EQ(MetadataOf(answer->status(), "attempts"), "1");
  EXPECT_EQ(NumberIn("a"), 1);
}

TEST_P(DeadlineTest, NothingIsEvaluatedForLongerThanSomebodyWaits) {
  test_support::StoreHooks hooks;
  Create({"a", "b"});
  hooks = {};
  hooks.before_get = [&](store::Keyspace, std::string_view key) {
    if (key.find('a') != std::string_view::npos) world.clock().Advance(seconds(2));
  };
  hooked.set_hooks(hooks);
  CommitWithin(seconds(1), Transfer());
  RunDue();
  EXPECT_TRUE(gate.empty());
  EXPECT_EQ(reason(), ErrorReason::kDeadlineExceeded);
}

// Whoever is asked for room for an answer is gone when the answer is given.
TEST_P(DeadlineTest, NobodyIsAskedForRoomAfterTheAnswer) {
  test_support::StoreHooks hooks;
  Create({"a", "b"});
  bool asked_late = false;
  const auto request = [&] {
    CommitRequest made = Transfer();
    made.admit_content = [&](size_t, const document::Content&) {
      asked_late |= answer.has_value();
      return absl::OkStatus();
    };
    return made;
  };
  const auto expire_while_reading_b = [&](store::Keyspace keyspace, std::string_view key) {
    const bool reads_b = key.find('b') != std::string_view::npos;
    if (keyspace == store::Keyspace::kTransactions || !reads_b || answer) return;
    world.clock().Advance(seconds(2));
    executor.RunDue();
  };
  for (const bool replayed : {false, true}) {
    if (replayed) {
      hooked.set_hooks({});
      Commit(request());
      Finish();
      ASSERT_TRUE(answer && answer->ok());
    }
    hooks = {};
    hooks.before_get = expire_while_reading_b;
    hooked.set_hooks(hooks);
    CommitWithin(seconds(1), request());
    RunDue();
    ASSERT_TRUE(answer.has_value());
    EXPECT_FALSE(answer->ok());
    EXPECT_FALSE(asked_late) << replayed;
  }
}

class RefusedBeginTest : public SteppedTest {};
STRATA_STEPPED(RefusedBeginTest);

TEST_P(RefusedBeginTest, WhatWasNotWrittenDownIsNoUnknownOutcome) {
  test_support::StoreHooks hooks;
  Create({"a", "b"});
  for (const ErrorReason refusal :
       {ErrorReason::kDiskFull, ErrorReason::kOverloaded, ErrorReason::kStoreUnavailable}) {
    hooks = {};
    hooks.instead_of_commit = [&](const store::WriteBatch&) {
      return store::CommitResult{.status = Error(refusal, "not now")};
    };
    hooked.set_hooks(hooks);
    Commit(Transfer());
    Finish();
    EXPECT_EQ(reason(), refusal);
    EXPECT_EQ(ReasonOf(transactions->Get("id").status()), ErrorReason::kTransactionNotFound);
  }
  hooks = {};
  hooks.after_commit = [&](store::CommitResult& result) {
    result = {.status = Error(ErrorReason::kOutcomeUnknown, "who knows")};
  };
  hooked.set_hooks(hooks);
  Commit(Transfer());
  Finish();
  EXPECT_EQ(reason(), ErrorReason::kOutcomeUnknown);
  EXPECT_EQ(MetadataOf(answer->status(), "transaction_id"), "id");
}

class ShutdownTest : public SteppedTest {};
STRATA_STEPPED(ShutdownTest);

// The store ends commits, and calls back, when all above it is gone.
TEST_P(ShutdownTest, WhatIsUnderWayLeavesAloneWhatIsGone) {
  int64_t expected = 1;
  Create({"a", "b"});
  for (int commits = 1;; ++commits) {
    const std::string id = "id-" + std::to_string(commits);
    Commit(Transfer(id));
    LetGo(commits - 1);
    if (gate.empty()) break;
    StopProcess();
    gate.LetGo();
    RunDue();
    EXPECT_TRUE(gate.empty()) << "after " << commits << " commits";
    EXPECT_TRUE(answer.has_value());
    StartProcess();
    std::optional<absl::StatusOr<Transaction>> resumed;
    transactions->Resume(id, [&](absl::StatusOr<Transaction> done) { resumed = std::move(done); });
    Finish();
    ASSERT_TRUE(resumed && resumed->ok());
    EXPECT_EQ((*resumed)->record.status, TransactionStatus::kDone);
    EXPECT_EQ(NumberIn("a"), ++expected);
  }
  EXPECT_GE(expected, 6);
}

// Turns that the test gives.
class TestWaiter final : public Waiter {
 public:
  explicit TestWaiter(Executor& executor) : executor_(executor) {}
  bool gone() const override { return is_gone; }
  absl::Status Defer(std::function<void()> work) const override {
    ++deferred;
    if (full || deferred > room)
      return Error(ErrorReason::kOverloaded, "too many wait for their turn");
    executor_.Schedule(std::move(work));
    return absl::OkStatus();
  }
  const void* line() const override { return this; }

  mutable int deferred = 0;
  bool full = false;
  int room = 1'000;  // for so many in all
  bool is_gone = false;

 private:
  Executor& executor_;
};

class LongWorkTest : public SteppedTest {
 protected:
  void CreateLarge(const std::string& id) {
    ASSERT_TRUE(world->Create(Request(id), Text(std::string(100'000, 'x'))).ok());
  }
  static Operation Replace(const std::string& id) { return Write(id, 1); }

  test_support::ManualExecutor turns{world.clock()};
};
STRATA_STEPPED(LongWorkTest);

TEST_P(LongWorkTest, NobodyElseWaitsForTheEvaluationOfLargeDocuments) {
  Create({"a"});
  CreateLarge("large");
  Commit(InTwoPhases({Add("a", 1), Replace("large")}, "id"));
  const auto only_prompt = [&] { executor.RunDue(); };
  only_prompt();
  EXPECT_TRUE(gate.empty());
  ASSERT_EQ(evaluations.pending(), 1u);
  evaluations.RunDue();
  // The thread that brings the commit's answer does not evaluate it either.
  ASSERT_FALSE(gate.empty());
  gate.LetGo();
  only_prompt();
  EXPECT_TRUE(gate.empty());
  EXPECT_EQ(evaluations.pending(), 1u);
  Finish();
  ASSERT_TRUE(answer && answer->ok()) << answer->status();
  EXPECT_EQ(NumberIn("large"), 1);
}

TEST_P(LongWorkTest, WhatTakesLongIsDoneInTheCallersTurn) {
  Create({"a"});
  CreateLarge("large");
  TestWaiter waiter(turns);
  CommitRequest request = InTwoPhases({Add("a", 1), Replace("large")}, "id");
  request.waiter = &waiter;
  Commit(request);
  for (int i = 0; i < 20; ++i) {
    LetGo(100);
    turns.RunDue();
  }
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_GE(waiter.deferred, 2);
  EXPECT_EQ(NumberIn("large"), 1);

  waiter.full = true;
  request.request_id = "other";
  CreateLarge("larger");
  request.writes.back() = Replace("larger");
  Commit(request);
  Finish();
  EXPECT_EQ(reason(), ErrorReason::kOverloaded);
  EXPECT_EQ(ReasonOf(transactions->Get("other").status()), ErrorReason::kTransactionNotFound);
}

// However many documents there are, each with a condition of its own.
TEST_P(LongWorkTest, AllConditionsTogetherHaveTheTimeOfOne) {
  Create({"a", "b"});
  test_support::StoreHooks hooks;
  hooks.before_get = [&](store::Keyspace, std::string_view key) {
    if (key.find('b') != std::string_view::npos) world.clock().Advance(milliseconds(4));
  };
  hooked.set_hooks(hooks);
  CommitRequest request = Transfer();
  for (Operation& write : request.writes) {
    write.precondition.filter = *document::Filter::Compile(Number(1));
  }
  Commit(request);
  executor.RunDue();
  EXPECT_TRUE(gate.empty());
  EXPECT_EQ(evaluations.pending(), 1u);
  Finish();
  EXPECT_TRUE(answer && answer->ok());
}

// Nobody's work goes ahead of those who wait for their turn.
TEST_P(LongWorkTest, WhatHasBegunAndGetsNoTurnIsLeftToOthers) {
  Create({"a"});
  CreateLarge("large");
  TestWaiter waiter(turns);
  waiter.room = 1;
  CommitRequest request = InTwoPhases({Add("a", 1), Replace("large")}, "id");
  request.waiter = &waiter;
  Commit(request);
  RunDue();
  turns.RunDue();
  ASSERT_FALSE(gate.empty());
  gate.LetGo();
  executor.RunDue();
  EXPECT_EQ(evaluations.pending(), 0u);
  EXPECT_EQ(reason(), ErrorReason::kOutcomeUnknown);
  EXPECT_EQ(waiter.deferred, 2);
  const auto resumed = Start().Resume("id");
  ASSERT_TRUE(resumed.ok()) << resumed.status();
  EXPECT_EQ(resumed->record.status, TransactionStatus::kDone);
}

// What took effect is answered so, with or without its contents.
TEST_P(LongWorkTest, WhatTookEffectAndCannotBeReadIsAnsweredWithoutContents) {
  Create({"a"});
  TestWaiter waiter(turns);
  const auto commit = [&](const std::string& id) {
    CommitRequest request = InTwoPhases({Write(id, 1), Add("a", 1)}, "id-" + id);
    request.writes.front().what = transaction::Create{Text(std::string(100'000, 'x'))};
    request.waiter = &waiter;
    waiter.deferred = 0;
    Commit(request);
    for (int i = 0; i < 20; ++i) {
      LetGo(100);
      turns.RunDue();
    }
  };
  commit("b");
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_TRUE((*answer)->results.front().version.content.has_value());
  // The answer was the last that took a turn, if it took any.
  waiter.room = waiter.deferred - 1;
  commit("c");
  ASSERT_TRUE(answer && answer->ok()) << answer->status();
  ASSERT_EQ((*answer)->results.size(), 2u);
  EXPECT_FALSE((*answer)->results.front().version.content.has_value());
  EXPECT_EQ((*answer)->results.front().version.header.version, 1);
}

TEST_P(LongWorkTest, WhoeverIsGoneBeginsNothing) {
  Create({"a", "b"});
  TestWaiter waiter(turns);
  waiter.is_gone = true;
  CommitRequest request = Transfer();
  request.waiter = &waiter;
  Commit(request);
  RunDue();
  EXPECT_TRUE(gate.empty());
  EXPECT_TRUE(answer && !answer->ok());
}

TEST_P(LongWorkTest, WhoeverIsAnsweredIsNotAskedForATurn) {
  Create({"a"});
  CreateLarge("large");
  TestWaiter waiter(evaluations);
  CommitRequest request = InTwoPhases({Add("a", 1), Replace("large")}, "id");
  request.waiter = &waiter;
  CommitWithin(seconds(1), request);
  LetGo(1);
  ASSERT_FALSE(gate.empty());
  world.clock().Advance(seconds(2));
  RunDue();
  ASSERT_TRUE(answer.has_value());
  const int before = waiter.deferred;
  Finish();
  EXPECT_EQ(waiter.deferred, before);
  EXPECT_EQ(transactions->Get("id")->record.status, TransactionStatus::kDone);
}

class OthersFailureTest : public SteppedTest {};
STRATA_STEPPED(OthersFailureTest);

TEST_P(OthersFailureTest, TheUnknownOutcomeOfAnotherIsNotOnesOwn) {
  Create({"a", "b"});
  LeaveAfter(HoldAfter::kFirstSlot, Transfer("left"));
  test_support::StoreHooks hooks;
  hooks.instead_of_commit = [&](const store::WriteBatch&) {
    return store::CommitResult{.status = Error(ErrorReason::kOutcomeUnknown, "who knows")};
  };
  hooked.set_hooks(hooks);
  Commit(Transfer());
  Finish();
  EXPECT_EQ(reason(), ErrorReason::kStoreUnavailable);
  EXPECT_NE(answer->status().message().find("transaction left"), std::string_view::npos);
  EXPECT_EQ(MetadataOf(answer->status(), "transaction_id"), std::nullopt);
}

// Whose clock is ahead of the engine's takes for forgotten what the engine still knows.
class OtherClockTest : public TransactionsTest {};
STRATA_ALL_GROUNDS(OtherClockTest);

TEST_P(OtherClockTest, WhatTheEngineStillKnowsIsARepetition) {
  Create({"a", "b"});
  TransactingProcess process = Start();
  const CommitRequest request = InTwoPhases({Add("a", 1), Add("b", 1)}, "id");
  ASSERT_TRUE(process.Commit(request).ok());
  ASSERT_TRUE(process.Resume("id").ok());
  test_support::ManualClock ahead(world.clock().Now());
  ahead.Advance(std::chrono::hours(25));
  test_support::ManualExecutor executor(ahead);
  test_support::SeededEntropy entropy(3);
  const auto another = world.Another();
  Transactions transactions(another->store(), another->documents(), ahead, entropy, executor, {});
  EXPECT_EQ(ReasonOf(transactions.Get("id").status()), ErrorReason::kTransactionNotFound);
  std::optional<absl::StatusOr<Committed>> answer;
  transactions.Commit(request, [&](absl::StatusOr<Committed> done) { answer = std::move(done); });
  executor.RunAll(1'000);
  ASSERT_TRUE(answer.has_value());
  ASSERT_TRUE(answer->ok()) << answer->status();
  EXPECT_TRUE((*answer)->replayed);
  EXPECT_EQ(NumberIn("a"), 2);
}

// The engine may keep for a while what it counts as expired.
TEST_P(OtherClockTest, WhatTheEngineHasForgottenIsNotTriedForEver) {
  Create({"a", "b"});
  LeaveAfter(HoldAfter::kNew, InTwoPhases({Add("a", 1), Add("b", 1)}, "left"));
  const auto another = world.Another();
  test_support::HookedStore forgetful(another->store());
  int tried = 0;
  test_support::StoreHooks hooks;
  hooks.instead_of_commit = [&](const store::WriteBatch&) -> std::optional<store::CommitResult> {
    if (++tried > 1'000) return store::CommitResult{.status = absl::AbortedError("for ever")};
    return store::CommitResult{};
  };
  forgetful.set_hooks(hooks);
  test_support::InlineExecutor executor;
  test_support::SeededEntropy entropy(3);
  Transactions transactions(forgetful, another->documents(), world.clock(), entropy, executor, {});
  ASSERT_TRUE(transactions.Get("left").ok());
  std::optional<absl::StatusOr<Transaction>> resumed;
  transactions.Resume("left", [&](absl::StatusOr<Transaction> done) { resumed = std::move(done); });
  ASSERT_TRUE(resumed.has_value());
  EXPECT_EQ(ReasonOf(resumed->status()), ErrorReason::kTransactionNotFound) << resumed->status();
}

}  // namespace
}  // namespace strata::transaction::testing
