// The facade of transactions: what callers are told, whatever became of what they asked for.
#include "schemas/transaction/transactions.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schemas/base/error.h"
#include "tests/support/manual_clock.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {
namespace {

using std::chrono::hours;

class CommitTest : public TransactionsTest {};
STRATA_ALL_GROUNDS(CommitTest);

TEST_P(CommitTest, ATransferInTwoPhasesChangesBothAndSaysSo) {
  Create({"a", "b"});
  TransactingProcess process = Start();
  const auto committed = process.Commit(InTwoPhases({Add("a", -1), Add("b", 1)}));
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ(committed->transaction_id.size(), 32u);
  EXPECT_EQ(committed->attempts, 1);
  ASSERT_EQ(committed->results.size(), 2u);
  for (const auto& result : committed->results) {
    EXPECT_TRUE(result.changed);
    EXPECT_EQ(result.version.header.version, 2);
    EXPECT_EQ(result.version.header.transaction_id, committed->transaction_id);
    EXPECT_TRUE(result.version.content.has_value());
  }
  EXPECT_EQ(NumberIn("a"), 0);
  EXPECT_EQ(NumberIn("b"), 2);
  const auto known = process.Resume(committed->transaction_id);
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->record.status, TransactionStatus::kDone);
  EXPECT_TRUE(known->record.data.empty());
  EXPECT_EQ(known->record.effect_position(), committed->position);
}

TEST_P(CommitTest, ARepeatedCallIsAnsweredAsTheFirstAndDoesNothing) {
  Create({"a", "b"});
  TransactingProcess process = Start();
  const CommitRequest request = InTwoPhases({Add("b", 1), Add("a", -1)}, "transfer");
  const auto first = process.Commit(request);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(world->Update(versioning::testing::Request("a"), Number(9)).ok());
  const auto again = process.Commit(request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(again->position, first->position);
  ASSERT_EQ(again->results.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(again->results[i].version.header, first->results[i].version.header);
    EXPECT_EQ(again->results[i].version.content, first->results[i].version.content);
  }
  EXPECT_EQ(NumberIn("b"), 2);
  const auto other = process.Commit(InTwoPhases({Add("b", 2), Add("a", -1)}, "transfer"));
  EXPECT_EQ(ReasonOf(other.status()), ErrorReason::kRequestIdReused);
}

TEST_P(CommitTest, WhatIsGoneSinceComesWithoutContent) {
  Create({"a"});
  TransactingProcess process = Start();
  Operation other = Write("x", 1);
  other.name.collection = "others";
  other.what = transaction::Create{Number(1)};
  const CommitRequest request = InTwoPhases({Add("a", 1), other}, "id");
  ASSERT_TRUE(process.Commit(request).ok());
  std::promise<bool> deleted;
  process->documents().collections().Delete(
      {.name = "others", .force = true},
      [&](const auto& answer) { deleted.set_value(answer.ok()); });
  ASSERT_TRUE(deleted.get_future().get());
  const auto again = process.Commit(request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->results[0].version.content.has_value());
  EXPECT_FALSE(again->results[1].version.content.has_value());
  EXPECT_EQ(again->results[1].version.header.version, 1);
}

// What others made of the documents after it was admitted may be more than an answer holds.
TEST_P(CommitTest, OneThatTookEffectIsAnsweredWithoutContentsThatHaveNoRoom) {
  Create({"a", "b"});
  TransactingProcess process = Start();
  CommitRequest request = InTwoPhases({Add("a", 1), Add("b", 1)}, "id");
  int asked = 0;
  request.admit_content = [&](size_t write, const document::Content&) -> absl::Status {
    EXPECT_EQ(write, static_cast<size_t>(asked % 2));
    if (++asked < 4) return absl::OkStatus();
    return Error(ErrorReason::kLayoutLimit, "too large");
  };
  const auto committed = process.Commit(request);
  ASSERT_TRUE(committed.ok()) << committed.status();
  for (const auto& result : committed->results) {
    EXPECT_TRUE(result.changed);
    EXPECT_EQ(result.version.header.version, 2);
    EXPECT_FALSE(result.version.content.has_value());
  }
  EXPECT_EQ(NumberIn("a"), 2);
  // Whoever asks again is told so.
  request.admit_content = [](size_t, const document::Content&) -> absl::Status {
    return Error(ErrorReason::kLayoutLimit, "too large");
  };
  EXPECT_EQ(ReasonOf(process.Commit(request).status()), ErrorReason::kLayoutLimit);
}

TEST_P(CommitTest, ARefusalWritesNothingAndNamesTheWrite) {
  Create({"a", "b", "c"});
  TransactingProcess process = Start();
  CommitRequest request = InTwoPhases({Add("a", 1), Add("b", 1), Add("c", 1)}, "id");
  for (size_t i = 0; i < 3; ++i) {
    CommitRequest missed = request;
    missed.writes[i].precondition.version = 7;
    const auto before = Stored();
    const auto refused = process.Commit(missed);
    EXPECT_EQ(ReasonOf(refused.status()), ErrorReason::kVersionConflict);
    EXPECT_EQ(MetadataOf(refused.status(), "index"), std::to_string(i));
    EXPECT_EQ(MetadataOf(refused.status(), "field"),
              "writes[" + std::to_string(i) + "].precondition");
    EXPECT_EQ(Stored(), before);
  }
  request.reads.push_back({{"things", "d"}, 1});
  const auto refused = process.Commit(request);
  EXPECT_EQ(MetadataOf(refused.status(), "field"), "reads[0].version");
}

TEST_P(CommitTest, OneForWhoseCollectionsThereIsNoRoomMakesNone) {
  Create({"a"});
  const WorldOptions options{.engine = "memory", .mode = GetParam(), .collections_max = 2};
  TransactingProcess process(std::make_unique<Process>(world.engine(), options, world.clock()),
                             world.clock());
  CommitRequest request = InTwoPhases({Add("a", 1), Write("a", 1), Write("a", 1)}, "id");
  request.writes[1].name.collection = "new";
  request.writes[2].name.collection = "one too many";
  for (const size_t i : {1, 2}) request.writes[i].what = Update{Number(1), true};
  const auto refused = process.Commit(request);
  EXPECT_EQ(ReasonOf(refused.status()), ErrorReason::kCollectionLimit) << refused.status();
  EXPECT_EQ(MetadataOf(refused.status(), "index"), "2");
  EXPECT_EQ(ReasonOf(world->documents().collections().Get("new").status()),
            ErrorReason::kCollectionNotFound);
}

TEST_P(CommitTest, ValidateOnlyTellsWhatItWouldDoAndWritesNothing) {
  Create({"a", "b"});
  TransactingProcess process = Start();
  CommitRequest request = InTwoPhases({Add("a", 1), Add("b", 0)}, "id");
  request.validate_only = true;
  const auto before = Stored();
  const auto would = process.Commit(request);
  ASSERT_TRUE(would.ok()) << would.status();
  EXPECT_EQ(would->results[0].version.header.version, 2);
  EXPECT_TRUE(would->results[0].changed);
  EXPECT_FALSE(would->results[1].changed);
  EXPECT_EQ(Stored(), before);
}

TEST_P(CommitTest, ReadsHoldUntilItIsApplied) {
  Create({"a", "b"});
  CommitRequest request = InTwoPhases({Add("b", 1)}, "id");
  request.reads.push_back({{"things", "a"}, 1});
  request.reads.push_back({{"things", "never"}, 0});
  LeaveAfter(HoldAfter::kPending, request);
  // Nobody waits for a transaction that has written nothing yet.
  ASSERT_TRUE(world->Update(versioning::testing::Request("a"), Number(9)).ok());
  TransactingProcess process = Start();
  const auto answer = process.Commit(request);
  EXPECT_EQ(ReasonOf(answer.status()), ErrorReason::kVersionConflict) << answer.status();
  EXPECT_EQ(process.StatusOf("id"), TransactionStatus::kCancelled);
  EXPECT_EQ(NumberIn("b"), 1);
}

TEST_P(CommitTest, ATransactionThatLostItsPlaceBeginsAgain) {
  Create({"a", "b"});
  const CommitRequest request = InTwoPhases({Add("a", 1), Add("b", 1)}, "id");
  LeaveAfter(HoldAfter::kPending, request);
  ASSERT_TRUE(world->Update(versioning::testing::Request("b"), Number(10)).ok());
  TransactingProcess process = Start();
  const auto answer = process.Commit(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->transaction_id, "id/2");
  EXPECT_EQ(answer->attempts, 2);
  EXPECT_EQ(NumberIn("a"), 2);
  EXPECT_EQ(NumberIn("b"), 11);
  EXPECT_EQ(versioning::ReadTransaction(world.engine(), "id").value()->status,
            TransactionStatus::kCancelled);
  const auto again = process.Commit(request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->transaction_id, "id/2");
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(NumberIn("b"), 11);
}

TEST_P(CommitTest, RequestsThatCannotBeDoneAreRefused) {
  Create({"a"});
  TransactingProcess process = Start();
  const auto field = [&](CommitRequest request) {
    const auto before = Stored();
    const auto answer = process.Commit(std::move(request));
    EXPECT_EQ(Stored(), before);
    return std::string(ReasonName(ReasonOf(answer.status()).value_or(ErrorReason::kInternal))) +
           " " + MetadataOf(answer.status(), "field").value_or("none");
  };
  EXPECT_EQ(field(InTwoPhases({})), "INVALID_FIELD writes");
  EXPECT_EQ(field(InTwoPhases(std::vector<Operation>(101, Add("a", 1)))), "INVALID_FIELD writes");
  EXPECT_EQ(field(InTwoPhases({Add("a", 1), Add("a", 1)})), "INVALID_FIELD writes[1]");
  EXPECT_EQ(field(InTwoPhases({Add("", 1)})), "INVALID_NAME writes[0].update.id");
  EXPECT_EQ(field(InTwoPhases({Add("a", 1)}, "id/2")), "INVALID_FIELD request_id");
  EXPECT_EQ(field(InTwoPhases({Add("a", 1)}, "i d")), "INVALID_FIELD request_id");
  CommitRequest reads = InTwoPhases({Add("a", 1)});
  reads.reads = {{{"things", "b"}, -1}};
  EXPECT_EQ(field(reads), "INVALID_FIELD reads[0].version");
  reads.reads = {{{"things", "a"}, 1}};
  EXPECT_EQ(field(reads), "INVALID_FIELD reads[0]");
  reads.reads = std::vector<versioning::ReadCheck>(101);
  EXPECT_EQ(field(reads), "INVALID_FIELD reads");
  std::vector<Operation> many;
  for (int i = 0; i < 21; ++i) many.push_back(Add("d" + std::to_string(i), 1));
  EXPECT_EQ(field(InTwoPhases(many)), "INVALID_FIELD writes");
}

TEST_P(CommitTest, OneCommitNeedsAtomicBatches) {
  Create({"a", "b"});
  TransactingProcess process = Start();
  CommitRequest request = InTwoPhases({Add("a", 1), Add("b", 1)}, "id");
  request.mode = TransactionMode::kOneCommit;
  const auto answer = process.Commit(request);
  if (GetParam() == Mode::kAtomic) {
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_EQ(answer->transaction_id, "id");
    const auto again = process.Commit(request);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_TRUE(again->replayed);
  } else {
    EXPECT_EQ(ReasonOf(answer.status()), ErrorReason::kUnsupportedByEngine);
    EXPECT_EQ(MetadataOf(answer.status(), "capability"), "atomic_batches");
  }
}

TEST_P(CommitTest, AfterADayAnIdMayBeUsedAnewAndOldVersionsStayDecided) {
  Create({"a", "b", "c"});
  {
    TransactingProcess process = Start();
    ASSERT_TRUE(process.Commit(InTwoPhases({Add("a", 1), Add("b", 1)}, "id")).ok());
    ASSERT_TRUE(process.Resume("id").ok());
    world.clock().Advance(hours(25));
    EXPECT_EQ(ReasonOf(process.transactions().Get("id").status()),
              ErrorReason::kTransactionNotFound);
  }
  LeaveAfter(HoldAfter::kFirstSlot, InTwoPhases({Add("a", 1), Add("c", 1)}, "id"));
  const auto b = Get("b");
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b->header.version, 2);
  EXPECT_EQ(b->pending_transaction_id, "");
  const auto a = Get("a");
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->header.version, 2);
  EXPECT_EQ(a->pending_transaction_id, "id");
  TransactingProcess process = Start();
  ASSERT_TRUE(process.Cancel("id").ok());
  EXPECT_EQ(NumberIn("a"), 2);
  EXPECT_EQ(NumberIn("b"), 2);
}

TEST_P(CommitTest, SixteenAtOnceUnderOneIdHaveOneEffect) {
  Create({"a", "b"});
  TransactingProcess process = Start();
  std::vector<std::promise<absl::StatusOr<Committed>>> answers(16);
  for (auto& answer : answers) {
    process.transactions().Commit(
        InTwoPhases({Add("a", 1), Add("b", 1)}, "id"),
        [&answer](absl::StatusOr<Committed> committed) { answer.set_value(std::move(committed)); });
  }
  for (auto& answer : answers) {
    const auto committed = answer.get_future().get();
    ASSERT_TRUE(committed.ok()) << committed.status();
    EXPECT_EQ(committed->transaction_id, "id");
  }
  EXPECT_EQ(NumberIn("a"), 2);
  EXPECT_EQ(NumberIn("b"), 2);
}

TEST_P(CommitTest, ReadTellsAPositionThatItsDocumentsAreOf) {
  Create({"a", "b"});
  TransactingProcess process = Start();
  const auto committed = process.Commit(InTwoPhases({Add("a", 1), Add("b", 1)}));
  ASSERT_TRUE(committed.ok()) << committed.status();
  const auto read = process.transactions().Read({{"things", "b"}, {"things", "a"}});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->documents.size(), 2u);
  EXPECT_GE(read->position, committed->position);
  EXPECT_EQ(read->position == 0, GetParam() == Mode::kSingle);
}

struct Held {
  HoldAfter after;
  TransactionStatus status;
};
class StatusTest : public TransactionsTest {
 protected:
  std::vector<Held> all = {{HoldAfter::kNew, TransactionStatus::kNew},
                           {HoldAfter::kPending, TransactionStatus::kPending},
                           {HoldAfter::kFirstSlot, TransactionStatus::kPending},
                           {HoldAfter::kApplied, TransactionStatus::kApplied}};
};
STRATA_ALL_GROUNDS(StatusTest);

TEST_P(StatusTest, ResumeFinishesItFromWhereverItStopped) {
  int64_t expected = 1;
  Create({"a", "b"});
  TransactingProcess process = Start();
  for (const Held& held : all) {
    const std::string id = "id-" + std::to_string(++expected);
    LeaveAfter(held.after, InTwoPhases({Add("a", 1), Add("b", 1)}, id));
    EXPECT_EQ(process.StatusOf(id), held.status);
    const auto resumed = process.Resume(id);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(resumed->record.status, TransactionStatus::kDone);
    EXPECT_EQ(NumberIn("a"), expected);
    EXPECT_EQ(NumberIn("b"), expected);
    EXPECT_TRUE(process.Resume(id).ok());
  }
  EXPECT_EQ(ReasonOf(process.Resume("none").status()), ErrorReason::kTransactionNotFound);
}

TEST_P(StatusTest, CancelUndoesItUnlessItIsApplied) {
  Create({"a", "b"});
  TransactingProcess process = Start();
  int number = 0;
  for (const Held& held : all) {
    const std::string id = "id-" + std::to_string(++number);
    const CommitRequest request = InTwoPhases({Add("a", 1), Add("b", 1)}, id);
    LeaveAfter(held.after, request);
    const auto cancelled = process.Cancel(id, By("anna", "not wanted"));
    if (held.status == TransactionStatus::kApplied) {
      EXPECT_EQ(ReasonOf(cancelled.status()), ErrorReason::kTransactionApplied);
      EXPECT_EQ(NumberIn("a"), 2);
      continue;
    }
    ASSERT_TRUE(cancelled.ok()) << cancelled.status();
    EXPECT_EQ(cancelled->record.status, TransactionStatus::kCancelled);
    EXPECT_EQ(cancelled->record.cause, "asked for by anna: not wanted");
    EXPECT_EQ(NumberIn("a"), 1);
    EXPECT_EQ(NumberIn("b"), 1);
    EXPECT_TRUE(process.Cancel(id).ok());
    const auto repeated = process.Commit(request);
    EXPECT_EQ(ReasonOf(repeated.status()), ErrorReason::kTransactionCancelled);
    EXPECT_EQ(MetadataOf(repeated.status(), "transaction_id"), id);
  }
  EXPECT_EQ(ReasonOf(process.Cancel("none").status()), ErrorReason::kTransactionNotFound);
}

TEST_P(StatusTest, ListGivesPagesInTheOrderOfIds) {
  Create({"a", "b"});
  LeaveAfter(HoldAfter::kPending, InTwoPhases({Add("a", 1), Add("b", 1)}, "m"));
  TransactingProcess process = Start();
  for (const char* const id : {"z", "c", "x"}) {
    ASSERT_TRUE(process.Commit(InTwoPhases({Add("a", 1)}, id)).ok());
    ASSERT_TRUE(process.Resume(id).ok());
  }
  const auto ids = [&](const TransactionQuery& query, size_t most) {
    std::string all_ids;
    const auto page = process.transactions().List(query, most);
    if (!page.ok()) return std::string(page.status().message());
    for (const Transaction& transaction : *page) all_ids += transaction.id;
    return all_ids;
  };
  EXPECT_EQ(ids({}, 10), "cmxz");
  EXPECT_EQ(ids({}, 2), "cm");
  EXPECT_EQ(ids({.after_id = "m"}, 2), "xz");
  EXPECT_EQ(ids({.unfinished = TransactionStatus::kPending}, 10), "m");
  EXPECT_EQ(ids({.unfinished = TransactionStatus::kPending, .after_id = "m"}, 10), "");
  EXPECT_EQ(ids({.unfinished = TransactionStatus::kNew}, 10), "");
  // What it is to do may be much, and nobody asked for it.
  EXPECT_FALSE(process.transactions().Get("m")->record.data.empty());
  const auto pending = process.transactions().List({.unfinished = TransactionStatus::kPending}, 1);
  ASSERT_TRUE(pending.ok());
  EXPECT_TRUE(pending->front().record.data.empty());
}

TEST_P(StatusTest, AWriterSettlesWhatItMeetsAndGoesOn) {
  Create({"a", "b"});
  LeaveAfter(HoldAfter::kFirstSlot, InTwoPhases({Add("a", 1), Add("b", 1)}, "left"));
  TransactingProcess process = Start();
  const auto written =
      process->Update(versioning::testing::Request("a"), versioning::testing::Increment("/n", 5));
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->version.header.version, 3);
  EXPECT_EQ(NumberIn("a"), 7);
  EXPECT_EQ(NumberIn("b"), 2);
}

}  // namespace
}  // namespace strata::transaction::testing
