// Planted corruptions: each is found, named, and nothing else; what a crash may leave is repaired,
// and the rest left as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "service/engines/engines.h"
#include "tests/support/hooked_store.h"
#include "tests/support/volume.h"
#include "tests/versioning/verify_scene.h"

namespace strata::versioning::testing {
namespace {

using store::Keyspace;
using test_support::HasReason;
using test_support::IsOk;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// What is to be found of one fault, in order; nothing where the layout cannot have it.
using Findings = std::vector<Finding>;

Findings Expect(FindingKind kind, int64_t version, bool recoverable = false,
                std::string_view id = kPlantedId) {
  Finding finding;
  finding.id = id;
  finding.version = version;
  finding.kind = kind;
  finding.recoverable = recoverable;
  return {finding};
}

void FlipContent(VersionRecord& record) {
  std::string bytes(record.version.content->bytes());
  bytes[bytes.find("xxx")] ^= 1;
  record.version.content = document::Content::FromTrusted(std::move(bytes));
}

void OfTransaction(VersionHeader& header) {
  header.transaction_id = "t-1/0";  // nothing remembers it
  header.mark = VersionMark::kApplied;
}

// Plants one corruption and says what is to be found.
struct Plant {
  const char* name;
  std::function<Findings(Scene&)> plant;
};

const std::vector<Plant>& Plants() {
  using Kind = FindingKind;
  static const auto* const plants = new std::vector<Plant>{
      {"hole in the versions",
       [](Scene& scene) -> Findings {
         scene.Replace(4, std::nullopt);
         return Expect(Kind::kVersionMissing, 4);
       }},
      {"record that is no version",
       [](Scene& scene) -> Findings {
         scene.Replace(4, Nonsense());
         return Expect(Kind::kRecordCorrupt, 4);
       }},
      {"record of another version",
       [](Scene& scene) -> Findings {
         if (scene.embedded()) return {};  // an element says itself which it is
         const std::string key = store::VersionKey(scene.key(), 3);
         scene.Replace(4, std::string(scene.Get(Keyspace::kVersions, key).value));
         return Expect(Kind::kRecordCorrupt, 4);
       }},
      {"head that cannot be decoded",
       [](Scene& scene) -> Findings {
         if (!scene.with_heads()) {
           scene.Replace(kPlantedVersions, Nonsense());
           return Expect(Kind::kRecordCorrupt, kPlantedVersions);
         }
         scene.Put(Keyspace::kHeads, store::HeadKey(scene.key()), Nonsense());
         return Expect(Kind::kRecordCorrupt, 0);
       }},
      {"two currents",
       [](Scene& scene) -> Findings {
         if (!scene.flagged()) return {};
         scene.Edit(kPlantedVersions - 1, [](VersionRecord& record) { record.current = true; });
         return Expect(Kind::kWrongFlag, kPlantedVersions - 1, true);
       }},
      {"flag far below the head",
       [](Scene& scene) -> Findings {
         if (!scene.flagged()) return {};
         scene.Edit(3, [](VersionRecord& record) { record.current = true; });
         return Expect(Kind::kWrongFlag, 3, true);
       }},
      {"head without flag",
       [](Scene& scene) -> Findings {
         if (!scene.flagged()) return {};
         scene.Edit(kPlantedVersions, [](VersionRecord& record) { record.current = false; });
         return Expect(Kind::kWrongFlag, kPlantedVersions, true);
       }},
      {"stray head",
       [](Scene& scene) -> Findings {
         if (scene.with_heads()) return {};
         scene.Put(Keyspace::kHeads, store::HeadKey(scene.key()),
                   EncodeVersion(scene.ReadHead().version));
         return Expect(Kind::kOrphan, 0);
       }},
      {"version above the head",
       [](Scene& scene) -> Findings {
         if (!scene.with_heads()) return {};  // it would be the head
         scene.Put(Keyspace::kVersions, store::VersionKey(scene.key(), kPlantedVersions + 4),
                   EncodeVersion(scene.ReadHead().version));
         return Expect(Kind::kOrphan, kPlantedVersions + 4);
       }},
      {"versions without a head",
       [](Scene& scene) -> Findings {
         if (!scene.with_heads()) return {};  // they would be a document
         for (const int64_t version : {2, 3, 7}) {
           scene.Put(Keyspace::kVersions, store::VersionKey(scene.key().incarnation, "bb", version),
                     EncodeVersion(scene.ReadHead().version));
         }
         return Expect(Kind::kOrphan, 2, false, "bb");
       }},
      {"key that is no version's",
       [](Scene& scene) -> Findings {
         scene.Put(Keyspace::kVersions, store::VersionKey(scene.key(), 0), Nonsense());
         return Expect(Kind::kOrphan, 0);
       }},
      {"key that names no document",
       [](Scene& scene) -> Findings {
         std::string key = store::HeadKey(scene.key().incarnation, "bb");
         key.pop_back();
         scene.Put(Keyspace::kHeads, key, Nonsense());
         return Expect(Kind::kOrphan, 0, false, "");
       }},
      {"flipped content bit",
       [](Scene& scene) -> Findings {
         const int64_t version = scene.deltas() ? 1 : 4;  // a keyframe, and its followers
         scene.Edit(version, FlipContent);
         return Expect(Kind::kContentMismatch, version);
       }},
      {"flipped content bit of the head",
       [](Scene& scene) -> Findings {
         scene.Edit(kPlantedVersions, FlipContent);
         return Expect(Kind::kContentMismatch, kPlantedVersions);
       }},
      {"lost content",
       [](Scene& scene) -> Findings {
         const int64_t version = scene.deltas() ? 1 : 4;
         scene.Edit(version, [](VersionRecord& record) { record.version.content.reset(); });
         return Expect(Kind::kContentMismatch, version);
       }},
      {"wrong delta",
       [](Scene& scene) -> Findings {
         if (!scene.deltas()) return {};
         const std::string other = document::BsonBuilder().Int64("=/n", 77).Take();
         scene.Edit(4, [&](VersionRecord& record) { record.delta = other; });
         return Expect(Kind::kContentMismatch, 4);
       }},
      {"wrong delta of the head",
       [](Scene& scene) -> Findings {
         if (!scene.deltas()) return {};
         const std::string other = document::BsonBuilder().Int64("=/n", 77).Take();
         scene.Edit(kPlantedVersions, [&](VersionRecord& record) { record.delta = other; });
         return Expect(Kind::kContentMismatch, kPlantedVersions);
       }},
      {"head that miscounts deltas",
       [](Scene& scene) -> Findings {
         if (!scene.deltas()) return {};
         scene.Edit(kPlantedVersions, [](VersionRecord& record) {
           record.chain_length = record.chain_length.value_or(0) + 1;
         });
         return Expect(Kind::kRecordCorrupt, kPlantedVersions);
       }},
      {"cut chain",
       [](Scene& scene) -> Findings {
         scene.Edit(4, [](VersionRecord& record) { record.version.header.chain_hash[0] ^= 1; });
         return Expect(Kind::kChainBroken, 4);
       }},
      {"altered salt",
       [](Scene& scene) -> Findings {
         scene.Edit(4, [](VersionRecord& record) {
           char& first = record.version.header.salt[0];
           first = static_cast<char>(first ^ 1);
         });
         // The salt is in both hashes, in the chain's with the request's fingerprint.
         return {Expect(Kind::kContentMismatch, 4).front(), Expect(Kind::kChainBroken, 4).front()};
       }},
      {"re-written version, its own hash right",
       [](Scene& scene) -> Findings {
         const StoredVersion below = scene.Read(3);
         const StoredVersion version = scene.Read(4);
         scene.Edit(4, [&](VersionRecord& record) {
           VersionHeader& header = record.version.header;
           header.salt[0] = static_cast<char>(header.salt[0] ^ 1);
           header.content_hash = ContentHashOf(header.salt, version.content);
           header.chain_hash = ChainHash(below.header.chain_hash, header);
         });
         // The ledger knows what was there; its successor does not stand on it.
         return {Expect(Kind::kLedgerMismatch, 4).front(), Expect(Kind::kChainBroken, 5).front()};
       }},
      {"commit time going back",
       [](Scene& scene) -> Findings {
         const StoredVersion next =
             scene.Next([](VersionHeader& header) { header.commit_time -= 1000; });
         scene.Write(next, {scene.Entry(next.header)});
         return Expect(Kind::kChainBroken, kPlantedVersions + 1);
       }},
      {"creation of what exists",
       [](Scene& scene) -> Findings {
         const StoredVersion next =
             scene.Next([](VersionHeader& header) { header.kind = VersionKind::kCreated; });
         scene.Write(next, {scene.Entry(next.header)});
         return Expect(Kind::kChainBroken, kPlantedVersions + 1);
       }},
      {"altered creation time",
       [](Scene& scene) -> Findings {
         scene.Edit(4, [](VersionRecord& record) { --record.version.header.create_time; });
         return Expect(Kind::kRecordCorrupt, 4);
       }},
      {"early copy",
       [](Scene& scene) -> Findings {
         if (!scene.copies()) return {};
         scene.Put(Keyspace::kVersions, store::VersionKey(scene.key(), kPlantedVersions),
                   scene.RightCopy());
         return Expect(Kind::kEarlyCopy, kPlantedVersions, true);
       }},
      {"wrong copy",
       [](Scene& scene) -> Findings {
         if (!scene.copies()) return {};
         scene.Put(Keyspace::kVersions, store::VersionKey(scene.key(), kPlantedVersions),
                   EncodeVersion(scene.Read(kPlantedVersions - 1)));
         return Expect(Kind::kWrongCopy, kPlantedVersions, true);
       }},
      {"version at another commit",
       [](Scene& scene) -> Findings {
         scene.Edit(4, [](VersionRecord& record) { record.version.position = 1; });
         return Expect(Kind::kLedgerEntryMissing, 4);
       }},
      {"version without ledger entry",
       [](Scene& scene) -> Findings {
         scene.Write(scene.Next(), {});
         return Expect(Kind::kLedgerEntryMissing, kPlantedVersions + 1);
       }},
      {"ledger entry without version",
       [](Scene& scene) -> Findings {
         store::WriteBatch batch;
         batch.Put(Keyspace::kMeta, "test/plant", Nonsense());
         batch.AppendToLedger(scene.Entry(scene.Next().header));
         scene.Commit(std::move(batch));
         return Expect(Kind::kLedgerEntryOrphan, kPlantedVersions + 1);
       }},
      {"ledger entry that differs",
       [](Scene& scene) -> Findings {
         const StoredVersion next = scene.Next();
         VersionHeader other = next.header;
         other.change.actor = "bob";
         scene.Write(next, {scene.Entry(other)});
         return Expect(Kind::kLedgerMismatch, kPlantedVersions + 1);
       }},
      {"ledger entry of another transaction",
       [](Scene& scene) -> Findings {
         const StoredVersion next = scene.Next(OfTransaction);
         VersionHeader other = next.header;
         other.transaction_id = "t-2/0";
         scene.Write(next, {scene.Entry(other)});
         return Expect(Kind::kLedgerMismatch, kPlantedVersions + 1);
       }},
      {"ledger entry of no transaction",
       [](Scene& scene) -> Findings {
         const StoredVersion next = scene.Next(OfTransaction);
         VersionHeader other = next.header;
         other.transaction_id.clear();
         scene.Write(next, {scene.Entry(other)});
         return Expect(Kind::kLedgerMismatch, kPlantedVersions + 1);
       }},
      {"altered transaction",
       [](Scene& scene) -> Findings {
         StoredVersion next = scene.Next(OfTransaction);
         next.header.transaction_id = "t-2/0";
         scene.Write(next, {scene.Entry(next.header)});
         return Expect(Kind::kChainBroken, kPlantedVersions + 1);
       }},
      {"altered mark",
       [](Scene& scene) -> Findings {
         StoredVersion next = scene.Next(OfTransaction);
         next.header.mark = VersionMark::kUndone;
         scene.Write(next, {scene.Entry(next.header)});
         return Expect(Kind::kChainBroken, kPlantedVersions + 1);
       }},
      {"removed mark",
       [](Scene& scene) -> Findings {
         StoredVersion next = scene.Next(OfTransaction);
         next.header.mark = VersionMark::kNone;
         scene.Write(next, {scene.Entry(next.header)});
         return Expect(Kind::kChainBroken, kPlantedVersions + 1);
       }},
      {"newest version lost",
       [](Scene& scene) -> Findings {
         if (scene.embedded()) return {};  // all versions are one record
         if (scene.with_heads()) {
           // The version before stands in its place, as it once did.
           const std::string key = store::VersionKey(scene.key(), kPlantedVersions - 1);
           const store::Record stored = scene.Get(Keyspace::kVersions, key);
           VersionRecord before = *DecodeVersion(stored.value, stored.position, Part::kContent);
           before.version.content = scene.Read(kPlantedVersions - 1).content;
           scene.Put(Keyspace::kHeads, store::HeadKey(scene.key()), EncodeRecord(before));
           scene.Delete(Keyspace::kVersions, key);
           return Expect(Kind::kLedgerEntryOrphan, kPlantedVersions);
         }
         scene.Replace(kPlantedVersions, std::nullopt);
         if (scene.flagged()) {
           scene.Edit(kPlantedVersions - 1, [](VersionRecord& record) { record.current = true; });
         }
         return Expect(Kind::kLedgerEntryOrphan, kPlantedVersions);
       }},
      {"request record that lies",
       [](Scene& scene) -> Findings {
         scene.Put(Keyspace::kRequests, store::RequestKey(scene.key(), "r2"),
                   EncodeRequest(scene.Read(3).header.version));
         return Expect(Kind::kRequestMismatch, 3);
       }},
      {"request record of no version",
       [](Scene& scene) -> Findings {
         scene.Put(Keyspace::kRequests, store::RequestKey(scene.key(), "r99"),
                   EncodeRequest(scene.Next().header.version));
         return Expect(Kind::kRequestMismatch, kPlantedVersions + 1);
       }},
      {"request record of no document",
       [](Scene& scene) -> Findings {
         scene.Put(Keyspace::kRequests, store::RequestKey(scene.key().incarnation, "bb", "r1"),
                   EncodeRequest(scene.Read(1).header.version));
         return Expect(Kind::kRequestMismatch, 1, false, "bb");
       }},
      {"request record that is none",
       [](Scene& scene) -> Findings {
         scene.Put(Keyspace::kRequests, store::RequestKey(scene.key(), "r2"), Nonsense());
         return Expect(Kind::kRecordCorrupt, 0);
       }},
  };
  return *plants;
}

// Plants it, looks, repairs, looks again. What the table shows of it.
std::string CheckPlant(World& world, std::string_view strategy, const Plant& plant,
                       const std::string& collection) {
  Scene scene(world, strategy, collection);
  auto verified = scene.Run();
  EXPECT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings, IsEmpty()) << "before";
  const Findings all_expected = plant.plant(scene);
  if (all_expected.empty()) return "-";
  const Finding* const expected = &all_expected.front();

  const auto planted = scene.Dump();
  verified = scene.Run();
  EXPECT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings, ElementsAreArray(all_expected));
  if (verified->findings.empty()) return "LOST";
  EXPECT_EQ(verified->findings[0].recoverable, expected->recoverable);
  EXPECT_FALSE(verified->findings[0].repaired);
  EXPECT_EQ(scene.Dump(), planted) << "looking changed something";

  verified = scene.Run(/*repair=*/true);
  EXPECT_THAT(verified, IsOk());
  EXPECT_THAT(verified->findings, ElementsAreArray(all_expected));
  EXPECT_EQ(verified->findings[0].repaired, expected->recoverable);
  verified = scene.Run();
  EXPECT_THAT(verified, IsOk());
  if (expected->recoverable) {
    EXPECT_THAT(verified->findings, IsEmpty()) << "repaired";
  } else {
    EXPECT_THAT(verified->findings, ElementsAreArray(all_expected)) << "left as it is";
    EXPECT_EQ(scene.Dump(), planted) << "a repair touched what is broken";
  }
  // Of one document alone, the same.
  if (!expected->recoverable && !expected->id.empty()) {
    verified = scene.Run(false, expected->id);
    EXPECT_THAT(verified, IsOk());
    EXPECT_THAT(verified->findings, ElementsAreArray(all_expected));
  }
  return std::string(KindName(expected->kind)) + (expected->recoverable ? ", repaired" : "");
}

class PlantedTest : public ::testing::TestWithParam<engines::Engine> {};

TEST_P(PlantedTest, EachIsFoundAndNamedAndNothingElse) {
  const bool all = GetParam().name == "memory" || test_support::Sampled(1, 0) == 1;
  if (!all && GetParam().name != "live") GTEST_SKIP() << "sampled";
  std::map<std::string, std::map<std::string, std::string>> table;
  int64_t number = 0;
  for (const StrategyEntry& strategy : AllStrategies()) {
    World world({.engine = GetParam().name, .strategy = strategy.name});
    for (const Plant& plant : Plants()) {
      // Of a sample another one in each layout.
      if (!all && number++ % (2 * test_support::kOneIn) != 0) continue;
      SCOPED_TRACE(std::string(plant.name) + ", " + std::string(strategy.name));
      table[plant.name][std::string(strategy.name)] =
          CheckPlant(world, strategy.name, plant, plant.name);
    }
  }
  int cells = 0;
  std::printf("| %s |", std::string(GetParam().name).c_str());
  for (const StrategyEntry& strategy : AllStrategies()) {
    std::printf(" %s |", std::string(strategy.name).c_str());
  }
  std::printf("\n|---|---|---|---|---|---|\n");
  for (const Plant& plant : Plants()) {
    std::printf("| %s |", plant.name);
    for (const StrategyEntry& strategy : AllStrategies()) {
      const std::string& cell = table[plant.name][std::string(strategy.name)];
      cells += cell.empty() || cell == "-" ? 0 : 1;
      std::printf(" %s |", cell.c_str());
    }
    std::printf("\n");
  }
  std::printf("%d corruptions planted on %s, in %zu kinds\n", cells,
              std::string(GetParam().name).c_str(), Plants().size());
}

INSTANTIATE_TEST_SUITE_P(All, PlantedTest, ::testing::ValuesIn(EnginesWithLedger()),
                         [](const auto& engine) { return std::string(engine.param.name); });

TEST(Verify, ACleanCollectionIsWholeAndRepairWritesNothing) {
  for (const StrategyEntry& strategy : AllStrategies()) {
    SCOPED_TRACE(std::string(strategy.name));
    World world({.strategy = strategy.name});
    Scene scene(world, strategy.name, "things");
    int writes = 0;
    test_support::HookedStore hooked(world.engine());
    hooked.set_hooks({.before_get = nullptr,
                      .before_scan = nullptr,
                      .before_commit = [&](const store::WriteBatch&) { ++writes; },
                      .instead_of_commit = nullptr,
                      .after_commit = nullptr});
    ASSERT_OK_AND_ASSIGN(const Verified verified,
                         Verify(hooked, world->documents().collections(), world.clock(),
                                {"things", "", /*repair=*/true}));
    EXPECT_THAT(verified.findings, IsEmpty());
    EXPECT_EQ(writes, 0);
    EXPECT_EQ(verified.last.documents, 3);
    EXPECT_EQ(verified.last.versions, 3 * kPlantedVersions + 3);
    EXPECT_EQ(verified.last.ledger_entries, 3 * kPlantedVersions + 3);
    ASSERT_OK_AND_ASSIGN(const Verified one, scene.Run(false, "b"));
    EXPECT_EQ(one.last.documents, 1);
    EXPECT_EQ(one.last.versions, kPlantedVersions);
    EXPECT_EQ(one.last.ledger_entries, kPlantedVersions);
  }
}

TEST(Verify, RefusesWhatIsNotThere) {
  World world;
  Scene scene(world, "deltas", "things");
  const auto run = [&](VerifyQuery query) {
    return Verify(world.process(), world.clock(), query).status();
  };
  EXPECT_THAT(run({"", "", false}), HasReason(ErrorReason::kInvalidName));
  EXPECT_THAT(run({"things", "a\n", false}), HasReason(ErrorReason::kInvalidName));
  EXPECT_THAT(run({"nothing", "", false}), HasReason(ErrorReason::kCollectionNotFound));
  EXPECT_THAT(run({"things", "nobody", false}), HasReason(ErrorReason::kDocumentNotFound));
}

TEST(Verify, ACollectionThatIsMadeAnewMeanwhileIsNotTheOneAskedFor) {
  World world;
  Scene scene(world, "deltas", "things");
  test_support::HookedStore hooked(world.engine());
  hooked.set_hooks({.before_get = [&](auto...) { world.clock().Advance(std::chrono::seconds(1)); },
                    .before_scan = nullptr,
                    .before_commit = nullptr,
                    .instead_of_commit = nullptr,
                    .after_commit = nullptr});
  Verification verification(hooked, world->documents().collections(), world.clock(),
                            {"things", "", false});
  ASSERT_OK_AND_ASSIGN(const VerifyStep step, verification.Next());
  ASSERT_FALSE(step.complete);
  world->documents().collections().Delete({.name = "things", .force = true}, [](const auto&) {});
  Scene again(world, "deltas", "things");
  EXPECT_THAT(verification.Next(), HasReason(ErrorReason::kCollectionNotFound));
}

// A damaged key far away: nobody walks over a billion versions that are not there.
TEST(Verify, AHoleOfABillionVersionsIsOneFinding) {
  for (const std::string strategy : {"full-copies", "current-flag"}) {
    SCOPED_TRACE(strategy);
    World world({.strategy = strategy});
    Scene scene(world, strategy, "things");
    StoredVersion far = scene.Next();
    far.header.version = 1'000'000'000;
    scene.Put(Keyspace::kVersions, store::VersionKey(scene.key(), far.header.version),
              EncodeVersion(far));
    ASSERT_OK_AND_ASSIGN(const Verified verified, scene.Run());
    EXPECT_THAT(
        verified.findings,
        ::testing::Contains(Expect(FindingKind::kVersionMissing, kPlantedVersions + 1).front()));
    EXPECT_LE(verified.findings.size(), 5u);
    EXPECT_EQ(verified.last.versions, 3 * kPlantedVersions + 4);
  }
}

// Time is up after almost every read, and what is found does not depend on it.
TEST(Verify, ALongHistoryIsCheckedInChunks) {
  constexpr int64_t kLong = 2300;
  for (const StrategyEntry& strategy : AllStrategies()) {
    SCOPED_TRACE(std::string(strategy.name));
    if (test_support::Sampled(1, 0) == 0 && strategy.name != "deltas") continue;
    World world({.strategy = strategy.name});
    ASSERT_THAT(world->Create(Request("a", "r1"), ContentOf(1)), IsOk());
    std::vector<std::unique_ptr<Answer>> answers;
    for (int64_t version = 2; version <= kLong; ++version) {
      answers.push_back(std::make_unique<Answer>());
      world->documents().Update(Request("a", "r" + std::to_string(version)),
                                Documents::NewContent(ContentOf(version)), false,
                                answers.back()->Callback());
    }
    for (const auto& answer : answers) ASSERT_THAT(answer->Wait(), IsOk());
    const VerifyQuery query{"things", "", false};
    ASSERT_OK_AND_ASSIGN(const Verified whole, Verify(world.process(), world.clock(), query));
    EXPECT_THAT(whole.findings, IsEmpty());
    EXPECT_EQ(whole.last.versions, kLong);
    EXPECT_EQ(whole.last.ledger_entries, kLong);

    test_support::HookedStore hooked(world.engine());
    int reads = 0;
    const auto read = [&](auto...) {
      if (++reads % 40 == 0) world.clock().Advance(std::chrono::milliseconds(100));
    };
    hooked.set_hooks({.before_get = read,
                      .before_scan = read,
                      .before_commit = nullptr,
                      .instead_of_commit = nullptr,
                      .after_commit = nullptr});
    ASSERT_OK_AND_ASSIGN(const Verified chunks,
                         Verify(hooked, world->documents().collections(), world.clock(), query));
    EXPECT_THAT(chunks.findings, IsEmpty());
    EXPECT_EQ(chunks.last.versions, kLong);
    EXPECT_GT(chunks.steps, strategy.name == "embedded-history" ? 1 : 20);  // one record, few reads
  }
}

// Somebody else writes the record between the look and the repair: a repair that lost is none.
TEST(Verify, AMendThatLosesItsGuardLooksAgain) {
  for (const int lost : {0, 1, 2, 3, 100}) {
    World world({.strategy = "current-flag"});
    Scene scene(world, "current-flag", "things");
    scene.Edit(3, [](VersionRecord& record) { record.current = true; });
    int tries = 0;
    test_support::HookedStore hooked(world.engine());
    hooked.set_hooks({.before_get = nullptr,
                      .before_scan = nullptr,
                      .before_commit =
                          [&](const store::WriteBatch&) {
                            if (tries++ >= lost) return;
                            const std::string key = store::VersionKey(scene.key(), 3);
                            scene.Put(Keyspace::kVersions, key,
                                      std::string(scene.Get(Keyspace::kVersions, key).value));
                          },
                      .instead_of_commit = nullptr,
                      .after_commit = nullptr});
    ASSERT_OK_AND_ASSIGN(const Verified verified,
                         Verify(hooked, world->documents().collections(), world.clock(),
                                {"things", "", /*repair=*/true}));
    ASSERT_THAT(verified.findings, ElementsAreArray(Expect(FindingKind::kWrongFlag, 3))) << lost;
    EXPECT_EQ(verified.findings[0].repaired, lost < 3) << lost;
    EXPECT_EQ(tries, std::min(lost + 1, 3));
    EXPECT_EQ(verified.last.versions, 3 * kPlantedVersions + 3);
    ASSERT_OK_AND_ASSIGN(const Verified after, scene.Run());
    EXPECT_EQ(after.findings.empty(), lost < 3);
  }
}

TEST(Verify, TheFirstBrokenDocumentIsNamed) {
  Finding finding = Expect(FindingKind::kChainBroken, 3).front();
  finding.problem = "it is broken";
  const absl::Status status = BrokenBy({"books", "", false}, &finding, 2, 0);
  EXPECT_THAT(status, HasReason(ErrorReason::kChainBroken));
  EXPECT_EQ(MetadataOf(status, "collection"), "books");
  EXPECT_EQ(MetadataOf(status, "id"), "b");
  EXPECT_EQ(MetadataOf(status, "version"), "3");
  EXPECT_EQ(MetadataOf(status, "findings"), "2");
}

TEST(Verify, WhatWasFoundBeforeItWentOnCounts) {
  Finding finding = Expect(FindingKind::kChainBroken, 3).front();
  const absl::Status both = BrokenBy({"books", "", false}, &finding, 5, 4);
  EXPECT_EQ(MetadataOf(both, "id"), "b");
  EXPECT_EQ(MetadataOf(both, "findings"), "5");
  EXPECT_THAT(std::string(both.message()),
              ::testing::HasSubstr("4 before the verification was resumed"));
  const absl::Status before = BrokenBy({"books", "", false}, nullptr, 4, 4);
  EXPECT_THAT(before, HasReason(ErrorReason::kChainBroken));
  EXPECT_EQ(MetadataOf(before, "findings"), "4");
  EXPECT_FALSE(MetadataOf(before, "id"));
  EXPECT_THAT(std::string(before.message()), ::testing::HasSubstr("4 findings before"));
}

}  // namespace
}  // namespace strata::versioning::testing
