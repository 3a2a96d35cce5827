// Numbers that only grow (precondition.newer) in transactions, in one commit and in two phases.
#include "tests/documents/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/status_matchers.h"
#include "tests/transaction/transactions_world.h"

namespace strata::transaction::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using ::testing::ElementsAre;
using versioning::Newer;
using versioning::VersionKind;
using versioning::VersionMark;
using versioning::testing::NewerRequest;
using versioning::testing::NumberOf;
using versioning::testing::Request;

Operation Upsert(const std::string& id, int64_t value) {
  Operation operation;
  operation.name = {"things", id};
  operation.what = Update{Number(value), true};
  operation.precondition.newer = *Newer::Make("/version", value);
  return operation;
}
Operation Remove(const std::string& id, int64_t value) {
  Operation operation = Upsert(id, value);
  operation.what = Delete{};
  return operation;
}

class NumbersTest : public TransactionsTest {
 protected:
  // In the mode that the store is for.
  static CommitRequest Of(std::vector<Operation> writes, std::string id = "") {
    CommitRequest request;
    request.writes = std::move(writes);
    request.request_id = std::move(id);
    return request;
  }
  static std::vector<bool> StaleOnes(const Committed& committed) {
    std::vector<bool> stale;
    for (const versioning::WriteResult& result : committed.results) {
      EXPECT_FALSE(result.stale && result.changed);
      stale.push_back(result.stale);
    }
    return stale;
  }
  absl::StatusOr<versioning::WriteResult> UpsertAlone(const std::string& id, int64_t value) {
    return world->Update(NewerRequest(value, "/version", id), Number(value), true);
  }
  versioning::StoredVersion Newest(const std::string& id) {
    return world->History({"things", id})->front();
  }
  void ExpectStale(const absl::StatusOr<versioning::WriteResult>& result) {
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(result->stale);
  }
  void ExpectWritten(const absl::StatusOr<versioning::WriteResult>& result) {
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(result->changed);
  }
};
STRATA_ALL_GROUNDS(NumbersTest);

TEST_P(NumbersTest, EachWriteOfATransactionSaysWhetherItIsStale) {
  TransactingProcess process = Start();
  ASSERT_THAT(UpsertAlone("a", 5), IsOk());
  ASSERT_THAT(world->Delete(NewerRequest(5, "/version", "b")), IsOk());
  ASSERT_OK_AND_ASSIGN(
      const Committed committed,
      process.Commit(Of(
          {Upsert("a", 5), Upsert("b", 4), Remove("b2", 6), Upsert("c", 1), Remove("d", 2)}, "t")));
  EXPECT_THAT(StaleOnes(committed), ElementsAre(true, true, false, false, false));
  EXPECT_EQ(NumberOf(Newest("a")), 5);
  EXPECT_EQ(NumberOf(Newest("b")), 5);
  EXPECT_TRUE(Newest("b2").deleted());
  EXPECT_EQ(NumberOf(Newest("b2")), 6);
  EXPECT_EQ(NumberOf(Newest("c")), 1);
  EXPECT_EQ(NumberOf(Newest("d")), 2);
  ExpectStale(UpsertAlone("b", 5));
  ExpectStale(UpsertAlone("b2", 6));
  ExpectWritten(UpsertAlone("b2", 7));

  // The answer is what it was, whatever became of the documents.
  ASSERT_OK_AND_ASSIGN(
      const Committed again,
      process.Commit(Of(
          {Upsert("a", 5), Upsert("b", 4), Remove("b2", 6), Upsert("c", 1), Remove("d", 2)}, "t")));
  EXPECT_TRUE(again.replayed);
  EXPECT_THAT(StaleOnes(again), ElementsAre(true, true, false, false, false));
  for (size_t i = 0; i < again.results.size(); ++i) {
    EXPECT_EQ(again.results[i].version.header.version, committed.results[i].version.header.version);
    EXPECT_EQ(again.results[i].changed, committed.results[i].changed);
  }
  EXPECT_THAT(process.Commit(Of({Upsert("a", 6)}, "t")), HasReason(ErrorReason::kRequestIdReused));
}

TEST_P(NumbersTest, AllStaleChangesNothing) {
  TransactingProcess process = Start();
  ASSERT_THAT(UpsertAlone("a", 5), IsOk());
  CommitRequest request = Of({Upsert("a", 5)});
  request.writes.front().keep_unchanged = true;
  const auto before = Stored();
  request.validate_only = true;
  ASSERT_OK_AND_ASSIGN(Committed committed, process.Commit(request));
  EXPECT_THAT(StaleOnes(committed), ElementsAre(true));
  EXPECT_EQ(committed.attempts, 0);
  EXPECT_EQ(Stored(), before);
  request.validate_only = false;
  ASSERT_OK_AND_ASSIGN(committed, process.Commit(request));
  EXPECT_THAT(StaleOnes(committed), ElementsAre(true));
  if (GetParam() != Mode::kAtomic) return;  // two phases hold what they leave as it is
  EXPECT_EQ(committed.attempts, 0);
  EXPECT_EQ(Stored(), before);
}

// Two phases hold a deletion by another one, which says what that one said.
TEST_P(NumbersTest, AHeldDeletionKeepsItsNumber) {
  TransactingProcess process = Start();
  ASSERT_THAT(world->Delete(NewerRequest(5, "/version", "a")), IsOk());
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK_AND_ASSIGN(const Committed committed,
                         process.Commit(InTwoPhases({Upsert("a", 5), Upsert("b", round + 1)})));
    EXPECT_THAT(StaleOnes(committed), ElementsAre(true, false));
    EXPECT_EQ(Newest("a").header.version, round + 2);
    EXPECT_EQ(NumberOf(Newest("a")), 5);
  }
  CommitRequest reading = InTwoPhases({Upsert("b", 9)});
  reading.reads.push_back({{"things", "a"}, 4});
  ASSERT_THAT(process.Commit(reading), IsOk());
  ExpectStale(UpsertAlone("a", 5));
  ExpectWritten(UpsertAlone("a", 6));
}

TEST_P(NumbersTest, WhatWasUndoneDoesNotCount) {
  TransactingProcess process = Start();
  // A deletion with its number, a plain one, and nothing.
  ASSERT_THAT(world->Delete(NewerRequest(5, "/version", "a")), IsOk());
  ASSERT_THAT(UpsertAlone("b", 5), IsOk());
  ASSERT_THAT(world->Delete(Request("b")), IsOk());
  ASSERT_THAT(world->Create(Request("z"), Number(1)), IsOk());
  for (const char* const id : {"a", "b", "c"}) {
    LeaveAfter(HoldAfter::kFirstSlot,
               InTwoPhases({Upsert(id, 9), Add("z", 1)}, std::string("t") + id));
    ASSERT_THAT(process.Cancel(std::string("t") + id), IsOk());
    EXPECT_EQ(Newest(id).header.mark, VersionMark::kUndone);
    EXPECT_TRUE(Newest(id).deleted());
  }
  ExpectStale(UpsertAlone("a", 5));
  ExpectStale(UpsertAlone("b", 5));
  ExpectWritten(UpsertAlone("a", 6));
  ExpectWritten(UpsertAlone("b", 6));
  ExpectWritten(UpsertAlone("c", 1));
  // The same of deletions.
  LeaveAfter(HoldAfter::kFirstSlot, InTwoPhases({Remove("a", 9), Add("z", 1)}, "removes"));
  ASSERT_THAT(process.Cancel("removes"), IsOk());
  EXPECT_FALSE(Newest("a").deleted());
  EXPECT_EQ(NumberOf(Newest("a")), 6);
  ExpectWritten(UpsertAlone("a", 7));
}

TEST_P(NumbersTest, AClosedSlotKeepsTheNumber) {
  TransactingProcess process = Start();
  ASSERT_THAT(world->Delete(NewerRequest(5, "/version", "a")), IsOk());
  LeaveAfter(HoldAfter::kPending, InTwoPhases({Upsert("a", 9), Upsert("c", 9)}, "t"));
  ASSERT_THAT(process.Cancel("t"), IsOk());
  EXPECT_EQ(Newest("a").header.mark, VersionMark::kClosed);
  EXPECT_EQ(NumberOf(Newest("a")), 5);
  ExpectStale(UpsertAlone("a", 5));
  ExpectWritten(UpsertAlone("a", 6));
}

TEST_P(NumbersTest, ErrorsNameTheirPartOfTheTransaction) {
  TransactingProcess process = Start();
  ASSERT_THAT(world->Create(Request("a"), versioning::testing::Text("x")), IsOk());
  const auto path = [](Operation operation, std::string_view pointer) {
    operation.precondition.newer = *Newer::Make(pointer, 9);
    return operation;
  };
  const auto before = Stored();
  struct Case {
    Operation operation;
    ErrorReason reason;
    std::string field;
  };
  Operation restore = Upsert("a", 1);
  restore.what = Restore{1};
  Operation create = Upsert("b", 1);
  create.what = transaction::Create{Number(1)};
  Operation labelled = Remove("a", 1);
  labelled.change.labels["newer:/version"] = "1";
  const std::vector<Case> cases = {
      {path(Upsert("a", 1), "/text"), ErrorReason::kNumberExpected,
       "writes[1].update.precondition.newer"},
      {path(Remove("a", 1), "/text/x"), ErrorReason::kNumberExpected,
       "writes[1].delete.precondition.newer"},
      {path(Upsert("b", 1), "/n/x"), ErrorReason::kInvalidPath,
       "writes[1].update.precondition.newer.path"},
      {restore, ErrorReason::kInvalidField, "writes[1].restore.precondition.newer"},
      {create, ErrorReason::kInvalidField, "writes[1].create.precondition.newer"},
      {labelled, ErrorReason::kInvalidField, "writes[1].delete.change.labels"},
  };
  for (const Case& refused : cases) {
    const auto result = process.Commit(Of({Upsert("c", 1), refused.operation}));
    EXPECT_THAT(result, HasReason(refused.reason)) << result.status();
    EXPECT_EQ(MetadataOf(result.status(), "field"), refused.field);
    EXPECT_EQ(MetadataOf(result.status(), "index"), "1");
  }
  CommitRequest labelled_whole = Of({Upsert("c", 1)});
  labelled_whole.change.labels["newer:/version"] = "1";
  EXPECT_THAT(process.Commit(labelled_whole), HasReason(ErrorReason::kInvalidField));
  EXPECT_THAT(process.Cancel("t", labelled_whole.change), HasReason(ErrorReason::kInvalidField));
  EXPECT_EQ(Stored(), before);
}

// Writers of two processes, each message once or twice, two documents at a time.
TEST_P(NumbersTest, TheGreatestNumberStandsAfterAStorm) {
  constexpr int64_t kNumbers = 40;
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  std::vector<Operation> messages;
  std::map<std::string, bool> deleted_last;
  for (const char* const id : {"a", "b", "c", "d"}) {
    for (int64_t number = 1; number <= kNumbers; ++number) {
      const bool deletes = random() % 2 == 0;
      messages.push_back(deletes ? Remove(id, number) : Upsert(id, number));
      if (random() % 4 == 0) messages.push_back(messages.back());
      deleted_last[id] = deletes;
    }
  }
  std::shuffle(messages.begin(), messages.end(), random);
  TransactingProcess processes[] = {Start(), Start()};
  std::atomic<size_t> next = 0;
  std::vector<std::thread> writers;
  for (size_t writer = 0; writer < 4; ++writer) {
    writers.emplace_back([&, writer] {
      for (size_t i = next++; i < messages.size(); i = next++) {
        CommitRequest request = writer < 2 ? Of({messages[i]}) : InTwoPhases({messages[i]});
        request.request_id = "m" + std::to_string(i);
        const Operation& other = messages[(i * 7 + 1) % messages.size()];
        if (other.name.id != messages[i].name.id) request.writes.push_back(other);
        request.max_attempts = 100;
        absl::StatusOr<Committed> committed = processes[writer % 2].Commit(request);
        while (!committed.ok()) {
          const auto reason = ReasonOf(committed.status());
          ASSERT_TRUE(reason == ErrorReason::kRetriesExhausted ||
                      reason == ErrorReason::kOutcomeUnknown)
              << committed.status();
          committed = processes[writer % 2].Commit(request);
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (const auto& [id, deleted] : deleted_last) {
    EXPECT_EQ(Newest(id).deleted(), deleted) << id;
    EXPECT_EQ(NumberOf(Newest(id)), kNumbers) << id;
  }
}

}  // namespace
}  // namespace strata::transaction::testing
