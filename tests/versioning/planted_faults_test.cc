// The checkers see what they are there for: each design that was rejected is a violation to one of
// them, and the strategies that are in use are not.

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schemas/store/key_codec.h"
#include "service/engines/engines.h"
#include "tests/support/await_commit.h"
#include "tests/support/single_record_store.h"
#include "tests/versioning/confirm_checks.h"
#include "tests/versioning/planted_strategies.h"
#include "tests/versioning/strategy_checks.h"
#include "tests/versioning/strategy_subject.h"

namespace strata::versioning::checks {
namespace {

using store::Keyspace;
using testing::AnyOf;
using testing::HasSubstr;

class PlantedFaultsTest : public testing::Test {
 protected:
  StrategyChecks ChecksOf(Subject& subject) {
    return StrategyChecks(subject, *store_, Mode::kSingle);
  }

  const std::unique_ptr<store::Store> store_ = *engines::OpenEngine("memory", {});
};

TEST_F(PlantedFaultsTest, CurrentFirstLosesAVersionInACrash) {
  const auto subject = MakeCurrentFirst();
  EXPECT_THAT(ChecksOf(*subject).Crashes(), HasSubstr("is missing"));
}

TEST_F(PlantedFaultsTest, InsertInPlaceOfEnsureBlocksTheDocument) {
  const auto subject = MakeInsertForEnsure();
  EXPECT_THAT(ChecksOf(*subject).Crashes(), HasSubstr("takes no update"));
}

TEST_F(PlantedFaultsTest, CleaningUpOrphansRemovesAVersion) {
  const auto subject = MakeOrphanCleaner();
  EXPECT_THAT(ChecksOf(*subject).Races(), HasSubstr("is missing"));
}

TEST_F(PlantedFaultsTest, ADoneMarkIsMissingAfterACrash) {
  const auto subject = MakeDoneMark();
  EXPECT_THAT(ChecksOf(*subject).Crashes(), HasSubstr("is not done"));
}

TEST_F(PlantedFaultsTest, ReadingWhatIsUnequalShowsVersionsAboveTheHead) {
  const auto subject = MakeReadUnequal();
  EXPECT_THAT(ChecksOf(*subject).Reads(), HasSubstr("of the answer is"));
}

TEST_F(PlantedFaultsTest, ReverseDeltasChangeAnAcknowledgedVersion) {
  const auto subject = MakeReverseDeltas();
  EXPECT_THAT(ChecksOf(*subject).Races(), AnyOf(HasSubstr("an old version changed"),
                                                HasSubstr("content hash"), HasSubstr("delta")));
}

TEST_F(PlantedFaultsTest, ClearingTheFlagFirstLeavesNoCurrentRecord) {
  const auto subject = MakeClearFlagFirst();
  EXPECT_THAT(ChecksOf(*subject).Crashes(), HasSubstr("has no flag"));
}

TEST_F(PlantedFaultsTest, AConfirmationOfNothingHoldsAfterAChange) {
  const auto subject = MakeConfirmNothing();
  EXPECT_THAT(CheckConfirm(*subject, *store_), HasSubstr("is confirmed after it changed"));
}

TEST_F(PlantedFaultsTest, ThatTheCurrentRecordIsThereDoesNotConfirmThatNoneFollows) {
  const auto subject = MakeConfirmOwnRecord();
  EXPECT_THAT(CheckConfirm(*subject, *store_), HasSubstr("is confirmed after it changed"));
}

TEST_F(PlantedFaultsTest, AConfirmationOfWhatACrashLeftFailsWithoutAChange) {
  const auto subject = MakeConfirmNoCopy();
  EXPECT_THAT(CheckConfirm(*subject, *store_), HasSubstr("is not confirmed"));
}

store::Record RecordOf(const store::Store& store, const std::string& key) {
  return store.Get(Keyspace::kVersions, key).value().value();
}

// A slow writer is at each of its writes in turn when another writer supersedes the version that
// both read and its content is erased (its record overwritten by a header, guarded by its stamp).
// Empty, or that the content came back.
std::string CheckErasure(StrategySubject& subject, store::Store& base) {
  bool fired = true;
  for (size_t event = 0; fired; ++event) {
    const std::string id = "erased-" + std::to_string(event);
    const std::string key = store::VersionKey(subject.Key(id), 2);
    const Operation create = Create("create", R"({"secret": 1, "words": "many words in here"})");
    const Operation update = Set("update", R"({"secret": 2})");
    const Operation other = Set("other", R"({"b": 1})");
    const Operation slow = Set("slow", R"({"a": 1})");
    for (const Operation* operation : {&create, &update}) {
      if (!subject.Write(base, id, {operation, 1}).ok()) return "a write fails";
    }
    fired = false;
    test_support::SingleRecordStore store(base);
    const auto erase = [&](const store::Write&, size_t index) {
      if (fired || index != event) return true;
      fired = true;
      EXPECT_TRUE(subject.Write(base, id, {&other, 1}).ok());
      const store::Record record = RecordOf(base, key);
      const StoredVersion stub = DecodeVersion(record.value, 0, Part::kHeader)->version;
      store::WriteBatch batch;
      batch.Replace(Keyspace::kVersions, key, EncodeVersion(stub), record.stamp);
      return test_support::AwaitCommit(base, std::move(batch)).committed;
    };
    store.set_hooks({.before_get = nullptr, .before_scan = nullptr, .before_write = erase});
    if (!subject.Write(store, id, {&slow, 1}).ok()) return "the slow write fails";
    const store::Record record = RecordOf(base, key);
    const auto found = DecodeVersion(record.value, 0, Part::kContent);
    if (fired && (found->version.content || !found->delta.empty())) {
      return "erased content is back: " + Describe(found->version);
    }
  }
  return "";
}

TEST_F(PlantedFaultsTest, UnconditionalOverwriteRevivesWhatWasErased) {
  const auto subject = MakeUnconditionalOverwrite();
  EXPECT_THAT(CheckErasure(*subject, *store_), HasSubstr("erased content is back"));
}

TEST_F(PlantedFaultsTest, NothingErasedComesBackUnderTheStrategiesInUse) {
  int64_t incarnation = 100;
  for (const StrategyEntry& entry : AllStrategies()) {
    if (entry.name == "embedded-history") continue;  // has no record of one version
    const auto subject = MakeSubject(entry, StrategyOptions(), ++incarnation);
    EXPECT_EQ(CheckErasure(*subject, *store_), "") << entry.name;
  }
}

}  // namespace
}  // namespace strata::versioning::checks
