// What the facade promises, under every strategy, on every engine, with and without atomic batches.
#include "schemas/versioning/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>

#include "tests/documents/world.h"
#include "tests/support/status_matchers.h"

namespace strata::versioning::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class DocumentsTest : public CombinationTest {
 protected:
  // Versions 1 created, 2 updated, 3 deleted, 4 created, 5 restored (to version 1).
  void WriteFive() {
    ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
    ASSERT_THAT(world->Update(Request(), Number(2)), IsOk());
    ASSERT_THAT(world->Delete(Request()), IsOk());
    ASSERT_THAT(world->Create(Request(), Number(4)), IsOk());
    ASSERT_THAT(world->Restore(Request(), 1), IsOk());
  }

  std::vector<int64_t> Versions(HistoryQuery query) {
    query.name = kName;
    std::vector<int64_t> numbers;
    HistoryCursor found = world->documents().History(std::move(query));
    while (found.Next()) numbers.push_back(found.version().header.version);
    EXPECT_THAT(found.status(), IsOk());
    return numbers;
  }
};

TEST_P(DocumentsTest, WhatIsWrittenIsRead) {
  ASSERT_OK_AND_ASSIGN(const WriteResult created, world->Create(Request(), Number(1)));
  EXPECT_EQ(created.version.header.version, 1);
  EXPECT_TRUE(created.changed);
  EXPECT_EQ(created.attempts, 1);
  ASSERT_OK_AND_ASSIGN(const StoredVersion read, world->documents().Get(kName, {}));
  EXPECT_EQ(read.header, created.version.header);
  EXPECT_EQ(*read.content, Number(1));
}

TEST_P(DocumentsTest, ADocumentIsCreatedOnce) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  EXPECT_THAT(world->Create(Request(), Number(2)), HasReason(ErrorReason::kDocumentExists));
}

TEST_P(DocumentsTest, NumbersGoOnAfterADeletion) {
  WriteFive();
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  ASSERT_THAT(history, SizeIs(5));
  std::vector<VersionKind> kinds;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(history[i].header.version, static_cast<int64_t>(5 - i));
    kinds.push_back(history[i].header.kind);
  }
  EXPECT_THAT(kinds,
              ElementsAre(VersionKind::kRestored, VersionKind::kCreated, VersionKind::kDeleted,
                          VersionKind::kUpdated, VersionKind::kCreated));
  EXPECT_EQ(*history[0].content, Number(1));
  EXPECT_FALSE(history[2].content);
}

TEST_P(DocumentsTest, TheChainProvesEveryVersion) {
  WriteFive();
  ASSERT_OK_AND_ASSIGN(auto history, world->History(kName));
  std::reverse(history.begin(), history.end());
  document::Hash chain = ChainStart("things", "a");
  for (const StoredVersion& version : history) {
    EXPECT_EQ(version.header.content_hash, ContentHashOf(version.header.salt, version.content));
    chain = ChainHash(chain, version.header);
    EXPECT_EQ(version.header.chain_hash, chain);
  }
}

TEST_P(DocumentsTest, TimesNeverGoBackEvenIfTheClockDoes) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  world.clock().SetNow(world.clock().Now() - 3'600'000'000);
  ASSERT_THAT(world->Update(Request(), Number(2)), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history[0].header.commit_time, history[1].header.commit_time);
}

TEST_P(DocumentsTest, ADeletedDocumentIsNotFoundButItsHistoryIs) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult deleted, world->Delete(Request()));
  EXPECT_FALSE(deleted.version.content);
  EXPECT_THAT(world->documents().Get(kName, {}), HasReason(ErrorReason::kDocumentDeleted));
  EXPECT_THAT(world->documents().Get(kName, {.version = 2, .time = {}}),
              HasReason(ErrorReason::kDocumentDeleted));
  ASSERT_OK_AND_ASSIGN(const StoredVersion old,
                       world->documents().Get(kName, {.version = 1, .time = {}}));
  EXPECT_EQ(*old.content, Number(1));
  EXPECT_THAT(world->Delete(Request()), HasReason(ErrorReason::kDocumentDeleted));
  EXPECT_THAT(world->Update(Request(), Number(3)), HasReason(ErrorReason::kDocumentDeleted));
}

TEST_P(DocumentsTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(world->documents().Get(kName, {}), HasReason(ErrorReason::kCollectionNotFound));
  EXPECT_THAT(world->Update(Request(), Number(1)), HasReason(ErrorReason::kCollectionNotFound));
  EXPECT_THAT(world->Delete(Request()), HasReason(ErrorReason::kCollectionNotFound));
  ASSERT_THAT(world->Create(Request("b"), Number(1)), IsOk());
  EXPECT_THAT(world->documents().Get(kName, {}), HasReason(ErrorReason::kDocumentNotFound));
  EXPECT_THAT(world->Update(Request(), Number(1)), HasReason(ErrorReason::kDocumentNotFound));
  EXPECT_THAT(world->Restore(Request(), 1), HasReason(ErrorReason::kDocumentNotFound));
  EXPECT_THAT(world->documents().Get({"things", "b"}, {.version = 2, .time = {}}),
              HasReason(ErrorReason::kVersionNotFound));
  EXPECT_THAT(world->Restore(Request("b"), 2), HasReason(ErrorReason::kVersionNotFound));
}

TEST_P(DocumentsTest, ARefusedWriteMakesNoCollection) {
  EXPECT_THAT(world->Update(Request(), Number(1)), HasReason(ErrorReason::kCollectionNotFound));
  CollectionCursor collections = world->documents().collections().List("");
  EXPECT_FALSE(collections.Next());
  EXPECT_THAT(collections.status(), IsOk());
}

TEST_P(DocumentsTest, AnUpdateKeepsWhatItDoesNotMention) {
  const document::Content two = document::Content::FromTrusted(
      document::BsonBuilder().Int64("n", 1).String("kept", "yes").Take());
  ASSERT_THAT(world->Create(Request(), two), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult updated, world->Update(Request(), Increment("/n", 4)));
  EXPECT_EQ(*updated.version.content,
            document::Content::FromTrusted(
                document::BsonBuilder().Int64("n", 5).String("kept", "yes").Take()));
}

TEST_P(DocumentsTest, AnUpdateThatChangesNothingWritesNothing) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult same, world->Update(Request(), Number(1)));
  EXPECT_FALSE(same.changed);
  EXPECT_EQ(same.attempts, 0);
  EXPECT_EQ(same.version.header.version, 1);
  WriteRequest keep = Request();
  keep.keep_unchanged = true;
  ASSERT_OK_AND_ASSIGN(const WriteResult kept, world->Update(keep, Number(1)));
  EXPECT_TRUE(kept.changed);
  EXPECT_EQ(kept.version.header.version, 2);
}

TEST_P(DocumentsTest, UpsertCreatesWhatIsMissingOrDeleted) {
  ASSERT_OK_AND_ASSIGN(const WriteResult made, world->Update(Request(), Increment("/n", 3), true));
  EXPECT_EQ(made.version.header.kind, VersionKind::kCreated);
  ASSERT_THAT(world->Delete(Request()), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult again, world->Update(Request(), Number(7), true));
  EXPECT_EQ(again.version.header.kind, VersionKind::kCreated);
  EXPECT_EQ(again.version.header.version, 3);
  EXPECT_EQ(again.version.header.create_time, again.version.header.commit_time);
}

TEST_P(DocumentsTest, APreconditionThatMissesIsAConflictWithTheActualVersion) {
  WriteRequest request = Request();
  request.precondition.version = 0;
  ASSERT_THAT(world->Create(request, Number(1)), IsOk());
  request.precondition.version = 3;
  const auto missed = world->Update(request, Number(2));
  EXPECT_THAT(missed, HasReason(ErrorReason::kVersionConflict));
  EXPECT_EQ(MetadataOf(missed.status(), "actual"), "1");
  EXPECT_EQ(MetadataOf(missed.status(), "expected"), "3");
  request.precondition = {};
  request.precondition.exists = false;
  EXPECT_THAT(world->Update(request, Number(2), true), HasReason(ErrorReason::kVersionConflict));
  request.precondition.exists = true;
  EXPECT_THAT(world->Update(request, Number(2)), IsOk());
  request.precondition = {};
  request.precondition.version = 2;
  EXPECT_THAT(world->Delete(request), IsOk());
  request.precondition = {};
  request.precondition.exists = true;
  EXPECT_THAT(world->Update(request, Number(2), true), HasReason(ErrorReason::kVersionConflict));
}

TEST_P(DocumentsTest, ValidateOnlyWritesNothing) {
  WriteRequest request = Request();
  request.validate_only = true;
  ASSERT_OK_AND_ASSIGN(const WriteResult would, world->Create(request, Number(1)));
  EXPECT_EQ(would.version.header.version, 1);
  EXPECT_EQ(would.position, 0);
  EXPECT_THAT(world->documents().Get(kName, {}), HasReason(ErrorReason::kCollectionNotFound));
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  EXPECT_THAT(world->Create(request, Number(1)), HasReason(ErrorReason::kDocumentExists));
}

TEST_P(DocumentsTest, HistoryAnswersAnyRangeInBothDirections) {
  WriteFive();
  EXPECT_THAT(Versions({}), ElementsAre(5, 4, 3, 2, 1));
  HistoryQuery query;
  query.oldest_first = true;
  EXPECT_THAT(Versions(query), ElementsAre(1, 2, 3, 4, 5));
  query.from_version = 2;
  query.to_version = 4;
  EXPECT_THAT(Versions(query), ElementsAre(2, 3, 4));
  query.resume_at = 3;
  EXPECT_THAT(Versions(query), ElementsAre(3, 4));
  query.oldest_first = false;
  EXPECT_THAT(Versions(query), ElementsAre(3, 2));
  query.from_version = 9;
  EXPECT_THAT(Versions(query), ElementsAre());
}

TEST_P(DocumentsTest, HistoryAndGetAnswerByTime) {
  std::vector<UnixMicros> times;
  for (int64_t i = 1; i <= 20; ++i) {
    world.clock().Advance(std::chrono::seconds(1));
    ASSERT_OK_AND_ASSIGN(const WriteResult written, world->Update(Request(), Number(i), true));
    times.push_back(written.version.header.commit_time);
  }
  world.clock().Advance(std::chrono::seconds(1));
  for (size_t i = 0; i < times.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const StoredVersion at,
                         world->documents().Get(kName, {.version = {}, .time = times[i]}));
    EXPECT_EQ(at.header.version, static_cast<int64_t>(i + 1));
    if (i == 0) continue;
    ASSERT_OK_AND_ASSIGN(const StoredVersion before,
                         world->documents().Get(kName, {.version = {}, .time = times[i] - 1}));
    EXPECT_EQ(before.header.version, static_cast<int64_t>(i));
  }
  EXPECT_THAT(world->documents().Get(kName, {.version = {}, .time = times[0] - 1}),
              HasReason(ErrorReason::kVersionNotFound));
  EXPECT_THAT(
      world->documents().Get(kName, {.version = {}, .time = world.clock().Now() + 1'000'000}),
      HasReason(ErrorReason::kInvalidField));
  HistoryQuery query;
  query.from_time = times[3];
  query.to_time = times[5];
  EXPECT_THAT(Versions(query), ElementsAre(6, 5, 4));
}

// Nobody asked for a version 0, and there is none to speak of.
TEST_P(DocumentsTest, ATimeBeforeTheFirstVersionIsNamedAsSuch) {
  WriteFive();
  ASSERT_OK_AND_ASSIGN(const StoredVersion first,
                       world->documents().Get(kName, {.version = 1, .time = {}}));
  const UnixMicros before = first.header.commit_time - 1;
  const absl::Status early =
      world->documents().Get(kName, {.version = {}, .time = before}).status();
  EXPECT_THAT(early, HasReason(ErrorReason::kVersionNotFound));
  EXPECT_THAT(early.message(), ::testing::HasSubstr("first written at "));
  EXPECT_FALSE(MetadataOf(early, "version"));
  EXPECT_EQ(MetadataOf(early, "actual"), "5");
  EXPECT_NE(MetadataOf(early, "time"), MetadataOf(early, "first_time"));
  // Where versions are listed, there are none.
  HistoryQuery query;
  query.to_time = before;
  EXPECT_THAT(Versions(query), ElementsAre());
  query.oldest_first = query.include_changes = true;
  EXPECT_THAT(Versions(query), ElementsAre());
  query.from_time = before;
  query.to_time = first.header.commit_time;
  EXPECT_THAT(Versions(query), ElementsAre(1));
  if (GetParam().mode == Mode::kStale) return;  // such a scan may miss the document altogether
  ListQuery list;
  list.collection = kName.collection;
  for (const auto& [time, listed] : {std::pair(before, 0), std::pair(before + 1, 1)}) {
    list.at_time = time;
    ListCursor found = world->documents().List(list);
    int documents = 0;
    while (found.Next()) ++documents;
    ASSERT_THAT(found.status(), IsOk());
    EXPECT_EQ(documents, listed);
  }
}

TEST_P(DocumentsTest, HistoryTellsWhatEachVersionChanged) {
  WriteFive();
  for (const bool oldest_first : {false, true}) {
    HistoryQuery query;
    query.name = kName;
    query.include_changes = true;
    query.oldest_first = oldest_first;
    std::map<int64_t, std::string> changes;
    HistoryCursor found = world->documents().History(query);
    while (found.Next()) {
      std::string& text = changes[found.version().header.version];
      for (const auto& field : found.changes().list) {
        text += field.path + (field.before ? "-" : "") + (field.after ? "+" : "");
      }
      EXPECT_FALSE(found.version().content);
    }
    ASSERT_THAT(found.status(), IsOk());
    EXPECT_EQ(changes, (std::map<int64_t, std::string>{
                           {1, "/n+"}, {2, "/n-+"}, {3, "/n-"}, {4, "/n+"}, {5, "/n-+"}}));
  }
}

TEST_P(DocumentsTest, DiffComparesAnyTwoVersions) {
  WriteFive();
  std::vector<document::FieldChange> changes;
  const auto diff = [&](int64_t from, int64_t to) {
    changes.clear();
    return world->documents().Diff({kName, from, to}, [&](document::FieldChange&& change) {
      changes.push_back(std::move(change));
      return true;
    });
  };
  ASSERT_THAT(diff(1, 2), IsOk());
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].type, document::ChangeType::kChanged);
  ASSERT_OK_AND_ASSIGN(const DiffEnd back, diff(4, 0));
  EXPECT_EQ(back.to_version, 5);
  EXPECT_TRUE(back.complete);
  ASSERT_THAT(diff(2, 3), IsOk());
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_EQ(changes[0].type, document::ChangeType::kRemoved);
  EXPECT_THAT(diff(1, 6), HasReason(ErrorReason::kVersionNotFound));
}

TEST_P(DocumentsTest, ListAnswersEachCurrentDocumentOnce) {
  if (GetParam().mode == Mode::kStale)
    GTEST_SKIP() << "exempt: a stale scan may miss recent changes";
  for (const char* id : {"b", "a", "a/b", "a.b", "c"}) {
    ASSERT_THAT(world->Create(Request(id), Number(1)), IsOk());
    ASSERT_THAT(world->Update(Request(id), Number(2)), IsOk());
  }
  ASSERT_THAT(world->Delete(Request("b")), IsOk());
  const auto things = [](const std::string& prefix, const std::string& after, bool show_deleted) {
    ListQuery query;
    query.collection = "things";
    query.id_prefix = prefix;
    query.after_id = after;
    query.show_deleted = show_deleted;
    return query;
  };
  const auto list = [&](const ListQuery& query) {
    std::vector<std::string> ids;
    ListCursor found = world->documents().List(query);
    while (found.Next()) {
      ids.push_back(found.id());
      EXPECT_TRUE(found.version().deleted() || *found.version().content == Number(2));
    }
    EXPECT_THAT(found.status(), IsOk());
    EXPECT_FALSE(found.resume_after());
    return ids;
  };
  EXPECT_THAT(list(things("", "", false)), ElementsAre("a", "a.b", "a/b", "c"));
  EXPECT_THAT(list(things("", "", true)), ElementsAre("a", "a.b", "a/b", "b", "c"));
  EXPECT_THAT(list(things("a", "", false)), ElementsAre("a", "a.b", "a/b"));
  EXPECT_THAT(list(things("a", "a", false)), ElementsAre("a.b", "a/b"));
}

TEST_P(DocumentsTest, AuditOfADocumentTellsWhoAndWhy) {
  WriteRequest request = Request();
  request.change = {"ann", "bob", "first", {{"ticket", "7"}}};
  ASSERT_THAT(world->Create(request, Number(1)), IsOk());
  request.change.actor = "eve";
  ASSERT_THAT(world->Update(request, Number(2)), IsOk());
  AuditQuery query;
  query.collection = "things";
  query.id = "a";
  query.actor = "ann";
  query.include_changes = true;
  AuditCursor found = world->documents().Audit(query);
  std::vector<AuditRow> rows;
  while (found.Next()) rows.push_back(std::move(found.row()));
  ASSERT_THAT(found.status(), IsOk());
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].version.header.change.labels.at("ticket"), "7");
  EXPECT_EQ(rows[0].version.header.change.on_behalf_of, "bob");
  EXPECT_THAT(rows[0].changes.list, SizeIs(1));
  EXPECT_EQ(rows[0].place.position > 0, GetParam().mode == Mode::kAtomic);
}

TEST_P(DocumentsTest, TheLedgerHoldsEverythingInCommitOrder) {
  WriteFive();
  ASSERT_THAT(world->Create(Request("b"), Number(1)), IsOk());
  std::vector<std::string> entries;
  store::CommitPosition last = 0;
  AuditCursor found = world->documents().Audit({});
  while (found.Next()) {
    const AuditRow& row = found.row();
    entries.push_back(row.id + std::to_string(row.version.header.version));
    EXPECT_GT(row.place.position, last);
    EXPECT_NE(row.version.header.chain_hash, document::Hash{});
    last = row.place.position;
  }
  if (GetParam().mode != Mode::kAtomic) {
    EXPECT_THAT(found.status(), HasReason(ErrorReason::kUnsupportedByEngine));
    return;
  }
  EXPECT_THAT(found.status(), IsOk());
  EXPECT_THAT(entries, ElementsAre("a1", "a2", "a3", "a4", "a5", "b1"));
}

// Of what two transactions and a single write did to two documents.
TEST_P(DocumentsTest, AnAuditOfATransactionTellsAllOfItAndNothingElse) {
  const bool atomic = GetParam().mode == Mode::kAtomic;
  const auto commit = [&](const std::string& transaction_id, const std::vector<std::string>& ids) {
    UnitRequest unit;
    unit.transaction_id = transaction_id;
    for (const std::string& id : ids) {
      unit.changes.push_back(
          {Request(id), [](const CurrentState& current) {
             return Mutation{VersionKind::kUpdated, Number(100 + current.version->header.version)};
           }});
    }
    std::promise<absl::StatusOr<UnitResult>> answer;
    world->documents().Commit(std::move(unit),
                              [&](auto result) { answer.set_value(std::move(result)); });
    EXPECT_THAT(answer.get_future().get(), IsOk());
  };
  ASSERT_THAT(world->Create(Request("a"), Number(1)), IsOk());
  ASSERT_THAT(world->Create(Request("b"), Number(1)), IsOk());
  commit("t-1", atomic ? std::vector<std::string>{"b", "a"} : std::vector<std::string>{"a"});
  ASSERT_THAT(world->Update(Request("a"), Number(7)), IsOk());
  commit("t-2", {"a"});
  const auto audit = [&](const std::string& id, const std::string& transaction_id) {
    AuditQuery query;
    query.collection = "things";
    query.id = id;
    query.transaction_ids = {transaction_id};
    std::vector<std::string> found;
    std::vector<store::CommitPosition> positions;
    AuditCursor cursor = world->documents().Audit(query);
    while (cursor.Next()) {
      const AuditRow& row = cursor.row();
      EXPECT_EQ(row.version.header.transaction_id, transaction_id);
      found.push_back(row.id + std::to_string(row.version.header.version) + "/" +
                      std::to_string(row.place.index));
      positions.push_back(row.place.position);
    }
    EXPECT_THAT(cursor.status(), IsOk());
    EXPECT_LE(std::set(positions.begin(), positions.end()).size(), 1u) << "one commit";
    return found;
  };
  EXPECT_THAT(audit("a", "t-1"), ElementsAre(atomic ? "a2/1" : "a2/0"));
  EXPECT_THAT(audit("a", "t-2"), ElementsAre("a4/0"));
  EXPECT_THAT(audit("a", "t"), IsEmpty());
  EXPECT_THAT(audit("b", "t-2"), IsEmpty());
  if (!atomic) return;
  EXPECT_THAT(audit("", "t-1"), ElementsAre("b2/0", "a2/1"));
  EXPECT_THAT(audit("", "t-2"), ElementsAre("a4/0"));
  EXPECT_THAT(audit("", "t-3"), IsEmpty());
}

TEST_P(DocumentsTest, PositionsStayWithTheirVersions) {
  std::vector<store::CommitPosition> positions;
  for (int64_t i = 1; i <= 20; ++i) {
    ASSERT_OK_AND_ASSIGN(const WriteResult written, world->Update(Request(), Number(i), true));
    positions.push_back(written.position);
  }
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  for (const StoredVersion& version : history) {
    EXPECT_EQ(version.position, positions[static_cast<size_t>(version.header.version - 1)]);
  }
}

TEST_P(DocumentsTest, BatchGetAnswersFromOneMoment) {
  ASSERT_THAT(world->Create(Request("a"), Number(1)), IsOk());
  ASSERT_THAT(world->Create(Request("b"), Number(2)), IsOk());
  ASSERT_THAT(world->Delete(Request("b")), IsOk());
  std::string seen;
  BatchGetCursor found = world->documents().BatchGet("things", {"b", "x", "a"});
  while (found.Next()) seen += found.id() + (found.version() != nullptr ? "+" : "-");
  ASSERT_THAT(found.status(), IsOk());
  EXPECT_EQ(seen, "b-x-a+");
}

TEST_P(DocumentsTest, BadNamesAreRefusedBeforeAnythingHappens) {
  for (const std::string& name :
       {std::string(), std::string(257, 'x'), std::string("a\nb"), std::string("a\0b", 3),
        std::string("\xC3\x28"), std::string("\xC2\x85"), std::string("\x7F")}) {
    WriteRequest request = Request();
    request.name.collection = name;
    EXPECT_THAT(world->Create(request, Number(1)), HasReason(ErrorReason::kInvalidName));
    EXPECT_THAT(world->documents().Get({name, "a"}, {}), HasReason(ErrorReason::kInvalidName));
    if (name.empty()) continue;
    EXPECT_THAT(world->Create(Request(name), Number(1)), HasReason(ErrorReason::kInvalidName));
  }
  EXPECT_THAT(world->Create(Request(std::string(256, 'x')), Number(1)), IsOk());
}

TEST_P(DocumentsTest, EverythingSurvivesARestart) {
  WriteFive();
  ASSERT_OK_AND_ASSIGN(const auto before, world->History(kName));
  world.Restart();
  ASSERT_OK_AND_ASSIGN(const auto after, world->History(kName));
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].header, after[i].header);
  EXPECT_THAT(world->Update(Request(), Number(6)), IsOk());
}

STRATA_ALL_COMBINATIONS(DocumentsTest);

}  // namespace
}  // namespace strata::versioning::testing
