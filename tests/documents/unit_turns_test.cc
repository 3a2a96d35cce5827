// Units over large documents: decided when it is the turn of one who waits, and who else stands in
// their write queues waits for nobody else's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/documents/held_commits.h"
#include "tests/documents/turn.h"
#include "tests/documents/units.h"
#include "tests/support/executors.h"
#include "tests/support/status_matchers.h"

namespace strata::versioning::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kRunsMax = 1000;
const std::string kLarge(100'000, 'x');

// With a store whose reads block, and one whose reads do not.
class UnitTurnsTest : public ::testing::TestWithParam<bool> {
 protected:
  UnitTurnsTest() {
    for (const std::string id : {"large", "large2", "large3"}) {
      EXPECT_THAT(Commit(world.process(), UnitOf({Writing(id)})), IsOk());
    }
  }
  ~UnitTurnsTest() override {
    held.hold = false;
    while (!held.held.empty()) held.LetGo();
    executor.RunAll(kRunsMax);
  }

  static Change Writing(const std::string& id) {
    Change change;
    change.request.name = Named(id);
    const bool large = id.rfind("large", 0) == 0;
    change.mutate = [large](const CurrentState& current) -> absl::StatusOr<Mutation> {
      const int64_t n = current.version != nullptr ? current.version->header.version : 0;
      document::BsonBuilder content;
      content.Int64("n", n);
      if (large) content.String("text", kLarge);
      return Mutation{current.live() ? VersionKind::kUpdated : VersionKind::kCreated,
                      document::Content::FromTrusted(content.Take())};
    };
    return change;
  }

  // Begins, on a thread that others wait for, a unit that writes each of these; a single one as a
  // write.
  void Begin(const std::vector<std::string>& ids, const Waiter& waiter) {
    const size_t number = begun++;
    if (ids.size() == 1) {
      Change change = Writing(ids[0]);
      change.request.waiter = &waiter;
      change.request.brief = true;
      documents.Modify(
          std::move(change.request), std::move(change.mutate),
          [this, number](const absl::StatusOr<WriteResult>& result) { End(number, result); });
    } else {
      UnitRequest unit = UnitOf({});
      for (const std::string& id : ids) unit.changes.push_back(Writing(id));
      unit.waiter = &waiter;
      unit.brief = true;
      documents.Commit(std::move(unit), [this, number](const absl::StatusOr<UnitResult>& result) {
        End(number, result);
      });
    }
    Run();
  }
  template <typename Result>
  void End(size_t number, const absl::StatusOr<Result>& result) {
    if (result.ok()) {
      ended.push_back(number);
    } else {
      EXPECT_THAT(result, HasReason(ErrorReason::kOverloaded));
      refused.push_back(number);
    }
  }
  void Run() { ASSERT_LT(executor.RunAll(kRunsMax), kRunsMax) << "it goes on for ever"; }
  void Give(Turn& turn) {
    turn.RunAll();
    Run();
  }

  World world;
  HeldCommits held{world.engine(), GetParam()};
  test_support::SeededEntropy entropy{3};
  test_support::ManualExecutor executor{world.clock()};
  Turn first;
  Turn second;
  Turn third;
  Documents documents{held, world.clock(), entropy, executor, {}};
  size_t begun = 0;
  std::vector<size_t> ended;
  std::vector<size_t> refused;
};

TEST_P(UnitTurnsTest, AUnitIsDecidedInItsTurn) {
  Begin({"large", "small"}, first);
  EXPECT_THAT(ended, IsEmpty());
  EXPECT_EQ(first.deferred(), 1u);
  Give(first);
  EXPECT_THAT(ended, ElementsAre(0));
}

// It meets them one after the other: only the last one finds out that it takes long.
TEST_P(UnitTurnsTest, AUnitThatStoodBehindAnotherIsDecidedInItsTurn) {
  held.hold = true;
  Begin({"small"}, second);
  ASSERT_THAT(held.held, SizeIs(1));
  Begin({"large", "small", "zoo"}, first);
  held.hold = false;
  held.LetGo();
  Run();
  EXPECT_THAT(ended, ElementsAre(0));
  EXPECT_EQ(first.deferred(), 1u);
  Give(first);
  EXPECT_THAT(ended, ElementsAre(0, 1));
}

TEST_P(UnitTurnsTest, WhoStandsBehindAUnitGoesOnInTheirOwnTurn) {
  Begin({"large", "small"}, first);
  Begin({"small"}, second);
  EXPECT_EQ(second.deferred(), 1u);
  Give(second);
  EXPECT_THAT(ended, ElementsAre(0, 1));
  Give(first);  // finds nothing to do
  EXPECT_THAT(ended, SizeIs(2));
}

TEST_P(UnitTurnsTest, WhoStoodBehindAUnitBeforeItTurnedOutToTakeLongDoesToo) {
  held.hold = true;
  Begin({"small"}, third);
  Begin({"large", "small"}, first);
  Begin({"small"}, second);
  held.hold = false;
  held.LetGo();
  Run();
  EXPECT_THAT(ended, ElementsAre(0));
  Give(second);
  EXPECT_THAT(ended, ElementsAre(0, 1, 2));
}

TEST_P(UnitTurnsTest, AUnitOfManyLargeDocumentsAsksForOneTurn) {
  Begin({"large", "large2", "large3"}, first);
  EXPECT_EQ(first.deferred(), 1u);
  Begin({"large3", "large2"}, second);
  EXPECT_EQ(second.deferred(), 1u);
  Give(second);
  EXPECT_THAT(ended, ElementsAre(0, 1));
}

TEST_P(UnitTurnsTest, AUnitThatGetsNoTurnIsRefusedAndHoldsUpNobody) {
  first.RefuseAll();
  Begin({"large", "small"}, first);
  EXPECT_THAT(refused, ElementsAre(0));
  Begin({"small"}, second);
  EXPECT_THAT(ended, ElementsAre(1));
}

TEST_P(UnitTurnsTest, AUnitThatGetsNoTurnBesideOthersIsDoneInTheirs) {
  Begin({"large", "small"}, first);
  second.RefuseAll();
  Begin({"small", "zoo"}, second);
  EXPECT_THAT(refused, IsEmpty());
  Give(first);
  Give(first);
  EXPECT_THAT(ended, ElementsAre(0, 1));
}

// Two components are parked; one turn serves a unit that stands in both.
TEST_P(UnitTurnsTest, AUnitBehindTwoThatTakeLongGoesOnInItsOwnTurns) {
  Begin({"large", "a"}, first);
  Begin({"large2", "b"}, second);
  Begin({"a", "b"}, third);
  EXPECT_EQ(third.deferred(), 1u);
  for (int i = 0; i < 3; ++i) Give(third);
  EXPECT_THAT(ended, ::testing::UnorderedElementsAre(0, 1, 2));
  EXPECT_EQ(ended.back(), 2u);
}

TEST_P(UnitTurnsTest, OneWhoMayTakeLongDoesWhatWaits) {
  Begin({"large", "small"}, first);
  Begin({"large2", "other"}, second);
  UnitRequest unit = UnitOf({Writing("small"), Writing("other")});
  unit.waiter = &third;
  documents.Commit(std::move(unit),
                   [this](const absl::StatusOr<UnitResult>& result) { End(begun, result); });
  Run();
  for (int i = 0; i < 3 && ended.size() < 3; ++i) Give(third);
  EXPECT_THAT(ended, SizeIs(3));
}

// What joins may take long too, of a write and of a unit.
TEST_P(UnitTurnsTest, WhatJoinsTakesItsTime) {
  const auto joined = [] {
    return [asked = std::make_shared<int>(0)](const store::Reader&, store::WriteBatch&) {
      return ++*asked == 1 ? TakesLong() : absl::OkStatus();
    };
  };
  Change change = Writing("small");
  change.request.waiter = &first;
  change.request.brief = true;
  change.request.joined = {joined()};
  documents.Modify(std::move(change.request), std::move(change.mutate),
                   [this](const absl::StatusOr<WriteResult>& result) { End(0, result); });
  UnitRequest unit = UnitOf({Writing("a"), Writing("b")});
  unit.joined = {joined()};
  unit.waiter = &second;
  unit.brief = true;
  documents.Commit(std::move(unit),
                   [this](const absl::StatusOr<UnitResult>& result) { End(1, result); });
  Run();
  EXPECT_THAT(ended, IsEmpty());
  Give(first);
  Give(second);
  EXPECT_THAT(ended, ElementsAre(0, 1));
}

// Whoever has a turn moves all that stands in its way, in other write queues too.
TEST_P(UnitTurnsTest, WhoHasATurnDoesNotWaitForThoseInFrontOfAUnitInFront) {
  Begin({"large"}, first);
  Begin({"large", "small"}, first);
  Begin({"small"}, second);
  Give(second);
  EXPECT_THAT(ended, ElementsAre(0, 1, 2));
}

TEST_P(UnitTurnsTest, NorForAChainOfUnits) {
  Begin({"large", "a"}, first);
  Begin({"a", "b"}, first);
  Begin({"b", "c"}, first);
  Begin({"c"}, second);
  for (int i = 0; i < 4; ++i) Give(second);
  EXPECT_THAT(ended, ElementsAre(0, 1, 2, 3));
}

TEST_P(UnitTurnsTest, WhatDoesNotTakeLongIsNotRefusedForWhatDoes) {
  first.RefuseAll();
  held.hold = true;
  Begin({"small"}, second);  // in flight
  Begin({"small"}, first);
  Begin({"small", "large"}, first);
  Begin({"small"}, first);
  held.hold = false;
  held.LetGo();
  Run();
  EXPECT_THAT(ended, ElementsAre(0, 1, 3));
  EXPECT_THAT(refused, ElementsAre(2));
}

// Refuses, after something else has happened.
class LateRefusal final : public Waiter {
 public:
  explicit LateRefusal(std::function<void()> before) : before_(std::move(before)) {}
  bool gone() const override { return false; }
  absl::Status Defer(std::function<void()>) const override {
    if (const auto before = std::exchange(before_, nullptr)) before();
    return Error(ErrorReason::kOverloaded, "too much waits");
  }
  const void* line() const override { return this; }

 private:
  mutable std::function<void()> before_;
};

// The unit whose turn is refused is done already, and others stand where it stood.
TEST_P(UnitTurnsTest, ARefusalThatComesLateLeavesNobodyBehind) {
  const LateRefusal* refused_one = nullptr;
  const LateRefusal late([&] {
    Give(first);
    EXPECT_THAT(ended, ElementsAre(0, 1));
    Begin({"large2"}, *refused_one);
    Begin({"large"}, second);
  });
  refused_one = &late;
  Begin({"large"}, first);
  Begin({"large", "large2"}, late);
  EXPECT_THAT(refused, ElementsAre(2));
  Give(second);
  EXPECT_THAT(ended, ElementsAre(0, 1, 3));
}

TEST_P(UnitTurnsTest, WhoHasNoTurnDoesNotThrowOutAUnitThatAnotherBringsAlong) {
  Begin({"large"}, first);
  second.RefuseAll();
  Begin({"large", "small"}, second);  // waits for the first one's turn
  third.RefuseAll();
  Begin({"small"}, third);
  EXPECT_THAT(refused, IsEmpty());
  Give(first);
  Give(first);
  EXPECT_THAT(ended, ElementsAre(0, 1, 2));
}

INSTANTIATE_TEST_SUITE_P(Reads, UnitTurnsTest, ::testing::Bool(),
                         [](const auto& blocks) { return blocks.param ? "Block" : "Return"; });

// Has its turns on a thread of its own, and sometimes none.
class BusyTurn final : public Waiter {
 public:
  bool gone() const override { return false; }
  absl::Status Defer(std::function<void()> work) const override {
    if (++asked_ % 8 == 0) return Error(ErrorReason::kOverloaded, "too much waits");
    executor_.Schedule(std::move(work));
    return absl::OkStatus();
  }
  const void* line() const override { return this; }
  void Stop() { executor_.Stop(); }

 private:
  mutable std::atomic<int> asked_ = 0;
  mutable test_support::ThreadExecutor executor_;
};

// Threads begin what they like on few documents, some of them large, and have their turns at once:
// all are answered, each once, and what was answered OK is what is stored. It is there for
// ThreadSanitizer too.
TEST(UnitCrowdTest, AllAreAnsweredOnce) {
  constexpr uint64_t kThreads = 4;
  constexpr int kEach = 1000;
  constexpr size_t kDocuments = 5;
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  World world;
  test_support::SeededEntropy entropy(seed);
  test_support::ThreadExecutor executor;
  DocumentsOptions options;
  options.write.brief_document_bytes_max = 1000;
  Documents documents(world.engine(), world.clock(), entropy, executor, options);
  std::array<BusyTurn, kThreads> turns;
  std::array<std::atomic<int64_t>, kDocuments> versions{};
  std::atomic<int> answered = 0;
  std::promise<void> all;
  const auto writing = [](size_t document) {
    Change change;
    change.request.name = Named(std::to_string(document));
    change.request.max_attempts = 1'000'000;
    change.mutate = [document](const CurrentState& current) -> absl::StatusOr<Mutation> {
      document::BsonBuilder content;
      content.Int64("n", current.version != nullptr ? current.version->header.version : 0);
      if (document < 2) content.String("text", std::string(2000, 'x'));
      return Mutation{current.live() ? VersionKind::kUpdated : VersionKind::kCreated,
                      document::Content::FromTrusted(content.Take())};
    };
    return change;
  };
  const auto end = [&](const absl::Status& status, const std::vector<size_t>& written) {
    if (status.ok()) {
      for (const size_t document : written) ++versions[document];
    } else {
      EXPECT_EQ(ReasonOf(status), ErrorReason::kOverloaded) << status;
    }
    if (++answered == kThreads * kEach) all.set_value();
  };
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(seed + thread);
      for (int i = 0; i < kEach; ++i) {
        std::vector<size_t> written(kDocuments);
        std::iota(written.begin(), written.end(), size_t{0});
        std::shuffle(written.begin(), written.end(), random);
        written.resize(1 + random() % 3);
        const bool brief = random() % 4 != 0;
        if (written.size() == 1) {
          Change change = writing(written[0]);
          change.request.waiter = &turns[thread];
          change.request.brief = brief;
          documents.Modify(std::move(change.request), std::move(change.mutate),
                           [&, written](const absl::StatusOr<WriteResult>& result) {
                             end(result.status(), written);
                           });
          continue;
        }
        UnitRequest unit = UnitOf({});
        for (const size_t document : written) unit.changes.push_back(writing(document));
        unit.max_attempts = 1'000'000;
        unit.waiter = &turns[thread];
        unit.brief = brief;
        documents.Commit(std::move(unit), [&, written](const absl::StatusOr<UnitResult>& result) {
          end(result.status(), written);
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  all.get_future().wait();
  for (BusyTurn& turn : turns) turn.Stop();
  executor.Stop();
  for (size_t document = 0; document < kDocuments; ++document) {
    ASSERT_OK_AND_ASSIGN(const auto history, world->History(Named(std::to_string(document))));
    EXPECT_EQ(static_cast<int64_t>(history.size()), versions[document]);
  }
}

}  // namespace
}  // namespace strata::versioning::testing
