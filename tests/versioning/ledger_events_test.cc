// What the ledger tells of besides versions: that a collection was deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "schemas/store/key_codec.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/ledger_floor.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using store::Keyspace;
using test_support::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Told {
  store::CommitPosition position = 0;
  store::LedgerEntry entry;
};

std::vector<Told> LedgerOf(const store::Reader& reader) {
  std::vector<Told> told;
  LedgerCursor cursor(reader, 0, 0);
  while (cursor.Next()) told.push_back({cursor.position(), cursor.entry().ToEntry()});
  EXPECT_THAT(cursor.status(), IsOk());
  return told;
}

absl::StatusOr<CollectionDeleted> Delete(World& world, CollectionDeletion deletion) {
  std::promise<absl::StatusOr<CollectionDeleted>> done;
  world->documents().collections().Delete(
      std::move(deletion),
      [&](absl::StatusOr<CollectionDeleted> deleted) { done.set_value(std::move(deleted)); });
  return done.get_future().get();
}

WriteRequest In(const std::string& collection, const std::string& id) {
  WriteRequest request = Request(id);
  request.name.collection = collection;
  return request;
}

class LedgerEventsTest : public ::testing::TestWithParam<engines::Engine> {
 protected:
  LedgerEventsTest() : world_({.engine = GetParam().name}) {}

  World world_;
};

TEST_P(LedgerEventsTest, ADeletedCollectionIsToldOfOnce) {
  ASSERT_THAT(world_->Create(In("books", "a"), Number(1)), IsOk());
  ASSERT_THAT(world_->Create(In("others", "a"), Number(1)), IsOk());
  const int64_t incarnation =
      (*world_->documents().collections().Require(world_.engine(), "books"))->incarnation;
  CollectionDeletion deletion{.name = "books", .force = true, .request_id = "once"};
  deletion.change.actor = "ann";
  deletion.change.reason = "sold out";
  const UnixMicros before = world_.clock().Now();
  ASSERT_THAT(Delete(world_, deletion), IsOk());
  const std::vector<Told> told = LedgerOf(world_.engine());
  ASSERT_EQ(told.size(), 3u);
  store::LedgerEntry right;
  right.kind = 16;
  right.collection = "books";
  right.incarnation = incarnation;
  right.time = told[2].entry.time;
  right.actor = "ann";
  right.reason = "sold out";
  right.request_id = "once";
  EXPECT_EQ(told[2].entry, right);
  EXPECT_GT(right.time, before);
  const auto tombstone = world_.engine().Get(Keyspace::kCollections, "books");
  EXPECT_EQ(told[2].position, (*tombstone)->position);
  // What builds stumble over that would take the entry for a version.
  EXPECT_TRUE((*world_.engine().Get(Keyspace::kFeed, kLedgerEventsKey)).has_value());

  const auto again = Delete(world_, deletion);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(LedgerOf(world_.engine()).size(), 3u);
}

TEST_P(LedgerEventsTest, NothingButVersionsLeavesTheStoreOpenToOlderBuilds) {
  ASSERT_THAT(world_->Create(In("books", "a"), Number(1)), IsOk());
  const auto feed = world_.engine().Scan(Keyspace::kFeed, {});
  EXPECT_FALSE(feed->Valid());
}

TEST_P(LedgerEventsTest, AuditPassesOverIt) {
  ASSERT_THAT(world_->Create(In("books", "a"), Number(1)), IsOk());
  ASSERT_THAT(Delete(world_, {.name = "books", .force = true}), IsOk());
  ASSERT_THAT(world_->Create(In("books", "b"), Number(1)), IsOk());
  ASSERT_THAT(Delete(world_, {.name = "books", .force = true}), IsOk());
  for (const bool one_collection : {false, true}) {
    for (const int page_size : {1, 10}) {
      AuditQuery query;
      if (one_collection) query.collection = "books";
      std::vector<std::string> ids;
      for (bool more = true; more;) {
        AuditCursor cursor = world_->documents().Audit(query);
        for (int taken = 0; cursor.Next() && taken < page_size; ++taken) {
          ids.push_back(cursor.row().id);
        }
        ASSERT_THAT(cursor.status(), IsOk());
        more = cursor.resume_at().has_value();
        if (more) query.resume_at = *cursor.resume_at();
      }
      EXPECT_THAT(ids, ElementsAre("a", "b"));
    }
  }
}

TEST_P(LedgerEventsTest, VerifyCountsItAndFindsItMissing) {
  ASSERT_THAT(world_->Create(In("books", "a"), Number(1)), IsOk());
  ASSERT_THAT(Delete(world_, {.name = "books", .force = true}), IsOk());
  const LedgerHead head = *world_->documents().GetLedgerHead();
  ASSERT_THAT(world_->Create(In("others", "a"), Number(1)), IsOk());
  VerifyQuery query;
  query.expect_head = head;
  const auto whole = Verify(world_.process(), world_.clock(), query);
  ASSERT_THAT(whole, IsOk());
  EXPECT_THAT(whole->findings, IsEmpty());
  EXPECT_EQ(whole->last.ledger_entries, 3);

  const store::CommitPosition deleted = LedgerOf(world_.engine())[1].position;
  store::WriteBatch batch;
  batch.Delete(Keyspace::kLedger, store::LedgerKey(deleted));
  ASSERT_TRUE(test_support::AwaitCommit(world_.engine(), std::move(batch)).committed);
  const auto damaged = Verify(world_.process(), world_.clock(), query);
  ASSERT_THAT(damaged, IsOk());
  EXPECT_FALSE(damaged->findings.empty());
}

INSTANTIATE_TEST_SUITE_P(Engines, LedgerEventsTest, ::testing::ValuesIn(engines::AllEngines()),
                         [](const auto& engine) { return std::string(engine.param.name); });

TEST(LedgerEvents, AreNoneWhereCommitsHaveNoPositions) {
  World world({.mode = Mode::kSingle});
  ASSERT_THAT(world->Create(In("books", "a"), Number(1)), IsOk());
  ASSERT_THAT(Delete(world, {.name = "books", .force = true}), IsOk());
  EXPECT_THAT(LedgerOf(world.engine()), IsEmpty());
  EXPECT_FALSE((*world.engine().Get(Keyspace::kFeed, kLedgerEventsKey)).has_value());
}

}  // namespace
}  // namespace strata::versioning::testing
