// What a holder inside the server writes with its lease: a place inside a commit, data of its own,
// more in the same commit; and what goes wrong without the guards of those writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "schemas/document/bson_builder.h"
#include "schemas/store/forwarding_store.h"
#include "tests/lease/leases_world.h"
#include "tests/support/hooked_store.h"

namespace strata::lease::testing {
namespace {

using store::Keyspace;
using store::WriteBatch;
using ::testing::IsEmpty;
using End = HeldWrite::End;

HeldWrite Writing(const Lease& lease, const Place& place, std::string data, End end = End::kNone) {
  HeldWrite write;
  write.name = lease.name;
  write.token = lease.token;
  write.end = end;
  write.change = [place, data = std::move(data)](State& state) {
    state.place = place;
    state.data = data;
    return true;
  };
  return write;
}

absl::StatusOr<HeldState> Write(LeasingProcess& process, HeldWrite write) {
  std::optional<absl::StatusOr<HeldState>> answer;
  std::mutex mutex;
  process->Write(std::move(write), [&](absl::StatusOr<HeldState> state) {
    const std::lock_guard lock(mutex);
    answer = std::move(state);
  });
  while (true) {
    {
      const std::lock_guard lock(mutex);
      if (answer) return *answer;
    }
    if (process.executor().RunDue() == 0) std::this_thread::yield();
  }
}

// Writes a record of another keyspace along.
store::JoinedPlan Noting(std::string key) {
  return [key = std::move(key)](const store::Reader&, WriteBatch& batch) {
    batch.Put(Keyspace::kFeed, key, document::BsonBuilder().Take());
    return absl::OkStatus();
  };
}

class HeldWriteTest : public LeasesTest {
 protected:
  Lease Hold(const std::string& holder = "worker-1") {
    const auto lease = leases.Acquire("jobs", holder);
    EXPECT_THAT(lease, IsOk());
    return *lease;
  }
  bool IsNoted(const std::string& key) {
    return world->store().Get(Keyspace::kFeed, key)->has_value();
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, HeldWriteTest, ::testing::ValuesIn(kAtomicEngines), EngineName);

TEST_P(HeldWriteTest, ItKeepsPlaceAndDataAndLastsAnotherTtl) {
  const Lease lease = Hold();
  world.clock().Advance(seconds(8));
  const auto written = Write(leases, Writing(lease, {7, 3}, "data"));
  ASSERT_THAT(written, IsOk());
  EXPECT_TRUE(written->written);
  EXPECT_EQ(written->state.place, (Place{7, 3}));
  world.clock().Advance(seconds(8));
  EXPECT_THAT(leases.Acquire("jobs", "worker-2"), HasReason(ErrorReason::kLeaseHeld));
  world.clock().Advance(seconds(3));
  const auto next = leases.Acquire("jobs", "worker-2");
  ASSERT_THAT(next, IsOk());
  EXPECT_EQ(next->place, (Place{7, 3}));
  EXPECT_EQ(next->data, "data");
  EXPECT_TRUE(next->abandoned.has_value());
  EXPECT_EQ(leases->counts().take_overs, 1);
}

TEST_P(HeldWriteTest, APlaceDoesNotGoBackAndARefusalWritesNothing) {
  const Lease lease = Hold();
  ASSERT_THAT(Write(leases, Writing(lease, {7, std::nullopt}, "")), IsOk());
  const auto back = Write(leases, Writing(lease, {7, 3}, "more"));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->state.place, (Place{7, std::nullopt}));
  EXPECT_EQ(back->state.data, "more");
  const store::CommitPosition before = world->store().LastPosition();
  HeldWrite nothing = Writing(lease, {}, "");
  nothing.change = [](State& state) {
    EXPECT_EQ(state.data, "more");
    return false;
  };
  const auto refused = Write(leases, nothing);
  ASSERT_THAT(refused, IsOk());
  EXPECT_FALSE(refused->written);
  EXPECT_EQ(refused->state.place, (Place{7, std::nullopt}));
  EXPECT_EQ(world->store().LastPosition(), before);
}

TEST_P(HeldWriteTest, WhatIsJoinedIsOneCommitWithIt) {
  const Lease lease = Hold();
  HeldWrite write = Writing(lease, {1, 0}, "");
  write.joined = Noting("noted");
  ASSERT_THAT(Write(leases, write), IsOk());
  EXPECT_TRUE(IsNoted("noted"));
  write = Writing(lease, {2, 0}, "");
  write.joined = [](const store::Reader&, WriteBatch& batch) -> absl::Status {
    batch.Put(Keyspace::kFeed, "refused", document::BsonBuilder().Take());
    return absl::AbortedError("no");
  };
  EXPECT_EQ(Write(leases, write).status().code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(IsNoted("refused"));
  EXPECT_EQ(leases->Get("jobs")->place, (Place{1, 0}));
}

TEST_P(HeldWriteTest, ItReleasesWithItsData) {
  const Lease lease = Hold();
  ASSERT_THAT(Write(leases, Writing(lease, {4, 1}, "left", End::kRelease)), IsOk());
  EXPECT_THAT(Write(leases, Writing(lease, {5, 1}, "")), HasReason(ErrorReason::kLeaseLost));
  const auto next = leases.Acquire("jobs", "worker-2");
  ASSERT_THAT(next, IsOk());
  EXPECT_EQ(next->data, "left");
  EXPECT_EQ(next->place, (Place{4, 1}));
  EXPECT_EQ(next->abandoned, std::nullopt);
  EXPECT_GT(next->token, lease.token);
}

TEST_P(HeldWriteTest, ItForgetsTheLease) {
  const Lease lease = Hold();
  ASSERT_THAT(Write(leases, Writing(lease, {}, "", End::kForget)), IsOk());
  EXPECT_THAT(leases->Get("jobs"), HasReason(ErrorReason::kLeaseNotFound));
  EXPECT_THAT(leases.Names(), IsEmpty());
  EXPECT_THAT(Write(leases, Writing(lease, {}, "")), HasReason(ErrorReason::kLeaseLost));
}

TEST_P(HeldWriteTest, WhoWasTakenOverWritesNothing) {
  const Lease lease = Hold();
  world.clock().Advance(seconds(11));
  Hold("worker-2");
  HeldWrite late = Writing(lease, {9, 0}, "late");
  late.joined = Noting("late");
  EXPECT_THAT(Write(leases, late), HasReason(ErrorReason::kLeaseLost));
  EXPECT_FALSE(IsNoted("late"));
  EXPECT_EQ(leases->Get("jobs")->place, Place());
  EXPECT_EQ(leases->counts().lost, 1);
}

TEST_P(HeldWriteTest, AnAcquireIsOneCommitWithWhatItJoins) {
  AcquireRequest request = Wanted("jobs", "worker-1");
  request.joined = [](const store::Reader&, WriteBatch&) -> absl::Status {
    return absl::AbortedError("gone");
  };
  EXPECT_EQ(leases.Acquire(request).status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(leases->Get("jobs"), HasReason(ErrorReason::kLeaseNotFound));
  request.joined = Noting("acquired");
  EXPECT_THAT(leases.Acquire(request), IsOk());
  EXPECT_TRUE(IsNoted("acquired"));
}

TEST_P(HeldWriteTest, ARenewalKeepsTheData) {
  const Lease lease = Hold();
  ASSERT_THAT(Write(leases, Writing(lease, {4, 1}, "data")), IsOk());
  EXPECT_EQ(leases.Renew("jobs", lease.token)->data, "data");
}

// What is missing in a store that a fault is planted in.
enum class Fault { kNone, kOwnerCheck, kStateGuard };

// Commits without those guards.
class UnguardedStore final : public store::ForwardingStore {
 public:
  UnguardedStore(store::Store& inner, Fault fault) : ForwardingStore(inner), fault_(fault) {}

  void Commit(WriteBatch batch, store::CommitCallback done) override {
    WriteBatch without;
    for (const store::Write& write : batch.writes()) {
      const bool of_lease = write.keyspace == Keyspace::kLeases;
      if (of_lease && write.kind == store::WriteKind::kCheck && fault_ == Fault::kOwnerCheck) {
        continue;
      }
      // With the state's guard alone, a taking over would still be found.
      if (of_lease && write.kind == store::WriteKind::kPut && fault_ != Fault::kNone) {
        without.Put(write.keyspace, write.key, write.value);
      } else {
        Copy(write, without);
      }
    }
    ForwardingStore::Commit(std::move(without), std::move(done));
  }

 private:
  static void Copy(const store::Write& write, WriteBatch& batch) {
    switch (write.kind) {
      case store::WriteKind::kCheck:
        batch.Check(write.keyspace, write.key, write.stamp);
        break;
      case store::WriteKind::kDelete:
        batch.DeleteIf(write.keyspace, write.key, write.stamp);
        break;
      case store::WriteKind::kPut:
        if (write.guard == store::Guard::kStamp) {
          batch.Replace(write.keyspace, write.key, write.value, write.stamp);
        } else if (write.guard == store::Guard::kAbsent) {
          batch.Insert(write.keyspace, write.key, write.value);
        } else {
          batch.Put(write.keyspace, write.key, write.value);
        }
        break;
    }
  }

  const Fault fault_;
};

class PlantedFault : public ::testing::Test {
 protected:
  // A holder's write is decided, then `meanwhile` happens, then it is committed. The place that is
  // stored in the end, where it ought to be {9, 0}.
  Place PlaceAfter(Fault fault, const std::function<void(const Lease& lease)>& meanwhile) {
    UnguardedStore store(world->store(), fault);
    test_support::HookedStore hooked(store);
    LeasingProcess process(hooked, world.clock());
    const auto lease = process.Acquire("jobs", "worker-1");
    EXPECT_THAT(lease, IsOk());
    bool done = false;
    test_support::StoreHooks hooks;
    hooks.before_commit = [&](const WriteBatch&) {
      if (!std::exchange(done, true)) meanwhile(*lease);
    };
    hooked.set_hooks(hooks);
    (void)Write(process, Writing(*lease, {3, 0}, "old"));
    EXPECT_TRUE(done);
    return other->Get("jobs")->place;
  }
  Place PlaceAfterATakeOver(Fault fault) {
    return PlaceAfter(fault, [&](const Lease&) {
      world.clock().Advance(seconds(20));
      const auto next = other.Acquire("jobs", "worker-2");
      EXPECT_THAT(Write(other, Writing(*next, {9, 0}, "new")), IsOk());
    });
  }
  Place PlaceAfterAnAcknowledgement(Fault fault) {
    return PlaceAfter(fault, [&](const Lease& lease) {
      EXPECT_THAT(Write(other, Writing(lease, {9, 0}, "new")), IsOk());
    });
  }

  World world;
  LeasingProcess other{world->store(), world.clock()};
};

TEST_F(PlantedFault, WithItsGuardsAWriteNeverUndoesAnothers) {
  EXPECT_EQ(PlaceAfterATakeOver(Fault::kNone), (Place{9, 0}));
}
TEST_F(PlantedFault, WithItsGuardsARenewalNeverUndoesAnAcknowledgement) {
  EXPECT_EQ(PlaceAfterAnAcknowledgement(Fault::kNone), (Place{9, 0}));
}
TEST_F(PlantedFault, WithoutACheckOfTheOwnerAZombieSetsThePlaceBack) {
  EXPECT_EQ(PlaceAfterATakeOver(Fault::kOwnerCheck), (Place{3, 0}));
}
TEST_F(PlantedFault, WithoutTheStatesGuardARenewalSetsThePlaceBack) {
  EXPECT_EQ(PlaceAfterAnAcknowledgement(Fault::kStateGuard), (Place{3, 0}));
}

}  // namespace
}  // namespace strata::lease::testing
