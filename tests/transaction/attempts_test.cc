// What a request is told, and may still have, of the transactions that it made one after the other.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "schemas/base/error.h"
#include "schemas/transaction/attempt.h"
#include "tests/support/hooked_store.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {
namespace {

using std::chrono::hours;

TEST(Attempt, IsReadBackFromItsId) {
  for (const char* const id : {"a", "a/b", "a/2", "a/b/17", "17", "a/1/2"}) {
    EXPECT_EQ(Attempt::Of(id).id(), id);
  }
  EXPECT_EQ(Attempt::Of("a/2").number, 2);
  EXPECT_EQ(Attempt::Of("a/b/17").first_id, "a/b");
  EXPECT_EQ((Attempt{"a", 9}.Next().id()), "a/10");
  // These are no attempt's.
  for (const char* const id : {"17", "a", "a/02", "a/1", "a/0", "a/99999999999999999999"}) {
    EXPECT_EQ(Attempt::Of(id).number, 1) << id;
    EXPECT_EQ(Attempt::Of(id).first_id, id);
  }
}

class AttemptsTest : public TransactionsTest {
 protected:
  const CommitRequest request = InTwoPhases({Add("a", 1), Add("b", 1)}, "id");

  // The first attempt loses its place; nobody has begun again.
  void LoseTheFirst(TransactingProcess& process) {
    Create({"a", "b"});
    LeaveAfter(HoldAfter::kPending, request);
    ASSERT_TRUE(world->Update(versioning::testing::Request("b"), Number(10)).ok());
    const auto ended = process.Resume("id");
    ASSERT_TRUE(ended.ok()) << ended.status();
    EXPECT_EQ(ended->record.status, TransactionStatus::kCancelled);
    EXPECT_EQ(ended->id, "id");
  }
};
STRATA_ALL_GROUNDS(AttemptsTest);

TEST_P(AttemptsTest, WhoeverAsksIsToldOfTheOneThatDecides) {
  TransactingProcess process = Start();
  LoseTheFirst(process);
  ASSERT_TRUE(process.Commit(request).ok());
  for (const char* const id : {"id", "id/2"}) {
    const auto found = process.transactions().Get(id);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->id, "id/2");
    const auto resumed = process.Resume(id);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(resumed->record.status, TransactionStatus::kDone);
    const auto cancelled = process.Cancel(id);
    EXPECT_EQ(ReasonOf(cancelled.status()), ErrorReason::kTransactionApplied);
    EXPECT_EQ(MetadataOf(cancelled.status(), "transaction_id"), "id/2");
  }
}

TEST_P(AttemptsTest, AnUnfinishedOneIsFinishedUnderTheFirstId) {
  TransactingProcess process = Start();
  LoseTheFirst(process);
  LeaveAfter(HoldAfter::kFirstSlot, request);
  EXPECT_EQ(process.StatusOf("id"), TransactionStatus::kPending);
  const auto cancelled = process.Cancel("id", By("anna", "not wanted"));
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->id, "id/2");
  EXPECT_EQ(cancelled->record.status, TransactionStatus::kCancelled);
  EXPECT_EQ(NumberIn("a"), 1);
}

TEST_P(AttemptsTest, WhatIsCancelledBeginsNoMore) {
  TransactingProcess process = Start();
  LoseTheFirst(process);
  const auto cancelled = process.Cancel("id", By("anna", "not wanted"));
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->record.status, TransactionStatus::kCancelled);
  const auto repeated = process.Commit(request);
  EXPECT_EQ(ReasonOf(repeated.status()), ErrorReason::kTransactionCancelled);
  EXPECT_EQ(MetadataOf(repeated.status(), "cause"), "asked for by anna: not wanted");
  EXPECT_EQ(NumberIn("a"), 1);
  EXPECT_EQ(NumberIn("b"), 10);
  // Once more is the same.
  const auto again = process.Cancel("id");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->id, cancelled->id);
}

TEST_P(AttemptsTest, AnIdIsRememberedAsLongAsItsLastAttempt) {
  TransactingProcess process = Start();
  LoseTheFirst(process);
  world.clock().Advance(hours(23));
  ASSERT_TRUE(process.Commit(request).ok());
  ASSERT_TRUE(process.Resume("id").ok());
  EXPECT_EQ(NumberIn("a"), 2);
  world.clock().Advance(hours(2));
  const auto repeated = process.Commit(request);
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_TRUE(repeated->replayed);
  EXPECT_EQ(repeated->transaction_id, "id/2");
  EXPECT_EQ(NumberIn("a"), 2);
  EXPECT_EQ(process.StatusOf("id"), TransactionStatus::kDone);
  world.clock().Advance(hours(23));
  EXPECT_EQ(process.StatusOf("id"), std::nullopt);
}

// However many others have ids that begin as the ids of its attempts do.
TEST_P(AttemptsTest, AreLookedForByTheirNames) {
  TransactingProcess process = Start();
  LoseTheFirst(process);
  ASSERT_TRUE(process.Commit(request).ok());
  ASSERT_TRUE(process.Resume("id").ok());
  test_support::HookedStore hooked(process->store());
  bool walks = false;
  hooked.set_hooks({.before_get = nullptr,
                    .before_scan =
                        [&](store::Keyspace keyspace, const store::Range&) {
                          walks |= keyspace == store::Keyspace::kTransactions;
                        },
                    .before_commit = nullptr,
                    .instead_of_commit = nullptr,
                    .after_commit = nullptr});
  test_support::ManualExecutor executor(world.clock());
  test_support::SeededEntropy entropy(3);
  Transactions transactions(hooked, process->documents(), world.clock(), entropy, executor, {});
  EXPECT_EQ(ReasonOf(transactions.Get("none").status()), ErrorReason::kTransactionNotFound);
  store::WriteBatch forget;
  forget.Delete(store::Keyspace::kTransactions, versioning::TransactionKey("id"));
  test_support::AwaitCommit(world.engine(), std::move(forget));
  const auto found = transactions.Get("id");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->id, "id/2");
  EXPECT_FALSE(walks);
}

TEST_P(AttemptsTest, ValidatingDrivesNothing) {
  Create({"a", "b"});
  for (const HoldAfter after : {HoldAfter::kNew, HoldAfter::kPending, HoldAfter::kFirstSlot}) {
    CommitRequest known = request;
    known.request_id = "id-" + std::to_string(static_cast<int>(after));
    LeaveAfter(after, known);
    TransactingProcess process = Start();
    CommitRequest validating = known;
    validating.validate_only = true;
    const auto before = Stored();
    const auto answer = process.Commit(validating);
    EXPECT_EQ(ReasonOf(answer.status()), ErrorReason::kOutcomeUnknown) << answer.status();
    EXPECT_EQ(Stored(), before);
    ASSERT_TRUE(process.Cancel(known.request_id).ok());
  }
}

}  // namespace
}  // namespace strata::transaction::testing
