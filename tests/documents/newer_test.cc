// Numbers that only grow: what precondition.newer lets in, what it leaves as it is, and what stands
// afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/documents/numbers.h"
#include "tests/documents/units.h"
#include "tests/support/status_matchers.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using document::BsonBuilder;
using test_support::HasReason;
using test_support::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

document::Content Object(const std::string& name, const document::Content& member) {
  return document::Content::FromTrusted(BsonBuilder().Document(name, member.bytes()).Take());
}
document::Content Array(const std::string& name, const document::Content& members) {
  return document::Content::FromTrusted(BsonBuilder().Array(name, members.bytes()).Take());
}

class NewerTest : public CombinationTest {
 protected:
  absl::StatusOr<WriteResult> Upsert(WriteRequest request, Documents::NewContent content) {
    return world->Update(std::move(request), std::move(content), /*allow_missing=*/true);
  }
  absl::StatusOr<WriteResult> Upsert(int64_t value) {
    return Upsert(NewerRequest(value), Number(value));
  }
  absl::StatusOr<WriteResult> Delete(int64_t value) { return world->Delete(NewerRequest(value)); }

  // That the write is stale, and the document stands at this version.
  void ExpectStale(const absl::StatusOr<WriteResult>& result, int64_t version) {
    ASSERT_THAT(result, IsOk());
    EXPECT_TRUE(result->stale);
    EXPECT_FALSE(result->changed);
    EXPECT_FALSE(result->replayed);
    EXPECT_EQ(result->attempts, 0);
    EXPECT_EQ(result->position, 0);
    EXPECT_EQ(result->version.header.version, version);
  }
  void ExpectWritten(const absl::StatusOr<WriteResult>& result, int64_t version, VersionKind kind,
                     int64_t number) {
    ASSERT_THAT(result, IsOk());
    EXPECT_FALSE(result->stale);
    EXPECT_TRUE(result->changed);
    EXPECT_EQ(result->attempts, 1);
    EXPECT_EQ(result->version.header.version, version);
    EXPECT_EQ(result->version.header.kind, kind);
    EXPECT_EQ(NumberOf(result->version), number);
  }

  std::vector<std::pair<std::string, std::string>> Stored() {
    std::vector<std::pair<std::string, std::string>> records;
    const auto reader = world.engine().Snapshot();
    for (const store::Keyspace keyspace : store::kAllKeyspaces) {
      for (auto cursor = reader->Scan(keyspace, {}); cursor->Valid(); cursor->Next()) {
        records.emplace_back(cursor->key(), cursor->value());
      }
    }
    return records;
  }
  void ExpectSound() {
    ASSERT_OK_AND_ASSIGN(const Verified verified,
                         Verify(world.process(), world.clock(), {"things", "", false}));
    std::vector<Finding> broken = verified.findings;
    if (GetParam().mode != Mode::kAtomic) {
      std::erase_if(broken, [](const Finding& finding) { return finding.recoverable; });
    }
    EXPECT_THAT(broken, IsEmpty());
  }
};
STRATA_ALL_COMBINATIONS(NewerTest);

TEST_P(NewerTest, OnlyAGreaterNumberIsWritten) {
  ExpectWritten(Upsert(5), 1, VersionKind::kCreated, 5);
  ExpectStale(Upsert(5), 1);
  ExpectStale(Upsert(4), 1);
  ExpectStale(Delete(5), 1);
  ExpectStale(Upsert(kLeast), 1);
  ExpectWritten(Upsert(6), 2, VersionKind::kUpdated, 6);
  ASSERT_OK_AND_ASSIGN(const WriteResult stale, Upsert(6));
  EXPECT_EQ(IntegerIn(*stale.version.content, "n"), 6);  // as it stands
  WriteRequest keeping = NewerRequest(6);
  keeping.keep_unchanged = true;
  ExpectStale(Upsert(keeping, Number(6)), 2);
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history.size(), 2u);
  ExpectSound();
}

TEST_P(NewerTest, ThereIsNoNumberAboveTheGreatest) {
  ExpectWritten(Upsert(kLeast), 1, VersionKind::kCreated, kLeast);
  ExpectStale(Upsert(kLeast), 1);
  ExpectWritten(Upsert(kGreatest), 2, VersionKind::kUpdated, kGreatest);
  ExpectStale(Upsert(kGreatest), 2);
  ExpectStale(Delete(kGreatest), 2);
  ASSERT_THAT(world->Delete(Request()), IsOk());
  ExpectStale(Upsert(kGreatest), 3);
}

TEST_P(NewerTest, APatchKeepsTheRestAndHasItsNumberSet) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult patched,
                       world->Update(NewerRequest(7), Increment("/n", 1)));
  EXPECT_EQ(IntegerIn(*patched.version.content, "n"), 2);
  EXPECT_EQ(NumberOf(patched.version), 7);
  // Whatever the write itself makes of it.
  ASSERT_OK_AND_ASSIGN(const WriteResult other, world->Update(NewerRequest(8), Set("/version", 3)));
  EXPECT_EQ(NumberOf(other.version), 8);
  ExpectStale(world->Update(NewerRequest(8), Increment("/n", 1)), 3);
}

TEST_P(NewerTest, WithoutAllowMissingNothingIsMade) {
  EXPECT_THAT(world->Update(NewerRequest(1), Number(1)),
              HasReason(ErrorReason::kCollectionNotFound));
  ASSERT_THAT(Delete(4), IsOk());
  ExpectStale(world->Update(NewerRequest(4), Number(1)), 1);
  EXPECT_THAT(world->Update(NewerRequest(5), Number(1)), HasReason(ErrorReason::kDocumentDeleted));
}

TEST_P(NewerTest, ADeletionKeepsItsNumber) {
  ASSERT_THAT(Upsert(3), IsOk());
  ExpectWritten(Delete(6), 2, VersionKind::kDeleted, 6);
  ExpectStale(Upsert(5), 2);
  ExpectStale(Upsert(6), 2);
  ExpectStale(Delete(5), 2);
  ExpectStale(Delete(6), 2);
  // The greatest stands, and what it stands in is another deletion.
  ExpectWritten(Delete(8), 3, VersionKind::kDeleted, 8);
  ExpectStale(Upsert(7), 3);
  ExpectWritten(Upsert(9), 4, VersionKind::kCreated, 9);
  ExpectSound();
}

TEST_P(NewerTest, ADeletionHasTheLabelsOfItsRequestToo) {
  ASSERT_THAT(Upsert(3), IsOk());
  WriteRequest request = NewerRequest(6);
  for (size_t i = 0; i < kLabelsMax; ++i) request.change.labels["l" + std::to_string(i)] = "x";
  ASSERT_OK_AND_ASSIGN(const WriteResult deleted, world->Delete(request));
  EXPECT_EQ(deleted.version.header.change.labels.size(), kLabelsMax + 1);
  EXPECT_THAT(deleted.version.header.change.labels, Contains(Pair("newer:/version", "6")));
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history.front().header, deleted.version.header);
  ExpectSound();
}

TEST_P(NewerTest, WhatWasNeverWrittenIsDeletedAsVersionOne) {
  ExpectWritten(Delete(4), 1, VersionKind::kDeleted, 4);
  EXPECT_THAT(world->documents().Get(kName, {}), HasReason(ErrorReason::kDocumentDeleted));
  ExpectSound();
  ASSERT_OK_AND_ASSIGN(const auto deleted, world->History(kName));
  ASSERT_EQ(deleted.size(), 1u);
  EXPECT_EQ(deleted[0].header.create_time, deleted[0].header.commit_time);
  EXPECT_THAT(world->documents().Get(kName, {std::nullopt, deleted[0].header.commit_time}),
              HasReason(ErrorReason::kDocumentDeleted));
  for (const bool shown : {false, true}) {
    ListQuery query;
    query.collection = "things";
    query.show_deleted = shown;
    ListCursor list = world->documents().List(query);
    // A stale scan may miss it.
    const bool found = list.Next();
    EXPECT_TRUE(found == shown || GetParam().mode == Mode::kStale);
    EXPECT_TRUE(!found || shown);
    EXPECT_THAT(list.status(), IsOk());
  }
  AuditQuery audit;
  audit.collection = "things";
  audit.id = "a";
  AuditCursor rows = world->documents().Audit(audit);
  ASSERT_TRUE(rows.Next());
  EXPECT_EQ(rows.row().version.header.kind, VersionKind::kDeleted);
  EXPECT_FALSE(rows.Next());
  EXPECT_THAT(world->Restore(Request(), 1), HasReason(ErrorReason::kDocumentDeleted));
  EXPECT_THAT(world->Delete(Request()), HasReason(ErrorReason::kDocumentDeleted));

  ASSERT_OK_AND_ASSIGN(const WriteResult created, world->Create(Request(), Number(1)));
  EXPECT_EQ(created.version.header.version, 2);
  EXPECT_EQ(created.version.header.create_time, created.version.header.commit_time);
  ASSERT_THAT(world->Update(Request(), Number(2)), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult restored, world->Restore(Request(), 2));
  EXPECT_EQ(restored.version.header.create_time, created.version.header.create_time);
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history.size(), 4u);
  ExpectSound();
  world.Restart();
  ExpectSound();
}

TEST_P(NewerTest, APlainDeletionCountsForWhatItDeleted) {
  ASSERT_THAT(Upsert(3), IsOk());
  ASSERT_THAT(world->Delete(Request()), IsOk());
  ExpectStale(Upsert(3), 2);
  ExpectStale(Delete(3), 2);
  ExpectWritten(Upsert(4), 3, VersionKind::kCreated, 4);
}

TEST_P(NewerTest, EachPathHasItsOwnNumber) {
  ASSERT_THAT(Upsert(NewerRequest(5, "/version"), Number(1)), IsOk());
  ASSERT_THAT(world->Delete(NewerRequest(1, "/other")), IsOk());
  for (int64_t other = 2; other < 30; ++other) {
    ExpectStale(Upsert(5), other);  // past all deletions, to the content
    ASSERT_THAT(world->Delete(NewerRequest(other, "/other")), IsOk());
  }
  ASSERT_THAT(Delete(6), IsOk());
  ASSERT_THAT(world->Delete(NewerRequest(30, "/other")), IsOk());
  ExpectStale(Upsert(6), 32);
  ExpectWritten(Upsert(7), 33, VersionKind::kCreated, 7);
}

TEST_P(NewerTest, ManyDeletionsHoldUpNobody) {
  for (int64_t other = 1; other < 40; ++other) {
    ASSERT_THAT(world->Delete(NewerRequest(other, "/other")), IsOk());
  }
  // Where others wait for the thread it is left to another turn, with the same answer.
  WriteRequest brief = NewerRequest(1);
  brief.brief = true;
  ExpectWritten(Upsert(brief, Number(1)), 40, VersionKind::kCreated, 1);
}

TEST_P(NewerTest, MissingParentsAreMade) {
  ASSERT_OK_AND_ASSIGN(const WriteResult made, Upsert(NewerRequest(5, "/from/version"), Number(1)));
  const document::Content expected =
      document::Content::FromTrusted(BsonBuilder()
                                         .Int64("n", 1)
                                         .Document("from", BsonBuilder().Int32("version", 5).Take())
                                         .Take());
  EXPECT_EQ(*made.version.content, expected);
  ExpectStale(Upsert(NewerRequest(5, "/from/version"), Number(1)), 1);
}

// The state, and what a write of `path` upon it is refused with.
TEST_P(NewerTest, WhatHasNoPlaceForANumberIsRefused) {
  const std::vector<std::pair<document::Content, std::string>> cases = {
      {Text("x"), "/text"},
      {Object("o", Number(1)), "/o"},
      {Text("x"), "/text/version"},
      {Array("list", document::Content::FromTrusted(BsonBuilder().Int64("0", 1).Take())),
       "/list/0"},
      {Array("list", document::Content()), "/list/-"},
      {Array("list", document::Content()), "/list"},
      {document::Content::FromTrusted(BsonBuilder().Bool("b", true).Take()), "/b"}};
  int number = 0;
  for (const auto& [content, path] : cases) {
    SCOPED_TRACE(path);
    const std::string id = "d" + std::to_string(++number);
    ASSERT_THAT(world->Create(Request(id), content), IsOk());
    const auto before = Stored();
    for (int i = 0; i < 3; ++i) {
      const WriteRequest request = NewerRequest(9, path, id);
      const auto refused = i == 0   ? world->Delete(request)
                           : i == 1 ? Upsert(request, Number(1))
                                    : Upsert(request, Set("/n", 1));
      ASSERT_THAT(refused, HasReason(ErrorReason::kNumberExpected));
      EXPECT_EQ(MetadataOf(refused.status(), "collection"), "things");
      EXPECT_EQ(MetadataOf(refused.status(), "id"), id);
      EXPECT_EQ(MetadataOf(refused.status(), "path"), path);
      EXPECT_EQ(MetadataOf(refused.status(), "actual"), "1");
    }
    EXPECT_EQ(Stored(), before);
  }
  // A new content may have anything at the path, but the path has to lead there.
  ASSERT_THAT(Upsert(1), IsOk());
  const auto before = Stored();
  for (const char* const path : {"/text/version", "/$date", "/text/a/b"}) {
    const auto refused = Upsert(NewerRequest(9, path), Text("x"));
    ASSERT_THAT(refused, HasReason(ErrorReason::kInvalidPath)) << path;
    EXPECT_EQ(MetadataOf(refused.status(), "field"), "precondition.newer.path");
    EXPECT_EQ(MetadataOf(refused.status(), "path"), path);
  }
  EXPECT_THAT(Upsert(NewerRequest(9, "/list/0"), Array("list", document::Content())),
              HasReason(ErrorReason::kInvalidPath));
  EXPECT_EQ(Stored(), before);
  ASSERT_OK_AND_ASSIGN(const WriteResult replaced, Upsert(NewerRequest(9, "/text"), Text("x")));
  EXPECT_EQ(IntegerIn(*replaced.version.content, "text"), 9);
}

TEST_P(NewerTest, WhatAsksForNoNumberIsRefused) {
  ASSERT_THAT(Upsert(1), IsOk());
  const auto before = Stored();
  const auto created = world->Create(NewerRequest(2, "/version", "b"), Number(1));
  EXPECT_THAT(created, HasReason(ErrorReason::kInvalidField));
  EXPECT_EQ(MetadataOf(created.status(), "field"), "precondition.newer");
  EXPECT_THAT(world->Restore(NewerRequest(2), 1), HasReason(ErrorReason::kInvalidField));
  for (const char* const name : {"newer:/version", "newer:", "newer:x"}) {
    WriteRequest labelled = NewerRequest(2);
    labelled.change.labels[name] = "1";
    const auto deleted = world->Delete(labelled);
    EXPECT_THAT(deleted, HasReason(ErrorReason::kInvalidField));
    EXPECT_EQ(MetadataOf(deleted.status(), "field"), "change.labels");
  }
  EXPECT_EQ(Stored(), before);
  WriteRequest labelled = NewerRequest(2);
  labelled.change.labels["newest"] = "1";
  EXPECT_THAT(world->Delete(labelled), IsOk());
}

TEST_P(NewerTest, OnlyValidatedNothingIsWritten) {
  WriteRequest request = NewerRequest(5);
  request.validate_only = true;
  ASSERT_THAT(world->Create(Request("b"), Number(1)), IsOk());
  const auto empty = Stored();
  ASSERT_OK_AND_ASSIGN(WriteResult result, Upsert(request, Number(1)));
  EXPECT_TRUE(result.changed);
  ASSERT_OK_AND_ASSIGN(result, world->Delete(request));
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(Stored(), empty);
  ASSERT_THAT(Upsert(5), IsOk());
  const auto before = Stored();
  ExpectStale(Upsert(request, Number(1)), 1);
  ExpectStale(world->Delete(request), 1);
  EXPECT_EQ(Stored(), before);
}

TEST_P(NewerTest, ARepeatedRequestAnswersWhatItDid) {
  const auto first = [] { return NewerRequest(5, "/version", "a", "r1"); };
  ASSERT_OK_AND_ASSIGN(const WriteResult made, Upsert(first(), Number(1)));
  ASSERT_THAT(Upsert(6), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult again, Upsert(first(), Number(1)));
  EXPECT_TRUE(again.replayed);
  EXPECT_TRUE(again.changed);
  EXPECT_FALSE(again.stale);
  EXPECT_EQ(again.version.header, made.version.header);
  // The number and the path are arguments.
  EXPECT_THAT(Upsert(NewerRequest(9, "/version", "a", "r1"), Number(1)),
              HasReason(ErrorReason::kRequestIdReused));
  EXPECT_THAT(Upsert(NewerRequest(5, "/other", "a", "r1"), Number(1)),
              HasReason(ErrorReason::kRequestIdReused));
  EXPECT_THAT(Upsert(Request("a", "r1"), Number(1)), HasReason(ErrorReason::kRequestIdReused));
  // One that wrote nothing is stale each time, and did nothing that could be repeated.
  for (int i = 0; i < 2; ++i) {
    ExpectStale(Upsert(NewerRequest(6, "/version", "a", "r2"), Number(1)), 2);
    ExpectStale(world->Delete(NewerRequest(6, "/version", "a", "r3")), 2);
    world.Restart();
  }
  ASSERT_OK_AND_ASSIGN(const WriteResult deleted,
                       world->Delete(NewerRequest(7, "/version", "a", "r4")));
  ASSERT_OK_AND_ASSIGN(const WriteResult redeleted,
                       world->Delete(NewerRequest(7, "/version", "a", "r4")));
  EXPECT_TRUE(redeleted.replayed);
  EXPECT_EQ(redeleted.version.header, deleted.version.header);
}

TEST_P(NewerTest, WhatIsJoinedIsWrittenWithAStaleWriteToo) {
  ASSERT_THAT(Upsert(5), IsOk());
  WriteRequest request = NewerRequest(5);
  request.joined.push_back([](const store::Reader&, store::WriteBatch& batch) {
    batch.Put(store::Keyspace::kMeta, "test/joined", BsonBuilder().Take());
    return absl::OkStatus();
  });
  const auto result = world->Delete(request);
  if (GetParam().mode != Mode::kAtomic) {
    EXPECT_THAT(result, HasReason(ErrorReason::kUnsupportedByEngine));
    return;
  }
  ASSERT_THAT(result, IsOk());
  EXPECT_TRUE(result->stale);
  EXPECT_FALSE(result->changed);
  EXPECT_EQ(result->attempts, 1);
  EXPECT_EQ(result->version.header.version, 1);
  ASSERT_OK_AND_ASSIGN(const auto joined,
                       world.engine().Get(store::Keyspace::kMeta, "test/joined"));
  EXPECT_TRUE(joined);
}

// With atomic batches some of them in one commit.
TEST_P(NewerTest, EachIsDecidedOnWhatTheOneBeforeItLeaves) {
  std::vector<Answer> answers(6);
  Documents& documents = world->documents();
  documents.Update(NewerRequest(1), Number(1), true, answers[0].Callback());
  documents.Delete(NewerRequest(3), answers[1].Callback());
  documents.Update(NewerRequest(2), Number(2), true, answers[2].Callback());
  documents.Update(NewerRequest(4), Number(4), true, answers[3].Callback());
  documents.Update(NewerRequest(4), Number(4), true, answers[4].Callback());
  documents.Delete(NewerRequest(5), answers[5].Callback());
  std::vector<int64_t> stale;
  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_THAT(answers[i].Wait(), IsOk());
    if (answers[i].Wait()->stale) stale.push_back(static_cast<int64_t>(i));
  }
  EXPECT_THAT(stale, ElementsAre(2, 4));
  ExpectSound();
}

TEST(Newer, PathsNameAMemberInAtMost120Bytes) {
  const auto made = [](const std::string& path) { return Newer::Make(path, 1).status(); };
  EXPECT_THAT(made("/a"), IsOk());
  EXPECT_THAT(made("/a~1b/c"), IsOk());
  EXPECT_THAT(made("/" + std::string(119, 'a')), IsOk());
  for (const std::string& path :
       {std::string(), std::string("a"), std::string("/~"), std::string("/\xff"),
        "/" + std::string(120, 'a'), std::string("/a\0b", 4), std::string(100'000, '/')}) {
    const absl::Status refused = made(path);
    EXPECT_THAT(refused, HasReason(ErrorReason::kInvalidPath));
    EXPECT_EQ(MetadataOf(refused, "field"), "path");
    EXPECT_LT(refused.message().size(), 2'000u);
  }
}

}  // namespace
}  // namespace strata::versioning::testing
