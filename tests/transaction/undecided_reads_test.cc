// What readers see of documents that a transaction in two phases is changing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/versioning/verify.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {
namespace {

using versioning::BatchGetCursor;
using versioning::ListCursor;
using versioning::ListQuery;
using versioning::VersionMark;

class UndecidedReads : public TransactionsTest {
 protected:
  // "a" has an undecided change, "b" is to get one.
  void LeaveUndecided() {
    Create({"a", "b"});
    LeaveAfter(HoldAfter::kFirstSlot, InTwoPhases({Add("a", 1), Add("b", 1)}, "id"));
  }

  static ListQuery WithDeleted() {
    ListQuery query;
    query.show_deleted = true;
    return query;
  }
  static ListQuery OfTime(UnixMicros time) {
    ListQuery query;
    query.at_time = time;
    return query;
  }
  std::string Listed(ListQuery query) {
    query.collection = "things";
    std::string listed;
    ListCursor cursor = world->documents().List(std::move(query));
    while (cursor.Next()) {
      listed += cursor.id() + std::to_string(cursor.version().header.version);
      if (!cursor.version().pending_transaction_id.empty()) listed += "?";
      listed += " ";
    }
    EXPECT_TRUE(cursor.status().ok()) << cursor.status();
    return listed;
  }
};
STRATA_ALL_GROUNDS(UndecidedReads);

TEST_P(UndecidedReads, GetAnswersTheVersionBeforeAndNamesTheTransaction) {
  LeaveUndecided();
  const auto current = Get("a");
  ASSERT_TRUE(current.ok()) << current.status();
  EXPECT_EQ(current->header.version, 1);
  EXPECT_EQ(current->pending_transaction_id, "id");
  EXPECT_EQ(NumberIn("a"), 1);
  EXPECT_EQ(Get("b")->pending_transaction_id, "");
  Start().Resume("id").IgnoreError();
  EXPECT_EQ(Get("a")->header.version, 2);
  EXPECT_EQ(Get("a")->pending_transaction_id, "");
}

TEST_P(UndecidedReads, AVersionThatIsAskedForByNumberIsAsItWasWritten) {
  LeaveUndecided();
  const auto written = Get("a", Version(2));
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->header.mark, VersionMark::kApplied);
  EXPECT_EQ(written->header.transaction_id, "id");
}

TEST_P(UndecidedReads, BatchGetListAndReadSeeTheSame) {
  LeaveUndecided();
  BatchGetCursor batch = world->documents().BatchGet("things", {"a", "b", "none"});
  ASSERT_TRUE(batch.Next());
  ASSERT_NE(batch.version(), nullptr);
  EXPECT_EQ(batch.version()->header.version, 1);
  EXPECT_EQ(batch.version()->pending_transaction_id, "id");
  ASSERT_TRUE(batch.Next());
  EXPECT_EQ(batch.version()->header.version, 1);
  ASSERT_TRUE(batch.Next());
  EXPECT_EQ(batch.version(), nullptr);

  EXPECT_EQ(Listed({}), "a1? b1 ");
  ListQuery two;
  two.filter = *document::Filter::Compile(Number(2));
  EXPECT_EQ(Listed(two), "");
  ListQuery one;
  one.filter = *document::Filter::Compile(Number(1));
  EXPECT_EQ(Listed(one), "a1? b1 ");

  TransactingProcess process = Start();
  const auto read = process.transactions().Read(
      {{"things", "b"}, {"things", "none"}, {"nowhere", "x"}, {"things", "a"}});
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->documents.size(), 2u);
  EXPECT_EQ(read->documents[1].name.id, "a");
  EXPECT_EQ(read->documents[1].version.header.version, 1);
  EXPECT_EQ(read->documents[1].pending_transaction_id, "id");
  EXPECT_EQ(read->missing.size(), 2u);
}

TEST_P(UndecidedReads, WhatIsBeingCreatedIsNotThereAndWhatIsBeingDeletedStillIs) {
  Create({"b", "c"});
  Operation create = Write("a", 1);
  create.what = transaction::Create{Number(1)};
  LeaveAfter(HoldAfter::kFirstSlot, InTwoPhases({create, Add("c", 1)}, "creates"));
  EXPECT_EQ(ReasonOf(Get("a").status()), ErrorReason::kDocumentNotFound);
  EXPECT_EQ(Listed(WithDeleted()), "b1 c1 ");
  EXPECT_EQ(ReasonOf(Get("a", Time(world.clock().Now())).status()), ErrorReason::kDocumentNotFound);
  TransactingProcess process = Start();
  ASSERT_TRUE(process.Resume("creates").ok());
  EXPECT_EQ(Listed({}), "a1 b1 c2 ");

  Operation remove = Write("a", 1);
  remove.what = transaction::Delete{};
  LeaveAfter(HoldAfter::kFirstSlot, InTwoPhases({remove, Add("c", 1)}, "removes"));
  EXPECT_EQ(Listed({}), "a1? b1 c2 ");
  ASSERT_TRUE(process.Cancel("removes").ok());
  EXPECT_EQ(Listed({}), "a3 b1 c3 ");
}

TEST_P(UndecidedReads, OfATimeAVersionThatWasUndoneNeverCounted) {
  LeaveUndecided();
  world.clock().Advance(std::chrono::seconds(1));
  const UnixMicros between = world.clock().Now();
  EXPECT_EQ(Get("a", Time(between))->header.version, 1);
  EXPECT_EQ(Listed(OfTime(between)), "a1? b1 ");
  world.clock().Advance(std::chrono::seconds(1));
  TransactingProcess process = Start();
  ASSERT_TRUE(process.Cancel("id").ok());
  EXPECT_EQ(Get("a", Time(between))->header.version, 1);
  EXPECT_EQ(Listed(OfTime(between)), "a1 b1 ");
  EXPECT_EQ(Get("a")->header.version, 3);

  ASSERT_TRUE(process.Commit(InTwoPhases({Add("a", 1), Add("b", 1)}, "counts")).ok());
  world.clock().Advance(std::chrono::seconds(1));
  const UnixMicros after = world.clock().Now();
  world.clock().Advance(std::chrono::seconds(1));
  ASSERT_TRUE(process->Update(versioning::testing::Request("a"), Number(9)).ok());
  EXPECT_EQ(Get("a", Time(after))->header.version, 4);
}

TEST_P(UndecidedReads, OfACommitTheSameButACopyHoldsWhatTheLedgerTells) {
  if (GetParam() != Mode::kAtomic) GTEST_SKIP() << "exempt: commits have no positions";
  LeaveUndecided();
  const store::CommitPosition then = world->store().LastPosition();
  const versioning::At at{std::nullopt, std::nullopt, then};
  ListQuery as_of;
  as_of.at_position = then;
  const auto copied = [&] {
    std::string all;
    versioning::CopyQuery query;
    query.at_position = then;
    versioning::CopyCursor cursor = world->documents().Copy(query);
    while (cursor.Next()) {
      all += cursor.id() + std::to_string(cursor.version().header.version) + " ";
    }
    EXPECT_TRUE(cursor.status().ok()) << cursor.status();
    return all;
  };
  EXPECT_EQ(Get("a", at)->header.version, 1);
  EXPECT_EQ(Listed(as_of), "a1? b1 ");
  EXPECT_EQ(copied(), "a2 b1 ");
  TransactingProcess process = Start();
  ASSERT_TRUE(process.Cancel("id").ok());
  EXPECT_EQ(Get("a", at)->header.version, 1);
  EXPECT_EQ(Listed(as_of), "a1 b1 ");
  EXPECT_EQ(copied(), "a2 b1 ");
  as_of.at_position = world->store().LastPosition();
  EXPECT_EQ(Listed(as_of), "a3 b2 ");
}

TEST_P(UndecidedReads, HistoryShowsEveryVersionAndVerifyIsContent) {
  LeaveUndecided();
  const auto verify = [&] {
    versioning::VerifyQuery query;
    query.collection = "things";
    versioning::Verification verification = world->documents().Verify(query);
    std::string problems;
    while (true) {
      const absl::StatusOr<versioning::VerifyStep> step = verification.Next();
      if (!step.ok()) return std::string(step.status().message());
      for (const versioning::Finding& finding : step->findings) problems += finding.problem + "; ";
      if (step->complete) return problems;
    }
  };
  EXPECT_EQ(verify(), "");
  TransactingProcess process = Start();
  ASSERT_TRUE(process.Cancel("id", By("", "no more")).ok());
  const auto versions = process->History({"things", "a"});
  ASSERT_TRUE(versions.ok());
  ASSERT_EQ(versions->size(), 3u);
  EXPECT_EQ((*versions)[0].header.mark, VersionMark::kUndone);
  EXPECT_EQ((*versions)[0].header.kind, versioning::VersionKind::kRestored);
  EXPECT_EQ((*versions)[0].header.change.reason,
            "undoes transaction id, which was cancelled: asked for: no more");
  EXPECT_EQ((*versions)[0].content, (*versions)[2].content);
  EXPECT_EQ((*versions)[1].header.mark, VersionMark::kApplied);
  EXPECT_EQ(process->History({"things", "b"})->front().header.mark, VersionMark::kClosed);
  EXPECT_EQ(verify(), "");
}

}  // namespace
}  // namespace strata::transaction::testing
