// Fenced writes: they commit only while their writer holds the lease, and move its place in the
// same commit, whatever they write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "schemas/transaction/transactions.h"
#include "tests/documents/held_commits.h"
#include "tests/lease/fenced_world.h"
#include "tests/support/hooked_store.h"

namespace strata::lease::testing {
namespace {

using versioning::testing::Adding;
using versioning::testing::Answer;
using versioning::testing::Named;
using versioning::testing::UnitAnswer;

class Fence : public FencedTest {
 protected:
  // Of the unit that puts "a" and "b".
  versioning::UnitRequest Unit(const LeaseToken& token) {
    versioning::UnitRequest unit;
    unit.changes.push_back(Adding(Named("a"), 1));
    unit.changes.push_back(Adding(Named("b"), 1));
    unit.joined.push_back(leases->Fence(token));
    unit.transaction_id = "t";
    return unit;
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, Fence, ::testing::ValuesIn(kAtomicEngines), EngineName);

TEST_P(Fence, LetsTheHolderWrite) {
  const Lease lease = Hold();
  EXPECT_THAT(world->Create(Fenced(Shown(lease)), Number(1)), IsOk());
  EXPECT_THAT(Put(Fenced(Shown(lease)), 2), IsOk());
  EXPECT_THAT(world->Delete(Fenced(Shown(lease))), IsOk());
  EXPECT_THAT(world->Restore(Fenced(Shown(lease)), 1), IsOk());
  EXPECT_THAT(versioning::testing::Commit(world.process(), Unit(Shown(lease))), IsOk());
  EXPECT_EQ(VersionOf(), 5);
  EXPECT_EQ(PlaceOf(), Place());
  // What is expired is held until somebody else has it.
  world.clock().Advance(seconds(60));
  EXPECT_THAT(Put(Fenced(Shown(lease)), 3), IsOk());
}

TEST_P(Fence, LetsNoZombieWrite) {
  const Lease lease = Hold();
  ASSERT_THAT(Put(Request("a"), 1), IsOk());
  ASSERT_THAT(Put(Request("a"), 2), IsOk());
  const Lease next = Hold();  // under the same name
  const store::CommitPosition last = Last();
  const auto refused = world->Create(Fenced(Shown(lease), "new"), Number(1));
  ASSERT_THAT(refused, HasReason(ErrorReason::kLeaseLost));
  EXPECT_EQ(MetadataOf(refused.status(), "lease"), "jobs");
  EXPECT_EQ(MetadataOf(refused.status(), "token"), std::to_string(lease.token));
  EXPECT_EQ(MetadataOf(refused.status(), "actual"), std::to_string(next.token));
  EXPECT_THAT(Put(Fenced(Shown(lease)), 3), HasReason(ErrorReason::kLeaseLost));
  EXPECT_THAT(world->Delete(Fenced(Shown(lease))), HasReason(ErrorReason::kLeaseLost));
  EXPECT_THAT(world->Restore(Fenced(Shown(lease)), 1), HasReason(ErrorReason::kLeaseLost));
  EXPECT_THAT(versioning::testing::Commit(world.process(), Unit(Shown(lease))),
              HasReason(ErrorReason::kLeaseLost));
  // What would change nothing, and what is only tried, is refused as well.
  EXPECT_THAT(Put(Fenced(Shown(lease)), 2), HasReason(ErrorReason::kLeaseLost));
  WriteRequest tried = Fenced(Shown(lease));
  tried.validate_only = true;
  EXPECT_THAT(Put(std::move(tried), 3), HasReason(ErrorReason::kLeaseLost));
  EXPECT_EQ(Last(), last) << "something was written";
}

TEST_P(Fence, KnowsTokensThatNobodyHas) {
  const Lease lease = Hold();
  const Lease other = Hold("worker-1", "others");
  const auto released = leases.Release("others", other.token);
  ASSERT_THAT(released, IsOk());
  for (const LeaseToken& token :
       {LeaseToken{"jobs", other.token, {}, {}}, LeaseToken{"jobs", lease.token + 1, {}, {}},
        LeaseToken{"others", lease.token, {}, {}}, LeaseToken{"others", other.token, {}, {}},
        // Whoever looks at a released lease is shown this one.
        LeaseToken{"others", released->token, {}, {}}, LeaseToken{"none", 1, {}, {}}}) {
    EXPECT_THAT(Put(Fenced(token), 1), HasReason(ErrorReason::kLeaseLost)) << token.name;
  }
  EXPECT_EQ(VersionOf(), 0);
}

TEST_P(Fence, MovesThePlaceWithTheWrite) {
  ASSERT_THAT(Put(Request("b"), 1), IsOk());
  const Lease lease = Hold();
  const store::CommitPosition at = Last();
  ASSERT_THAT(Put(Fenced(Shown(lease, Place{at - 1, 3})), 1), IsOk());
  EXPECT_EQ(PlaceOf(), (Place{at - 1, 3}));
  EXPECT_EQ(leases->Get("jobs")->token, lease.token);
  ASSERT_THAT(Put(Fenced(Shown(lease, Place{at - 1, {}}, Place{at - 1, 3})), 2), IsOk());
  EXPECT_EQ(PlaceOf(), (Place{at - 1, {}}));
  ASSERT_THAT(Put(Fenced(Shown(lease, Place{at, 0}, Place{at - 1, {}})), 3), IsOk());
  EXPECT_EQ(PlaceOf(), (Place{at, 0}));
  EXPECT_EQ(leases->Get("jobs")->expire_time, lease.expire_time);
}

TEST_P(Fence, LetsAnEventTakeEffectOnce) {
  ASSERT_THAT(Put(Request("b"), 1), IsOk());
  const Lease lease = Hold();
  const store::CommitPosition at = Last();
  ASSERT_THAT(Put(Fenced(Shown(lease, Place{at, 3})), 1), IsOk());
  for (const Place& done : {Place{at, 3}, Place{at, 0}, Place{at - 1, {}}}) {
    const auto refused = Put(Fenced(Shown(lease, done)), 2);
    ASSERT_THAT(refused, HasReason(ErrorReason::kAlreadyAcknowledged));
    EXPECT_EQ(MetadataOf(refused.status(), "position"), std::to_string(done.position));
    EXPECT_EQ(MetadataOf(refused.status(), "actual"), std::to_string(at));
    EXPECT_EQ(MetadataOf(refused.status(), "actual_index"), "3");
  }
  EXPECT_EQ(VersionOf(), 1);
  EXPECT_EQ(PlaceOf(), (Place{at, 3}));
}

TEST_P(Fence, LetsNoEventPassTheOneBefore) {
  const Lease lease = Hold();
  const store::CommitPosition at = Last();
  const auto early = Put(Fenced(Shown(lease, Place{at, 4}, Place{at, 3})), 1);
  ASSERT_THAT(early, HasReason(ErrorReason::kEventOutOfOrder));
  EXPECT_EQ(MetadataOf(early.status(), "after_position"), std::to_string(at));
  EXPECT_EQ(MetadataOf(early.status(), "after_index"), "3");
  EXPECT_EQ(MetadataOf(early.status(), "actual"), "0");
  EXPECT_EQ(MetadataOf(early.status(), "actual_index"), std::nullopt);
  EXPECT_EQ(VersionOf(), 0);
  EXPECT_EQ(PlaceOf(), Place());
  ASSERT_THAT(Put(Fenced(Shown(lease, Place{at, 3}, Place{0, {}})), 1), IsOk());
  EXPECT_THAT(Put(Fenced(Shown(lease, Place{at, 4}, Place{at, 3})), 2), IsOk());
}

TEST_P(Fence, KnowsNoPlaceBehindTheLastCommit) {
  const Lease lease = Hold();
  const store::CommitPosition last = Last();
  const auto refused = Put(Fenced(Shown(lease, Place{last + 1, {}})), 1);
  ASSERT_THAT(refused, HasReason(ErrorReason::kPositionUnknown));
  EXPECT_EQ(MetadataOf(refused.status(), "field"), "lease.position");
  EXPECT_EQ(MetadataOf(refused.status(), "last"), std::to_string(last));
  EXPECT_EQ(Last(), last);
  EXPECT_THAT(Put(Fenced(Shown(lease, Place{last, {}})), 1), IsOk());
}

TEST_P(Fence, MovesThePlaceWhereNothingIsChanged) {
  const Lease lease = Hold();
  ASSERT_THAT(Put(Request("a"), 1), IsOk());
  const store::CommitPosition at = Last();
  const auto same = Put(Fenced(Shown(lease, Place{at, {}})), 1);
  ASSERT_THAT(same, IsOk());
  EXPECT_FALSE(same->changed);
  EXPECT_EQ(VersionOf(), 1);
  EXPECT_EQ(PlaceOf(), (Place{at, {}}));
  EXPECT_THAT(Put(Fenced(Shown(lease, Place{at, {}})), 1),
              HasReason(ErrorReason::kAlreadyAcknowledged));
  // A unit that changes nothing, too.
  versioning::UnitRequest unit = Unit(Shown(lease, Place{at + 1, {}}));
  unit.changes.clear();
  unit.changes.push_back(Adding(Named("a"), 0));
  ASSERT_THAT(versioning::testing::Commit(world.process(), std::move(unit)), IsOk());
  EXPECT_EQ(VersionOf(), 1);
  EXPECT_EQ(PlaceOf(), (Place{at + 1, {}}));
}

TEST_P(Fence, MovesNothingForWhatIsOnlyTried) {
  const Lease lease = Hold();
  ASSERT_THAT(Put(Request("a"), 1), IsOk());
  const store::CommitPosition at = Last();
  for (const int64_t n : {1, 2}) {
    WriteRequest tried = Fenced(Shown(lease, Place{at, {}}));
    tried.validate_only = true;
    EXPECT_THAT(Put(std::move(tried), n), IsOk());
  }
  versioning::UnitRequest unit = Unit(Shown(lease, Place{at, {}}));
  unit.validate_only = true;
  EXPECT_THAT(versioning::testing::Commit(world.process(), std::move(unit)), IsOk());
  EXPECT_EQ(PlaceOf(), Place());
  EXPECT_EQ(Last(), at);
}

TEST_P(Fence, MovesNothingForWhatIsRefused) {
  const Lease lease = Hold();
  ASSERT_THAT(Put(Request("a"), 1), IsOk());
  const store::CommitPosition at = Last();
  const LeaseToken token = Shown(lease, Place{at, {}});
  EXPECT_THAT(world->Create(Fenced(token), Number(2)), HasReason(ErrorReason::kDocumentExists));
  WriteRequest conflicting = Fenced(token);
  conflicting.precondition.version = 7;
  EXPECT_THAT(Put(std::move(conflicting), 2), HasReason(ErrorReason::kVersionConflict));
  EXPECT_THAT(world->Delete(Fenced(token, "none")), HasReason(ErrorReason::kDocumentNotFound));
  EXPECT_EQ(PlaceOf(), Place());
  EXPECT_EQ(Last(), at);
}

TEST_P(Fence, IsNotAskedAboutWhatWasDone) {
  const Lease lease = Hold();
  const LeaseToken token = Shown(lease, Place{Last(), {}});
  const auto first = Put(Fenced(token, "a", "r1"), 1);
  ASSERT_THAT(first, IsOk());
  versioning::UnitRequest unit = Unit(Shown(lease));
  unit.request_fingerprint = "f";
  ASSERT_THAT(versioning::testing::Commit(world.process(), unit), IsOk());
  Hold("worker-2", "other");
  world.clock().Advance(seconds(60));
  Hold("worker-2");
  const auto again = Put(Fenced(token, "a", "r1"), 1);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(again->version.header.version, first->version.header.version);
  EXPECT_EQ(again->position, first->position);
  const auto unit_again = versioning::testing::Commit(world.process(), unit);
  ASSERT_THAT(unit_again, IsOk());
  EXPECT_TRUE(unit_again->replayed);
  EXPECT_THAT(Put(Fenced(token, "a", "r2"), 1), HasReason(ErrorReason::kLeaseLost));
}

TEST_P(Fence, OfAUnitMovesThePlaceOnce) {
  const Lease lease = Hold();
  const store::CommitPosition at = Last();
  ASSERT_THAT(versioning::testing::Commit(world.process(), Unit(Shown(lease, Place{at, {}}))),
              IsOk());
  EXPECT_EQ(PlaceOf(), (Place{at, {}}));
  versioning::UnitRequest again = Unit(Shown(lease, Place{at, {}}));
  EXPECT_THAT(versioning::testing::Commit(world.process(), std::move(again)),
              HasReason(ErrorReason::kAlreadyAcknowledged));
  EXPECT_EQ(VersionOf("a"), 1);
  EXPECT_EQ(VersionOf("b"), 1);
}

TEST_P(Fence, IsRefusedInTwoPhases) {
  const Lease lease = Hold();
  test_support::InlineExecutor executor;
  transaction::Transactions transactions(world->store(), world->documents(), world.clock(),
                                         Entropy::System(), executor, {});
  transaction::CommitRequest request;
  transaction::Operation write;
  write.name = Named("a");
  write.what = transaction::Create{Number(1)};
  request.writes.push_back(write);
  request.joined.push_back(leases->Fence(Shown(lease)));
  request.mode = transaction::TransactionMode::kTwoPhase;
  absl::Status answer;
  transactions.Commit(request, [&](const absl::StatusOr<transaction::Committed>& committed) {
    answer = committed.status();
  });
  EXPECT_THAT(answer, HasReason(ErrorReason::kUnsupportedByEngine));
  EXPECT_EQ(MetadataOf(answer, "capability"), "atomic_batches");
  EXPECT_EQ(VersionOf(), 0);
}

// Writes of one document that wait while its commit is under way, and then stand in one group.
class FencedGroup : public ::testing::Test {
 protected:
  static constexpr int kWriters = 64;

  FencedGroup() {
    versioning::DocumentsOptions options;
    options.write.default_strategy = versioning::FindStrategy("deltas");
    documents =
        std::make_unique<versioning::Documents>(held, world.clock(), entropy, executor, options);
  }

  Lease Hold(const std::string& holder) {
    const auto lease = leases.Acquire("jobs", holder);
    EXPECT_THAT(lease, IsOk());
    return *lease;
  }
  void Write(Answer& answer, const std::optional<LeaseToken>& token = {}) {
    WriteRequest request = Request("a");
    if (token) request.joined.push_back(leases->Fence(*token));
    documents->Update(std::move(request), versioning::testing::Increment("/n", 1),
                      /*allow_missing=*/true, answer.Callback());
  }
  void LetGoOfAll() {
    while (!held.held.empty() || executor.pending() > 0) {
      while (!held.held.empty()) held.LetGo();
      executor.RunAll();
    }
  }
  void ExpectAll(std::vector<Answer>& answers) {
    for (Answer& answer : answers) {
      ASSERT_TRUE(answer.ready());
      ASSERT_THAT(answer.Wait(), IsOk());
      EXPECT_LE(answer.Wait()->attempts, 2);
    }
  }

  World world;
  versioning::testing::HeldCommits held{world->store()};
  test_support::SeededEntropy entropy{1};
  test_support::ManualExecutor executor{world.clock()};
  std::unique_ptr<versioning::Documents> documents;
  LeasingProcess leases{world->store(), world.clock()};
};

TEST_F(FencedGroup, RefusesTheZombieAlone) {
  const Lease lease = Hold("worker-1");
  std::vector<Answer> answers(kWriters);
  Answer zombie;
  Write(answers[0]);
  held.hold = true;
  Write(answers[1]);
  for (int i = 2; i < kWriters; ++i) {
    if (i == kWriters / 2) Write(zombie, Shown(lease));
    Write(answers[static_cast<size_t>(i)]);
  }
  Hold("worker-1");
  LetGoOfAll();
  EXPECT_THAT(zombie.Wait(), HasReason(ErrorReason::kLeaseLost));
  ExpectAll(answers);
  EXPECT_EQ(documents->Get(Request("a").name, {})->header.version, kWriters);
}

// The lease is taken when the group has been decided and is about to be committed.
TEST_F(FencedGroup, CostsTheOthersOneMoreTryAtMost) {
  const Lease lease = Hold("worker-1");
  std::vector<Answer> answers(kWriters);
  Answer zombie;
  Write(answers[0]);
  held.hold = true;
  Write(answers[1]);
  for (int i = 2; i < kWriters; ++i) {
    if (i == kWriters / 2) Write(zombie, Shown(lease, Place{1, {}}));
    Write(answers[static_cast<size_t>(i)]);
  }
  held.LetGo();  // and the group is decided
  ASSERT_EQ(held.held.size(), 1u);
  EXPECT_GE(held.held.front().first.ledger().size(), size_t{kWriters} - 2);
  EXPECT_FALSE(zombie.ready());
  Hold("worker-1");
  LetGoOfAll();
  EXPECT_THAT(zombie.Wait(), HasReason(ErrorReason::kLeaseLost));
  ExpectAll(answers);
  EXPECT_EQ(documents->Get(Request("a").name, {})->header.version, kWriters);
  EXPECT_EQ(leases->Get("jobs")->place, Place());
}

// A place is decided on what the entries before it leave: one after the other.
TEST_F(FencedGroup, LetsEachEventTakeEffectOnce) {
  const Lease lease = Hold("worker-1");
  std::vector<Answer> answers(kWriters);
  std::vector<Answer> again(kWriters);
  Answer first;
  Write(first);
  held.hold = true;
  for (int i = 0; i < kWriters; ++i) {
    const LeaseToken token =
        Shown(lease, Place{1, i}, Place{i == 0 ? 0 : 1, i == 0 ? std::optional<int32_t>() : i - 1});
    Write(answers[static_cast<size_t>(i)], token);
    Write(again[static_cast<size_t>(i)], token);
  }
  LetGoOfAll();
  ExpectAll(answers);
  for (Answer& answer : again) {
    EXPECT_THAT(answer.Wait(), HasReason(ErrorReason::kAlreadyAcknowledged));
  }
  EXPECT_EQ(documents->Get(Request("a").name, {})->header.version, kWriters + 1);
  EXPECT_EQ(leases->Get("jobs")->place, (Place{1, kWriters - 1}));
}

// As a consumer sends them who does not wait for each answer.
TEST_F(FencedGroup, TakesEventsThatFollowEachOtherAtOnce) {
  const Lease lease = Hold("worker-1");
  std::vector<Answer> answers(kWriters);
  Answer first;
  Write(first);
  held.hold = true;
  for (int i = 0; i < kWriters; ++i) {
    Write(answers[static_cast<size_t>(i)],
          Shown(lease, Place{1, i},
                Place{i == 0 ? 0 : 1, i == 0 ? std::optional<int32_t>() : i - 1}));
  }
  LetGoOfAll();
  ExpectAll(answers);
  EXPECT_EQ(leases->Get("jobs")->place, (Place{1, kWriters - 1}));
}

// Without atomic batches nothing can be checked in the commit of a write.
class NoFence : public FencedTest {};
INSTANTIATE_TEST_SUITE_P(Engines, NoFence, ::testing::Values(Engine{"memory", Mode::kSingle}),
                         EngineName);

TEST_P(NoFence, WithoutAtomicBatches) {
  const Lease lease = Hold();
  const auto refused = Put(Fenced(Shown(lease)), 1);
  EXPECT_THAT(refused, HasReason(ErrorReason::kUnsupportedByEngine));
  EXPECT_EQ(MetadataOf(refused.status(), "capability"), "atomic_batches");
  EXPECT_EQ(VersionOf(), 0);
}

}  // namespace
}  // namespace strata::lease::testing
