// What the facade's cursors promise: a walk that is cut short anywhere goes on where it was left,
// with nothing twice and nothing left out, also when its collection is deleted and made anew under
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "schemas/store/forwarding_store.h"
#include "tests/documents/world.h"
#include "tests/support/status_matchers.h"

namespace strata::versioning::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using ::testing::ElementsAre;

document::Filter AtLeast(int64_t n) {
  const std::string condition = document::BsonBuilder().Int64("$gte", n).Take();
  return *document::Filter::Compile(
      document::Content::FromTrusted(document::BsonBuilder().Document("n", condition).Take()));
}

std::string TextOf(const document::Changes& changes) {
  std::string text;
  for (const document::FieldChange& change : changes.list) {
    text += (change.before ? " -" + change.before->bytes : "") +
            (change.after ? " +" + change.after->bytes : "");
  }
  return text;
}

// Walks in pages of `page` items each: of the one after, which does not fit, a page tells only
// where the next one begins.
template <typename Open, typename Take, typename GoOn>
std::vector<std::string> InPages(int page, Open open, Take take, GoOn go_on) {
  std::vector<std::string> all;
  for (bool more = true; more;) {
    auto cursor = open();
    for (int taken = 0; cursor.Next() && taken < page; ++taken) all.push_back(take(cursor));
    EXPECT_THAT(cursor.status(), IsOk());
    more = go_on(cursor);
  }
  return all;
}

class CursorsTest : public CombinationTest {
 protected:
  std::vector<std::string> History(HistoryQuery query, int page) {
    query.name = kName;
    const auto take = [](HistoryCursor& cursor) {
      std::string text = std::to_string(cursor.version().header.version);
      if (cursor.version().content) text += " " + std::string(cursor.version().content->bytes());
      return text + TextOf(cursor.changes());
    };
    const auto go_on = [&](const HistoryCursor& cursor) {
      query.resume_at = cursor.resume_at();
      return query.resume_at.has_value();
    };
    return InPages(
        page, [&] { return world->documents().History(query); }, take, go_on);
  }

  std::vector<std::string> List(ListQuery query, int page) {
    query.collection = "things";
    int64_t examined = 0;
    const auto take = [](ListCursor& cursor) {
      return cursor.id() + " " + std::to_string(cursor.version().header.version);
    };
    const auto go_on = [&](const ListCursor& cursor) {
      examined += cursor.examined();
      if (cursor.resume_after()) query.after_id = *cursor.resume_after();
      return cursor.resume_after().has_value();
    };
    auto all = InPages(
        page, [&] { return world->documents().List(query); }, take, go_on);
    EXPECT_EQ(examined, 6) << "each document is looked at once, in however many pages";
    return all;
  }

  std::vector<std::string> Audit(AuditQuery query, int page) {
    const auto take = [](AuditCursor& cursor) {
      const AuditRow& row = cursor.row();
      return std::to_string(row.place.position) + " " + std::to_string(row.place.index) + " " +
             row.id + " " + std::to_string(row.version.header.version) + TextOf(row.changes);
    };
    const auto go_on = [&](const AuditCursor& cursor) {
      if (cursor.resume_at()) query.resume_at = *cursor.resume_at();
      return cursor.resume_at().has_value();
    };
    return InPages(
        page, [&] { return world->documents().Audit(query); }, take, go_on);
  }

  void Write() {
    for (const char* id : {"a", "b", "c", "d", "e", "f"}) {
      WriteRequest request = Request(id);
      request.change.actor = id < std::string("d") ? "ann" : "bob";
      ASSERT_THAT(world->Create(request, Number(1)), IsOk());
    }
    then_ = world.clock().Now();
    for (int64_t n = 2; n < 10; ++n) {
      ASSERT_THAT(world->Update(Request("a"), Number(n % 5)), IsOk());
      ASSERT_THAT(world->Update(Request(n % 2 == 0 ? "c" : "f"), Number(n)), IsOk());
    }
    ASSERT_THAT(world->Delete(Request("d")), IsOk());
    ASSERT_THAT(world->Delete(Request("a")), IsOk());
    ASSERT_THAT(world->Create(Request("a"), Number(7)), IsOk());
  }

  static constexpr int kAll = 1000;
  UnixMicros then_ = 0;
};

TEST_P(CursorsTest, AHistoryGoesOnWithTheVersionThatWasNotTaken) {
  ASSERT_NO_FATAL_FAILURE(Write());
  for (const bool oldest_first : {false, true}) {
    for (const bool changes : {false, true}) {
      for (const bool content : {false, true}) {
        for (const bool filter : {false, true}) {
          HistoryQuery query;
          query.oldest_first = oldest_first;
          query.include_changes = changes;
          query.include_content = content;
          if (filter) query.filter = AtLeast(3);
          const std::vector<std::string> whole = History(query, kAll);
          EXPECT_EQ(whole.size(), filter ? 5u : 11u);
          for (const int page : {1, 2, 3, 11}) {
            query.page_size = page;
            EXPECT_EQ(History(query, page), whole) << page;
          }
        }
      }
    }
  }
}

TEST_P(CursorsTest, AListGoesOnAfterTheDocumentThatWasTakenLast) {
  if (GetParam().mode == Mode::kStale) GTEST_SKIP() << "exempt: a stale scan may miss changes";
  ASSERT_NO_FATAL_FAILURE(Write());
  for (const bool deleted : {false, true}) {
    for (const bool filter : {false, true}) {
      for (const bool at_time : {false, true}) {
        ListQuery query;
        query.show_deleted = deleted;
        if (filter) query.filter = AtLeast(2);
        if (at_time) query.at_time = then_;
        const std::vector<std::string> whole = List(query, kAll);
        EXPECT_EQ(whole.size(), at_time ? (filter ? 0u : 6u) : filter ? 3u : deleted ? 6u : 5u);
        for (const int page : {1, 2, 5, 6}) EXPECT_EQ(List(query, page), whole) << page;
      }
    }
  }
}

TEST_P(CursorsTest, AnAuditGoesOnWithTheRowThatWasNotTaken) {
  ASSERT_NO_FATAL_FAILURE(Write());
  AuditQuery of_a;
  of_a.collection = "things";
  of_a.id = "a";
  AuditQuery by_ann;
  by_ann.actor = "ann";
  const bool ledger = world->documents().capabilities().commit_positions;
  for (AuditQuery query : ledger ? std::vector{of_a, AuditQuery(), by_ann} : std::vector{of_a}) {
    for (const bool changes : {false, true}) {
      query.include_changes = changes;
      const std::vector<std::string> whole = Audit(query, kAll);
      EXPECT_EQ(whole.size(), !query.id.empty() ? 11u : query.actor.empty() ? 25u : 3u);
      for (const int page : {1, 2, 7, 11}) EXPECT_EQ(Audit(query, page), whole) << page;
    }
  }
}

// Whatever is asked for, in whatever pages.
TEST_P(CursorsTest, AnAuditNewestFirstIsTheSameBackward) {
  ASSERT_NO_FATAL_FAILURE(Write());
  const bool ledger = world->documents().capabilities().commit_positions;
  const UnixMicros now = world.clock().Now();
  const UnixMicros middle = then_ + (now - then_) / 2;
  std::vector<AuditQuery> queries;
  for (const bool changes : {false, true}) {
    for (const char* id : {"a", "f", ""}) {
      if (*id == 0 && !ledger) continue;
      for (const auto start :
           {std::optional<UnixMicros>(), std::optional(then_), std::optional(middle)}) {
        for (const auto end :
             {std::optional<UnixMicros>(), std::optional(middle + 1), std::optional(now)}) {
          AuditQuery query;
          query.collection = *id == 0 ? "" : "things";
          query.id = id;
          query.start_time = start;
          query.end_time = end;
          query.include_changes = changes;
          queries.push_back(query);
        }
      }
      AuditQuery deletions;
      deletions.collection = "things";
      deletions.id = id;
      deletions.kinds = {VersionKind::kDeleted};
      queries.push_back(deletions);
    }
  }
  size_t rows = 0;
  for (AuditQuery& query : queries) {
    std::vector<std::string> whole = Audit(query, kAll);
    rows += whole.size();
    std::reverse(whole.begin(), whole.end());
    query.newest_first = true;
    for (const int page : {1, 2, 7, kAll}) EXPECT_EQ(Audit(query, page), whole) << page;
  }
  EXPECT_GT(rows, 100u);
}

// What was done to a document outlives its collection.
TEST_P(CursorsTest, AnAuditGoesOnInTheLedgerWhenItsCollectionIsGone) {
  for (const int page : {1, -1, 4, -4, 10, -10}) {
    ASSERT_NO_FATAL_FAILURE(Write());
    AuditQuery query;
    query.newest_first = page < 0;
    query.collection = "things";
    query.id = "a";
    std::vector<int64_t> versions;
    AuditCursor before = world->documents().Audit(query);
    for (int taken = 0; before.Next() && taken < std::abs(page); ++taken) {
      versions.push_back(before.row().version.header.version);
    }
    ASSERT_TRUE(before.resume_at());
    query.resume_at = *before.resume_at();
    std::promise<absl::Status> answer;
    world->documents().collections().Delete(
        {"things", true}, [&](const auto& deleted) { answer.set_value(deleted.status()); });
    ASSERT_THAT(answer.get_future().get(), IsOk());
    AuditCursor after = world->documents().Audit(query);
    while (after.Next()) versions.push_back(after.row().version.header.version);
    if (!world->documents().capabilities().commit_positions) {
      EXPECT_THAT(after.status(), HasReason(ErrorReason::kCollectionNotFound));
      continue;
    }
    EXPECT_THAT(after.status(), IsOk());
    if (query.newest_first) {
      // Then come those of the collections of that name before.
      ASSERT_GE(versions.size(), 11u);
      versions.resize(11);
      std::reverse(versions.begin(), versions.end());
    }
    EXPECT_THAT(versions, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  }
}

TEST_P(CursorsTest, ABatchGoesOnWithTheIdThatWasNotTaken) {
  ASSERT_NO_FATAL_FAILURE(Write());
  const std::vector<std::string> ids{"e", "x", "d", "a", "b"};
  std::vector<std::string> left = ids;
  std::string seen;
  while (!left.empty()) {
    BatchGetCursor cursor = world->documents().BatchGet("things", left);
    ASSERT_TRUE(cursor.Next());
    seen += cursor.id() + (cursor.version() != nullptr ? "+" : "-");
    const bool another = cursor.Next();
    EXPECT_EQ(cursor.resume_at(), 1u);
    EXPECT_EQ(another, left.size() > 1);
    EXPECT_THAT(cursor.status(), IsOk());
    left.erase(left.begin());
  }
  EXPECT_EQ(seen, "e+x-d-a+b+");
}

TEST_P(CursorsTest, CollectionsGoOnAfterTheOneThatWasTakenLast) {
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    WriteRequest request = Request();
    request.name.collection = name;
    ASSERT_THAT(world->Create(request, Number(1)), IsOk());
  }
  Collections& collections = world->documents().collections();
  std::promise<absl::Status> answer;
  collections.Delete({"c", true}, [&](const auto& deleted) { answer.set_value(deleted.status()); });
  ASSERT_THAT(answer.get_future().get(), IsOk());
  if (GetParam().mode == Mode::kStale) return;  // such a scan may miss what is new
  for (const int page : {1, 2, 4, 5}) {
    std::string after;
    const auto take = [](const CollectionCursor& cursor) { return cursor.collection().name; };
    const auto go_on = [&](const CollectionCursor& cursor) {
      after = cursor.resume_after().value_or("");
      return cursor.resume_after().has_value();
    };
    EXPECT_THAT(InPages(
                    page, [&] { return collections.List(after); }, take, go_on),
                ElementsAre("a", "b", "d", "e"));
  }
}

// What is refused is refused by Next, and nothing comes after it.
TEST_P(CursorsTest, WhatIsRefusedStaysRefused) {
  Documents& documents = world->documents();
  const auto expect = [](auto cursor_of, ErrorReason reason) {
    auto cursor = cursor_of();
    for (int i = 0; i < 2; ++i) {
      EXPECT_FALSE(cursor.Next());
      EXPECT_THAT(cursor.status(), HasReason(reason));
    }
  };
  HistoryQuery history;
  expect([&] { return documents.History(history); }, ErrorReason::kInvalidName);
  history.name = kName;
  expect([&] { return documents.History(history); }, ErrorReason::kCollectionNotFound);
  expect([&] { return documents.List({}); }, ErrorReason::kInvalidName);
  expect([&] { return documents.BatchGet("things", {"a", ""}); }, ErrorReason::kInvalidName);
  AuditQuery audit;
  audit.id = "a";
  expect([&] { return documents.Audit(audit); }, ErrorReason::kInvalidField);
  audit = AuditQuery();
  audit.request_id = "a b";
  expect([&] { return documents.Audit(audit); }, ErrorReason::kInvalidField);
  audit = AuditQuery();
  audit.transaction_ids = {"a b"};
  expect([&] { return documents.Audit(audit); }, ErrorReason::kInvalidField);
  ASSERT_THAT(world->Create(Request("b"), Number(1)), IsOk());
  expect([&] { return documents.History(history); }, ErrorReason::kDocumentNotFound);
}

STRATA_ALL_COMBINATIONS(CursorsTest);

// An engine without snapshots whose scans see at each move what is there by then.
class LiveStore final : public store::ForwardingStore {
 public:
  explicit LiveStore(store::Store& inner) : ForwardingStore(inner) {}

  // Is called once, before the next record of that keyspace is asked for by its key.
  void BeforeGet(store::Keyspace keyspace, std::function<void()> hook) {
    keyspace_ = keyspace;
    hook_ = std::move(hook);
  }

  store::Capabilities capabilities() const override {
    store::Capabilities capabilities = inner().capabilities();
    capabilities.snapshots = false;
    return capabilities;
  }
  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override {
    if (hook_ && keyspace == keyspace_) std::exchange(hook_, nullptr)();
    return inner().Get(keyspace, key);
  }
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override {
    return Reader::GetMany(keys);
  }
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    return std::make_unique<LiveCursor>(inner(), keyspace, range);
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    return std::make_unique<store::ForwardingReader>(*this);
  }

 private:
  class LiveCursor final : public store::Cursor {
   public:
    LiveCursor(const store::Store& store, store::Keyspace keyspace, const store::Range& range)
        : store_(store), keyspace_(keyspace), range_(range), at_(store.Scan(keyspace, range)) {}

    bool Valid() const override { return at_->Valid(); }
    std::string_view key() const override { return at_->key(); }
    std::string_view value() const override { return at_->value(); }
    store::Stamp stamp() const override { return at_->stamp(); }
    store::CommitPosition position() const override { return at_->position(); }
    absl::Status status() const override { return at_->status(); }
    void Next() override {
      const std::string from(key());
      Seek(from);
      if (Valid() && key() == from) at_->Next();
    }
    void Seek(std::string_view key) override {
      const std::string to(key);
      at_ = store_.Scan(keyspace_, range_);
      at_->Seek(to);
    }

   private:
    const store::Store& store_;
    const store::Keyspace keyspace_;
    const store::Range range_;
    std::unique_ptr<store::Cursor> at_;
  };

  store::Keyspace keyspace_ = store::Keyspace::kHeads;
  mutable std::function<void()> hook_;
};

class CollectionMadeAnew : public ::testing::TestWithParam<std::string_view> {
 protected:
  CollectionMadeAnew() : store_(world_.engine()) {
    DocumentsOptions options;
    options.write.default_strategy = FindStrategy(GetParam());
    documents_ = std::make_unique<Documents>(store_, world_.clock(), entropy_, executor_, options);
    Write(6, 0);
  }
  ~CollectionMadeAnew() override { executor_.Stop(); }

  // Versions of one document, from version 1, which say their number and `base`.
  void Write(int64_t versions, int64_t base) {
    for (int64_t version = 1; version <= versions; ++version) {
      Answer answer;
      documents_->Update(Request(), Number(base + version), /*allow_missing=*/true,
                         answer.Callback());
      ASSERT_THAT(answer.Wait(), IsOk());
    }
  }
  void Delete() {
    std::promise<absl::Status> answer;
    documents_->collections().Delete(
        {"things", true}, [&](const auto& deleted) { answer.set_value(deleted.status()); });
    ASSERT_THAT(answer.get_future().get(), IsOk());
    while (IsThere(store::Keyspace::kHeads) || IsThere(store::Keyspace::kVersions)) {
      std::this_thread::yield();
    }
  }
  void MakeAnew() {
    ASSERT_NO_FATAL_FAILURE(Delete());
    Write(8, 100);
  }
  bool IsThere(store::Keyspace keyspace) { return world_.engine().Scan(keyspace, {})->Valid(); }

  HistoryCursor History(bool oldest_first, bool changes) {
    HistoryQuery query;
    query.name = kName;
    query.oldest_first = oldest_first;
    query.include_changes = changes;
    query.include_content = true;
    return documents_->History(std::move(query));
  }

  World world_;
  LiveStore store_;
  test_support::SeededEntropy entropy_{1};
  test_support::ThreadExecutor executor_;
  std::unique_ptr<Documents> documents_;
};

// What it has told of is one collection's, and the next one is another.
TEST_P(CollectionMadeAnew, AHistoryDoesNotGoOnInTheNext) {
  int64_t there = 6;
  for (const bool changes : {false, true}) {
    for (const bool oldest_first : {false, true}) {
      HistoryCursor cursor = History(oldest_first, changes);
      int64_t told = 0;
      while (cursor.Next()) {
        const int64_t version = cursor.version().header.version;
        EXPECT_EQ(version, oldest_first ? told + 1 : there - told);
        EXPECT_EQ(*cursor.version().content, Number(there == 6 ? version : 100 + version));
        if (++told != 2) continue;
        ASSERT_NO_FATAL_FAILURE(MakeAnew());
      }
      // Some were read ahead.
      if (told < there) {
        EXPECT_THAT(cursor.status(), HasReason(ErrorReason::kCollectionNotFound));
      } else {
        EXPECT_THAT(cursor.status(), IsOk());
      }
      EXPECT_GE(told, 2);
      EXPECT_TRUE(GetParam() != "full-copies" || told < there);
      there = 8;
    }
  }
}

TEST_P(CollectionMadeAnew, AHistoryEndsWithItsCollection) {
  if (GetParam() == "embedded-history") GTEST_SKIP() << "was read at once";
  HistoryCursor cursor = History(/*oldest_first=*/false, /*changes=*/false);
  ASSERT_TRUE(cursor.Next());
  ASSERT_NO_FATAL_FAILURE(Delete());
  while (cursor.Next()) {
  }
  EXPECT_THAT(cursor.status(), HasReason(ErrorReason::kCollectionNotFound));
}

TEST_P(CollectionMadeAnew, AReadThatNeverGetsToItsEndFails) {
  if (GetParam() != "shadow-collection") GTEST_SKIP() << "reads otherwise";
  int times = 0;
  std::function<void()> make_anew = [&] {
    ++times;
    MakeAnew();
    store_.BeforeGet(store::Keyspace::kVersions, make_anew);
  };
  store_.BeforeGet(store::Keyspace::kVersions, make_anew);
  EXPECT_THAT(documents_->Get(kName, {.version = 3, .time = {}}),
              HasReason(ErrorReason::kRecordCorrupt));
  EXPECT_EQ(times, 3);
}

TEST_P(CollectionMadeAnew, ADamagedRecordIsReadOnce) {
  if (GetParam() != "full-copies") GTEST_SKIP() << "has other records";
  store::WriteBatch batch;
  const auto incarnation = documents_->collections().Get("things");
  ASSERT_THAT(incarnation, IsOk());
  batch.Delete(store::Keyspace::kVersions,
               store::VersionKey({(*incarnation)->incarnation, "a"}, 3));
  test_support::AwaitCommit(world_.engine(), std::move(batch));
  HistoryCursor cursor = History(/*oldest_first=*/false, /*changes=*/false);
  int versions = 0;
  while (cursor.Next()) ++versions;
  EXPECT_EQ(versions, 3);
  EXPECT_THAT(cursor.status(), HasReason(ErrorReason::kRecordCorrupt));
}

TEST_P(CollectionMadeAnew, AnAuditDoesNotGoOnInTheNext) {
  AuditQuery query;
  query.collection = kName.collection;
  query.id = kName.id;
  AuditCursor cursor = documents_->Audit(query);
  int64_t version = 0;
  while (cursor.Next()) {
    EXPECT_EQ(cursor.row().version.header.version, ++version);
    if (version != 2) continue;
    ASSERT_NO_FATAL_FAILURE(MakeAnew());
  }
  if (version == 6) GTEST_SKIP() << "was read at once";
  EXPECT_THAT(cursor.status(), HasReason(ErrorReason::kCollectionNotFound));
}

TEST_P(CollectionMadeAnew, AnAuditThatHasBegunTellsNothingTwice) {
  AuditQuery query;
  query.collection = kName.collection;
  query.id = kName.id;
  AuditCursor cursor = documents_->Audit(query);
  int64_t version = 0;
  while (cursor.Next()) {
    EXPECT_EQ(cursor.row().version.header.version, ++version);
    if (version != 2) continue;
    ASSERT_NO_FATAL_FAILURE(Delete());
  }
  if (version == 6) GTEST_SKIP() << "was read at once";
  EXPECT_THAT(cursor.status(), HasReason(ErrorReason::kCollectionNotFound));
}

// The document that a scan just found is gone when its older version is looked for.
TEST_P(CollectionMadeAnew, AListOfATimeNamesNoDocumentThatNobodyAskedFor) {
  const auto keyspace =
      IsThere(store::Keyspace::kHeads) ? store::Keyspace::kHeads : store::Keyspace::kVersions;
  ListQuery query;
  query.collection = kName.collection;
  ASSERT_OK_AND_ASSIGN(const StoredVersion old, documents_->Get(kName, {.version = 3, .time = {}}));
  query.at_time = old.header.commit_time;
  store_.BeforeGet(keyspace, [this] { MakeAnew(); });
  ListCursor cursor = documents_->List(query);
  EXPECT_FALSE(cursor.Next());
  EXPECT_THAT(cursor.status(), IsOk());
  EXPECT_FALSE(cursor.resume_after());
}

std::string StrategyName(const ::testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, CollectionMadeAnew,
                         ::testing::Values("full-copies", "current-flag", "embedded-history",
                                           "shadow-collection", "deltas"),
                         StrategyName);

// Whose scans fail after so many records.
class EndingReader final : public store::ForwardingReader {
 public:
  EndingReader(const store::Reader& inner, int records)
      : ForwardingReader(inner), records_(records) {}

  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override {
    return std::make_unique<EndingCursor>(ForwardingReader::Scan(keyspace, range), records_);
  }

 private:
  class EndingCursor final : public store::ForwardingCursor {
   public:
    EndingCursor(std::unique_ptr<store::Cursor> inner, int records)
        : ForwardingCursor(std::move(inner)), left_(records) {}

    bool Valid() const override { return left_ > 0 && ForwardingCursor::Valid(); }
    void Next() override {
      --left_;
      ForwardingCursor::Next();
    }
    absl::Status status() const override {
      if (left_ <= 0) return Error(ErrorReason::kRecordCorrupt, "the next record");
      return ForwardingCursor::status();
    }

   private:
    int left_;
  };

  const int records_;
};

TEST_P(CursorsTest, AScanThatMeetsDamageGivesNoOldVersionAsTheCurrentOne) {
  ASSERT_NO_FATAL_FAILURE(Write());
  ASSERT_OK_AND_ASSIGN(const CollectionPtr collection,
                       world->documents().collections().Get("things"));
  const store::Capabilities capabilities = world->store().capabilities();
  std::map<std::string, int64_t> newest;
  for (int records = 60; records > 0; --records) {
    const EndingReader reader(world->store(), records);
    const auto heads = collection->strategy->ScanHeads(
        {reader, capabilities}, collection->incarnation, "", "", Part::kHeader);
    while (heads->Next()) {
      const CurrentVersion& head = heads->item();
      const int64_t version = head.version.header.version;
      EXPECT_EQ(newest.try_emplace(head.id, version).first->second, version) << records;
    }
    if (records == 60) {
      EXPECT_THAT(heads->status(), IsOk());
      EXPECT_EQ(newest.size(), 6u);
    }
  }
}

}  // namespace
}  // namespace strata::versioning::testing
