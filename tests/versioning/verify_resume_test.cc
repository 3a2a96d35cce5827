// A verification goes on where it was: from snapshot to snapshot of one run, and in another run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <future>

#include "schemas/store/key_codec.h"
#include "tests/support/volume.h"
#include "tests/versioning/counting_store.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using checks::CountingStore;
using document::BsonBuilder;
using store::Keyspace;
using test_support::HasReason;
using test_support::IsOk;
using ::testing::IsEmpty;

// Time is up whenever somebody looks, so that a step does as little as a step can.
class HurriedClock final : public Clock {
 public:
  UnixMicros Now() const override { return 0; }
  std::chrono::steady_clock::time_point SteadyNow() const override {
    now_ += std::chrono::seconds(1);
    return now_;
  }

 private:
  mutable std::chrono::steady_clock::time_point now_;
};

const VerifyQuery kAll{"things", "", false};

// A content that makes long chains: what changes is small beside it.
document::Content Large(int64_t number) {
  return document::Content::FromTrusted(
      BsonBuilder().String("text", std::string(50'000, 'x')).Int64("n", number).Take());
}

void CreateWithInterval(World& world, int32_t keyframe_interval) {
  std::promise<absl::Status> created;
  world->documents().collections().Create(
      "things", *FindStrategy("deltas"), {{"keyframe_interval", keyframe_interval}},
      Collections::Deadline::max(),
      [&](const absl::StatusOr<CollectionPtr>& made) { created.set_value(made.status()); });
  ASSERT_THAT(created.get_future().get(), IsOk());
}

// How many records a verification reads whose every step has time for one version.
int64_t ReadsOf(int64_t versions) {
  World world;
  CreateWithInterval(world, 1000);
  for (int64_t version = 1; version <= versions; ++version) {
    EXPECT_THAT(world->Update(Request(), Large(version), true), IsOk());
  }
  CountingStore counting(world.engine());
  const auto verified = Verify(counting, world->documents().collections(), HurriedClock(), kAll);
  EXPECT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings, IsEmpty());
  EXPECT_EQ(verified->last.versions, versions);
  EXPECT_GT(verified->steps, versions);
  return counting.gets() + counting.moves();
}

TEST(VerifyPlaces, EachVersionOfAChainIsReadOnceHoweverOftenTheWalkStops) {
  const int64_t short_chain = ReadsOf(100);
  const int64_t long_chain = ReadsOf(800);
  std::printf("records read: %lld of 100 versions, %lld of 800\n",
              static_cast<long long>(short_chain), static_cast<long long>(long_chain));
  EXPECT_LE(long_chain, 9 * short_chain);
}

class ResumeTest : public CombinationTest {
 protected:
  void Delete(Keyspace keyspace, std::string key) {
    store::WriteBatch batch;
    batch.Delete(keyspace, std::move(key));
    EXPECT_TRUE(test_support::AwaitCommit(world.engine(), std::move(batch)).committed);
  }
  void Put(Keyspace keyspace, std::string key) {
    store::WriteBatch batch;
    batch.Put(keyspace, std::move(key), BsonBuilder().Int64("nonsense", 1).Take());
    EXPECT_TRUE(test_support::AwaitCommit(world.engine(), std::move(batch)).committed);
  }

  // The version says something else than what its chain hash was made of.
  void BreakChain(const std::string& key) {
    const auto stored = *world.engine().Get(Keyspace::kVersions, key);
    if (!stored) return;  // embedded
    VersionRecord record = *DecodeVersion(stored->value, stored->position, Part::kContent);
    record.version.header.change.reason = "another one";
    BsonBuilder builder;
    AppendHeader(record.version.header, record.version.position, builder);
    if (!record.delta.empty()) builder.Document("delta", record.delta);
    if (record.version.content) builder.Document("content", record.version.content->bytes());
    store::WriteBatch batch;
    batch.Put(Keyspace::kVersions, key, builder.Take());
    EXPECT_TRUE(test_support::AwaitCommit(world.engine(), std::move(batch)).committed);
  }

  // Six documents of which but the first all are damaged, and what is left of a seventh.
  void WriteAndDamage() {
    for (const char* id : {"a", "b", "c", "d", "e", "f", "gone"}) {
      for (int64_t version = 1; version <= 7; ++version) {
        EXPECT_THAT(world->Update(Request(id, "r" + std::to_string(version)), Large(version), true),
                    IsOk());
      }
    }
    const auto collection = *world->documents().collections().Require(world.engine(), "things");
    incarnation_ = collection->incarnation;
    Delete(Keyspace::kVersions, Version("b", 3));
    Put(Keyspace::kVersions, Version("c", 2));
    Put(Keyspace::kVersions, Version("c", 5));
    Put(Keyspace::kVersions, Version("d", 9));
    Put(Keyspace::kRequests, store::RequestKey(Document("e"), "r2"));
    Put(Keyspace::kRequests, store::RequestKey(Document("e"), "r3"));
    BreakChain(Version("f", 5));
    Put(Keyspace::kVersions, Version("stray", 1));
    // The ledger alone remembers it.
    for (const Keyspace keyspace : {Keyspace::kHeads, Keyspace::kVersions, Keyspace::kRequests}) {
      const std::string prefix = store::HeadKey(Document("gone"));
      std::vector<std::string> keys;
      const auto cursor =
          world.engine().Scan(keyspace, {.begin = prefix, .end = store::PrefixEnd(prefix)});
      for (; cursor->Valid(); cursor->Next()) keys.emplace_back(cursor->key());
      for (std::string& key : keys) Delete(keyspace, std::move(key));
    }
  }

  store::DocumentKey Document(const char* id) const { return {incarnation_, id}; }
  std::string Version(const char* id, int64_t version) const {
    return store::VersionKey(Document(id), version);
  }

  absl::StatusOr<Verified> Run(const Clock& clock, const VerifyQuery& query,
                               VerifyPlace place = {}) {
    return Verify(world->store(), world->documents().collections(), clock, query, std::move(place));
  }

  int64_t incarnation_ = 0;
};
STRATA_ALL_COMBINATIONS(ResumeTest);

std::vector<std::string> Lines(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& finding : findings) lines.push_back(::testing::PrintToString(finding));
  return lines;
}

TEST_P(ResumeTest, WhereverARunIsCutTheRestIsFoundOnce) {
  if (GetParam().mode == Mode::kStale) GTEST_SKIP() << "exempt: no two stale scans are alike";
  WriteAndDamage();
  const HurriedClock clock;
  for (const VerifyQuery& query : {kAll, VerifyQuery{"things", "c", false}}) {
    ASSERT_OK_AND_ASSIGN(const Verified whole, Run(clock, query));
    ASSERT_OK_AND_ASSIGN(const Verified unhurried, Run(world.clock(), query));
    ASSERT_EQ(Lines(whole.findings), Lines(unhurried.findings));
    ASSERT_FALSE(whole.findings.empty());
    Verification first(world->store(), world->documents().collections(), clock, query);
    std::vector<Finding> before;
    for (int cut = 1; cut < whole.steps; ++cut) {
      SCOPED_TRACE(cut);
      ASSERT_OK_AND_ASSIGN(const VerifyStep step, first.Next());
      before.insert(before.end(), step.findings.begin(), step.findings.end());
      if (cut % test_support::Sampled(1, 7) != 0) continue;
      ASSERT_OK_AND_ASSIGN(const Verified rest, Run(clock, query, step.place));
      std::vector<Finding> all = before;
      all.insert(all.end(), rest.findings.begin(), rest.findings.end());
      ASSERT_EQ(Lines(all), Lines(whole.findings));
      EXPECT_EQ(rest.last.documents, whole.last.documents);
      EXPECT_EQ(rest.last.versions, whole.last.versions);
      EXPECT_EQ(rest.last.ledger_entries, whole.last.ledger_entries);
      EXPECT_EQ(rest.last.place.broken, whole.last.place.broken);
      EXPECT_LT(rest.steps, whole.steps);
    }
  }
}

// Of three that went before it, the middle one was not deleted but lost.
TEST_P(ResumeTest, WhereverARunIsCutALostCollectionIsMissedOnce) {
  if (GetParam().mode != Mode::kAtomic) GTEST_SKIP() << "no ledger tells of it";
  const auto make = [&](int documents) {
    for (int i = 0; i < documents; ++i) {
      EXPECT_THAT(world->Create(Request("d" + std::to_string(i)), Number(i)), IsOk());
    }
  };
  const auto remove = [&] {
    std::promise<absl::Status> deleted;
    world->documents().collections().Delete(
        {.name = "things", .force = true},
        [&](const auto& result) { deleted.set_value(result.status()); });
    EXPECT_THAT(deleted.get_future().get(), IsOk());
  };
  make(5);
  remove();
  make(5);
  Delete(Keyspace::kCollections, "things");
  make(5);
  remove();
  make(5);
  const HurriedClock clock;
  ASSERT_OK_AND_ASSIGN(const Verified whole, Run(clock, kAll));
  ASSERT_EQ(whole.findings.size(), 1u) << ::testing::PrintToString(whole.findings);
  EXPECT_EQ(whole.findings[0].kind, FindingKind::kCollectionMissing);
  Verification first(world->store(), world->documents().collections(), clock, kAll);
  for (int cut = 1; cut < whole.steps; ++cut) {
    SCOPED_TRACE(cut);
    ASSERT_OK_AND_ASSIGN(const VerifyStep step, first.Next());
    ASSERT_TRUE(step.findings.empty());
    ASSERT_OK_AND_ASSIGN(const Verified rest, Run(clock, kAll, step.place));
    EXPECT_EQ(Lines(rest.findings), Lines(whole.findings));
    EXPECT_EQ(rest.last.ledger_entries, whole.last.ledger_entries);
  }
}

TEST_P(ResumeTest, ACollectionThatWasMadeAnewIsNotTheOneThatWasVerified) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  const HurriedClock clock;
  Verification first(world->store(), world->documents().collections(), clock, kAll);
  ASSERT_OK_AND_ASSIGN(const VerifyStep step, first.Next());
  std::promise<absl::Status> deleted;
  world->documents().collections().Delete(
      {.name = "things", .force = true},
      [&](const auto& result) { deleted.set_value(result.status()); });
  ASSERT_THAT(deleted.get_future().get(), IsOk());
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  EXPECT_THAT(Run(clock, kAll, step.place), HasReason(ErrorReason::kCollectionNotFound));
}

}  // namespace
}  // namespace strata::versioning::testing
