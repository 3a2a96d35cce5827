// Collections: made once, deleted for good, shared by nobody who comes later.
#include "schemas/versioning/collections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/documents/world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/status_matchers.h"

namespace strata::versioning::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;

const DocumentName kName{"things", "a"};

class CollectionsTest : public CombinationTest {
 protected:
  absl::Status Make(std::string_view name, std::string_view strategy) {
    absl::Status status;
    world->documents().collections().Create(
        name, *FindStrategy(strategy), {},
        [&](const absl::StatusOr<CollectionPtr>& made) { Set(status, made.status()); });
    return Wait(status);
  }
  absl::Status Delete(bool force) {
    absl::Status status;
    world->documents().collections().Delete(
        "things", force, [&](const absl::Status& deleted) { Set(status, deleted); });
    return Wait(status);
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
  for (int i = 0; i < 600; ++i) {
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
}

// The writes of hundreds of documents arrive before the first has made their collection.
TEST_P(CollectionsTest, HundredsOfFirstWritesAreUnderWayAtOnce) {
  std::vector<Answer> answers(400);
  for (size_t i = 0; i < answers.size(); ++i) {
    world->documents().Create(Request("d" + std::to_string(i)), Number(1), answers[i].Callback());
  }
  for (Answer& answer : answers) EXPECT_THAT(answer.Wait(), IsOk());
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
STRATA_ALL_COMBINATIONS(DeletedWhilePrepared);

}  // namespace
}  // namespace strata::versioning::testing
