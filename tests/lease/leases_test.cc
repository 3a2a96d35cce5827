// Leases on every engine: who has one until when, which tokens are given, and what a take-over, a
// crash and a race leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "tests/lease/leases_world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/seeded_entropy.h"

namespace strata::lease::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EveryEngine : public LeasesTest {
 protected:
  LeasingProcess Another() { return LeasingProcess(world->store(), world.clock()); }
  void Advance(microseconds by) { world.clock().Advance(by); }
};
INSTANTIATE_TEST_SUITE_P(Engines, EveryEngine, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(EveryEngine, ALeaseIsAsItWasAcquired) {
  AcquireRequest request = Wanted("jobs", "worker-1");
  request.ttl = seconds(7);
  request.metadata = {{"address", "10.0.0.7:80"}};
  const UnixMicros before = world.clock().Now();
  const auto acquired = leases.Acquire(request);
  ASSERT_THAT(acquired, IsOk());
  const auto found = leases->Get("jobs");
  ASSERT_THAT(found, IsOk());
  for (const Lease& lease : {*acquired, *found}) {
    EXPECT_EQ(lease.name, "jobs");
    EXPECT_EQ(lease.holder, "worker-1");
    EXPECT_EQ(lease.token, acquired->token);
    EXPECT_EQ(lease.ttl, seconds(7));
    EXPECT_GE(lease.expire_time, before + 7'000'000);
    EXPECT_LE(lease.expire_time, world.clock().Now() + 7'000'000);
    EXPECT_EQ(lease.metadata, request.metadata);
    EXPECT_EQ(lease.place, Place());
  }
  EXPECT_GT(acquired->token, 0);
}

TEST_P(EveryEngine, OnlyItsHolderHasItUntilItExpires) {
  const auto first = leases.Acquire("jobs", "worker-1");
  ASSERT_THAT(first, IsOk());
  LeasingProcess other = Another();
  Advance(seconds(9));
  const auto refused = other.Acquire("jobs", "worker-2");
  ASSERT_THAT(refused, HasReason(ErrorReason::kLeaseHeld));
  EXPECT_EQ(MetadataOf(refused.status(), "lease"), "jobs");
  EXPECT_EQ(MetadataOf(refused.status(), "holder"), "worker-1");
  EXPECT_TRUE(MetadataOf(refused.status(), "expire_time").has_value());
  const auto retry_after = RetryAfterOf(refused.status());
  ASSERT_TRUE(retry_after.has_value());
  EXPECT_GT(*retry_after, microseconds(0));
  EXPECT_LE(*retry_after, seconds(1));
  Advance(seconds(1));
  const auto second = other.Acquire("jobs", "worker-2");
  ASSERT_THAT(second, IsOk());
  EXPECT_GT(second->token, first->token);
  EXPECT_EQ(second->holder, "worker-2");
  const auto late = leases.Renew("jobs", first->token);
  ASSERT_THAT(late, HasReason(ErrorReason::kLeaseLost));
  EXPECT_EQ(MetadataOf(late.status(), "token"), std::to_string(first->token));
  EXPECT_EQ(MetadataOf(late.status(), "actual"), std::to_string(second->token));
  EXPECT_THAT(leases.Release("jobs", first->token), HasReason(ErrorReason::kLeaseLost));
  EXPECT_EQ(leases->Get("jobs")->token, second->token);
}

TEST_P(EveryEngine, ARestartedHolderNeedNotWaitForItsFormerSelf) {
  const auto former = leases.Acquire("jobs", "worker-1");
  ASSERT_THAT(former, IsOk());
  const auto restarted = Another().Acquire("jobs", "worker-1");
  ASSERT_THAT(restarted, IsOk());
  EXPECT_GT(restarted->token, former->token);
  EXPECT_THAT(leases.Renew("jobs", former->token), HasReason(ErrorReason::kLeaseLost));
  EXPECT_THAT(leases.Renew("jobs", restarted->token), IsOk());
}

TEST_P(EveryEngine, ARenewedLeaseLastsLongerAlsoAfterItExpired) {
  const auto lease = leases.Acquire("jobs", "worker-1");
  ASSERT_THAT(lease, IsOk());
  Advance(seconds(8));
  ASSERT_THAT(leases.Renew("jobs", lease->token), IsOk());
  Advance(seconds(8));
  EXPECT_THAT(leases.Acquire("jobs", "worker-2"), HasReason(ErrorReason::kLeaseHeld));
  Advance(seconds(60));
  RenewRequest longer;
  longer.name = "jobs";
  longer.token = lease->token;
  longer.ttl = seconds(100);
  const auto renewed = leases.Renew(longer);
  ASSERT_THAT(renewed, IsOk());
  EXPECT_EQ(renewed->token, lease->token);
  EXPECT_EQ(renewed->ttl, seconds(100));
  Advance(seconds(90));
  EXPECT_THAT(leases.Acquire("jobs", "worker-2"), HasReason(ErrorReason::kLeaseHeld));
}

TEST_P(EveryEngine, AReleasedLeaseIsFreeAndItsTokenNobodys) {
  const auto lease = leases.Acquire("jobs", "worker-1");
  ASSERT_THAT(lease, IsOk());
  const auto released = leases.Release("jobs", lease->token);
  ASSERT_THAT(released, IsOk());
  EXPECT_EQ(released->holder, "");
  EXPECT_THAT(released->metadata, IsEmpty());
  EXPECT_GT(released->token, lease->token);
  EXPECT_LE(released->expire_time, world.clock().Now());
  EXPECT_EQ(leases->Get("jobs")->token, released->token);
  // Neither the token of before, nor that of the release, which whoever looks is shown.
  for (const store::Stamp token : {lease->token, released->token}) {
    EXPECT_THAT(leases.Renew("jobs", token), HasReason(ErrorReason::kLeaseLost));
    EXPECT_THAT(leases.Release("jobs", token), HasReason(ErrorReason::kLeaseLost));
  }
  const auto next = leases.Acquire("jobs", "worker-2");
  ASSERT_THAT(next, IsOk());
  EXPECT_GT(next->token, released->token);
}

TEST_P(EveryEngine, WhatWasNeverAcquiredIsNotFound) {
  EXPECT_THAT(leases->Get("jobs"), HasReason(ErrorReason::kLeaseNotFound));
  const auto lost = leases.Renew("jobs", 17);
  EXPECT_THAT(lost, HasReason(ErrorReason::kLeaseLost));
  EXPECT_EQ(MetadataOf(lost.status(), "actual"), "0");
  EXPECT_THAT(leases.Release("jobs", 17), HasReason(ErrorReason::kLeaseLost));
  EXPECT_THAT(leases.Names(), IsEmpty());
}

TEST_P(EveryEngine, LeasesAreListedByTheirNames) {
  for (const char* const name : {"b", "$sub/1", "a/b", "ab", "a", "a b"}) {
    ASSERT_THAT(leases.Acquire(name, "worker"), IsOk());
  }
  EXPECT_THAT(leases.Names(), ElementsAre("$sub/1", "a", "a b", "a/b", "ab", "b"));
  EXPECT_THAT(leases.Names({"", "", {}}, 2), ElementsAre("$sub/1", "a"));
  EXPECT_THAT(leases.Names({"", "a", {}}, 2), ElementsAre("a b", "a/b"));
  EXPECT_THAT(leases.Names({"a", "", {}}), ElementsAre("a", "a b", "a/b", "ab"));
  EXPECT_THAT(leases.Names({"a", "a b", {}}), ElementsAre("a/b", "ab"));
  EXPECT_THAT(leases.Names({"c", "", {}}), IsEmpty());
  EXPECT_THAT(leases->List({"", "", [] { return true; }}, 2), HasReason(ErrorReason::kCancelled));
}

TEST_P(EveryEngine, APlaceNeverGoesBack) {
  const auto lease = leases.Acquire("jobs", "worker-1");
  ASSERT_THAT(lease, IsOk());
  if (!GetParam().atomic()) {
    const auto refused = leases.Renew("jobs", lease->token, 1);
    EXPECT_THAT(refused, HasReason(ErrorReason::kUnsupportedByEngine));
    EXPECT_EQ(MetadataOf(refused.status(), "capability"), "commit_positions");
    return;
  }
  for (int i = 0; i < 3; ++i) ASSERT_THAT(leases.Acquire("other", "worker"), IsOk());
  const store::CommitPosition last = world->store().LastPosition();
  EXPECT_EQ(leases.Renew("jobs", lease->token, last - 1)->place, (Place{last - 1, {}}));
  EXPECT_THAT(leases.Renew("jobs", lease->token, last - 1), IsOk());
  const auto back = leases.Renew("jobs", lease->token, last - 2);
  ASSERT_THAT(back, HasReason(ErrorReason::kAlreadyAcknowledged));
  EXPECT_EQ(MetadataOf(back.status(), "lease"), "jobs");
  EXPECT_EQ(MetadataOf(back.status(), "position"), std::to_string(last - 2));
  EXPECT_EQ(MetadataOf(back.status(), "actual"), std::to_string(last - 1));
  const store::CommitPosition now = world->store().LastPosition();
  const auto ahead = leases.Renew("jobs", lease->token, now + 1);
  ASSERT_THAT(ahead, HasReason(ErrorReason::kPositionUnknown));
  EXPECT_EQ(MetadataOf(ahead.status(), "field"), "position");
  EXPECT_EQ(MetadataOf(ahead.status(), "last"), std::to_string(now));
  // Whoever has it next begins there.
  ASSERT_THAT(leases.Release("jobs", lease->token), IsOk());
  EXPECT_EQ(leases.Acquire("jobs", "worker-2")->place, (Place{last - 1, {}}));
}

TEST_P(EveryEngine, TokensOnlyGrow) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t count) { return random() % count; };
  LeasingProcess other = Another();
  LeasingProcess* const processes[] = {&leases, &other};
  std::map<std::string, store::Stamp> newest;
  store::Stamp newest_of_all = 0;
  std::map<std::string, store::Stamp> held;
  int acquired = 0;
  for (int step = 0; step < 600; ++step) {
    LeasingProcess& process = *processes[below(2)];
    const std::string name = "lease " + std::to_string(below(3));
    absl::StatusOr<Lease> lease = absl::UnknownError("");
    if (below(3) == 0) {
      lease = process.Release(name, held[name] + 1 - static_cast<store::Stamp>(below(4) != 0));
    } else {
      lease = process.Acquire(name, "worker " + std::to_string(below(3)));
      if (lease.ok()) ++acquired;
    }
    if (lease.ok()) {
      EXPECT_GT(lease->token, newest[name]);
      newest[name] = held[name] = lease->token;
      if (GetParam().atomic()) {
        EXPECT_GT(lease->token, std::exchange(newest_of_all, lease->token));
      }
    }
    if (below(4) == 0) Advance(seconds(below(12)));
  }
  EXPECT_GT(acquired, 100);
}

// A store over which others act just before a commit.
class Raced : public LeasesTest {
 protected:
  // Once, before the next commit.
  void Before(std::function<void()> act) {
    test_support::StoreHooks hooks;
    hooks.before_commit = [this, act = std::move(act)](const store::WriteBatch&) {
      if (!std::exchange(acted_, true)) act();
    };
    acted_ = false;
    hooked.set_hooks(std::move(hooks));
  }

  test_support::HookedStore hooked{world->store()};
  LeasingProcess slow{hooked, world.clock()};
  bool acted_ = true;
};
INSTANTIATE_TEST_SUITE_P(Engines, Raced, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(Raced, WhoComesSecondFindsItHeld) {
  absl::StatusOr<Lease> first = absl::UnknownError("");
  Before([&] { first = leases.Acquire("jobs", "worker-1"); });
  EXPECT_THAT(slow.Acquire("jobs", "worker-2"), HasReason(ErrorReason::kLeaseHeld));
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(leases.Renew("jobs", first->token), IsOk());
}

TEST_P(Raced, WhoComesSecondUnderTheSameNameFencesTheFirst) {
  absl::StatusOr<Lease> first = absl::UnknownError("");
  Before([&] { first = leases.Acquire("jobs", "worker-1"); });
  const auto second = slow.Acquire("jobs", "worker-1");
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_GT(second->token, first->token);
  EXPECT_EQ(leases->Get("jobs")->token, second->token);
}

TEST_P(Raced, ARenewalOfWhatWasTakenMeanwhileKeepsNothing) {
  const auto lease = slow.Acquire("jobs", "worker-1");
  ASSERT_THAT(lease, IsOk());
  world.clock().Advance(seconds(20));
  Before([&] { ASSERT_THAT(leases.Acquire("jobs", "worker-2"), IsOk()); });
  EXPECT_THAT(slow.Renew("jobs", lease->token), HasReason(ErrorReason::kLeaseLost));
  EXPECT_EQ(leases->Get("jobs")->holder, "worker-2");
}

TEST_P(Raced, AReleaseOfWhatWasTakenMeanwhileTakesNothing) {
  const auto lease = slow.Acquire("jobs", "worker-1");
  ASSERT_THAT(lease, IsOk());
  Before([&] { ASSERT_THAT(leases.Acquire("jobs", "worker-1"), IsOk()); });
  EXPECT_THAT(slow.Release("jobs", lease->token), HasReason(ErrorReason::kLeaseLost));
  EXPECT_EQ(leases->Get("jobs")->holder, "worker-1");
}

// Only so often, each time another was faster.
TEST_P(Raced, WhoAlwaysLosesIsToldSo) {
  const auto lease = leases.Acquire("jobs", "worker-1");
  ASSERT_THAT(lease, IsOk());
  int lost = 0;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch&) {
    ++lost;
    ASSERT_THAT(leases.Renew("jobs", lease->token), IsOk());
  };
  hooked.set_hooks(std::move(hooks));
  EXPECT_THAT(slow.Renew("jobs", lease->token), HasReason(ErrorReason::kRetriesExhausted));
  EXPECT_EQ(lost, 16);
  lost = 0;
  EXPECT_THAT(slow.Acquire("jobs", "worker-1"), HasReason(ErrorReason::kRetriesExhausted));
  EXPECT_EQ(lost, 16);
}

TEST_P(Raced, WhatTheStoreRefusesIsTold) {
  const auto lease = leases.Acquire("jobs", "worker-1");
  ASSERT_THAT(lease, IsOk());
  test_support::StoreHooks hooks;
  hooks.instead_of_commit = [](const store::WriteBatch&) {
    store::CommitResult result;
    result.status = Error(ErrorReason::kDiskFull, "the disk is full");
    return result;
  };
  hooked.set_hooks(std::move(hooks));
  EXPECT_THAT(slow.Renew("jobs", lease->token), HasReason(ErrorReason::kDiskFull));
  EXPECT_THAT(slow.Release("jobs", lease->token), HasReason(ErrorReason::kDiskFull));
  EXPECT_THAT(slow.Acquire("jobs", "worker-1"), HasReason(ErrorReason::kDiskFull));
  EXPECT_THAT(slow.Acquire("other", "worker-1"), HasReason(ErrorReason::kDiskFull));
}

// The engine that writes one record at a time.
class SingleRecords : public LeasesTest {
 protected:
  SingleRecords() : LeasesTest(Engine{"memory", Mode::kSingle}) {}
  store::Store& engine() { return world.engine(); }
};

TEST_F(SingleRecords, ACrashBetweenTheTwoRecordsLeavesTheLeaseFree) {
  world->single().CrashAfter(1);
  EXPECT_THAT(leases.Acquire("jobs", "worker-1"), HasReason(ErrorReason::kOutcomeUnknown));
  test_support::SingleRecordStore restarted(engine());
  LeasingProcess next(restarted, world.clock());
  EXPECT_THAT(next->Get("jobs"), HasReason(ErrorReason::kLeaseNotFound));
  EXPECT_THAT(next.Names(), IsEmpty());
  const auto lease = next.Acquire("jobs", "worker-2");
  ASSERT_THAT(lease, IsOk());
  EXPECT_THAT(next.Renew("jobs", lease->token), IsOk());
}

TEST_F(SingleRecords, ACrashInATakeOverLeavesTheTokenThatWas) {
  const auto former = leases.Acquire("jobs", "worker-1");
  ASSERT_THAT(former, IsOk());
  world.clock().Advance(seconds(10));
  world->single().CrashAfter(1);
  EXPECT_THAT(leases.Acquire("jobs", "worker-2"), HasReason(ErrorReason::kOutcomeUnknown));
  test_support::SingleRecordStore restarted(engine());
  LeasingProcess next(restarted, world.clock());
  EXPECT_EQ(next->Get("jobs")->token, former->token);
  EXPECT_THAT(next.Renew("jobs", former->token), IsOk());
  world.clock().Advance(seconds(10));
  EXPECT_GT(next.Acquire("jobs", "worker-2")->token, former->token);
}

// Whoever takes the lease between the commit and the look for its token: each has another token.
TEST_F(SingleRecords, ATokenIsThatOfItsOwnAcquire) {
  LeasingProcess other(world->store(), world.clock());
  LeaseAnswer answer;
  leases->Acquire(Wanted("jobs", "worker-1"), answer.Callback());
  ASSERT_FALSE(answer.ready()) << "it has yet to look";
  const auto between = other.Acquire("jobs", "worker-1");
  ASSERT_THAT(between, IsOk());
  const auto lease = leases.Await(answer);
  ASSERT_THAT(lease, IsOk());
  EXPECT_GT(lease->token, between->token);
  EXPECT_THAT(other.Renew("jobs", between->token), HasReason(ErrorReason::kLeaseLost));
}

// Released leases that nobody has used for long.
class Swept : public ::testing::Test {
 protected:
  static constexpr microseconds kKept = std::chrono::hours(24 * 30);

  explicit Swept(Mode mode = Mode::kAtomic) : world({.mode = mode}) {}

  void Sweep() {
    leases->StartSweeping();
    world.clock().Advance(seconds(1));
    leases.executor().RunDue();
    world.clock().Advance(seconds(1));
    leases.executor().RunDue();
  }
  store::Stamp AcquireAndRelease(const std::string& name,
                                 std::optional<store::CommitPosition> position = {}) {
    const auto lease = leases.Acquire(name, "worker");
    EXPECT_THAT(lease, IsOk());
    EXPECT_THAT(leases.Renew(name, lease->token, position), IsOk());
    EXPECT_THAT(leases.Release(name, lease->token), IsOk());
    return lease->token;
  }
  size_t Records() {
    size_t count = 0;
    const auto cursor = world->store().Scan(store::Keyspace::kLeases, {});
    for (; cursor->Valid(); cursor->Next()) ++count;
    return count;
  }

  World world;
  LeasingProcess leases{world->store(), world.clock(), LeasesOptions{.sweep_leases_max = 2}};
};

TEST_F(Swept, OnesWithoutAPlaceAreForgottenAfterThirtyDays) {
  ASSERT_THAT(leases.Acquire("held", "worker"), IsOk());
  AcquireAndRelease("at a place", 1);
  for (const char* const name : {"a", "b", "c", "d", "e"}) AcquireAndRelease(name);
  world.clock().Advance(kKept / 2);
  AcquireAndRelease("young");
  world.clock().Advance(kKept / 2);
  const size_t before = Records();
  for (int turn = 0; turn < 3; ++turn) Sweep();
  EXPECT_THAT(leases.Names(), ElementsAre("at a place", "held", "young"));
  EXPECT_EQ(Records(), 6u);
  EXPECT_EQ(before, 16u);
}

TEST_F(Swept, NobodyIsForgottenBefore) {
  AcquireAndRelease("a");
  world.clock().Advance(kKept - seconds(10));
  Sweep();
  EXPECT_THAT(leases.Names(), ElementsAre("a"));
}

TEST_F(Swept, EachHourAgain) {
  leases->StartSweeping();
  leases.executor().RunDue();
  AcquireAndRelease("a");
  world.clock().Advance(kKept);
  leases.executor().RunDue();
  world.clock().Advance(seconds(1));
  leases.executor().RunDue();
  EXPECT_THAT(leases.Names(), IsEmpty());
}

// Each lease that is asked for by its key takes a place in an engine's cache.
TEST_F(Swept, LeasesThatStayAreNotAskedForOneByOne) {
  for (const char* const name : {"a", "b", "c"}) ASSERT_THAT(leases.Acquire(name, "x"), IsOk());
  AcquireAndRelease("d");
  test_support::HookedStore hooked(world->store());
  int gets = 0;
  test_support::StoreHooks hooks;
  hooks.before_get = [&](store::Keyspace, std::string_view) { ++gets; };
  hooked.set_hooks(std::move(hooks));
  LeasingProcess sweeping(hooked, world.clock());
  sweeping->StartSweeping();
  sweeping.executor().RunDue();
  EXPECT_EQ(gets, 0);
  world.clock().Advance(kKept);
  sweeping.executor().RunDue();
  EXPECT_GT(gets, 0);
  EXPECT_THAT(leases.Names(), ElementsAre("a", "b", "c"));
}

TEST_F(Swept, TokensGrowPastWhatWasForgotten) {
  const store::Stamp former = AcquireAndRelease("a");
  world.clock().Advance(kKept);
  Sweep();
  ASSERT_THAT(leases.Names(), IsEmpty());
  EXPECT_THAT(leases.Renew("a", former), HasReason(ErrorReason::kLeaseLost));
  EXPECT_GT(leases.Acquire("a", "worker")->token, former);
}

class SweptSingle : public Swept {
 protected:
  SweptSingle() : Swept(Mode::kSingle) {}
};

// There a forgotten key's stamps may come again.
TEST_F(SweptSingle, NothingIsForgottenWhereStampsAreNoPositions) {
  AcquireAndRelease("a");
  world.clock().Advance(kKept * 2);
  Sweep();
  EXPECT_THAT(leases.Names(), ElementsAre("a"));
  EXPECT_EQ(leases.executor().pending(), 0u);
}

// One who takes the lease while it is being forgotten keeps it.
TEST(SweptRace, WhatIsTakenMeanwhileStays) {
  World world;
  test_support::HookedStore hooked(world->store());
  LeasingProcess leases(hooked, world.clock());
  LeasingProcess other(world->store(), world.clock());
  const auto former = other.Acquire("a", "worker");
  ASSERT_THAT(other.Release("a", former->token), IsOk());
  world.clock().Advance(std::chrono::hours(24 * 30));
  absl::StatusOr<Lease> taken = absl::UnknownError("");
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch&) { taken = other.Acquire("a", "worker"); };
  hooked.set_hooks(std::move(hooks));
  leases->StartSweeping();
  leases.executor().RunDue();
  ASSERT_THAT(taken, IsOk());
  EXPECT_EQ(other->Get("a")->token, taken->token);
}

TEST(LeaseRequests, AreRefusedWithTheFieldAtFault) {
  World world;
  LeasingProcess leases(world->store(), world.clock());
  const auto field_of = [](const auto& answer) {
    return MetadataOf(answer.status(), "field").value_or("");
  };
  const std::string long_name(257, 'a');
  for (const std::string& name : {std::string(), long_name, std::string("a\nb")}) {
    EXPECT_THAT(leases.Acquire(name, "worker"), HasReason(ErrorReason::kInvalidName));
    EXPECT_EQ(field_of(leases.Acquire(name, "worker")), "name");
    EXPECT_EQ(field_of(leases.Acquire("jobs", name)), "holder");
    EXPECT_EQ(field_of(leases.Renew(name, 1)), "name");
    EXPECT_EQ(field_of(leases.Release(name, 1)), "name");
    EXPECT_EQ(field_of(leases->Get(name)), "name");
  }
  for (const microseconds ttl : {microseconds(0), microseconds(999'999), microseconds(-1),
                                 microseconds(seconds(3600)) + microseconds(1)}) {
    AcquireRequest request = Wanted("jobs", "worker");
    request.ttl = ttl;
    EXPECT_EQ(field_of(leases.Acquire(request)), "ttl");
  }
  EXPECT_EQ(field_of(leases.Acquire(Wanted("jobs", "worker", seconds(26)))), "wait");
  EXPECT_EQ(field_of(leases.Acquire(Wanted("jobs", "worker", seconds(-1)))), "wait");
  for (const Metadata& metadata :
       {Metadata{{"", "a"}}, Metadata{{std::string(129, 'a'), ""}},
        Metadata{{"a", std::string(257, 'a')}}, Metadata{{std::string("a\0b", 3), ""}}}) {
    AcquireRequest request = Wanted("jobs", "worker");
    request.metadata = metadata;
    EXPECT_EQ(field_of(leases.Acquire(request)), "metadata");
  }
  AcquireRequest crowded = Wanted("jobs", "worker");
  for (int i = 0; i < 33; ++i) crowded.metadata.emplace(std::to_string(i), "");
  EXPECT_EQ(field_of(leases.Acquire(crowded)), "metadata");
  EXPECT_EQ(field_of(leases.Renew("jobs", 0)), "token");
  EXPECT_EQ(field_of(leases.Release("jobs", -1)), "token");
  EXPECT_EQ(field_of(leases.Renew("jobs", 1, -1)), "position");
  EXPECT_THAT(leases.Names(), IsEmpty());
}

}  // namespace
}  // namespace strata::lease::testing
