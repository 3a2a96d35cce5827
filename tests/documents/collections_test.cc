// Collections: made once, deleted for good, shared by nobody who comes later.
#include "schemas/versioning/collections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/documents/world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::versioning::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;

class CollectionsTest : public CombinationTest {
 protected:
  absl::Status Make(std::string_view name, std::string_view strategy) {
    absl::Status status;
    world->documents().collections().Create(
        name, *FindStrategy(strategy), {}, Collections::Deadline::max(),
        [&](const absl::StatusOr<CollectionPtr>& made) { Set(status, made.status()); });
    return Wait(status);
  }
  absl::Status Delete(bool force) { return Delete({"things", force}).status(); }
  absl::StatusOr<CollectionDeleted> Delete(const CollectionDeletion& deletion) {
    return Delete(world->documents().collections(), deletion);
  }
  absl::StatusOr<CollectionDeleted> Delete(Collections& collections,
                                           const CollectionDeletion& deletion) {
    std::promise<absl::StatusOr<CollectionDeleted>> answer;
    collections.Delete(deletion, [&](const auto& deleted) { answer.set_value(deleted); });
    return answer.get_future().get();
  }
  int64_t Incarnation() {
    const auto found = world->documents().collections().Find(world->store(), "things");
    return found.ok() && *found ? (*found)->incarnation : 0;
  }

 private:
  void Set(absl::Status& status, const absl::Status& value) {
    const std::lock_guard lock(mutex_);
    status = value;
    done_ = true;
    changed_.notify_all();
  }
  absl::Status Wait(const absl::Status& status) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    done_ = false;
    return status;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
};

TEST_P(CollectionsTest, AreMadeOnce) {
  EXPECT_THAT(Make("things", GetParam().strategy), IsOk());
  EXPECT_THAT(Make("things", "full-copies"), HasReason(ErrorReason::kCollectionExists));
  ASSERT_OK_AND_ASSIGN(const CollectionPtr found,
                       world->documents().collections().Require(world->store(), "things"));
  EXPECT_EQ(found->strategy_entry->name, GetParam().strategy);
  EXPECT_FALSE(found->used);
}

// Here, and not by each who calls.
TEST_P(CollectionsTest, RefuseBadNamesBeforeAnythingHappens) {
  const auto expect = [](const absl::Status& status, ErrorReason reason, std::string_view field) {
    EXPECT_THAT(status, HasReason(reason));
    EXPECT_EQ(MetadataOf(status, "field"), field);
  };
  for (const std::string& name : {std::string(), std::string(257, 'x'), std::string("a\nb")}) {
    expect(Make(name, "deltas"), ErrorReason::kInvalidName, "name");
    expect(Delete({name, true}).status(), ErrorReason::kInvalidName, "name");
    expect(world->documents().collections().Get(name).status(), ErrorReason::kInvalidName, "name");
  }
  expect(Delete({"things", true, 0, "a b"}).status(), ErrorReason::kInvalidField, "request_id");
  expect(Delete({"things", true, -1}).status(), ErrorReason::kInvalidField, "incarnation");
}

TEST_P(CollectionsTest, OnlyAnEmptyOneIsDeletedWithoutForce) {
  EXPECT_THAT(Delete(false), HasReason(ErrorReason::kCollectionNotFound));
  ASSERT_THAT(Make("things", GetParam().strategy), IsOk());
  EXPECT_THAT(Delete(false), IsOk());
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  ASSERT_THAT(world->Delete(Request()), IsOk());
  EXPECT_THAT(Delete(false), HasReason(ErrorReason::kCollectionNotEmpty));
  EXPECT_THAT(Delete(true), IsOk());
  EXPECT_THAT(world->documents().Get(kName, {}), HasReason(ErrorReason::kCollectionNotFound));
}

TEST_P(CollectionsTest, AnotherOfTheSameNameSharesNothing) {
  ASSERT_THAT(world->Create(Request("a", "request-1"), Number(1)), IsOk());
  ASSERT_THAT(world->Update(Request(), Number(2)), IsOk());
  ASSERT_THAT(Delete(true), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult anew, world->Create(Request("a", "request-1"), Number(1)));
  EXPECT_EQ(anew.version.header.version, 1);
  EXPECT_FALSE(anew.replayed);
}

TEST_P(CollectionsTest, TheSweepLeavesNothingAndIsFinishedAfterARestart) {
  if (GetParam().mode == Mode::kStale)
    GTEST_SKIP() << "exempt: a stale scan may miss recent changes";
  for (int i = 0; i < test_support::Sampled(600, 300); ++i) {
    ASSERT_THAT(world->Create(Request(std::to_string(i), "r" + std::to_string(i)), Number(1)),
                IsOk());
  }
  ASSERT_THAT(world->Update(Request("5"), Number(2)), IsOk());
  ASSERT_THAT(Delete(true), IsOk());
  world.Restart();  // drops the sweep under way
  world->documents().collections().ResumeSweeps();
  const auto swept = [&] {
    for (const store::Keyspace keyspace :
         {store::Keyspace::kHeads, store::Keyspace::kVersions, store::Keyspace::kRequests}) {
      if (world.engine().Scan(keyspace, {})->Valid()) return false;
    }
    return true;
  };
  while (!swept()) std::this_thread::yield();
}

MATCHER(Replayed, "is the answer of a deletion that was done before") {
  return arg.ok() && arg->replayed;
}
MATCHER(DeletedNow, "is the answer of a deletion that did it") {
  return arg.ok() && !arg->replayed;
}

const CollectionDeletion kOnce{"things", true, 0, "once"};

TEST_P(CollectionsTest, ADeletionTakesEffectOnce) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  EXPECT_THAT(Delete(kOnce), DeletedNow());
  EXPECT_THAT(Delete(kOnce), Replayed());
  world.Restart();
  EXPECT_THAT(Delete(kOnce), Replayed());
  ASSERT_THAT(world->Create(Request(), Number(2)), IsOk());
  EXPECT_THAT(Delete(kOnce), Replayed());
  EXPECT_EQ(Incarnation(), 2);
  EXPECT_THAT(world->documents().Get(kName, {}), IsOk());
  // A deletion of the successor forgets nothing of the one before.
  EXPECT_THAT(Delete({"things", true, 0, "twice"}), DeletedNow());
  EXPECT_THAT(Delete(kOnce), Replayed());
}

TEST_P(CollectionsTest, ADeletionIsRememberedForADay) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  EXPECT_THAT(Delete(kOnce), DeletedNow());
  ASSERT_THAT(world->Create(Request(), Number(2)), IsOk());
  world.clock().Advance(std::chrono::hours(24) - std::chrono::minutes(1));
  EXPECT_THAT(Delete(kOnce), Replayed());
  EXPECT_EQ(Incarnation(), 2);
  // The wall clock is a little ahead of the steady one here, and both have to say so.
  world.clock().Advance(std::chrono::minutes(2));
  EXPECT_THAT(Delete(kOnce), DeletedNow());
  EXPECT_EQ(Incarnation(), 0);
}

TEST_P(CollectionsTest, ADeletionsRequestIdBelongsToItsArguments) {
  ASSERT_THAT(Make("things", GetParam().strategy), IsOk());
  EXPECT_THAT(Delete({"things", false, 1, "once"}), DeletedNow());
  EXPECT_THAT(Delete({"things", true, 1, "once"}), HasReason(ErrorReason::kRequestIdReused));
  EXPECT_THAT(Delete({"things", false, 0, "once"}), HasReason(ErrorReason::kRequestIdReused));
  EXPECT_THAT(Delete({"things", false, 1, "once"}), Replayed());
}

TEST_P(CollectionsTest, ARefusedDeletionIsNotRemembered) {
  EXPECT_THAT(Delete(kOnce), HasReason(ErrorReason::kCollectionNotFound));
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  EXPECT_THAT(Delete({"things", false, 0, "once"}), HasReason(ErrorReason::kCollectionNotEmpty));
  EXPECT_THAT(Delete({"things", true, 7, "once"}), HasReason(ErrorReason::kIncarnationMismatch));
  EXPECT_THAT(Delete(kOnce), DeletedNow());
}

TEST_P(CollectionsTest, ADeletionSparesAnotherIncarnation) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  EXPECT_THAT(Delete({"things", true, 1}), DeletedNow());
  EXPECT_THAT(Delete({"things", true, 1}), HasReason(ErrorReason::kCollectionNotFound));
  ASSERT_THAT(world->Create(Request(), Number(2)), IsOk());
  const auto refused = Delete({"things", true, 1});
  EXPECT_THAT(refused, HasReason(ErrorReason::kIncarnationMismatch));
  EXPECT_EQ(MetadataOf(refused.status(), "expected"), "1");
  EXPECT_EQ(MetadataOf(refused.status(), "actual"), "2");
  EXPECT_THAT(world->documents().Get(kName, {}), IsOk());
}

// Without atomic batches a process can die between any two writes of a deletion.
TEST_P(CollectionsTest, ADeletionThatCrashedIsRepeatedOnWhatItWasMeantFor) {
  if (GetParam().mode == Mode::kAtomic) GTEST_SKIP() << "one write";
  for (size_t writes = 0; writes <= 3; ++writes) {
    SCOPED_TRACE(writes);
    const CollectionDeletion deletion{"things", true, 0, "once" + std::to_string(writes)};
    ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
    const int64_t first = Incarnation();
    world.Restart();  // drops the sweep of the round before, whose writes would count too
    world->single().CrashAfter(writes);
    const auto crashed = Delete(deletion);
    EXPECT_EQ(crashed.ok(), writes == 3);
    world.Restart();
    world->documents().collections().ResumeSweeps();
    const bool took_effect = Incarnation() == 0;
    EXPECT_EQ(took_effect, writes == 3);
    if (took_effect) {
      ASSERT_THAT(world->Create(Request(), Number(2)), IsOk());
      EXPECT_THAT(Delete(deletion), Replayed());
    } else {
      EXPECT_EQ(Incarnation(), first);
      EXPECT_THAT(Delete(deletion), DeletedNow());
      ASSERT_THAT(world->Create(Request(), Number(2)), IsOk());
    }
    const int64_t successor = Incarnation();
    EXPECT_GT(successor, first);
    EXPECT_THAT(Delete(deletion), Replayed());
    EXPECT_EQ(Incarnation(), successor);
    EXPECT_THAT(world->documents().Get(kName, {}), IsOk());
    EXPECT_THAT(Delete(true), IsOk());
  }
}

// A server beside the world's own, whose attempt at a deletion is slow: at one of its steps, the
// client's other attempt does it through the world's own.
class SlowDeletion : public CollectionsTest {
 protected:
  enum class Step { kRecall, kRead, kCommit };

  absl::StatusOr<CollectionDeleted> Run(Step slow_step, const std::function<void()>& meanwhile) {
    bool stepped = false;
    const auto step = [&](Step at) {
      if (stepped || at != slow_step) return;
      stepped = true;
      meanwhile();
    };
    test_support::StoreHooks hooks;
    hooks.before_get = [&](store::Keyspace keyspace, std::string_view /*key*/) {
      step(keyspace == store::Keyspace::kMeta ? Step::kRecall : Step::kRead);
    };
    hooks.before_commit = [&](const store::WriteBatch&) { step(Step::kCommit); };
    hooked_.set_hooks(std::move(hooks));
    const auto slow = std::make_shared<Collections>(hooked_, world.clock(), executor_);
    auto answer = Delete(*slow, kOnce);
    executor_.Stop();
    EXPECT_TRUE(stepped);
    return answer;
  }

  test_support::HookedStore hooked_{world->store()};
  test_support::ThreadExecutor executor_;
};

class SlowDeletionAtEachStep : public SlowDeletion {
 protected:
  void Check(Step step) {
    ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
    const auto answer = Run(step, [&] {
      EXPECT_THAT(Delete(kOnce), DeletedNow());
      ASSERT_THAT(world->Create(Request(), Number(2)), IsOk());
    });
    EXPECT_THAT(answer, Replayed());
    EXPECT_EQ(Incarnation(), 2);
    EXPECT_THAT(world->documents().Get(kName, {}), IsOk());
  }
};

TEST_P(SlowDeletionAtEachStep, SparesTheSuccessorBeforeItLooksUpTheId) { Check(Step::kRecall); }
TEST_P(SlowDeletionAtEachStep, SparesTheSuccessorBeforeItReads) { Check(Step::kRead); }
TEST_P(SlowDeletionAtEachStep, SparesTheSuccessorBeforeItCommits) { Check(Step::kCommit); }

TEST_P(SlowDeletion, DoesNotRefuseWhatItsOtherAttemptDid) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  EXPECT_THAT(Run(Step::kRead, [&] { EXPECT_THAT(Delete(kOnce), DeletedNow()); }), Replayed());
  EXPECT_EQ(Incarnation(), 0);
}

TEST_P(SlowDeletion, GivesUpAfterAHundredLostRaces) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  int races = 0;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch&) {
    ++races;
    ASSERT_OK_AND_ASSIGN(const std::optional<store::Record> record,
                         world.engine().Get(store::Keyspace::kCollections, "things"));
    ASSERT_TRUE(record.has_value());
    store::WriteBatch touch;
    touch.Put(store::Keyspace::kCollections, "things", std::string(record->value));
    // Comes first, since it is called first; nobody may wait for it here.
    world.engine().Commit(std::move(touch), [](const store::CommitResult&) {});
  };
  hooked_.set_hooks(std::move(hooks));
  const auto slow = std::make_shared<Collections>(hooked_, world.clock(), executor_);
  EXPECT_THAT(Delete(*slow, {"things", true}), HasReason(ErrorReason::kRetriesExhausted));
  EXPECT_EQ(races, 100);
  EXPECT_EQ(Incarnation(), 1);
}

// Of the counter of incarnations and of the collection's record together.
TEST_P(SlowDeletion, MakingOneGivesUpAfterAHundredLostRaces) {
  int lost = 0;
  int counted = 0;
  test_support::StoreHooks hooks;
  hooks.instead_of_commit =
      [&](const store::WriteBatch& batch) -> std::optional<store::CommitResult> {
    const bool counter = batch.writes().front().keyspace == store::Keyspace::kMeta;
    if (counter && ++counted % 10 == 0) return std::nullopt;
    ++lost;
    return store::CommitResult();
  };
  hooked_.set_hooks(std::move(hooks));
  const auto slow = std::make_shared<Collections>(hooked_, world.clock(), executor_);
  std::promise<absl::Status> ended;
  slow->Create("things", *FindStrategy(GetParam().strategy), {}, Collections::Deadline::max(),
               [&](const absl::StatusOr<CollectionPtr>& made) { ended.set_value(made.status()); });
  EXPECT_THAT(ended.get_future().get(), HasReason(ErrorReason::kRetriesExhausted));
  EXPECT_EQ(lost, 100);
  EXPECT_EQ(counted, 100);
  EXPECT_EQ(Incarnation(), 0);
}

TEST_P(CollectionsTest, StatisticsOfASmallOneAreExact) {
  if (GetParam().mode == Mode::kStale)
    GTEST_SKIP() << "exempt: a stale scan may miss recent changes";
  for (const char* id : {"a", "b", "c"}) {
    ASSERT_THAT(world->Create(Request(id), Number(1)), IsOk());
    ASSERT_THAT(world->Update(Request(id), Number(2)), IsOk());
  }
  ASSERT_OK_AND_ASSIGN(const CollectionPtr found,
                       world->documents().collections().Require(world->store(), "things"));
  ASSERT_OK_AND_ASSIGN(const CollectionStatistics statistics,
                       world->documents().collections().Statistics(*found));
  EXPECT_EQ(statistics.documents, 3);
  EXPECT_EQ(statistics.versions, 6);
  int64_t records = 0;
  for (const auto& [keyspace, size] : statistics.keyspaces) {
    int64_t counted = 0;
    int64_t bytes = 0;
    for (auto cursor = world->store().Scan(keyspace, store::IncarnationRange((*found).incarnation));
         cursor->Valid(); cursor->Next()) {
      ++counted;
      bytes += static_cast<int64_t>(cursor->key().size() + cursor->value().size());
    }
    EXPECT_EQ(size.records, counted);
    EXPECT_EQ(size.bytes, bytes);
    records += counted;
  }
  EXPECT_GE(records, 3);
}

// A walk over names that were many once ends with its caller.
TEST_P(CollectionsTest, AListEndsWithItsCaller) {
  if (GetParam().mode == Mode::kStale)
    GTEST_SKIP() << "exempt: a stale scan may miss recent changes";
  for (const char* name : {"a", "b", "c"}) {
    WriteRequest request = Request();
    request.name.collection = name;
    ASSERT_THAT(world->Create(std::move(request), Number(1)), IsOk());
  }
  for (const char* name : {"b", "c"}) {
    ASSERT_THAT(Delete({name, true}), IsOk());
  }
  int asked = 0;
  CollectionCursor all = world->documents().collections().List("", [&] { return ++asked > 2; });
  ASSERT_TRUE(all.Next());
  EXPECT_FALSE(all.Next());
  EXPECT_THAT(all.status(), HasReason(ErrorReason::kCancelled));
  EXPECT_EQ(asked, 3);
}

// The writes of hundreds of documents arrive before the first has made their collection.
TEST_P(CollectionsTest, HundredsOfFirstWritesAreUnderWayAtOnce) {
  std::vector<Answer> answers(400);
  for (size_t i = 0; i < answers.size(); ++i) {
    world->documents().Create(Request("d" + std::to_string(i)), Number(1), answers[i].Callback());
  }
  for (Answer& answer : answers) EXPECT_THAT(answer.Wait(), IsOk());
}

// As a server with a collection for each tenant starts.
TEST_P(CollectionsTest, HundredsOfCollectionsAreMadeAtOnce) {
  std::vector<Answer> answers(300);
  for (size_t i = 0; i < answers.size(); ++i) {
    WriteRequest request = Request("d");
    request.name.collection = "c" + std::to_string(i);
    world->documents().Create(std::move(request), Number(1), answers[i].Callback());
  }
  for (Answer& answer : answers) EXPECT_THAT(answer.Wait(), IsOk());
  std::set<int64_t> incarnations;
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto found =
        world->documents().collections().Find(world->store(), "c" + std::to_string(i));
    ASSERT_TRUE(found.ok() && *found);
    EXPECT_TRUE(incarnations.insert((*found)->incarnation).second);
  }
}

TEST_P(CollectionsTest, ManyFirstWritersMakeOneCollection) {
  std::vector<std::thread> writers;
  std::vector<std::unique_ptr<Process>> processes;
  for (int p = 0; p < 2; ++p) processes.push_back(world.Another());
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&, i] {
      EXPECT_THAT(
          processes[static_cast<size_t>(i % 2)]->Create(Request(std::to_string(i)), Number(i)),
          IsOk());
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (int i = 0; i < 8; ++i) {
    EXPECT_THAT(world->documents().Get({"things", std::to_string(i)}, {}), IsOk());
  }
}

// A server whose first commit waits in the engine for longer than kSoon.
class LateCollections : public CollectionsTest {
 protected:
  static constexpr auto kSoon = std::chrono::seconds(1);

  void Stall(std::function<void()> meanwhile = [] {}) {
    test_support::StoreHooks hooks;
    hooks.before_commit =
        [this, meanwhile = std::move(meanwhile),
         first = std::make_shared<std::atomic<bool>>(true)](const store::WriteBatch&) {
          if (!first->exchange(false)) return;
          meanwhile();
          world.clock().Advance(2 * kSoon);
        };
    // As an engine does.
    hooks.instead_of_commit =
        [this](const store::WriteBatch& batch) -> std::optional<store::CommitResult> {
      if (batch.deadline() > world.clock().SteadyNow()) return std::nullopt;
      store::CommitResult late;
      late.status = Error(ErrorReason::kDeadlineExceeded, "the deadline passed");
      return late;
    };
    hooked.set_hooks(std::move(hooks));
  }
  Collections::Deadline Soon() { return world.clock().SteadyNow() + kSoon; }
  bool IsThere() {
    const auto found = documents.collections().Find(hooked, "things");
    return found.ok() && *found != nullptr;
  }

  test_support::HookedStore hooked{world->store()};
  test_support::SeededEntropy entropy{7};
  test_support::ThreadExecutor executor;
  Documents documents{hooked, world.clock(), entropy, executor, DocumentsOptions()};
};

TEST_P(LateCollections, AreNeitherMadeNorDeleted) {
  const auto make = [&](Collections::Deadline deadline) {
    std::promise<absl::Status> made;
    documents.collections().Create(
        "things", *FindStrategy(GetParam().strategy), {}, deadline,
        [&](const absl::StatusOr<CollectionPtr>& result) { made.set_value(result.status()); });
    return made.get_future().get();
  };
  Stall();
  EXPECT_THAT(make(Soon()), HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_FALSE(IsThere());
  EXPECT_THAT(make(Collections::Deadline::max()), IsOk());
  Stall();
  CollectionDeletion deletion{"things", true};
  deletion.deadline = Soon();
  EXPECT_THAT(Delete(documents.collections(), deletion), HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_TRUE(IsThere());
  executor.Stop();
}

TEST_P(LateCollections, AreMadeForThoseWhoStillHaveTime) {
  Answer hurried;
  Answer patient;
  Stall([&] { documents.Create(Request("patient"), Number(1), patient.Callback()); });
  WriteRequest request = Request("hurried");
  request.deadline = Soon();
  documents.Create(std::move(request), Number(1), hurried.Callback());
  EXPECT_THAT(hurried.Wait(), HasReason(ErrorReason::kDeadlineExceeded));
  EXPECT_THAT(patient.Wait(), IsOk());
  EXPECT_THAT(documents.Get({"things", "hurried"}, {}), HasReason(ErrorReason::kDocumentNotFound));
  EXPECT_THAT(documents.Get({"things", "patient"}, {}), IsOk());
  executor.Stop();
}

// A server beside the world's own, on the same store, that another deletes from under.
class DeletedWhilePrepared : public CollectionsTest {
 protected:
  // The first write into a collection that is deleted just before the write asks for it a second
  // time, to prepare it.
  absl::StatusOr<WriteResult> FirstWrite(bool create_collections) {
    EXPECT_THAT(Make("things", GetParam().strategy), IsOk());
    int asked = 0;
    test_support::StoreHooks hooks;
    hooks.before_get = [&](store::Keyspace keyspace, std::string_view /*key*/) {
      if (keyspace != store::Keyspace::kCollections || ++asked != 2) return;
      EXPECT_THAT(Delete(false), IsOk());
    };
    hooked_.set_hooks(std::move(hooks));
    DocumentsOptions options;
    options.write.create_collections = create_collections;
    Documents documents(hooked_, world.clock(), entropy_, executor_, options);
    Answer answer;
    documents.Create(Request(), Number(1), answer.Callback());
    const absl::StatusOr<WriteResult> result = answer.Wait();
    executor_.Stop();
    EXPECT_GT(asked, 1);
    return result;
  }

 private:
  test_support::HookedStore hooked_{world->store()};
  test_support::SeededEntropy entropy_{7};
  test_support::ThreadExecutor executor_;
};

TEST_P(DeletedWhilePrepared, IsNotMadeAgainWhereWritesMakeNone) {
  EXPECT_THAT(FirstWrite(/*create_collections=*/false),
              HasReason(ErrorReason::kCollectionNotFound));
  EXPECT_THAT(world->documents().collections().Require(world->store(), "things"),
              HasReason(ErrorReason::kCollectionNotFound));
}

TEST_P(DeletedWhilePrepared, IsMadeAgainWhereWritesMakeCollections) {
  ASSERT_OK_AND_ASSIGN(const WriteResult written, FirstWrite(/*create_collections=*/true));
  EXPECT_EQ(written.version.header.version, 1);
  EXPECT_THAT(world->documents().Get(kName, {}), IsOk());
}

STRATA_ALL_COMBINATIONS(CollectionsTest);

// Facades that allow three collections.
class CollectionLimitTest : public CombinationTest {
 protected:
  static constexpr int64_t kMost = 3;

  CollectionLimitTest() { Restart(); }
  void SetUp() override {
    if (!world->store().capabilities().fresh_scans) GTEST_SKIP() << "what is counted may be stale";
  }
  ~CollectionLimitTest() override { Stop(); }

  void Stop() {
    if (executor_ == nullptr) return;
    executor_->Stop();
    // Commits under way may still call back; they come before this one.
    store::WriteBatch last;
    last.Put(store::Keyspace::kMeta, "test/last", document::BsonBuilder().Take());
    test_support::AwaitCommit(world.engine(), std::move(last));
    documents_.reset();
  }
  void Restart() {
    Stop();
    executor_ = std::make_unique<test_support::ThreadExecutor>();
    DocumentsOptions options;
    options.collections_max = kMost;
    options.write.default_strategy = FindStrategy(GetParam().strategy);
    documents_ =
        std::make_unique<Documents>(world->store(), world.clock(), entropy_, *executor_, options);
  }

  absl::Status Make(const std::string& name) {
    std::promise<absl::Status> made;
    documents_->collections().Create(
        name, *FindStrategy(GetParam().strategy), {}, Collections::Deadline::max(),
        [&](const absl::StatusOr<CollectionPtr>& result) { made.set_value(result.status()); });
    return made.get_future().get();
  }
  absl::Status Write(const std::string& collection) {
    WriteRequest request = Request("a");
    request.name.collection = collection;
    Answer answer;
    documents_->Update(request, Number(1), /*allow_missing=*/true, answer.Callback());
    return answer.Wait().status();
  }
  absl::Status Delete(const std::string& name) { return Delete(name, *documents_); }
  absl::Status Delete(const std::string& name, Documents& documents) {
    std::promise<absl::Status> deleted;
    documents.collections().Delete({name, /*force=*/true},
                                   [&](const auto& result) { deleted.set_value(result.status()); });
    return deleted.get_future().get();
  }
  int64_t Stored() {
    int64_t count = 0;
    CollectionCursor all = documents_->collections().List("");
    while (all.Next()) ++count;
    EXPECT_THAT(all.status(), IsOk());
    return count;
  }

  test_support::SeededEntropy entropy_{3};
  std::unique_ptr<test_support::ThreadExecutor> executor_;
  std::unique_ptr<Documents> documents_;
};

TEST_P(CollectionLimitTest, HoldsForBothWaysToMakeOne) {
  EXPECT_THAT(Make("a"), IsOk());
  EXPECT_THAT(Write("b"), IsOk());
  EXPECT_THAT(Make("c"), IsOk());
  const absl::Status refused = Make("d");
  EXPECT_THAT(refused, HasReason(ErrorReason::kCollectionLimit));
  EXPECT_EQ(MetadataOf(refused, "limit"), "3");
  EXPECT_THAT(Write("d"), HasReason(ErrorReason::kCollectionLimit));
  EXPECT_THAT(Make("a"), HasReason(ErrorReason::kCollectionExists));
  EXPECT_THAT(Write("c"), IsOk());
  EXPECT_EQ(Stored(), kMost);
}

TEST_P(CollectionLimitTest, IsFreedByADeletionAndHoldsAfterARestart) {
  for (const char* const name : {"a", "b", "c"}) ASSERT_THAT(Make(name), IsOk());
  ASSERT_THAT(Delete("a"), IsOk());
  EXPECT_THAT(Write("d"), IsOk());
  EXPECT_THAT(Make("a"), HasReason(ErrorReason::kCollectionLimit));
  Restart();
  EXPECT_THAT(Make("a"), HasReason(ErrorReason::kCollectionLimit));
  EXPECT_THAT(Delete("b"), IsOk());
  EXPECT_THAT(Make("a"), IsOk());
  EXPECT_THAT(Make("e"), HasReason(ErrorReason::kCollectionLimit));
  Restart();
  EXPECT_THAT(Delete("d"), IsOk());
  EXPECT_THAT(Make("d"), IsOk());
  EXPECT_THAT(Make("e"), HasReason(ErrorReason::kCollectionLimit));
}

// Of several processes over one store each counts what it makes and deletes itself.
TEST_P(CollectionLimitTest, IsCountedAnewOnceAnotherHasDeletedSome) {
  for (const char* const name : {"a", "b", "c"}) ASSERT_THAT(Make(name), IsOk());
  ASSERT_THAT(Delete("a", world->documents()), IsOk());
  EXPECT_THAT(Make("d"), HasReason(ErrorReason::kCollectionLimit));
  world.clock().Advance(std::chrono::seconds(10));
  EXPECT_THAT(Make("d"), IsOk());
  EXPECT_THAT(Make("e"), HasReason(ErrorReason::kCollectionLimit));
  world.clock().Advance(std::chrono::seconds(10));
  EXPECT_THAT(Make("e"), HasReason(ErrorReason::kCollectionLimit));
  EXPECT_EQ(Stored(), kMost);
}

TEST_P(CollectionLimitTest, HoldsForManyAtOnce) {
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> makers;
    for (int maker = 0; maker < 4; ++maker) {
      makers.emplace_back([this, maker] {
        for (int i = 0; i < 5; ++i) {
          // Some make the same, and lose their races.
          const std::string name = std::to_string(i % 2 == 0 ? i : i * 10 + maker);
          i % 3 == 0 ? Write(name).IgnoreError() : Make(name).IgnoreError();
        }
      });
    }
    for (std::thread& maker : makers) maker.join();
    EXPECT_EQ(Stored(), kMost);
    std::vector<std::string> names;
    CollectionCursor all = documents_->collections().List("");
    while (all.Next()) names.push_back(all.collection().name);
    for (const std::string& name : names) EXPECT_THAT(Delete(name), IsOk());
  }
}

STRATA_ALL_COMBINATIONS(CollectionLimitTest);

// What is in use stays parsed, whatever passes by; what is not, is forgotten.
TEST(CollectionCacheTest, KeepsWhatIsInUse) {
  World world;
  Collections& collections = world->documents().collections();
  const auto make = [&](const std::string& name) {
    std::promise<void> made;
    collections.Create(name, *FindStrategy("deltas"), {}, Collections::Deadline::max(),
                       [&](const absl::StatusOr<CollectionPtr>&) { made.set_value(); });
    made.get_future().get();
    return *collections.Find(world->store(), name);
  };
  const CollectionPtr used = make("!used");
  std::vector<std::weak_ptr<const Collection>> passed;
  for (int i = 0; i < 30'000; ++i) {
    passed.push_back(make("c" + std::to_string(i)));
    if (i % 1000 != 0) continue;
    EXPECT_EQ(*collections.Find(world->store(), "!used"), used);
  }
  EXPECT_EQ(*collections.Find(world->store(), "!used"), used);
  const auto kept =
      std::count_if(passed.begin(), passed.end(), [](const auto& one) { return !one.expired(); });
  EXPECT_LE(kept, 10'000);
  EXPECT_GE(kept, 1'000);
}
STRATA_ALL_COMBINATIONS(DeletedWhilePrepared);
STRATA_ALL_COMBINATIONS(LateCollections);
STRATA_ALL_COMBINATIONS(SlowDeletion);
STRATA_ALL_COMBINATIONS(SlowDeletionAtEachStep);

}  // namespace
}  // namespace strata::versioning::testing
