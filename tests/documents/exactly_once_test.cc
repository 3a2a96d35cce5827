// Request ids: a repeated write takes effect once, across lost answers, crashes, restarts and
// races.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schemas/store/key_codec.h"
#include "schemas/versioning/documents.h"
#include "schemas/versioning/record_codec.h"
#include "tests/documents/held_commits.h"
#include "tests/documents/world.h"
#include "tests/support/await_commit.h"
#include "tests/support/hooked_store.h"
#include "tests/support/status_matchers.h"

namespace strata::versioning::testing {
namespace {

using test_support::HasReason;
using test_support::IsOk;

class ExactlyOnceTest : public CombinationTest {};

TEST_P(ExactlyOnceTest, ARepeatedCallAnswersWhatTheFirstDid) {
  ASSERT_OK_AND_ASSIGN(const WriteResult created, world->Create(Request("a", "r1"), Number(1)));
  ASSERT_OK_AND_ASSIGN(const WriteResult updated,
                       world->Update(Request("a", "r2"), Increment("/n", 1)));
  ASSERT_OK_AND_ASSIGN(const WriteResult deleted, world->Delete(Request("a", "r3")));
  ASSERT_OK_AND_ASSIGN(const WriteResult restored, world->Restore(Request("a", "r4"), 2));
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK_AND_ASSIGN(WriteResult again, world->Create(Request("a", "r1"), Number(1)));
    EXPECT_TRUE(again.replayed);
    EXPECT_EQ(again.version.header, created.version.header);
    EXPECT_EQ(*again.version.content, Number(1));
    EXPECT_EQ(again.position, created.position);
    ASSERT_OK_AND_ASSIGN(again, world->Update(Request("a", "r2"), Increment("/n", 1)));
    EXPECT_EQ(again.version.header, updated.version.header);
    EXPECT_EQ(again.position, updated.position);
    ASSERT_OK_AND_ASSIGN(again, world->Delete(Request("a", "r3")));
    EXPECT_EQ(again.version.header, deleted.version.header);
    ASSERT_OK_AND_ASSIGN(again, world->Restore(Request("a", "r4"), 2));
    EXPECT_EQ(again.version.header, restored.version.header);
    world.Restart();
  }
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history.size(), 4u);
}

TEST_P(ExactlyOnceTest, OtherArgumentsUnderTheSameIdAreRefused) {
  ASSERT_THAT(world->Create(Request("a", "r1"), Number(1)), IsOk());
  EXPECT_THAT(world->Create(Request("a", "r1"), Number(2)),
              HasReason(ErrorReason::kRequestIdReused));
  EXPECT_THAT(world->Delete(Request("a", "r1")), HasReason(ErrorReason::kRequestIdReused));
  WriteRequest other = Request("a", "r1");
  other.change.reason = "another";
  EXPECT_THAT(world->Create(other, Number(1)), HasReason(ErrorReason::kRequestIdReused));
  ASSERT_THAT(world->Update(Request(), Number(5)), IsOk());
  EXPECT_THAT(world->Update(Request("a", "r1"), Number(1)),
              HasReason(ErrorReason::kRequestIdReused));
}

TEST_P(ExactlyOnceTest, TheLookupComesBeforeThePrecondition) {
  WriteRequest request = Request("a", "r1");
  request.precondition.exists = false;
  ASSERT_THAT(world->Create(request, Number(1)), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult again, world->Create(request, Number(1)));
  EXPECT_TRUE(again.replayed);
}

TEST_P(ExactlyOnceTest, ACreationWithoutIdFindsItsDocumentAgain) {
  ASSERT_OK_AND_ASSIGN(const WriteResult one, world->Create(Request("", "r1"), Number(1)));
  ASSERT_OK_AND_ASSIGN(const WriteResult again, world->Create(Request("", "r1"), Number(1)));
  ASSERT_OK_AND_ASSIGN(const WriteResult other, world->Create(Request("", ""), Number(1)));
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.name.id, one.name.id);
  EXPECT_NE(other.name.id, one.name.id);
}

TEST_P(ExactlyOnceTest, IdsAreForgottenAfterADay) {
  ASSERT_THAT(world->Create(Request("a", "r1"), Number(1)), IsOk());
  ASSERT_THAT(world->Update(Request("a", "r2"), Number(2)), IsOk());
  world.clock().Advance(std::chrono::hours(23));
  EXPECT_TRUE(world->Create(Request("a", "r1"), Number(1))->replayed);
  world.clock().Advance(std::chrono::hours(2));
  EXPECT_THAT(world->Create(Request("a", "r1"), Number(1)),
              HasReason(ErrorReason::kDocumentExists));
  // Used again, the id is remembered anew, as head and as an older version.
  ASSERT_OK_AND_ASSIGN(const WriteResult fresh, world->Update(Request("a", "r1"), Number(3)));
  EXPECT_FALSE(fresh.replayed);
  ASSERT_THAT(world->Update(Request(), Number(4)), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult again, world->Update(Request("a", "r1"), Number(3)));
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.version.header.version, 3);
}

// The batch that supersedes both versions with that id remembers the newer one.
TEST_P(ExactlyOnceTest, AForgottenIdThatIsUsedAnewInAGroupTakesEffectOnce) {
  ASSERT_THAT(world->Create(Request("a", "r1"), Number(0)), IsOk());
  world.clock().Advance(std::chrono::hours(25));
  HeldCommits held(world->store());
  test_support::ManualExecutor executor(world.clock());
  test_support::SeededEntropy entropy(3);
  Documents documents(held, world.clock(), entropy, executor, {});
  held.hold = true;
  Answer first;
  Answer anew;
  Answer other;
  documents.Update(Request(), Increment("/x", 1), false, first.Callback());
  documents.Update(Request("a", "r1"), Increment("/n", 1), false, anew.Callback());
  documents.Update(Request(), Increment("/y", 1), false, other.Callback());
  held.Fail(Overloaded());  // so that the other two come into one batch, where there are batches
  held.LetGo();
  if (GetParam().mode != Mode::kAtomic) held.LetGo();
  ASSERT_OK_AND_ASSIGN(const WriteResult made, anew.Wait());
  EXPECT_FALSE(made.replayed);
  ASSERT_THAT(other.Wait(), IsOk());
  ASSERT_OK_AND_ASSIGN(const WriteResult again,
                       world->Update(Request("a", "r1"), Increment("/n", 1)));
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.version.header, made.version.header);
  ASSERT_OK_AND_ASSIGN(const auto history, world->History(kName));
  EXPECT_EQ(history.size(), 3u);
}

constexpr UnixMicros kJump = kRequestIdLifetime + 1'000'000;

bool Replays(const absl::StatusOr<WriteResult>& result) { return result.ok() && result->replayed; }

// As the head's, as an older version's, and with commits between, in which an engine may forget.
TEST_P(ExactlyOnceTest, AJumpOfTheWallClockForgetsNoId) {
  ASSERT_THAT(world->Create(Request("a", "r1"), Number(1)), IsOk());
  ASSERT_THAT(world->Update(Request("a", "r2"), Number(2)), IsOk());
  world.clock().SetNow(world.clock().Now() + kJump);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Replays(world->Create(Request("a", "r1"), Number(1))));
    EXPECT_TRUE(Replays(world->Update(Request("a", "r2"), Number(2))));
    ASSERT_THAT(world->Update(Request("b", "other" + std::to_string(i)), Number(i), true), IsOk());
    ASSERT_THAT(world->Update(Request(), Number(10 + i)), IsOk());
  }
  // By both clocks.
  world.clock().Advance(std::chrono::microseconds(kJump));
  EXPECT_THAT(world->Create(Request("a", "r1"), Number(1)),
              HasReason(ErrorReason::kDocumentExists));
}

TEST_P(ExactlyOnceTest, AStepBackForgetsNoIdNorDoesItsCorrection) {
  ASSERT_THAT(world->Create(Request("a", "r1"), Number(1)), IsOk());
  world.clock().SetNow(world.clock().Now() - 2 * kJump);
  EXPECT_TRUE(Replays(world->Create(Request("a", "r1"), Number(1))));
  // Used while the clock was wrong.
  ASSERT_THAT(world->Create(Request("b", "r2"), Number(1)), IsOk());
  ASSERT_THAT(world->Update(Request("b"), Number(2)), IsOk());
  world.clock().SetNow(world.clock().Now() + 2 * kJump);
  EXPECT_TRUE(Replays(world->Create(Request("a", "r1"), Number(1))));
  EXPECT_TRUE(Replays(world->Create(Request("b", "r2"), Number(1))));
}

TEST_P(ExactlyOnceTest, AcrossARestartThereIsButTheWallClock) {
  ASSERT_THAT(world->Create(Request("a", "r1"), Number(1)), IsOk());
  ASSERT_THAT(world->Update(Request("a", "r2"), Number(2)), IsOk());
  world.Restart();
  EXPECT_TRUE(Replays(world->Create(Request("a", "r1"), Number(1))));
  world.clock().SetNow(world.clock().Now() + kJump);
  world.Restart();
  EXPECT_THAT(world->Create(Request("a", "r1"), Number(1)),
              HasReason(ErrorReason::kDocumentExists));
}

// What became of the version that it made matters no more.
TEST_P(ExactlyOnceTest, AForgottenIdIsFreeWhateverBecameOfItsContent) {
  ASSERT_THAT(world->Create(Request("a", "r1"), Number(1)), IsOk());
  ASSERT_THAT(world->Update(Request("a", "r2"), Number(2)), IsOk());
  ASSERT_OK_AND_ASSIGN(const CollectionPtr collection,
                       world->documents().collections().Require(world->store(), kName.collection));
  const std::string key = store::VersionKey(collection->incarnation, kName.id, 1);
  ASSERT_OK_AND_ASSIGN(const auto stored, world->store().Get(store::Keyspace::kVersions, key));
  if (!stored) GTEST_SKIP() << "versions are no records of their own";
  ASSERT_OK_AND_ASSIGN(VersionRecord record, DecodeVersion(stored->value, 1, Part::kContent));
  record.version.content.reset();
  store::WriteBatch damage;
  damage.Put(store::Keyspace::kVersions, key, EncodeVersion(record.version));
  ASSERT_TRUE(test_support::AwaitCommit(world->store(), std::move(damage)).committed);
  EXPECT_THAT(world->Create(Request("a", "r1"), Number(1)), HasReason(ErrorReason::kRecordCorrupt));
  world.clock().Advance(std::chrono::hours(25));
  ASSERT_OK_AND_ASSIGN(const WriteResult fresh, world->Update(Request("a", "r1"), Number(3)));
  EXPECT_EQ(fresh.version.header.version, 3);
}

TEST_P(ExactlyOnceTest, ARecordThatNamesAnothersVersionIsRefused) {
  ASSERT_THAT(world->Create(Request("a", "r1"), Number(1)), IsOk());
  ASSERT_THAT(world->Update(Request("a", "r2"), Number(2)), IsOk());
  ASSERT_THAT(world->Update(Request("a", "r3"), Number(3)), IsOk());
  ASSERT_OK_AND_ASSIGN(const CollectionPtr collection,
                       world->documents().collections().Require(world->store(), kName.collection));
  store::WriteBatch damage;
  damage.Put(store::Keyspace::kRequests, store::RequestKey(collection->incarnation, kName.id, "r1"),
             EncodeRequest(2));
  ASSERT_TRUE(test_support::AwaitCommit(world->store(), std::move(damage)).committed);
  EXPECT_THAT(world->Create(Request("a", "r1"), Number(1)), HasReason(ErrorReason::kRecordCorrupt));
}

// Whatever operation crashes wherever: after a restart the state is the one before or the one
// after, the repeated request takes effect exactly once, and the next update succeeds.
TEST_P(ExactlyOnceTest, ACrashBetweenAnyTwoWritesIsMendedByTheRepeatedCall) {
  if (GetParam().mode == Mode::kAtomic) GTEST_SKIP() << "exempt: an atomic batch has no between";
  using Operation = std::function<absl::StatusOr<WriteResult>(Process&, const WriteRequest&)>;
  const std::vector<std::pair<std::string, Operation>> operations = {
      {"create", [](Process& p, const WriteRequest& r) { return p.Create(r, Number(1)); }},
      {"update", [](Process& p, const WriteRequest& r) { return p.Update(r, Increment("/n", 1)); }},
      {"delete", [](Process& p, const WriteRequest& r) { return p.Delete(r); }},
      {"restore", [](Process& p, const WriteRequest& r) { return p.Restore(r, 1); }},
      {"upsert", [](Process& p, const WriteRequest& r) { return p.Update(r, Number(9), true); }},
  };
  int crashes = 0;
  for (const auto& [kind, operation] : operations) {
    for (size_t crash_after = 0; crash_after < 12; ++crash_after) {
      for (size_t crash_again = 0; crash_again < 4; ++crash_again) {
        SCOPED_TRACE(kind + " after " + std::to_string(crash_after) + " and " +
                     std::to_string(crash_again));
        World fresh({GetParam().engine, GetParam().mode, GetParam().strategy, 5, true});
        size_t before = 0;
        if (kind != "create") {
          ASSERT_THAT(fresh->Create(Request("a", "c"), Number(1)), IsOk());
          ASSERT_THAT(fresh->Update(Request("a", "u"), Number(2)), IsOk());
          ASSERT_THAT(fresh->Update(Request("a", "v"), Number(3)), IsOk());
          before = 3;
        }
        const WriteRequest request = Request("a", "the-one");
        fresh->single().CrashAfter(crash_after);
        const auto first = operation(fresh.process(), request);
        const bool crashed = fresh->single().crashed();
        if (!crashed) {
          EXPECT_THAT(first, IsOk());
          break;
        }
        ++crashes;
        // The retry may crash too; the third process finishes.
        fresh.Restart();
        fresh->single().CrashAfter(crash_again);
        (void)operation(fresh.process(), request);
        fresh.Restart();
        ASSERT_OK_AND_ASSIGN(const WriteResult done, operation(fresh.process(), request));
        EXPECT_EQ(done.version.header.version, static_cast<int64_t>(before + 1));
        ASSERT_OK_AND_ASSIGN(const WriteResult next, fresh->Update(Request(), Number(100), true));
        EXPECT_EQ(next.version.header.version, static_cast<int64_t>(before + 2));
        ASSERT_OK_AND_ASSIGN(const auto history, fresh->History(kName));
        ASSERT_EQ(history.size(), before + 2);
        document::Hash chain = ChainStart("things", "a");
        for (size_t i = history.size(); i-- > 0;) {
          chain = ChainHash(chain, history[i].header);
          EXPECT_EQ(chain, history[i].header.chain_hash);
        }
      }
    }
  }
  EXPECT_GT(crashes, 30);
}

// The answer of a commit that took effect is lost; the caller tries again, at once or after
// another writer.
TEST_P(ExactlyOnceTest, AnUnknownOutcomeIsSettledByTheRepeatedCall) {
  ASSERT_THAT(world->Create(Request(), Number(1)), IsOk());
  for (const bool took_effect : {true, false}) {
    for (const bool rival_between : {true, false}) {
      test_support::StoreHooks hooks;
      const absl::Status unknown = Error(ErrorReason::kOutcomeUnknown, "lost");
      if (took_effect) {
        hooks.after_commit = [&](store::CommitResult& result) {
          result = {};
          result.status = unknown;
        };
      } else {
        hooks.instead_of_commit = [&](const store::WriteBatch&) {
          store::CommitResult result;
          result.status = unknown;
          return result;
        };
      }
      test_support::HookedStore hooked(world->store(), hooks);
      test_support::ThreadExecutor executor;
      test_support::SeededEntropy entropy(11);
      Documents documents(hooked, world.clock(), entropy, executor, {});
      ASSERT_OK_AND_ASSIGN(const StoredVersion before, world->documents().Get(kName, {}));
      const WriteRequest request = Request(
          "a", std::string(took_effect ? "did" : "did-not") + (rival_between ? "-rival" : ""));
      Answer lost;
      documents.Update(request, Increment("/n", 1), false, lost.Callback());
      EXPECT_THAT(lost.Wait(), HasReason(ErrorReason::kOutcomeUnknown));
      if (rival_between) {
        ASSERT_THAT(world->Update(Request(), Increment("/m", 1)), IsOk());
      }
      hooked.set_hooks({});
      Answer repeated;
      documents.Update(request, Increment("/n", 1), false, repeated.Callback());
      ASSERT_OK_AND_ASSIGN(const WriteResult result, repeated.Wait());
      EXPECT_EQ(result.replayed, took_effect);
      const int64_t expected = before.header.version + 1 + (rival_between && !took_effect ? 1 : 0);
      EXPECT_EQ(result.version.header.version, expected);
      executor.Stop();
    }
  }
}

STRATA_ALL_COMBINATIONS(ExactlyOnceTest);

}  // namespace
}  // namespace strata::versioning::testing
