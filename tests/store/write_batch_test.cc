// What a batch is made of, apart from any engine; what engines do with it is in the conformance
// tests.
#include "schemas/store/write_batch.h"

#include <chrono>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/ledger_entries.h"

namespace strata::store {
namespace {

using test_support::EntryThatSays;
using testing::ElementsAre;
using testing::Field;
using Moment = std::chrono::steady_clock::time_point;

WriteBatch PutsOf(std::initializer_list<const char*> keys) {
  WriteBatch batch;
  for (const char* const key : keys) batch.Put(Keyspace::kMeta, key, "");
  return batch;
}

TEST(WriteBatch, ACheckOfAbsenceWritesNothingAndNeedsAbsence) {
  WriteBatch batch;
  const Write& write = batch.CheckAbsent(Keyspace::kHeads, "a");
  EXPECT_EQ(write.kind, WriteKind::kCheck);
  EXPECT_EQ(write.guard, Guard::kAbsent);
  EXPECT_EQ(write.keyspace, Keyspace::kHeads);
  EXPECT_EQ(write.key, "a");
}

TEST(WriteBatch, WhatIsAppendedComesAfterInItsOrder) {
  WriteBatch batch = PutsOf({"a", "b"});
  WriteBatch other = PutsOf({"c", "d"});
  batch.AppendToLedger(EntryThatSays("1"));
  other.AppendToLedger(EntryThatSays("2"));
  other.AppendToLedger(EntryThatSays("3"));
  batch.Append(other);
  batch.Append(WriteBatch());
  EXPECT_THAT(batch.writes(), ElementsAre(Field(&Write::key, "a"), Field(&Write::key, "b"),
                                          Field(&Write::key, "c"), Field(&Write::key, "d")));
  ASSERT_EQ(batch.ledger().size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(batch.ledger()[i], EntryThatSays(std::to_string(i + 1)));
  }
}

TEST(WriteBatch, AppendingMovesNoCommitPointThatIsMarked) {
  WriteBatch batch = PutsOf({"a"});
  batch.MarkCommitPoint();
  batch.Put(Keyspace::kMeta, "b", "");
  WriteBatch other = PutsOf({"c", "d"});
  other.MarkCommitPoint();
  batch.Append(other);
  EXPECT_EQ(batch.commit_point(), 0u);
}

TEST(WriteBatch, WithoutAMarkTheLastOfAllIsTheCommitPoint) {
  WriteBatch batch = PutsOf({"a"});
  WriteBatch other = PutsOf({"b"});
  other.MarkCommitPoint();
  other.Put(Keyspace::kMeta, "c", "");
  batch.Append(other);
  EXPECT_EQ(batch.commit_point(), 2u);
}

TEST(WriteBatch, TheEarlierDeadlineCounts) {
  const Moment sooner{std::chrono::seconds(1)};
  const Moment later{std::chrono::seconds(2)};
  for (const auto& [own, others] :
       {std::pair(sooner, later), std::pair(later, sooner), std::pair(sooner, Moment::max()),
        std::pair(Moment::max(), sooner)}) {
    WriteBatch batch = PutsOf({"a"});
    WriteBatch other = PutsOf({"b"});
    batch.set_deadline(own);
    other.set_deadline(others);
    batch.Append(other);
    EXPECT_EQ(batch.deadline(), sooner);
  }
}

}  // namespace
}  // namespace strata::store
