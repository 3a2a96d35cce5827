// The sweeper: nothing stays unfinished, whatever the clocks say.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "tests/support/await_commit.h"
#include "tests/support/hooked_store.h"
#include "tests/support/manual_clock.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class SweeperTest : public TransactionsTest {
 protected:
  void SetUp() override { Create({"a", "b"}); }
  void CreateLarge() {
    ASSERT_TRUE(world
                    ->Create(versioning::testing::Request("large"),
                             versioning::testing::Text(std::string(100'000, 'x')))
                    .ok());
  }
  ~SweeperTest() override { transactions.reset(); }

  void StartSweeping(TransactionsOptions options = {}) {
    transactions = std::make_unique<Transactions>(hooked, process->documents(), world.clock(),
                                                  entropy, executor, options);
    transactions->StartSweeping();
  }
  // In steps, as time passes.
  void Wait(milliseconds time) {
    for (milliseconds waited{0}; waited < time; waited += milliseconds(250)) {
      world.clock().Advance(milliseconds(250));
      executor.RunDue();
    }
  }
  void Leave(HoldAfter after) {
    LeaveAfter(after, InTwoPhases({Add("a", 1), Add("b", 1)}, "left"));
  }
  TransactionStatus status() { return transactions->Get("left")->record.status; }
  bool HasHint() {
    return world.engine()
        .Get(store::Keyspace::kTransactions, versioning::TransactionHintKey("left"))
        .value()
        .has_value();
  }

  const std::unique_ptr<Process> process = world.Another();
  test_support::HookedStore hooked{process->store()};
  test_support::ManualExecutor executor{world.clock()};
  test_support::SeededEntropy entropy{3};
  std::unique_ptr<Transactions> transactions;
};
STRATA_ALL_GROUNDS(SweeperTest);

TEST_P(SweeperTest, SettlesWhatNobodyTouches) {
  for (const HoldAfter after :
       {HoldAfter::kNew, HoldAfter::kPending, HoldAfter::kFirstSlot, HoldAfter::kApplied}) {
    const std::string id = "left-" + std::to_string(static_cast<int>(after));
    LeaveAfter(after, InTwoPhases({Add("a", 1), Add("b", 1)}, id));
    const int64_t before = NumberIn("a");
    StartSweeping();
    Wait(seconds(5));
    EXPECT_NE(transactions->Get(id)->record.status, TransactionStatus::kDone);
    Wait(seconds(20));
    EXPECT_EQ(transactions->Get(id)->record.status, TransactionStatus::kDone) << id;
    EXPECT_EQ(NumberIn("a"), before + (after == HoldAfter::kApplied ? 0 : 1));
    EXPECT_EQ(NumberIn("a"), NumberIn("b"));
    transactions.reset();
  }
}

TEST_P(SweeperTest, CancelsWhatIsTooOld) {
  for (const HoldAfter after : {HoldAfter::kNew, HoldAfter::kPending, HoldAfter::kFirstSlot}) {
    const std::string id = "left-" + std::to_string(static_cast<int>(after));
    LeaveAfter(after, InTwoPhases({Add("a", 1), Add("b", 1)}, id));
    world.clock().Advance(minutes(6));
    StartSweeping();
    Wait(seconds(20));
    EXPECT_EQ(transactions->Get(id)->record.status, TransactionStatus::kCancelled) << id;
    EXPECT_EQ(NumberIn("a"), 1);
    transactions.reset();
  }
}

TEST_P(SweeperTest, KeepsATimeoutOfAFewSeconds) {
  Leave(HoldAfter::kFirstSlot);
  TransactionsOptions options;
  options.timeout = seconds(3);
  StartSweeping(options);
  Wait(seconds(2));
  EXPECT_EQ(status(), TransactionStatus::kPending);
  Wait(seconds(4));
  EXPECT_EQ(status(), TransactionStatus::kCancelled);
  EXPECT_EQ(NumberIn("a"), 1);
}

TEST_P(SweeperTest, GoesByWhatItSeesWhereTheClockWasSetBack) {
  Leave(HoldAfter::kFirstSlot);
  world.clock().SetNow(world.clock().Now() - UnixMicros{3600} * 1'000'000);
  StartSweeping();
  Wait(seconds(40));
  EXPECT_EQ(status(), TransactionStatus::kDone);
  EXPECT_FALSE(HasHint());
}

TEST_P(SweeperTest, HasNothingEvaluatedTwiceAtOnce) {
  CreateLarge();
  LeaveAfter(HoldAfter::kNew, InTwoPhases({Add("a", 1), Write("large", 1)}, "left"));
  test_support::ManualExecutor evaluations(world.clock());
  TransactionsOptions options;
  options.evaluations = &evaluations;
  StartSweeping(options);
  Wait(seconds(60));
  EXPECT_EQ(evaluations.pending(), 1u);
  for (int i = 0; i < 10; ++i) {
    evaluations.RunDue();
    executor.RunDue();
  }
  EXPECT_EQ(status(), TransactionStatus::kDone);
}

TEST_P(SweeperTest, HasNothingEvaluatedThatEndedBeforeItsTurn) {
  CreateLarge();
  LeaveAfter(HoldAfter::kNew, InTwoPhases({Add("a", 1), Write("large", 1)}, "left"));
  test_support::ManualExecutor evaluations(world.clock());
  TransactionsOptions options;
  options.evaluations = &evaluations;
  StartSweeping(options);
  Wait(seconds(15));
  ASSERT_EQ(evaluations.pending(), 1u);
  ASSERT_TRUE(Start().Resume("left").ok());
  bool reads = false;
  test_support::StoreHooks hooks;
  hooks.before_get = [&](store::Keyspace keyspace, std::string_view) {
    reads |= keyspace != store::Keyspace::kTransactions;
  };
  hooked.set_hooks(hooks);
  evaluations.RunDue();
  EXPECT_FALSE(reads);
  hooked.set_hooks({});
}

// Nor is it hashed and planned there.
TEST_P(SweeperTest, LeavesMuchWorkToWhereItMayTakeLong) {
  CommitRequest large = InTwoPhases({Write("a", 1), Write("b", 1)}, "large");
  large.writes.front().what = Update{versioning::testing::Text(std::string(100'000, 'x')), false};
  CommitRequest much = InTwoPhases({}, "much");
  for (int i = 0; i < 6; ++i) {
    Operation& operation = much.writes.emplace_back(Write("new-" + std::to_string(i), 1));
    operation.what = transaction::Create{versioning::testing::Text(std::string(60'000, 'x'))};
  }
  for (const CommitRequest& request : {large, much}) {
    LeaveAfter(HoldAfter::kPending, request);
    test_support::ManualExecutor evaluations(world.clock());
    TransactionsOptions options;
    options.evaluations = &evaluations;
    StartSweeping(options);
    Wait(seconds(15));
    EXPECT_EQ(evaluations.pending(), 1u) << request.request_id;
    const auto first = Get(request.writes.front().name.id);
    EXPECT_EQ(first.ok() ? first->pending_transaction_id : "", "") << request.request_id;
    EXPECT_EQ(transactions->Get(request.request_id)->record.status, TransactionStatus::kPending);
    for (int i = 0; i < 10; ++i) {
      evaluations.RunDue();
      executor.RunDue();
    }
    EXPECT_EQ(transactions->Get(request.request_id)->record.status, TransactionStatus::kDone);
    transactions.reset();
  }
}

// One that begins under an id again, while the hint of the one before it is forgotten.
TEST_P(SweeperTest, KeepsTheHintOfOneThatBeginsMeanwhile) {
  store::WriteBatch batch;
  batch.Put(store::Keyspace::kTransactions, versioning::TransactionHintKey("left"),
            document::BsonBuilder().Take());
  test_support::AwaitCommit(world.engine(), std::move(batch));
  bool began = false;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch& forgets) {
    if (began || !forgets.removal()) return;
    began = true;
    TransactionRecord record;
    record.mode = TransactionMode::kTwoPhase;
    record.create_time = record.last_modified = world.clock().Now();
    store::WriteBatch begins;
    begins.Insert(store::Keyspace::kTransactions, versioning::TransactionKey("left"),
                  record.Encode());
    test_support::AwaitCommit(world.engine(), std::move(begins));
  };
  hooked.set_hooks(hooks);
  StartSweeping();
  for (int i = 0; i < 200 && !began; ++i) Wait(milliseconds(250));
  ASSERT_TRUE(began);
  EXPECT_TRUE(HasHint());
}

// Without atomic batches a transaction's hint is there before the transaction.
TEST_P(SweeperTest, ForgetsAHintOfNothingAfterAWhile) {
  store::WriteBatch batch;
  batch.Put(store::Keyspace::kTransactions, versioning::TransactionHintKey("left"),
            document::BsonBuilder().Take());
  test_support::AwaitCommit(world.engine(), std::move(batch));
  StartSweeping();
  Wait(seconds(11));
  EXPECT_TRUE(HasHint());
  Wait(seconds(20));
  EXPECT_FALSE(HasHint());
}

}  // namespace
}  // namespace strata::transaction::testing
