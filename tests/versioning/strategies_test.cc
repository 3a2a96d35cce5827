// What one strategy alone does: the choice of keyframes, the limit of a record, flags that are
// left, and what reads cost.

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/document/bson_builder.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/collection_record.h"
#include "schemas/versioning/embedded_history.h"
#include "schemas/versioning/record_codec.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/single_record_store.h"
#include "tests/support/status_matchers.h"
#include "tests/versioning/counting_store.h"
#include "tests/versioning/operations.h"
#include "tests/versioning/strategy_subject.h"

namespace strata::versioning::checks {
namespace {

using document::BsonBuilder;
using store::Keyspace;
using test_support::AwaitCommit;
using test_support::HasReason;
using test_support::IsOk;
using testing::ElementsAre;

constexpr int64_t kIncarnation = 1;

class StrategiesTest : public testing::Test {
 protected:
  std::unique_ptr<StrategySubject> Open(std::string_view name, int32_t keyframe_interval = 16) {
    return MakeSubject(*FindStrategy(name), {{"keyframe_interval", keyframe_interval}},
                       kIncarnation);
  }

  void Write(StrategySubject& subject, const std::string& id, const Operation& operation) {
    ASSERT_THAT(subject.Write(*store_, id, {&operation, 1}), IsOk()) << operation.name;
  }
  // Makes versions `first` to `last` by small updates.
  void Update(StrategySubject& subject, const std::string& id, int first, int last) {
    for (int version = first; version <= last; ++version) {
      const std::string number = std::to_string(version);
      Write(subject, id,
            version == 1
                ? Create("create", "{\"stock\": 1, \"text\": \"" + std::string(200, 'x') + "\"}")
                : Set("set " + number, R"({"stock": )" + number + "}"));
    }
  }

  // Makes versions `first` to `last` by new values of `member`, 150 characters of some 400 or,
  // where they replace the text, of some 200.
  void Rewrite(StrategySubject& subject, const std::string& id, const std::string& member,
               int first, int last) {
    for (int version = first; version <= last; ++version) {
      const std::string value(150, static_cast<char>('a' + version));
      Write(subject, id,
            Set("set " + std::to_string(version), "{\"" + member + "\": \"" + value + "\"}"));
    }
  }

  std::optional<VersionRecord> RecordOf(const std::string& id, int64_t version,
                                        std::string& bytes) {
    const auto record =
        *store_->Get(Keyspace::kVersions, store::VersionKey(kIncarnation, id, version));
    if (!record) return std::nullopt;
    bytes = record->value;
    return *DecodeVersion(bytes, record->position, Part::kContent);
  }
  // The superseded versions stored whole, and those stored as deltas.
  void Layout(const std::string& id, std::vector<int64_t>& keyframes,
              std::vector<int64_t>& deltas) {
    for (int64_t version = 1;; ++version) {
      std::string bytes;
      const auto record = RecordOf(id, version, bytes);
      if (!record) break;
      EXPECT_EQ(record->delta.empty(),
                record->version.content.has_value() || record->version.deleted());
      // A delta says how far its keyframe is.
      EXPECT_EQ(record->chain_length, record->delta.empty()
                                          ? std::nullopt
                                          : std::optional(version - keyframes.back() - 1));
      EXPECT_EQ(record->chain_bytes, 0) << "belongs into the head";
      (record->delta.empty() ? keyframes : deltas).push_back(version);
    }
  }

  const std::unique_ptr<store::Store> store_ = *engines::OpenEngine("memory", {});
  std::vector<int64_t> keyframes_;
  std::vector<int64_t> deltas_;
};

TEST_F(StrategiesTest, DeltasHaveAKeyframeEveryInterval) {
  const auto subject = Open("deltas", 4);
  Update(*subject, "document", 1, 12);
  Layout("document", keyframes_, deltas_);
  EXPECT_THAT(keyframes_, ElementsAre(1, 5, 9));
  EXPECT_THAT(deltas_, ElementsAre(2, 3, 4, 6, 7, 8, 10, 11));
}

TEST_F(StrategiesTest, AnIntervalOfOneStoresEachVersionWhole) {
  const auto subject = Open("deltas", 1);
  Update(*subject, "document", 1, 4);
  Layout("document", keyframes_, deltas_);
  EXPECT_THAT(keyframes_, ElementsAre(1, 2, 3));
}

TEST_F(StrategiesTest, DeltasThatOutgrowTheContentMakeAKeyframe) {
  const auto subject = Open("deltas", 100);
  Update(*subject, "document", 1, 1);
  Rewrite(*subject, "document", "note", 2, 10);
  Layout("document", keyframes_, deltas_);
  EXPECT_THAT(keyframes_, ElementsAre(1, 4, 7));
  EXPECT_THAT(deltas_, ElementsAre(2, 3, 5, 6, 8, 9));
}

TEST_F(StrategiesTest, ADeltaThatIsNearlyAsLargeAsTheContentIsNotStored) {
  const auto subject = Open("deltas", 100);
  Update(*subject, "document", 1, 1);
  Rewrite(*subject, "document", "text", 2, 8);
  Layout("document", keyframes_, deltas_);
  EXPECT_THAT(keyframes_, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  const auto head = *store_->Get(Keyspace::kHeads, store::HeadKey(kIncarnation, "document"));
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(std::string_view(head->value).find("=/text"), std::string_view::npos);
}

TEST_F(StrategiesTest, AroundADeletionVersionsAreStoredWhole) {
  const auto subject = Open("deltas", 100);
  Update(*subject, "document", 1, 2);
  Write(*subject, "document", Delete("delete"));
  Write(*subject, "document", Create("again", R"({"text": "whole, as nothing stands below"})"));
  Update(*subject, "document", 5, 6);
  Layout("document", keyframes_, deltas_);
  EXPECT_THAT(keyframes_, ElementsAre(1, 3, 4));
  EXPECT_THAT(deltas_, ElementsAre(2, 5));
}

TEST_F(StrategiesTest, ADeltaThatAppliesButIsNotTheRightOneIsRefused) {
  const auto subject = Open("deltas");
  Update(*subject, "document", 1, 6);
  std::string bytes;
  ASSERT_TRUE(RecordOf("document", 3, bytes).has_value());
  const size_t at = bytes.find("=/stock");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 8] = 99;  // the new value's lowest byte
  store::WriteBatch batch;
  batch.Put(Keyspace::kVersions, store::VersionKey(kIncarnation, "document", 3), bytes);
  ASSERT_TRUE(AwaitCommit(*store_, std::move(batch)).committed);
  EXPECT_THAT(subject->ReadVersion(*store_, "document", 3, Part::kContent),
              HasReason(ErrorReason::kRecordCorrupt));
  EXPECT_THAT(subject->ReadVersion(*store_, "document", 2, Part::kContent), IsOk());
  // It sets the same member anew, so that it comes out as its own hash says.
  EXPECT_THAT(subject->ReadVersion(*store_, "document", 4, Part::kContent), IsOk());
  EXPECT_THAT(subject->ReadVersion(*store_, "document", 6, Part::kContent), IsOk());
  for (const bool newest_first : {false, true}) {
    EXPECT_THAT(subject->ReadVersions(*store_, "document", {1, 6, newest_first}, Part::kContent),
                HasReason(ErrorReason::kRecordCorrupt));
  }
}

TEST_F(StrategiesTest, WhatComesOutWrongThroughADeltaBelowIsRefusedToo) {
  const auto subject = Open("deltas");
  Write(*subject, "document",
        Create("one", R"({"stock": 1, "text": "made long, so that it is a delta"})"));
  Write(*subject, "document",
        Set("two", R"({"stock": 2, "text": "made long, so that it is a delta"})"));
  for (int i = 3; i <= 5; ++i) {
    Write(*subject, "document",
          Set("set " + std::to_string(i),
              R"({"stock": 2, "text": "made long, so that it is a delta", "n": )" +
                  std::to_string(i) + "}"));
  }
  std::string bytes;
  ASSERT_TRUE(RecordOf("document", 2, bytes).has_value());
  const size_t at = bytes.find("=/stock");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 8] = 99;
  store::WriteBatch batch;
  batch.Put(Keyspace::kVersions, store::VersionKey(kIncarnation, "document", 2), bytes);
  ASSERT_TRUE(AwaitCommit(*store_, std::move(batch)).committed);
  for (const int64_t version : {2, 3, 4}) {
    EXPECT_THAT(subject->ReadVersion(*store_, "document", version, Part::kContent),
                HasReason(ErrorReason::kRecordCorrupt))
        << version;
  }
}

TEST_F(StrategiesTest, ALongChainReadsAlikeInBothDirections) {
  const auto subject = Open("deltas", 1000);
  Update(*subject, "document", 1, 1);
  Write(*subject, "document", Set("long", "{\"text\": \"" + std::string(20'000, 'y') + "\"}"));
  Update(*subject, "document", 3, 150);
  Layout("document", keyframes_, deltas_);
  EXPECT_EQ(keyframes_.size(), 2U);
  ASSERT_OK_AND_ASSIGN(auto up, subject->ReadVersions(*store_, "document", {}, Part::kContent));
  ASSERT_OK_AND_ASSIGN(const auto down,
                       subject->ReadVersions(*store_, "document", {1, 0, true}, Part::kContent));
  ASSERT_EQ(up.size(), 150U);
  EXPECT_EQ(CheckHistory("shelf", "document", up), "");
  std::reverse(up.begin(), up.end());
  for (size_t i = 0; i < up.size(); ++i) EXPECT_EQ(up[i].content, down[i].content);
}

// Whatever the records say of where their keyframe is: nothing, the truth, or not.
TEST_F(StrategiesTest, HowMuchIsReadAheadNeverChangesWhatIsVisited) {
  const auto subject = Open("deltas", 5);
  Update(*subject, "document", 1, 17);
  Write(*subject, "document", Delete("delete"));
  Write(*subject, "document", Create("again", "{\"text\": \"" + std::string(300, 'z') + "\"}"));
  Update(*subject, "document", 20, 40);
  ASSERT_OK_AND_ASSIGN(const auto all,
                       subject->ReadVersions(*store_, "document", {1, 40, false}, Part::kContent));
  const auto expect_alike = [&](std::string_view how) {
    for (int64_t first : {1, 7, 18, 30}) {
      for (int64_t last = first; last <= 40; ++last) {
        for (const int64_t wanted : {0, 1, 2, 11, 1000}) {
          SCOPED_TRACE(std::string(how) + ": " + std::to_string(first) + " to " +
                       std::to_string(last) + ", wanted " + std::to_string(wanted));
          ASSERT_OK_AND_ASSIGN(const auto down,
                               subject->ReadVersions(*store_, "document",
                                                     {first, last, true, wanted}, Part::kContent));
          ASSERT_EQ(down.size(), static_cast<size_t>(last - first + 1));
          for (size_t i = 0; i < down.size(); ++i) {
            const StoredVersion& right = all[static_cast<size_t>(last - 1) - i];
            ASSERT_EQ(down[i].header.version, right.header.version);
            ASSERT_EQ(down[i].content, right.content);
          }
        }
      }
    }
  };
  expect_alike("as stored");
  for (const std::optional<int64_t> says :
       {std::optional<int64_t>(), std::optional<int64_t>(0), std::optional<int64_t>(2),
        std::optional<int64_t>(7), std::optional<int64_t>(1000), std::optional<int64_t>(-3)}) {
    for (int64_t version = 1; version < 40; ++version) {
      std::string bytes;
      const auto record = RecordOf("document", version, bytes);
      if (record->delta.empty()) continue;
      BsonBuilder builder;
      AppendHeader(record->version.header, record->version.position, builder);
      if (says) builder.Int64("chain_length", *says);
      builder.Document("delta", record->delta);
      store::WriteBatch batch;
      batch.Put(Keyspace::kVersions, store::VersionKey(kIncarnation, "document", version),
                builder.Take());
      ASSERT_TRUE(AwaitCommit(*store_, std::move(batch)).committed);
    }
    expect_alike(says ? "a count of " + std::to_string(*says) : "no count");
  }
}

TEST_F(StrategiesTest, AnEmbeddedHistoryHasALimit) {
  constexpr size_t kLimit = 5000;
  StrategySubject subject(MakeEmbeddedHistory(kLimit), kIncarnation);
  absl::Status status;
  int written = 0;
  for (; status.ok() && written < 100; ++written) {
    const Operation operation =
        written == 0
            ? Create("create", "{\"text\": \"" + std::string(200, 'x') + "\"}")
            : Set("set" + std::to_string(written), R"({"n": )" + std::to_string(written) + "}");
    status = subject.Write(*store_, "document", {&operation, 1});
  }
  EXPECT_THAT(status, HasReason(ErrorReason::kLayoutLimit));
  EXPECT_EQ(MetadataOf(status, "strategy"), "embedded-history");
  EXPECT_EQ(MetadataOf(status, "limit"), "5000");
  EXPECT_GT(std::stoi(*MetadataOf(status, "size")), 5000);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("deltas"));
  // Nothing is truncated, and what is there can be read and made smaller.
  ASSERT_OK_AND_ASSIGN(const auto history,
                       subject.ReadVersions(*store_, "document", {}, Part::kContent));
  EXPECT_EQ(history.size(), static_cast<size_t>(written - 1));
  const auto record = *store_->Get(Keyspace::kHeads, store::HeadKey(kIncarnation, "document"));
  ASSERT_TRUE(record.has_value());
  EXPECT_LE(record->value.size(), kLimit);
}

TEST_F(StrategiesTest, ARepairClearsFlagsThatACrashLeft) {
  const auto subject = Open("current-flag");
  Update(*subject, "document", 1, 3);
  for (const char* name : {"one", "two"}) {
    test_support::SingleRecordStore crashing(*store_);
    crashing.set_hooks(
        {.before_get = nullptr,
         .before_scan = nullptr,
         .before_write = [](const store::Write&, size_t index) { return index < 1; }});
    const Operation operation = Set(name, "{\"" + std::string(name) + "\": 1}");
    EXPECT_THAT(subject->Write(crashing, "document", {&operation, 1}),
                HasReason(ErrorReason::kOutcomeUnknown));
  }
  const ReadContext context{*store_, store_->capabilities()};
  const store::DocumentKey key = subject->Key("document");
  for (const size_t left : {size_t{2}, size_t{0}}) {
    ASSERT_OK_AND_ASSIGN(const std::optional<Head> head,
                         subject->strategy().ReadHead(context, key));
    ASSERT_TRUE(head.has_value());
    std::vector<Finding> findings;
    const auto cursor = subject->strategy().Inspect(context, key, &*head, 1, nullptr);
    while (cursor->Next()) {
      for (Finding& finding : cursor->item().findings) findings.push_back(std::move(finding));
    }
    ASSERT_THAT(cursor->status(), IsOk());
    ASSERT_EQ(findings.size(), left);
    for (size_t i = 0; i < left; ++i) {
      EXPECT_EQ(findings[i].version, static_cast<int64_t>(3 + i));
      EXPECT_EQ(findings[i].kind, FindingKind::kWrongFlag);
      EXPECT_TRUE(findings[i].recoverable);
      EXPECT_TRUE(AwaitCommit(*store_, std::move(findings[i].repair)).committed);
    }
  }
  EXPECT_EQ(subject->CheckRecords(*store_, "document"), "");
}

// --- Options
// ---------------------------------------------------------------------------------------

TEST(CollectionRecords, HoldTheOptionsOfTheirStrategyAsEverBefore) {
  const StrategyEntry& deltas = *FindStrategy("deltas");
  CollectionRecord record;
  record.name = "books";
  record.incarnation = 7;
  record.strategy = &deltas;
  record.create_time = 5;
  ASSERT_OK_AND_ASSIGN(record.options, CompleteOptions(deltas, {{"keyframe_interval", 4}}));
  const std::string stored = BsonBuilder()
                                 .Int64("incarnation", 7)
                                 .Int32("strategy", 5)
                                 .Int32("keyframe_interval", 4)
                                 .Int64("created", 5)
                                 .Bool("used", false)
                                 .Bool("deleted", false)
                                 .Take();
  EXPECT_EQ(record.Encode(), stored);
  ASSERT_OK_AND_ASSIGN(const CollectionRecord decoded,
                       CollectionRecord::Decode("books", {stored, 1, 0}));
  EXPECT_EQ(decoded.options, record.options);
}

TEST(CollectionRecords, OfAnotherStrategyMayHoldTheIntervalThatEarlierBuildsStored) {
  const std::string stored = BsonBuilder()
                                 .Int64("incarnation", 7)
                                 .Int32("strategy", 1)
                                 .Int32("keyframe_interval", 16)
                                 .Int64("created", 5)
                                 .Take();
  ASSERT_OK_AND_ASSIGN(const CollectionRecord decoded,
                       CollectionRecord::Decode("books", {stored, 1, 0}));
  EXPECT_EQ(decoded.strategy, FindStrategy("full-copies"));
  EXPECT_TRUE(decoded.options.empty());
}

TEST(Options, AreTakenByTheirStrategyInTheirRangeAndOthersFilledIn) {
  for (const StrategyEntry& entry : AllStrategies()) {
    ASSERT_OK_AND_ASSIGN(const StrategyOptions defaults, CompleteOptions(entry, {}));
    EXPECT_EQ(defaults.size(), entry.options.size());
    EXPECT_THAT(CompleteOptions(entry, {{"no such", 1}}), HasReason(ErrorReason::kInvalidField));
    for (const StrategyOption& option : entry.options) {
      const std::string name(option.name);
      EXPECT_EQ(defaults.at(name), option.default_value);
      for (const int32_t value : {option.least, option.most}) {
        ASSERT_OK_AND_ASSIGN(const StrategyOptions taken, CompleteOptions(entry, {{name, value}}));
        EXPECT_EQ(taken.at(name), value);
      }
      for (const int32_t value : {option.least - 1, option.most + 1}) {
        EXPECT_THAT(CompleteOptions(entry, {{name, value}}), HasReason(ErrorReason::kInvalidField));
      }
    }
  }
}

// --- Costs ---------------------------------------------------------------------------------------

TEST_F(StrategiesTest, TheCurrentContentIsNotCopiedOutOfItsRecord) {
  for (const StrategyEntry& entry : AllStrategies()) {
    if (entry.name == "embedded-history") continue;  // all versions would stay in memory with it
    SCOPED_TRACE(entry.name);
    const auto subject = Open(entry.name);
    const std::string id(entry.name);
    Update(*subject, id, 1, 3);
    const auto strategy = entry.make(*CompleteOptions(entry, {}));
    const auto head = strategy->ReadHead({*store_, store_->capabilities()}, {kIncarnation, id});
    ASSERT_TRUE(head.ok() && head->has_value());
    const std::string_view record = (*head)->record;
    const std::string_view content = (*head)->version.content->bytes();
    EXPECT_GE(content.data(), record.data());
    EXPECT_LE(content.data() + content.size(), record.data() + record.size());
  }
}

// It would be the dearer the more versions are stored. Elsewhere it has to: an eraser may have been
// there before a late writer.
TEST_F(StrategiesTest, WithAtomicBatchesNobodyAsksWhetherASupersededVersionIsThere) {
  test_support::SingleRecordStore single(*store_);
  for (const char* name : {"shadow-collection", "deltas"}) {
    SCOPED_TRACE(name);
    const auto subject = Open(name);
    Update(*subject, name, 1, 2);
    const Operation third = Set("third", R"({"stock": 3})");
    for (store::Store* store : std::initializer_list<store::Store*>{&*store_, &single}) {
      ASSERT_OK_AND_ASSIGN(const store::WriteBatch batch,
                           subject->PlanWrite(*store, name, {&third, 1}));
      const store::Write& superseded = batch.writes().front();
      EXPECT_EQ(superseded.keyspace, Keyspace::kVersions);
      EXPECT_EQ(superseded.key, store::VersionKey(kIncarnation, name, 2));
      EXPECT_EQ(superseded.guard,
                store->capabilities().atomic_batches ? store::Guard::kAny : store::Guard::kEnsure);
    }
  }
}

TEST_F(StrategiesTest, TheCurrentVersionCostsOneReadWhateverTheNumberOfVersions) {
  for (const StrategyEntry& entry : AllStrategies()) {
    const auto subject = Open(entry.name);
    const std::string id(entry.name);
    for (const int versions : {1, 10, 100}) {
      Update(*subject, id, versions / 10 + 1, versions);
      CountingStore counting(*store_);
      ASSERT_THAT(subject->ReadHead(counting, id), IsOk());
      EXPECT_LE(counting.gets() + counting.scans(), 1) << id;
      EXPECT_EQ(counting.moves(), 0) << id;
    }
  }
}

TEST_F(StrategiesTest, AnOldVersionCostsAtMostAnInterval) {
  for (const StrategyEntry& entry : AllStrategies()) {
    const auto subject = Open(entry.name);
    const std::string id(entry.name);
    Update(*subject, id, 1, 100);
    const ReadContext context{*store_, store_->capabilities()};
    const store::DocumentKey key = subject->Key(id);
    ASSERT_OK_AND_ASSIGN(const auto head, subject->strategy().ReadHead(context, key));
    for (int64_t version = 1; version <= 100; ++version) {
      for (const Part part : {Part::kHeader, Part::kContent}) {
        CountingStore counting(*store_);
        const ReadContext counted{counting, counting.capabilities()};
        EXPECT_THAT(subject->strategy().ReadVersion(counted, key, *head, version, part), IsOk());
        const bool rebuilt = entry.name == "deltas" && part == Part::kContent;
        // It says where its keyframe is, from which a cursor or three point reads lead back to it.
        EXPECT_LE(counting.gets() + 3 * counting.scans(), rebuilt ? 4 : 1) << id;
        EXPECT_LE(counting.moves(), rebuilt ? 16 : 0) << id;
      }
    }
  }
}

TEST_F(StrategiesTest, APageOfHistoryCostsOneCursorThatMovesOneWay) {
  const auto subject = Open("deltas");
  Update(*subject, "document", 1, 100);
  const ReadContext context{*store_, store_->capabilities()};
  const store::DocumentKey key = subject->Key("document");
  ASSERT_OK_AND_ASSIGN(const auto head, subject->strategy().ReadHead(context, key));
  for (int64_t last = 30; last <= 100; ++last) {
    CountingStore counting(*store_);
    const auto cursor = subject->strategy().ScanVersions(
        {counting, counting.capabilities()}, key, *head, {1, last, true, 11}, Part::kContent);
    EXPECT_EQ(counting.gets() + counting.scans(), 0);  // before the first is asked for
    for (int given = 0; given < 11; ++given) ASSERT_TRUE(cursor->Next()) << cursor->status();
    EXPECT_EQ(counting.gets(), 1);
    EXPECT_LE(counting.scans(), 1);
    EXPECT_LE(counting.moves(), 11 + 15);
  }
}

TEST_F(StrategiesTest, ScanHeadsCostsByTheDocumentNotByTheVersion) {
  for (const StrategyEntry& entry : AllStrategies()) {
    StrategySubject subject(entry.make(StrategyOptions()), 10 + entry.id);
    for (int document = 0; document < 10; ++document) {
      const std::string id = "d" + std::to_string(document);
      for (int version = 0; version < 30; ++version) {
        const Operation operation = version == 0
                                        ? Create("create", "{}")
                                        : Set("set", R"({"n": )" + std::to_string(version) + "}");
        ASSERT_THAT(subject.Write(*store_, id, {&operation, 1}), IsOk());
      }
    }
    CountingStore counting(*store_);
    const auto cursor = subject.strategy().ScanHeads({counting, counting.capabilities()},
                                                     10 + entry.id, "", "", Part::kHeader);
    int given = 0;
    while (cursor->Next()) ++given;
    EXPECT_THAT(cursor->status(), IsOk());
    EXPECT_EQ(given, 10);
    EXPECT_EQ(counting.gets(), 0);
    EXPECT_LE(counting.scans(), 2);
    EXPECT_LE(counting.moves(), 30) << entry.name;  // of 300 versions
  }
}

}  // namespace
}  // namespace strata::versioning::checks
