// The specification of versioning strategies (schemas/versioning/strategy.h), run for every
// registered strategy over every registered engine: as the engine is, reduced to single-record
// writes, and with stale scans besides. A new strategy or engine is in it by its line in its .def.
//
// Documents are written by a test harness, not by the product's write path: what is checked here is
// that plans and reads are right whoever commits them.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/store/key_codec.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/single_record_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tested_engines.h"
#include "tests/support/volume.h"
#include "tests/versioning/confirm_checks.h"
#include "tests/versioning/random_operations.h"
#include "tests/versioning/strategy_checks.h"
#include "tests/versioning/strategy_subject.h"

namespace strata::versioning::checks {
namespace {

using store::Keyspace;
using test_support::AwaitCommit;
using test_support::HasReason;
using test_support::IsOk;
using test_support::SingleRecordStore;
using test_support::TestSeed;

constexpr int64_t kIncarnation = 7;
// Small, so that short histories have several keyframes.
// Each strategy takes what it has of them.
StrategyOptions Options() { return {{"keyframe_interval", 3}}; }

struct Configuration {
  engines::Engine engine;
  StrategyEntry strategy;
  Mode mode;
};

void PrintTo(const Configuration& configuration, std::ostream* out) {
  *out << configuration.strategy.name << " over " << configuration.engine.name << ", "
       << ModeName(configuration.mode);
}

// What weakens a store weakens every engine alike, so the reference engine stands for all of them
// there; the port's own conformance runs every engine in every mode.
std::vector<Mode> ModesOf(const engines::Engine& engine) {
  if (engine.name == "restarting") return {Mode::kSingle};
  if (engine.name != "memory") return {Mode::kAtomic};
  return {Mode::kAtomic, Mode::kSingle, Mode::kStale};
}

std::vector<Configuration> AllConfigurations() {
  std::vector<Configuration> all;
  for (const engines::Engine& engine : test_support::TestedEngines()) {
    for (const StrategyEntry& strategy : AllStrategies()) {
      for (const Mode mode : ModesOf(engine)) all.push_back({engine, strategy, mode});
    }
  }
  return all;
}

std::string NameOf(const testing::TestParamInfo<Configuration>& info) {
  std::string name = std::string(info.param.strategy.name) + "_" +
                     std::string(info.param.engine.name) + "_" +
                     std::string(ModeName(info.param.mode));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::unique_ptr<store::Store> OpenEngine(const engines::Engine& engine,
                                         const test_support::TemporaryDirectory& directory) {
  engines::OpenOptions options;
  options.directory = directory.Join("data");
  auto store = engine.open(options);
  EXPECT_THAT(store, IsOk());
  return *std::move(store);
}

class StrategyConformanceTest : public testing::TestWithParam<Configuration> {
 protected:
  StrategyConformanceTest()
      : base_(OpenEngine(GetParam().engine, directory_)),
        subject_(MakeSubject(GetParam().strategy, Options(), kIncarnation)),
        // The engines differ in the port's conformance; here the cheapest tries everything.
        checks_(*subject_, *base_, GetParam().mode,
                GetParam().engine.name == "memory" ? Depth::kDeep : Depth::kShallow),
        store_(checks_.OpenStore()) {}

  bool atomic() const { return store_->capabilities().atomic_batches; }
  const Strategy& strategy() const { return subject_->strategy(); }
  ReadContext context() const { return {*store_, store_->capabilities()}; }

  void Write(const std::string& id, const Operation& operation) {
    ASSERT_THAT(subject_->Write(*store_, id, {&operation, 1}), IsOk()) << operation.name;
  }
  void Write(const std::string& id, const std::vector<Operation>& operations) {
    for (const Operation& operation : operations) Write(id, operation);
  }

  // Writes a document of that many versions.
  void WriteVersions(const std::string& id, int count) {
    Write(id, Create("create " + id, R"({"title": "Moby", "stock": 0})"));
    for (int i = 1; i < count; ++i) {
      Write(id, Set("set " + id + std::to_string(i), R"({"stock": )" + std::to_string(i) + "}"));
    }
  }

  std::vector<std::string> ScanIds(std::string_view prefix, std::string_view after,
                                   size_t stop_after = 100) {
    std::vector<std::string> ids;
    const auto cursor = strategy().ScanHeads(context(), kIncarnation, prefix, after, Part::kHeader);
    while (ids.size() < stop_after && cursor->Next()) {
      EXPECT_FALSE(cursor->item().version.content.has_value());
      ids.push_back(std::move(cursor->item().id));
    }
    EXPECT_THAT(cursor->status(), IsOk());
    return ids;
  }

  test_support::TemporaryDirectory directory_;
  std::unique_ptr<store::Store> base_;
  std::unique_ptr<StrategySubject> subject_;
  StrategyChecks checks_;
  std::unique_ptr<store::Store> store_;
};

INSTANTIATE_TEST_SUITE_P(All, StrategyConformanceTest, testing::ValuesIn(AllConfigurations()),
                         NameOf);

// --- Whatever goes wrong -------------------------------------------------------------------------

TEST_P(StrategyConformanceTest, ACrashBetweenAnyTwoWritesIsMendedByTheNextUpdate) {
  EXPECT_EQ(checks_.Crashes(), "");
  RecordProperty("cases", checks_.cases());
  std::printf("%d crashes\n", checks_.cases());
}

TEST_P(StrategyConformanceTest, ARaceAtAnyPointLosesNoUpdateAndNoNumber) {
  checks_.CheckLess();
  EXPECT_EQ(checks_.Races(), "");
  RecordProperty("cases", checks_.cases());
  std::printf("%d races\n", checks_.cases());
}

TEST_P(StrategyConformanceTest, AReaderSeesAWholeHistoryWhateverIsWrittenMeanwhile) {
  EXPECT_EQ(checks_.Reads(), "");
}

TEST_P(StrategyConformanceTest, OfTwoPlansFromOneHeadOneIsCommitted) {
  bool inside = true;
  for (size_t point = 0; inside; ++point) {
    const std::string id = "plans-" + std::to_string(point);
    for (const int versions : {0, 1, 4}) {
      const std::string document = id + "-" + std::to_string(versions);
      if (versions > 0) WriteVersions(document, versions);
      const Operation a = versions == 0 ? Create("a", R"({"a": 1})") : Set("a", R"({"a": 1})");
      const Operation b = versions == 0 ? Create("b", R"({"b": 1})") : Set("b", R"({"b": 1})");
      ASSERT_OK_AND_ASSIGN(store::WriteBatch first,
                           subject_->PlanWrite(*store_, document, {&a, 1}));
      ASSERT_OK_AND_ASSIGN(store::WriteBatch second,
                           subject_->PlanWrite(*store_, document, {&b, 1}));
      inside = !atomic() && point < first.writes().size();
      store::CommitResult second_result;
      SingleRecordStore single(*base_);
      single.set_hooks({.before_get = nullptr,
                        .before_scan = nullptr,
                        .before_write = [&](const store::Write&, size_t index) {
                          if (index == point) second_result = AwaitCommit(*store_, second);
                          return true;
                        }});
      store::Store& first_store = atomic() ? *store_ : static_cast<store::Store&>(single);
      const store::CommitResult first_result = AwaitCommit(first_store, first);
      if (!inside) second_result = AwaitCommit(*store_, second);
      EXPECT_THAT(first_result, IsOk());
      EXPECT_THAT(second_result, IsOk());
      EXPECT_NE(first_result.committed, second_result.committed) << document;
      ASSERT_OK_AND_ASSIGN(const auto head, subject_->ReadHead(*store_, document));
      ASSERT_TRUE(head.has_value());
      EXPECT_EQ(head->header.version, versions + 1);
      EXPECT_EQ(head->header.change.reason, first_result.committed ? "a" : "b");
    }
  }
}

TEST_P(StrategyConformanceTest, AConfirmationFailsExactlyWhenTheHeadChanged) {
  if (!atomic()) GTEST_SKIP() << "no atomic batches";
  EXPECT_EQ(CheckConfirm(*subject_, *base_), "");
}

// --- Histories -----------------------------------------------------------------------------------

TEST_P(StrategyConformanceTest, ADocumentNeverWrittenHasNoHead) {
  ASSERT_OK_AND_ASSIGN(const auto head, subject_->ReadHead(*store_, "nobody"));
  EXPECT_FALSE(head.has_value());
  WriteVersions("nobody2", 1);
  WriteVersions("nobod", 1);
  ASSERT_OK_AND_ASSIGN(const auto still, subject_->ReadHead(*store_, "nobody"));
  EXPECT_FALSE(still.has_value());
}

TEST_P(StrategyConformanceTest, AnOldVersionNeverChanges) {
  const uint64_t seed = TestSeed();
  STRATA_TRACE_SEED(seed);
  const std::string id = checks_.BeginDocument();
  RandomOperations operations(seed);
  std::vector<StoredVersion> known;
  for (int i = 0; i < test_support::Sampled(60, 15); ++i) {
    const bool live = !known.empty() && !known.back().deleted();
    const Operation operation = operations.Next(static_cast<int64_t>(known.size()), live);
    if (!Apply(operation, known)) continue;
    Write(id, operation);
    std::vector<StoredVersion> history;
    ASSERT_EQ(checks_.CheckDocument(id, known, history), "") << operation.name;
    std::vector<bool> used;
    ASSERT_EQ(CheckMadeBy(history, known.size(), {&operation, 1}, used), "");
    ASSERT_EQ(history.size(), known.size() + 1);
    known = std::move(history);
  }
}

TEST_P(StrategyConformanceTest, SeveralVersionsOfOneBatchAreSuccessive) {
  if (!atomic()) GTEST_SKIP() << "no atomic batches";
  const uint64_t seed = TestSeed();
  STRATA_TRACE_SEED(seed);
  const std::string id = checks_.BeginDocument();
  RandomOperations random(seed);
  std::vector<StoredVersion> known;
  for (int i = 0; i < 12; ++i) {
    std::vector<Operation> group;
    bool live = !known.empty() && !known.back().deleted();
    for (int j = 0; j < 1 + i % 9; ++j) {
      group.push_back(random.Next(0, live));  // without restores
      live = group.back().kind != VersionKind::kDeleted;
    }
    ASSERT_OK_AND_ASSIGN(store::WriteBatch batch, subject_->PlanWrite(*store_, id, group));
    const store::CommitResult result = AwaitCommit(*store_, std::move(batch));
    ASSERT_TRUE(result.committed) << result.status;
    std::vector<StoredVersion> history;
    ASSERT_EQ(checks_.CheckDocument(id, known, history), "");
    ASSERT_EQ(history.size(), known.size() + group.size());
    for (size_t v = known.size(); v < history.size(); ++v) {
      EXPECT_EQ(history[v].position, result.position) << Describe(history[v]);
    }
    known = std::move(history);
  }
}

TEST_P(StrategyConformanceTest, AWalkGivesEachVersionOfItsRangeOnceAndThenNoMore) {
  WriteVersions("document", 9);
  const store::DocumentKey key = subject_->Key("document");
  ASSERT_OK_AND_ASSIGN(const std::optional<Head> head, strategy().ReadHead(context(), key));
  for (const bool newest_first : {false, true}) {
    for (const Part part : {Part::kHeader, Part::kContent}) {
      for (int64_t first = 1; first <= 9; ++first) {
        for (int64_t last = first - 1; last <= 9; ++last) {
          const auto cursor =
              strategy().ScanVersions(context(), key, *head, {first, last, newest_first}, part);
          for (int64_t i = 0; i <= last - first; ++i) {
            ASSERT_TRUE(cursor->Next()) << cursor->status();
            EXPECT_EQ(cursor->item().header.version, newest_first ? last - i : first + i);
            EXPECT_EQ(cursor->item().content.has_value(), part == Part::kContent);
            EXPECT_THAT(cursor->status(), IsOk());
          }
          EXPECT_FALSE(cursor->Next());
          EXPECT_FALSE(cursor->Next());
          EXPECT_THAT(cursor->status(), IsOk());
        }
      }
    }
  }
}

// --- Damage --------------------------------------------------------------------------------------

TEST_P(StrategyConformanceTest, AMissingOrDamagedVersionIsRefused) {
  WriteVersions("document", 8);
  const store::DocumentKey key = subject_->Key("document");
  ASSERT_OK_AND_ASSIGN(const std::optional<Head> head, strategy().ReadHead(context(), key));
  const std::string record_key = store::VersionKey(key, 5);
  ASSERT_OK_AND_ASSIGN(const auto record, base_->Get(Keyspace::kVersions, record_key));
  if (!record) GTEST_SKIP() << "keeps no record of one version";
  const auto refuses = [&](int64_t first, int64_t last) {
    for (const bool newest_first : {false, true}) {
      for (const Part part : {Part::kHeader, Part::kContent}) {
        const auto cursor =
            strategy().ScanVersions(context(), key, *head, {first, last, newest_first}, part);
        while (cursor->Next()) continue;
        EXPECT_THAT(cursor->status(), HasReason(ErrorReason::kRecordCorrupt));
        EXPECT_FALSE(cursor->Next());
      }
    }
    EXPECT_THAT(strategy().ReadVersion(context(), key, *head, 5, Part::kContent),
                HasReason(ErrorReason::kRecordCorrupt));
  };
  for (const std::string& damaged :
       {std::string(), std::string(record->value).substr(0, 40), EncodeVersion(head->version)}) {
    store::WriteBatch batch;
    if (damaged.empty()) {
      batch.Delete(Keyspace::kVersions, record_key);
    } else {
      batch.Put(Keyspace::kVersions, record_key, damaged);
    }
    ASSERT_TRUE(AwaitCommit(*base_, std::move(batch)).committed);
    checks_.BeginDocument();  // forgets the past, where the record was right
    refuses(1, 8);
    refuses(5, 5);
    EXPECT_THAT(strategy().ReadVersion(context(), key, *head, 2, Part::kContent), IsOk());
  }
}

// --- All documents of a collection ---------------------------------------------------------------

TEST_P(StrategyConformanceTest, ScanHeadsGivesEachDocumentOnceInOrder) {
  const std::vector<std::string> ids = {"a",  "a!", "a/b",      "aa",
                                        "ab", "b",  "\xC3\xA9", "\xF0\x9F\x90\x8B"};
  std::vector<std::string> shuffled = {"b",   "aa",       "a",  "\xF0\x9F\x90\x8B",
                                       "a/b", "\xC3\xA9", "ab", "a!"};
  for (size_t i = 0; i < shuffled.size(); ++i) {
    WriteVersions(shuffled[i], static_cast<int>(1 + i % 4));
  }
  Write("aa", Delete("delete"));
  checks_.BeginDocument();  // forgets the past, for scans that miss no document
  EXPECT_EQ(ScanIds("", ""), ids);
  EXPECT_THAT(ScanIds("a", ""), testing::ElementsAre("a", "a!", "a/b", "aa", "ab"));
  EXPECT_THAT(ScanIds("a", "a!"), testing::ElementsAre("a/b", "aa", "ab"));
  EXPECT_THAT(ScanIds("", "aa"), testing::ElementsAre("ab", "b", "\xC3\xA9", "\xF0\x9F\x90\x8B"));
  EXPECT_THAT(ScanIds("a", "0"), testing::ElementsAre("a", "a!", "a/b", "aa", "ab"));
  EXPECT_THAT(ScanIds("a", "b"), testing::IsEmpty());
  EXPECT_THAT(ScanIds("c", ""), testing::IsEmpty());
  EXPECT_THAT(ScanIds("", "", 2), testing::ElementsAre("a", "a!"));
  EXPECT_THAT(ScanIds("", "ab", 1), testing::ElementsAre("b"));
}

TEST_P(StrategyConformanceTest, ScanHeadsGivesTheCurrentVersionOfEach) {
  for (const int versions : {1, 2, 5, 7}) WriteVersions("d" + std::to_string(versions), versions);
  Write("d5", Delete("delete"));
  int visited = 0;
  const auto cursor = strategy().ScanHeads(context(), kIncarnation, "", "", Part::kContent);
  for (; cursor->Next(); ++visited) {
    const auto& [id, version] = cursor->item();
    ASSERT_OK_AND_ASSIGN(const auto head, subject_->ReadHead(*store_, id));
    EXPECT_EQ(version.header, head->header);
    EXPECT_EQ(version.content, head->content);
    EXPECT_EQ(version.position, head->position);
  }
  EXPECT_THAT(cursor->status(), IsOk());
  // Where scans are stale, recent documents may be missed; what is visited is current all the same.
  if (GetParam().mode != Mode::kStale) {
    EXPECT_EQ(visited, 4);
  }
}

TEST_P(StrategyConformanceTest, AnotherIncarnationIsAnotherWorld) {
  WriteVersions("document", 3);
  StrategySubject other(GetParam().strategy.make(Options()), kIncarnation + 1);
  ASSERT_OK_AND_ASSIGN(const auto none, other.ReadHead(*store_, "document"));
  EXPECT_FALSE(none.has_value());
  const Operation create = Create("create", R"({"other": 1})");
  ASSERT_THAT(other.Write(*store_, "document", {&create, 1}), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto head, subject_->ReadHead(*store_, "document"));
  EXPECT_EQ(head->header.version, 3);
  ASSERT_OK_AND_ASSIGN(const auto first, other.ReadHead(*store_, "document"));
  EXPECT_EQ(first->header.version, 1);
}

// --- All strategies side by side -----------------------------------------------------------------

struct Bench {
  engines::Engine engine;
  Mode mode;
};

void PrintTo(const Bench& bench, std::ostream* out) {
  *out << bench.engine.name << ", " << ModeName(bench.mode);
}

std::vector<Bench> AllBenches() {
  std::vector<Bench> all;
  for (const engines::Engine& engine : test_support::TestedEngines()) {
    for (const Mode mode : ModesOf(engine)) all.push_back({engine, mode});
  }
  return all;
}

class AllStrategiesTest : public testing::TestWithParam<Bench> {};

INSTANTIATE_TEST_SUITE_P(All, AllStrategiesTest, testing::ValuesIn(AllBenches()),
                         [](const testing::TestParamInfo<Bench>& bench) {
                           return std::string(bench.param.engine.name) + "_" +
                                  std::string(ModeName(bench.param.mode));
                         });

TEST_P(AllStrategiesTest, GiveTheSameAnswersAndHashes) {
  const uint64_t seed = TestSeed();
  STRATA_TRACE_SEED(seed);
  const test_support::TemporaryDirectory directory;
  const std::unique_ptr<store::Store> base = OpenEngine(GetParam().engine, directory);
  std::vector<std::vector<VersionHeader>> headers;
  std::vector<std::vector<document::Content>> contents;
  int64_t incarnation = 0;
  for (const StrategyEntry& entry : AllStrategies()) {
    SCOPED_TRACE(std::string(entry.name));
    // The product's own options: a history of seven keyframe intervals.
    const auto subject = MakeSubject(entry, StrategyOptions(), ++incarnation);
    StrategyChecks checks(*subject, *base, GetParam().mode);
    const std::string id = checks.BeginDocument();
    const std::unique_ptr<store::Store> store = checks.OpenStore();
    RandomOperations random(seed);
    bool live = false;
    for (int64_t version = 0; version < 120;) {
      const Operation operation = random.Next(version, live);
      const absl::Status status = subject->Write(*store, id, {&operation, 1});
      if (status.code() == absl::StatusCode::kFailedPrecondition) continue;
      ASSERT_THAT(status, IsOk()) << operation.name;
      live = operation.kind != VersionKind::kDeleted;
      ++version;
    }
    checks.BeginDocument();  // forgets the past: not every one of its states is looked at here
    std::vector<StoredVersion> history;
    ASSERT_EQ(checks.CheckDocument(id, {}, history), "");
    ASSERT_EQ(history.size(), 120U);
    headers.emplace_back();
    contents.emplace_back();
    for (const StoredVersion& version : history) {
      headers.back().push_back(version.header);
      contents.back().push_back(version.content.value_or(document::Content()));
    }
    EXPECT_EQ(headers.back(), headers.front());
    EXPECT_EQ(contents.back(), contents.front());
  }
}

}  // namespace
}  // namespace strata::versioning::checks
