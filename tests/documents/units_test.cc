// Units: many documents, one commit.
#include "tests/documents/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "schemas/versioning/collection_record.h"
#include "schemas/versioning/transaction_record.h"
#include "tests/documents/held_commits.h"
#include "tests/support/hooked_store.h"
#include "tests/support/status_matchers.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using document::BsonBuilder;
using document::BsonReader;
using store::Keyspace;
using test_support::HasReason;
using test_support::HookedStore;
using test_support::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What is stored of documents, collections and transactions, to the byte.
using Stored = std::vector<std::tuple<Keyspace, std::string, std::string>>;
Stored AllRecords(const store::Store& store) {
  Stored all;
  for (const Keyspace keyspace : store::kAllKeyspaces) {
    if (keyspace == Keyspace::kLedger || keyspace == Keyspace::kMeta) continue;
    for (auto cursor = store.Scan(keyspace, {}); cursor->Valid(); cursor->Next()) {
      all.emplace_back(keyspace, cursor->key(), cursor->value());
    }
  }
  return all;
}

std::vector<std::string> EngineNames() {
  std::vector<std::string> names;
  for (const engines::Engine& engine : engines::AllEngines()) names.emplace_back(engine.name);
  names.emplace_back("live");
  return names;
}

// One collection of each strategy, by its name.
class UnitsTest : public ::testing::TestWithParam<std::string> {
 protected:
  UnitsTest() : world({GetParam(), Mode::kAtomic}) {
    for (const StrategyEntry& strategy : AllStrategies()) {
      std::promise<absl::Status> made;
      world->documents().collections().Create(
          strategy.name, strategy, {}, Collections::Deadline::max(),
          [&](const auto& created) { made.set_value(created.status()); });
      EXPECT_THAT(made.get_future().get(), IsOk());
      collections.emplace_back(strategy.name);
    }
  }

  // A change of the document `id` in each collection.
  std::vector<Change> InEach(const std::string& id, int32_t by = 1) const {
    std::vector<Change> changes;
    for (const std::string& collection : collections) {
      changes.push_back(Adding(Named(id, collection), by));
    }
    return changes;
  }
  void DeleteCollection(const std::string& name) {
    std::promise<absl::Status> deleted;
    world->documents().collections().Delete(
        {.name = name, .force = true}, [&](const auto& done) { deleted.set_value(done.status()); });
    EXPECT_THAT(deleted.get_future().get(), IsOk());
  }
  int64_t VersionOf(const DocumentName& name) {
    const auto found = world->documents().Get(name, {});
    return found.ok() ? found->header.version : 0;
  }
  void ExpectClean() {
    VerifyQuery query;
    query.collection = "things";
    for (const std::string& collection : collections) {
      query.collection = collection;
      const auto verified = Verify(world.process(), world.clock(), query);
      ASSERT_THAT(verified, IsOk());
      EXPECT_THAT(verified->findings, IsEmpty()) << collection;
    }
  }

  World world;
  std::vector<std::string> collections;
};

TEST_P(UnitsTest, AllVersionsOfAUnitHaveItsIdAndItsPosition) {
  ASSERT_THAT(Commit(world.process(), UnitOf(InEach("a"), "first")), IsOk());
  ASSERT_OK_AND_ASSIGN(const UnitResult done, Commit(world.process(), UnitOf(InEach("a"), "next")));
  ASSERT_THAT(done.changes, SizeIs(collections.size()));
  EXPECT_GT(done.position, 0);
  EXPECT_EQ(done.attempts, 1);
  for (const WriteResult& change : done.changes) {
    EXPECT_TRUE(change.changed);
    EXPECT_EQ(change.position, done.position);
    ASSERT_OK_AND_ASSIGN(const auto history, world->History(change.name));
    ASSERT_THAT(history, SizeIs(2));
    EXPECT_EQ(history[0].header.transaction_id, "next/0");
    EXPECT_EQ(history[0].position, done.position);
    EXPECT_EQ(NumberIn(history[0]), 2);
    EXPECT_EQ(history[1].header.transaction_id, "first/0");
    EXPECT_LT(history[1].position, done.position);
  }
  ExpectClean();
}

TEST_P(UnitsTest, OneThatIsRefusedMakesNoCollection) {
  HookedStore hooked(world.engine());
  const auto room = static_cast<int64_t>(collections.size()) + 1;
  Process process(hooked, {.engine = GetParam(), .collections_max = room}, world.clock());
  const Stored before = AllRecords(world.engine());
  const auto no_room = Commit(
      process, UnitOf({Adding(Named("a", "new"), 1), Adding(Named("a", "one too many"), 1)}));
  EXPECT_THAT(no_room, HasReason(ErrorReason::kCollectionLimit));
  EXPECT_EQ(MetadataOf(no_room.status(), "index"), "1");
  EXPECT_EQ(AllRecords(world.engine()), before);
  // By its own commit, which would also mark the other one as used.
  UnitRequest unit = UnitOf({Adding(Named("a", "new"), 1), Adding(Named("a", collections[0]), 1)});
  test_support::StoreHooks hooks;
  hooks.instead_of_commit =
      [](const store::WriteBatch& batch) -> std::optional<store::CommitResult> {
    for (const store::Write& write : batch.writes()) {
      if (write.keyspace != Keyspace::kCollections) continue;
      store::CommitResult refused;
      refused.status = Error(ErrorReason::kLayoutLimit, "too large");
      return refused;
    }
    return std::nullopt;
  };
  hooked.set_hooks(hooks);
  EXPECT_THAT(Commit(process, unit), HasReason(ErrorReason::kLayoutLimit));
  EXPECT_EQ(AllRecords(world.engine()), before);
  // Neither took the room.
  hooked.set_hooks({});
  EXPECT_THAT(Commit(process, unit), IsOk());
  EXPECT_EQ(VersionOf(Named("a", "new")), 1);
}

TEST_P(UnitsTest, OneMakesTheCollectionsThatItNeeds) {
  std::vector<Change> changes = InEach("a");
  for (const char* id : {"a", "b"}) changes.push_back(Adding(Named(id, "new"), 1));
  changes.push_back(Adding(Named("a", "newer"), 1));
  ASSERT_THAT(Commit(world.process(), UnitOf(changes)), IsOk());
  for (const char* name : {"new", "newer"}) collections.emplace_back(name);
  std::map<int64_t, std::string> incarnations;
  for (const std::string& name : collections) {
    ASSERT_OK_AND_ASSIGN(const auto collection, world->documents().collections().Get(name));
    EXPECT_TRUE(collection->used) << name;
    EXPECT_TRUE(incarnations.emplace(collection->incarnation, name).second) << name;
  }
  EXPECT_EQ(VersionOf(Named("b", "new")), 1);
  // Over a tombstone.
  DeleteCollection("new");
  ASSERT_THAT(Commit(world.process(), UnitOf(changes)), IsOk());
  EXPECT_EQ(VersionOf(Named("a", "new")), 1);
  EXPECT_EQ(VersionOf(Named("a", "newer")), 2);
  ASSERT_OK_AND_ASSIGN(const auto successor, world->documents().collections().Get("new"));
  EXPECT_GT(successor->incarnation, incarnations.rbegin()->first);
  ExpectClean();
}

// One makes it, and the others have lost nothing: there is room for it once, and an attempt each.
TEST_P(UnitsTest, ManyMakeOneCollectionAtOnce) {
  const auto room = static_cast<int64_t>(collections.size()) + 1;
  Process process(world.engine(), {.engine = GetParam(), .collections_max = room}, world.clock());
  std::vector<UnitAnswer> answers(20);
  for (size_t i = 0; i < answers.size(); ++i) {
    UnitRequest unit = UnitOf({Adding(Named(std::to_string(i), "new"), 1)});
    unit.max_attempts = 1;
    process.documents().Commit(std::move(unit), answers[i].Callback());
  }
  for (UnitAnswer& answer : answers) EXPECT_THAT(answer.Wait(), IsOk());
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(VersionOf(Named(std::to_string(i), "new")), 1) << i;
  }
  EXPECT_THAT(Commit(process, UnitOf({Adding(Named("a", "one too many"), 1)})),
              HasReason(ErrorReason::kCollectionLimit));
  collections = {"new"};
  ExpectClean();
}

TEST_P(UnitsTest, OneWhoseCollectionGetsNoNumberIsRefused) {
  HookedStore hooked(world.engine());
  const auto room = static_cast<int64_t>(collections.size()) + 1;
  Process process(hooked, {.engine = GetParam(), .collections_max = room}, world.clock());
  test_support::StoreHooks hooks;
  hooks.instead_of_commit =
      [](const store::WriteBatch& batch) -> std::optional<store::CommitResult> {
    if (batch.writes().front().key != kNextIncarnationKey) return std::nullopt;
    store::CommitResult refused;
    refused.status = Overloaded();
    return refused;
  };
  hooked.set_hooks(hooks);
  const Stored before = AllRecords(world.engine());
  const UnitRequest unit =
      UnitOf({Adding(Named("a", collections[0]), 1), Adding(Named("a", "new"), 1)});
  EXPECT_THAT(Commit(process, unit), HasReason(ErrorReason::kOverloaded));
  EXPECT_EQ(AllRecords(world.engine()), before);
  hooked.set_hooks({});
  EXPECT_THAT(Commit(process, unit), IsOk());
}

// An engine that writes single records takes units of one write.
TEST(UnitsOfOneWrite, MakeTheirCollectionBeforeThemselves) {
  World world({.engine = "memory", .mode = Mode::kSingle});
  ASSERT_THAT(Commit(world.process(), UnitOf({Adding(Named("a", "new"), 1)})), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto made, world->documents().collections().Get("new"));
  EXPECT_TRUE(made->used);
  ASSERT_OK_AND_ASSIGN(const StoredVersion version, world->documents().Get(Named("a", "new"), {}));
  EXPECT_EQ(version.header.version, 1);
}

// What is planned after the number was drawn is planned where reads may block.
TEST(UnitsWhoseReadsBlock, PlanTheirCollectionsElsewhere) {
  World world;
  HeldCommits held(world.engine(), /*reads_block=*/true);
  test_support::SeededEntropy entropy{3};
  test_support::ManualExecutor executor(world.clock());
  Documents documents(held, world.clock(), entropy, executor, {});
  held.hold = true;
  UnitAnswer answer;
  documents.Commit(UnitOf({Adding(Named("a", "new"), 1)}), answer.Callback());
  executor.RunAll(1000);
  ASSERT_THAT(held.held, SizeIs(1));
  EXPECT_EQ(held.held[0].first.writes()[0].key, kNextIncarnationKey);
  held.LetGo();
  EXPECT_THAT(held.held, IsEmpty());
  executor.RunAll(1000);
  ASSERT_THAT(held.held, SizeIs(1));
  held.LetGo();
  executor.RunAll(1000);
  ASSERT_TRUE(answer.ready());
  EXPECT_THAT(answer.Wait(), IsOk());
}

TEST(UnitsInARace, UseTheCollectionThatAnotherHasMadeMeanwhile) {
  World world;
  HookedStore hooked(world.engine());
  Process process(hooked, {}, world.clock());
  bool made = false;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch& batch) {
    const bool makes = std::any_of(
        batch.writes().begin(), batch.writes().end(),
        [](const store::Write& write) { return write.keyspace == Keyspace::kCollections; });
    if (!makes || std::exchange(made, true)) return;
    EXPECT_THAT(Commit(world.process(), UnitOf({Adding(Named("b", "new"), 1)})), IsOk());
  };
  hooked.set_hooks(hooks);
  ASSERT_OK_AND_ASSIGN(const UnitResult done,
                       Commit(process, UnitOf({Adding(Named("a", "new"), 1)})));
  EXPECT_TRUE(made);
  EXPECT_EQ(done.attempts, 1);  // nobody wrote its document
  for (const char* id : {"a", "b"}) {
    ASSERT_OK_AND_ASSIGN(const StoredVersion version, world->documents().Get(Named(id, "new"), {}));
    EXPECT_EQ(version.header.version, 1);
  }
}

TEST_P(UnitsTest, OneThatIsRefusedWritesNothingAndSaysWhichWriteItWas) {
  ASSERT_THAT(Commit(world.process(), UnitOf(InEach("a"))), IsOk());
  const Stored before = AllRecords(world.engine());
  for (const size_t wrong : {size_t{0}, collections.size() / 2, collections.size() - 1}) {
    UnitRequest unit = Remembered(UnitOf(InEach("a")));
    unit.changes[wrong].request.precondition.version = 7;
    const auto refused = Commit(world.process(), std::move(unit));
    EXPECT_THAT(refused, HasReason(ErrorReason::kVersionConflict));
    const std::string index = std::to_string(wrong);
    EXPECT_EQ(MetadataOf(refused.status(), "index"), index);
    EXPECT_EQ(MetadataOf(refused.status(), "field"), "writes[" + index + "].precondition");
    EXPECT_EQ(MetadataOf(refused.status(), "actual"), "1");
  }
  EXPECT_TRUE(AllRecords(world.engine()) == before);
}

TEST_P(UnitsTest, ValidateOnlyAnswersAllAndWritesNothing) {
  const Stored before = AllRecords(world.engine());
  UnitRequest unit = Remembered(UnitOf(InEach("a")));
  unit.changes.push_back(Adding(Named("a", "not made yet"), 1));
  unit.validate_only = true;
  ASSERT_OK_AND_ASSIGN(const UnitResult done, Commit(world.process(), std::move(unit)));
  EXPECT_THAT(done.changes, SizeIs(collections.size() + 1));
  EXPECT_EQ(done.position, 0);
  EXPECT_EQ(done.attempts, 0);
  for (const WriteResult& change : done.changes) EXPECT_EQ(change.version.header.version, 1);
  EXPECT_TRUE(AllRecords(world.engine()) == before);
}

TEST_P(UnitsTest, WhatWasReadMustStillHold) {
  ASSERT_THAT(Commit(world.process(), UnitOf(InEach("read"))), IsOk());
  ASSERT_THAT(Commit(world.process(), UnitOf({Adding(Named("a", "gone"), 1)})), IsOk());
  DeleteCollection("gone");

  const auto unit = [&](int64_t version) {
    UnitRequest made = UnitOf({Adding(Named("written", collections[0]), 1)});
    for (const std::string& collection : collections) {
      made.reads.push_back({Named("read", collection), version});
      made.reads.push_back({Named("never", collection), 0});
    }
    made.reads.push_back({Named("a", "gone"), 0});
    made.reads.push_back({Named("a", "never"), 0});
    return made;
  };
  EXPECT_THAT(Commit(world.process(), unit(1)), IsOk());
  const auto refused = Commit(world.process(), unit(2));
  EXPECT_THAT(refused, HasReason(ErrorReason::kVersionConflict));
  EXPECT_EQ(MetadataOf(refused.status(), "field"), "reads[0].version");
  EXPECT_EQ(MetadataOf(refused.status(), "index"), "0");

  UnitRequest appeared = unit(1);
  appeared.reads.back() = {Named("read", collections[0]), 0};
  EXPECT_THAT(Commit(world.process(), std::move(appeared)),
              HasReason(ErrorReason::kVersionConflict));
  EXPECT_EQ(VersionOf(Named("written", collections[0])), 1);
}

TEST_P(UnitsTest, ARememberedUnitIsDoneOnce) {
  ASSERT_THAT(Commit(world.process(), UnitOf({Adding(Named("same", "deltas"), 0)})), IsOk());
  const auto unit = [&] {
    UnitRequest made = Remembered(UnitOf(InEach("a"), "transfer"));
    made.changes.push_back(Adding(Named("same", "deltas"), 0));
    return made;
  };
  ASSERT_OK_AND_ASSIGN(const UnitResult first, Commit(world.process(), unit()));
  EXPECT_FALSE(first.replayed);
  EXPECT_FALSE(first.changes.back().changed);
  ASSERT_THAT(Commit(world.process(), UnitOf(InEach("a", 5), "other")), IsOk());
  const Stored before = AllRecords(world.engine());
  for (const bool restarted : {false, true}) {
    if (restarted) world.Restart();
    ASSERT_OK_AND_ASSIGN(const UnitResult again, Commit(world.process(), unit()));
    EXPECT_TRUE(again.replayed);
    EXPECT_EQ(again.position, first.position);
    ASSERT_EQ(again.changes.size(), first.changes.size());
    for (size_t i = 0; i < again.changes.size(); ++i) {
      EXPECT_EQ(again.changes[i].version.header, first.changes[i].version.header);
      EXPECT_EQ(*again.changes[i].version.content, *first.changes[i].version.content);
      EXPECT_EQ(again.changes[i].changed, first.changes[i].changed);
      EXPECT_EQ(again.changes[i].position, first.changes[i].position);
    }
    UnitRequest reused = unit();
    reused.request_fingerprint = "87654321";
    EXPECT_THAT(Commit(world.process(), std::move(reused)),
                HasReason(ErrorReason::kRequestIdReused));
  }
  EXPECT_TRUE(AllRecords(world.engine()) == before);
  world.clock().Advance(std::chrono::hours(25));
  ASSERT_OK_AND_ASSIGN(const UnitResult anew, Commit(world.process(), unit()));
  EXPECT_FALSE(anew.replayed);
  EXPECT_EQ(anew.changes[0].version.header.version, 3);
}

TEST_P(UnitsTest, AReplayComesWithoutWhatIsGoneSince) {
  UnitRequest unit =
      Remembered(UnitOf({Adding(Named("a", "kept"), 1), Adding(Named("a", "gone"), 1)}));
  ASSERT_THAT(Commit(world.process(), unit), IsOk());
  DeleteCollection("gone");
  ASSERT_OK_AND_ASSIGN(const UnitResult again, Commit(world.process(), unit));
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(NumberIn(again.changes[0].version), 1);
  EXPECT_EQ(again.changes[1].version.header.version, 1);
  EXPECT_FALSE(again.changes[1].version.content);
  EXPECT_TRUE(again.changes[1].changed);
}

// One process whose commits a test comes before, beside a rival on the same engine.
class RivalsTest : public UnitsTest {
 protected:
  ~RivalsTest() override {
    executor_.Stop();
    documents_.reset();
  }

  // Before each of our next `races` commits of versions, the rival adds to this document.
  void LoseRaces(int races, const DocumentName& name) {
    races_ = races;
    test_support::StoreHooks hooks;
    hooks.before_commit = [this, name](const store::WriteBatch& batch) {
      if (races_ == 0 || batch.writes().back().keyspace == Keyspace::kCollections) return;
      --races_;
      EXPECT_THAT(Commit(*rival_, UnitOf({Adding(name, 10)})), IsOk());
    };
    hooked_.set_hooks(hooks);
  }
  absl::StatusOr<UnitResult> CommitHere(UnitRequest unit) {
    UnitAnswer answer;
    documents_->Commit(std::move(unit), answer.Callback());
    return answer.Wait();
  }

  int races_ = 0;
  const std::unique_ptr<Process> rival_ = world.Another();
  HookedStore hooked_{world.engine()};
  test_support::SeededEntropy entropy_{2};
  test_support::ThreadExecutor executor_;
  std::unique_ptr<Documents> documents_ =
      std::make_unique<Documents>(hooked_, world.clock(), entropy_, executor_, DocumentsOptions());
};

// Between the unit's decision and its commit.
TEST_P(RivalsTest, NobodyWritesUnseenWhatAUnitHasRead) {
  for (const std::string& collection : collections) {
    SCOPED_TRACE(collection);
    ASSERT_THAT(Commit(world.process(), UnitOf({Adding(Named("old", collection), 1)})), IsOk());
    for (const std::string id : {"new", "old"}) {
      const DocumentName read = Named(id, collection);
      const DocumentName written = Named("written with " + id, collection);
      LoseRaces(1, read);
      UnitRequest unit = UnitOf({Adding(written, 1)});
      unit.reads.push_back({read, VersionOf(read)});
      EXPECT_THAT(CommitHere(std::move(unit)), HasReason(ErrorReason::kVersionConflict));
      EXPECT_EQ(races_, 0);

      // What is changed to what it is already was read, too.
      LoseRaces(1, read);
      UnitRequest unchanged = UnitOf({Adding(written, 1), Adding(read, 0)});
      unchanged.changes[1].request.precondition.version = VersionOf(read);
      EXPECT_THAT(CommitHere(std::move(unchanged)), HasReason(ErrorReason::kVersionConflict));
      EXPECT_EQ(races_, 0);
      EXPECT_EQ(VersionOf(written), 0);
    }
  }
}

TEST_P(RivalsTest, ALostRaceIsRunAgainOnWhatTheWinnerLeft) {
  ASSERT_THAT(Commit(world.process(), UnitOf(InEach("a"))), IsOk());
  LoseRaces(3, Named("a", "deltas"));
  ASSERT_OK_AND_ASSIGN(const UnitResult done, CommitHere(UnitOf(InEach("a"))));
  EXPECT_EQ(done.attempts, 4);
  EXPECT_EQ(VersionOf(Named("a", "deltas")), 5);
  EXPECT_EQ(VersionOf(Named("a", "full-copies")), 2);
  ExpectClean();
}

TEST_P(RivalsTest, OneThatLosesEachTimeIsToldSo) {
  ASSERT_THAT(Commit(world.process(), UnitOf(InEach("b"))), IsOk());
  LoseRaces(1000, Named("a", "deltas"));
  UnitRequest unit = UnitOf(InEach("a"));
  unit.max_attempts = 5;
  const auto refused = CommitHere(std::move(unit));
  EXPECT_THAT(refused, HasReason(ErrorReason::kRetriesExhausted));
  EXPECT_EQ(MetadataOf(refused.status(), "attempts"), "5");
  EXPECT_EQ(races_, 995);
  EXPECT_EQ(VersionOf(Named("a", "full-copies")), 0);
}

// Writes the numbers from 1 on into one record, each on what it finds.
store::JoinedPlan Counting(const std::string& key) {
  return [key](const store::Reader& store_reader, store::WriteBatch& batch) -> absl::Status {
    const auto found = store_reader.Get(Keyspace::kMeta, key);
    if (!found.ok()) return found.status();
    int64_t count = 1;
    if (*found) {
      BsonReader reader((*found)->value);
      while (reader.Next()) count += reader.Int64();
    }
    std::string value = BsonBuilder().Int64("n", count).Take();
    if (*found) {
      batch.Replace(Keyspace::kMeta, key, std::move(value), (*found)->stamp);
    } else {
      batch.Insert(Keyspace::kMeta, key, std::move(value));
    }
    return absl::OkStatus();
  };
}

int64_t CountIn(const store::Store& store, const std::string& key) {
  const auto found = store.Get(Keyspace::kMeta, key);
  if (!found.ok() || !*found) return 0;
  BsonReader reader((*found)->value);
  return reader.Next() ? reader.Int64() : 0;
}

TEST_P(UnitsTest, WhatJoinsCommitsWithTheUnitOrNotAtAll) {
  UnitRequest unit = UnitOf(InEach("a"));
  unit.joined = {Counting("test/a"), Counting("test/b")};
  ASSERT_OK_AND_ASSIGN(const UnitResult done, Commit(world.process(), unit));
  EXPECT_EQ(CountIn(world.engine(), "test/a"), 1);
  EXPECT_EQ(CountIn(world.engine(), "test/b"), 1);
  const auto record = world.engine().Get(Keyspace::kMeta, "test/a");
  ASSERT_THAT(record, IsOk());
  EXPECT_EQ((*record)->position, done.position);

  unit.changes.back().request.precondition.exists = false;
  EXPECT_THAT(Commit(world.process(), unit), HasReason(ErrorReason::kVersionConflict));
  unit.changes.back().request.precondition = {};
  unit.joined.push_back([](const store::Reader&, store::WriteBatch&) -> absl::Status {
    return Error(ErrorReason::kOverloaded, "not now");
  });
  EXPECT_THAT(Commit(world.process(), unit), HasReason(ErrorReason::kOverloaded));
  unit.joined.pop_back();
  unit.validate_only = true;
  EXPECT_THAT(Commit(world.process(), unit), IsOk());
  EXPECT_EQ(CountIn(world.engine(), "test/a"), 1);
  EXPECT_EQ(VersionOf(Named("a", "deltas")), 1);
}

TEST_P(UnitsTest, WhatJoinsIsDoneThoughNothingChanges) {
  ASSERT_THAT(Commit(world.process(), UnitOf(InEach("a"))), IsOk());
  UnitRequest unit = UnitOf(InEach("a", 0));
  unit.joined = {Counting("test/a")};
  ASSERT_OK_AND_ASSIGN(const UnitResult done, Commit(world.process(), std::move(unit)));
  EXPECT_FALSE(done.changes[0].changed);
  EXPECT_GT(done.position, 0);
  EXPECT_EQ(CountIn(world.engine(), "test/a"), 1);
  EXPECT_EQ(VersionOf(Named("a", "deltas")), 1);

  UnitRequest alone = UnitOf({});
  alone.joined = {Counting("test/a")};
  EXPECT_THAT(Commit(world.process(), std::move(alone)), IsOk());
  EXPECT_EQ(CountIn(world.engine(), "test/a"), 2);

  WriteRequest update;
  update.name = Named("a", "deltas");
  update.joined = {Counting("test/a")};
  ASSERT_OK_AND_ASSIGN(const WriteResult same, world->Update(update, Increment("/n", 0)));
  EXPECT_FALSE(same.changed);
  ASSERT_OK_AND_ASSIGN(const WriteResult changed, world->Update(update, Increment("/n", 1)));
  EXPECT_TRUE(changed.changed);
  EXPECT_EQ(CountIn(world.engine(), "test/a"), 4);
  update.precondition.version = 99;
  EXPECT_THAT(world->Update(update, Increment("/n", 1)), HasReason(ErrorReason::kVersionConflict));
  EXPECT_EQ(CountIn(world.engine(), "test/a"), 4);
}

TEST_P(UnitsTest, OneWithoutAnythingToDoIsAnsweredWithoutACommit) {
  if (!world.engine().capabilities().snapshots) {
    GTEST_SKIP() << "only a commit proves that all of it was so at one moment";
  }
  ASSERT_THAT(Commit(world.process(), UnitOf(InEach("a"))), IsOk());
  const store::CommitPosition before = world.engine().LastPosition();
  UnitRequest unit = UnitOf(InEach("a", 0));
  unit.reads.push_back({Named("never", "deltas"), 0});
  ASSERT_OK_AND_ASSIGN(const UnitResult done, Commit(world.process(), std::move(unit)));
  EXPECT_EQ(done.position, 0);
  EXPECT_EQ(world.engine().LastPosition(), before);
}

INSTANTIATE_TEST_SUITE_P(All, UnitsTest, ::testing::ValuesIn(EngineNames()));
INSTANTIATE_TEST_SUITE_P(All, RivalsTest, ::testing::ValuesIn(EngineNames()));

// Who waits for whom: one process whose commits the test lets go.
class LinesTest : public ::testing::Test {
 protected:
  LinesTest() {
    // The collection is there and used, so that nothing but versions is committed from now on.
    EXPECT_THAT(Commit(world.process(), UnitOf({Adding(Named("first"), 1)})), IsOk());
    held.hold = true;
  }
  ~LinesTest() override {
    held.hold = false;
    while (!held.held.empty()) held.LetGo();
  }

  // Begins a unit that adds 1 to each of these; a single one as a write.
  void Begin(const std::vector<std::string>& ids) {
    const size_t number = begun++;
    if (ids.size() == 1) {
      Change change = Adding(Named(ids[0]), 1);
      documents.Modify(std::move(change.request), std::move(change.mutate),
                       [this, number](const absl::StatusOr<WriteResult>& result) {
                         EXPECT_THAT(result, IsOk());
                         ended.push_back(number);
                       });
      return;
    }
    std::vector<Change> changes;
    for (const std::string& id : ids) changes.push_back(Adding(Named(id), 1));
    documents.Commit(UnitOf(std::move(changes)),
                     [this, number](const absl::StatusOr<UnitResult>& result) {
                       EXPECT_THAT(result, IsOk());
                       ended.push_back(number);
                     });
  }
  void LetGo() {
    held.LetGo();
    executor.RunAll();
  }

  World world;
  HeldCommits held{world.engine()};
  test_support::SeededEntropy entropy{3};
  test_support::ManualExecutor executor{world.clock()};
  Documents documents{held, world.clock(), entropy, executor, {}};
  size_t begun = 0;
  std::vector<size_t> ended;
};

TEST_F(LinesTest, TransfersThroughOneHotAccountShareACommit) {
  Begin({"hot", "a0"});
  for (int i = 1; i <= 20; ++i) Begin({"hot", "a" + std::to_string(i)});
  ASSERT_THAT(held.held, SizeIs(1));
  LetGo();
  ASSERT_THAT(held.held, SizeIs(1));
  EXPECT_THAT(ended, ElementsAre(0));
  LetGo();
  EXPECT_THAT(held.held, IsEmpty());
  EXPECT_THAT(ended, SizeIs(21));
  EXPECT_TRUE(std::is_sorted(ended.begin(), ended.end()));
}

TEST_F(LinesTest, UnitsWithoutCommonDocumentsDoNotWaitForEachOther) {
  Begin({"a", "b"});
  Begin({"c", "d"});
  Begin({"e"});
  EXPECT_THAT(held.held, SizeIs(3));
}

TEST_F(LinesTest, AUnitWaitsForAllItsDocumentsAndWhatComesAfterWaitsForIt) {
  Begin({"a"});            // 0, in flight
  Begin({"a", "b", "c"});  // 1 waits for a
  Begin({"b"});            // 2 waits for 1
  Begin({"c", "d"});       // 3 waits for 1
  Begin({"d"});            // 4 waits for 3
  Begin({"e"});            // 5, in flight
  ASSERT_THAT(held.held, SizeIs(2));
  LetGo();
  EXPECT_THAT(ended, ElementsAre(0));
  ASSERT_THAT(held.held, SizeIs(2));
  LetGo();
  EXPECT_THAT(ended, ElementsAre(0, 5));
  // All the others share one commit, each after those before it in its write queues.
  ASSERT_THAT(held.held, SizeIs(1));
  LetGo();
  ASSERT_THAT(ended, SizeIs(6));
  const auto place = [&](size_t number) {
    return std::find(ended.begin(), ended.end(), number) - ended.begin();
  };
  EXPECT_LT(place(1), place(2));
  EXPECT_LT(place(1), place(3));
  EXPECT_LT(place(3), place(4));
}

TEST_F(LinesTest, TwoThatStandBehindDifferentOthersDoNotDeadlock) {
  Begin({"a"});
  Begin({"b"});
  Begin({"a", "b"});
  Begin({"b", "a"});
  ASSERT_THAT(held.held, SizeIs(2));
  LetGo();
  ASSERT_THAT(held.held, SizeIs(1));
  LetGo();
  ASSERT_THAT(held.held, SizeIs(1));
  LetGo();
  EXPECT_THAT(ended, ElementsAre(0, 1, 2, 3));
}

TEST_F(LinesTest, AfterALostRaceAllGoesOnInItsOrder) {
  Begin({"a", "b"});
  Begin({"b", "c"});
  Begin({"c"});
  Begin({"c", "a"});
  ASSERT_THAT(held.held, SizeIs(1));
  for (int i = 0; i < 3; ++i) {
    held.Lose();
    executor.RunAll();
    ASSERT_FALSE(held.held.empty());
  }
  while (!held.held.empty()) LetGo();
  EXPECT_THAT(ended, ElementsAre(0, 1, 2, 3));
}

// The unit whose guard failed has tried twice; those that were with it have not.
TEST_F(LinesTest, OnlyWhoseGuardFailedHasSpentAnAttempt) {
  Begin({"hot"});
  std::map<std::string, int> attempts;
  for (const std::string id : {"a", "b"}) {
    documents.Commit(UnitOf({Adding(Named("hot"), 1), Adding(Named(id), 1)}),
                     [&attempts, id](const absl::StatusOr<UnitResult>& result) {
                       ASSERT_THAT(result, IsOk());
                       attempts[id] = result->attempts;
                     });
  }
  LetGo();
  ASSERT_THAT(held.held, SizeIs(1));
  const auto [batch, done] = held.Take();
  const auto head_of_b =
      std::find_if(batch.writes().begin(), batch.writes().end(), [](const store::Write& write) {
        const auto parsed = store::ParseHeadKey(write.key);
        return write.keyspace == Keyspace::kHeads && parsed && parsed->id == "b";
      });
  ASSERT_NE(head_of_b, batch.writes().end());
  store::CommitResult lost;
  lost.refused = static_cast<size_t>(head_of_b - batch.writes().begin());
  done(lost);
  executor.RunAll();
  while (!held.held.empty()) LetGo();
  EXPECT_EQ(attempts["a"], 1);
  EXPECT_EQ(attempts["b"], 2);
}

TEST_F(LinesTest, WhatJoinsTheSameRecordGoesOneAfterTheOther) {
  Begin({"hot"});
  for (const std::string id : {"a", "b", "c"}) {
    UnitRequest unit = UnitOf({Adding(Named("hot"), 1), Adding(Named(id), 1)});
    unit.joined = {Counting("test/same")};
    documents.Commit(std::move(unit), [this](const absl::StatusOr<UnitResult>& result) {
      ASSERT_THAT(result, IsOk());
      EXPECT_EQ(result->attempts, 1);
      ended.push_back(begun++);
    });
  }
  while (!held.held.empty()) LetGo();
  EXPECT_THAT(ended, SizeIs(4));
  EXPECT_EQ(CountIn(world.engine(), "test/same"), 3);
}

TEST_F(LinesTest, AUnitAtItsDeadlineLeavesTheOthersTheirs) {
  Begin({"hot"});
  UnitRequest unit = UnitOf({Adding(Named("hot"), 1), Adding(Named("a"), 1)});
  unit.deadline = world.clock().SteadyNow() + std::chrono::seconds(1);
  UnitAnswer late;
  documents.Commit(std::move(unit), late.Callback());
  Begin({"hot", "b"});
  world.clock().Advance(std::chrono::seconds(2));
  while (!held.held.empty()) LetGo();
  EXPECT_THAT(late.Wait(), HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_THAT(ended, ElementsAre(0, 1));
}

TEST_F(LinesTest, AFailedCommitRefusesThoseWhoPlannedItAndNobodyElse) {
  Begin({"hot"});
  UnitAnswer failed;
  documents.Commit(UnitOf({Adding(Named("hot"), 1), Adding(Named("a"), 1)}), failed.Callback());
  LetGo();
  Begin({"hot", "b"});
  held.Fail(Unknown());
  executor.RunAll();
  EXPECT_THAT(failed.Wait(), HasReason(ErrorReason::kOutcomeUnknown));
  while (!held.held.empty()) LetGo();
  EXPECT_THAT(ended, ElementsAre(0, 1));
}

// What a commit is about to make, and what another document was before: that was never so at once.
TEST_F(LinesTest, WhatAUnitSawBesideAnothersVersionMustStillHoldWhenThatIsThere) {
  ASSERT_THAT(Commit(world.process(), UnitOf({Adding(Named("read"), 1)})), IsOk());
  Begin({"hot"});
  Begin({"hot", "a"});
  UnitRequest unit = UnitOf({Adding(Named("hot"), 0)});
  unit.reads.push_back({Named("read"), 1});
  UnitAnswer reader;
  documents.Commit(std::move(unit), reader.Callback());
  LetGo();
  ASSERT_THAT(held.held, SizeIs(1));
  ASSERT_THAT(Commit(world.process(), UnitOf({Adding(Named("read"), 1)})), IsOk());
  while (!held.held.empty()) LetGo();
  ASSERT_TRUE(reader.ready());
  EXPECT_THAT(reader.Wait(), HasReason(ErrorReason::kVersionConflict));
  EXPECT_THAT(ended, ElementsAre(0, 1));
}

// Nobody but those before it in its write queue has written its document.
TEST_F(LinesTest, WhoStoodBesideTheLoserOfARaceHasLostNothing) {
  ASSERT_THAT(Commit(world.process(), UnitOf({Adding(Named("b"), 1)})), IsOk());
  Begin({"hot"});
  Begin({"hot", "b"});
  UnitRequest unit = UnitOf({Adding(Named("a"), 1), Adding(Named("b"), 1)});
  unit.changes[1].request.precondition.exists = true;
  UnitAnswer loser;
  documents.Commit(std::move(unit), loser.Callback());
  LetGo();
  ASSERT_THAT(held.held, SizeIs(1));
  ASSERT_THAT(Commit(world.process(), UnitOf({Adding(Named("a"), 1)})), IsOk());
  while (!held.held.empty()) LetGo();
  EXPECT_THAT(loser.Wait(), IsOk());
  EXPECT_THAT(ended, ElementsAre(0, 1));
}

TEST_F(LinesTest, WhereOneHasUsedItsIdTheOthersHaveLostNothing) {
  ASSERT_THAT(Commit(world.process(), UnitOf({Adding(Named("hot"), 1)})), IsOk());
  Begin({"hot"});
  Begin({"hot"});
  UnitAnswer reused;
  documents.Commit(
      Remembered(UnitOf({Adding(Named("hot"), 1), Adding(Named("a"), 1)}, "id"), "11111111"),
      reused.Callback());
  UnitRequest unit = UnitOf({Adding(Named("hot"), 1)});
  unit.changes[0].request.precondition.exists = true;
  unit.max_attempts = 1;
  UnitAnswer neighbour;
  documents.Commit(std::move(unit), neighbour.Callback());
  LetGo();
  ASSERT_THAT(held.held, SizeIs(1));
  ASSERT_THAT(
      Commit(world.process(), Remembered(UnitOf({Adding(Named("b"), 1)}, "id"), "22222222")),
      IsOk());
  while (!held.held.empty()) LetGo();
  EXPECT_THAT(reused.Wait(), HasReason(ErrorReason::kRequestIdReused));
  EXPECT_THAT(neighbour.Wait(), IsOk());
  EXPECT_THAT(ended, ElementsAre(0, 1));
}

TEST_F(LinesTest, AUnitThatCannotHaveItsCollectionIsRefusedWithoutItsNeighbours) {
  DocumentsOptions options;
  options.collections_max = 1;
  Documents full(held, world.clock(), entropy, executor, options);
  const auto begin = [&](UnitRequest unit, UnitAnswer& answer) {
    full.Commit(std::move(unit), answer.Callback());
  };
  UnitAnswer first;
  UnitAnswer refused;
  UnitAnswer neighbour;
  begin(UnitOf({Adding(Named("hot"), 1)}), first);
  begin(UnitOf({Adding(Named("hot"), 1), Adding(Named("a", "one too many"), 1)}), refused);
  begin(UnitOf({Adding(Named("hot"), 1), Adding(Named("b"), 1)}), neighbour);
  ASSERT_FALSE(neighbour.ready());
  for (int i = 0; i < 10 && !neighbour.ready(); ++i) {
    if (!held.held.empty()) held.LetGo();
    executor.RunAll(1000);
  }
  ASSERT_TRUE(refused.ready() && neighbour.ready());
  EXPECT_THAT(refused.Wait(), HasReason(ErrorReason::kCollectionLimit));
  EXPECT_EQ(MetadataOf(refused.Wait().status(), "index"), "1");
  EXPECT_THAT(neighbour.Wait(), IsOk());
  ASSERT_OK_AND_ASSIGN(const StoredVersion hot, world->documents().Get(Named("hot"), {}));
  EXPECT_EQ(NumberIn(hot), 2);
}

// What another made of an id in two phases is no commit of this one.
TEST_P(UnitsTest, ATransactionThatWasCancelledIsNotRepeatedAsDone) {
  TransactionRecord record;
  record.status = TransactionStatus::kCancelled;
  record.mode = TransactionMode::kTwoPhase;
  record.create_time = record.last_modified = world.clock().Now();
  record.fingerprint = "12345678";
  record.participants.push_back({.name = Named("a", "deltas"), .version = 1});
  store::WriteBatch batch;
  batch.Put(Keyspace::kTransactions, TransactionKey("id"), record.Encode());
  ASSERT_THAT(test_support::AwaitCommit(world.engine(), std::move(batch)).status, IsOk());
  const auto done =
      Commit(world.process(), Remembered(UnitOf({Adding(Named("a", "deltas"), 1)}, "id")));
  EXPECT_THAT(done, HasReason(ErrorReason::kRequestIdReused));
  EXPECT_EQ(VersionOf(Named("a", "deltas")), 0);
}

// Half of what it asks for is not done.
TEST(JoinedTest, WithoutAtomicBatchesIsRefused) {
  World world({.engine = "memory", .mode = Mode::kSingle});
  WriteRequest write;
  write.name = Named("a");
  write.joined = {Counting("test/a")};
  EXPECT_THAT(world->Create(write, Number(1)), HasReason(ErrorReason::kUnsupportedByEngine));
  UnitRequest unit = UnitOf({Adding(Named("a"), 1)});
  unit.joined = {Counting("test/a")};
  EXPECT_THAT(Commit(world.process(), std::move(unit)),
              HasReason(ErrorReason::kUnsupportedByEngine));
  EXPECT_EQ(CountIn(world.engine(), "test/a"), 0);
  EXPECT_THAT(world->documents().Get(Named("a"), {}).status(),
              HasReason(ErrorReason::kCollectionNotFound));
}

}  // namespace
}  // namespace strata::versioning::testing
