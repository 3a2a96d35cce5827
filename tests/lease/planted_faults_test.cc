// What goes wrong without each of the rules that make a fence one: every scenario is sound with
// what is built, and finds its fault once that is planted, in a store or in another fence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "schemas/store/forwarding_store.h"
#include "tests/lease/fenced_world.h"
#include "tests/support/hooked_store.h"

namespace strata::lease::testing {
namespace {

using store::Guard;
using store::JoinedPlan;
using store::Keyspace;
using store::Write;
using store::WriteBatch;
using store::WriteKind;
using versioning::testing::Answer;
using versioning::testing::Increment;

// What makes a fence of a token and of the name of who holds the lease.
using FenceOf =
    std::function<JoinedPlan(const Leases& leases, LeaseToken token, const std::string& holder)>;

JoinedPlan RealFence(const Leases& leases, LeaseToken token, const std::string& /*holder*/) {
  return leases.Fence(std::move(token));
}

// Compares who holds the lease, as the article's listener does, instead of the token.
JoinedPlan HolderFence(const Leases& /*leases*/, const LeaseToken& token,
                       const std::string& holder) {
  return [token, holder](const store::Reader& reader, WriteBatch& batch) {
    const auto lease = ReadLease(reader, token.name);
    EXPECT_THAT(lease, IsOk());
    if (lease->owner->holder != holder) return absl::AbortedError("another holder");
    batch.Check(Keyspace::kLeases, OwnerKey(token.name), lease->token);
    return absl::OkStatus();
  };
}

// Looks at the token when the write is decided, and not in its commit.
JoinedPlan UncheckedFence(const Leases& /*leases*/, const LeaseToken& token,
                          const std::string& /*holder*/) {
  return [token](const store::Reader& reader, WriteBatch& batch) {
    const auto lease = ReadLease(reader, token.name);
    EXPECT_THAT(lease, IsOk());
    if (lease->token != token.token) return absl::AbortedError("another token");
    batch.Ensure(Keyspace::kMeta, "test/joined", document::BsonBuilder().Take());
    return absl::OkStatus();
  };
}

// Does not ask whether the event before is done.
JoinedPlan OrderlessFence(const Leases& leases, LeaseToken token, const std::string& /*holder*/) {
  token.after.reset();
  return leases.Fence(std::move(token));
}

// Documents and leases over one memory engine, with a store between that a test may spoil.
class Planted : public ::testing::Test {
 protected:
  using Answered = absl::StatusOr<WriteResult>;

  Planted() {
    versioning::DocumentsOptions options;
    options.write.default_strategy = versioning::FindStrategy("deltas");
    documents =
        std::make_unique<versioning::Documents>(hooked, world.clock(), entropy, executor, options);
  }

  Lease Hold(LeasingProcess& process, const std::string& holder) {
    const auto lease = process.Acquire("jobs", holder);
    EXPECT_THAT(lease, IsOk());
    return *lease;
  }
  // Adds 1 to the document "a": the effect of an event.
  Answered Effect(std::optional<JoinedPlan> fence) {
    Answer answer;
    WriteRequest request = Request("a");
    if (fence) request.joined.push_back(*std::move(fence));
    documents->Update(std::move(request), Increment("/n", 1), /*allow_missing=*/true,
                      answer.Callback());
    while (!answer.ready()) executor.RunAll();
    return answer.Wait();
  }
  int64_t Effects() {
    const auto version = documents->Get(Request("a").name, {});
    return version.ok() ? NumberIn(*version) : 0;
  }
  // Once, before the next commit over `hooked`.
  void Before(std::function<void()> act) {
    test_support::StoreHooks hooks;
    hooks.before_commit = [this, act = std::move(act)](const WriteBatch&) {
      if (!std::exchange(acted_, true)) act();
    };
    acted_ = false;
    hooked.set_hooks(std::move(hooks));
  }

  World world;
  test_support::HookedStore hooked{world->store()};
  test_support::SeededEntropy entropy{1};
  test_support::ManualExecutor executor{world.clock()};
  std::unique_ptr<versioning::Documents> documents;
  LeasingProcess leases{hooked, world.clock()};
  LeasingProcess other{world->store(), world.clock()};
  bool acted_ = true;
};

// A zombie's write is decided, then the lease is taken, then the write is committed. Whether the
// write took effect.
class TakenMeanwhile : public Planted {
 protected:
  bool ZombieWrites(const FenceOf& fence) {
    Effect(std::nullopt).IgnoreError();
    const Lease lease = Hold(leases, "worker-1");
    world.clock().Advance(seconds(20));
    Before([&] { Hold(other, "worker-2"); });
    return Effect(fence(*leases, Shown(lease), "worker-1")).ok();
  }
};

TEST_F(TakenMeanwhile, TheZombieIsRefused) {
  EXPECT_FALSE(ZombieWrites(RealFence));
  EXPECT_EQ(Effects(), 1);
}
TEST_F(TakenMeanwhile, WithoutACheckOfTheOwnerInTheCommitItWrites) {
  EXPECT_TRUE(ZombieWrites(UncheckedFence));
}

// The holder was restarted under its name; its former self goes on.
class SameName : public Planted {
 protected:
  bool FormerSelfWrites(const FenceOf& fence) {
    const Lease former = Hold(leases, "worker-1");
    Hold(other, "worker-1");
    return Effect(fence(*leases, Shown(former), "worker-1")).ok();
  }
};

TEST_F(SameName, TheFormerSelfIsRefused) { EXPECT_FALSE(FormerSelfWrites(RealFence)); }
TEST_F(SameName, WithTheNameInsteadOfTheTokenItWrites) {
  EXPECT_TRUE(FormerSelfWrites(HolderFence));
}

// A consumer of one event dies behind each of its commits in turn; another begins where the lease
// stands. How often the event took effect, each time.
class Dying : public Planted {
 protected:
  enum class Order { kTogether, kEffectFirst, kPlaceFirst };

  std::vector<int64_t> EffectsWhereItDies(Order order) {
    std::vector<int64_t> effects;
    for (int dies_after = 0; dies_after <= 2; ++dies_after) {
      const Place place{world->store().LastPosition(), {}};
      const int64_t before = Effects();
      Consume(order, place, dies_after);
      Consume(order, place, 3);
      effects.push_back(Effects() - before);
      const auto lease = leases->Get("jobs");
      EXPECT_EQ(lease->place, place);
    }
    return effects;
  }

  // Does what is not done yet, and dies behind so many commits.
  void Consume(Order order, const Place& place, int commits) {
    const Lease lease = Hold(leases, "worker-1");
    if (lease.place >= place) return;
    const auto effect = [&](std::optional<Place> with) {
      if (commits-- <= 0) return;
      EXPECT_THAT(Effect(leases->Fence(Shown(lease, with))), IsOk());
    };
    const auto save = [&] {
      if (commits-- <= 0) return;
      EXPECT_THAT(leases.Renew("jobs", lease.token, place.position), IsOk());
    };
    switch (order) {
      case Order::kTogether:
        return effect(place);
      case Order::kEffectFirst:
        effect(std::nullopt);
        return save();
      case Order::kPlaceFirst:
        save();
        return effect(std::nullopt);
    }
  }
};

TEST_F(Dying, AnEventTakesEffectOnceWhereverItsConsumerDies) {
  EXPECT_THAT(EffectsWhereItDies(Order::kTogether), ::testing::Each(1));
}
TEST_F(Dying, WithThePlaceInACommitOfItsOwnItDoesNot) {
  EXPECT_THAT(EffectsWhereItDies(Order::kEffectFirst), ::testing::Contains(2));
}
TEST_F(Dying, NorWithThePlaceFirst) {
  EXPECT_THAT(EffectsWhereItDies(Order::kPlaceFirst), ::testing::Contains(0));
}

// Drops the guard of what replaces a lease's state.
class CarelessStore final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void Commit(WriteBatch batch, store::CommitCallback done) override {
    WriteBatch spoiled;
    for (const Write& write : batch.writes()) {
      const bool is_state = write.keyspace == Keyspace::kLeases && write.key.back() == '\1';
      if (is_state && write.kind == WriteKind::kPut) {
        spoiled.Put(write.keyspace, write.key, write.value);
      } else if (write.kind == WriteKind::kCheck) {
        spoiled.Check(write.keyspace, write.key, write.stamp);
      } else if (write.guard == Guard::kStamp) {
        spoiled.Replace(write.keyspace, write.key, write.value, write.stamp);
      } else {
        spoiled.Insert(write.keyspace, write.key, write.value);
      }
    }
    inner().Commit(std::move(spoiled), std::move(done));
  }
};

// A renewal has read the lease; a write moves its place; then the renewal is committed. Where the
// lease stands then.
Place PlaceAfterRenewal(World& world, store::Store& renewing) {
  LeasingProcess writer(world->store(), world.clock());
  const auto lease = writer.Acquire("jobs", "worker-1");
  EXPECT_THAT(lease, IsOk());
  test_support::HookedStore hooked(renewing);
  LeasingProcess renewer(hooked, world.clock());
  test_support::StoreHooks hooks;
  bool acted = false;
  hooks.before_commit = [&](const WriteBatch&) {
    if (std::exchange(acted, true)) return;
    WriteRequest request = Request("a");
    request.joined.push_back(writer->Fence(Shown(*lease, Place{2, {}})));
    EXPECT_THAT(world->Update(std::move(request), Number(1), /*allow_missing=*/true), IsOk());
  };
  hooked.set_hooks(std::move(hooks));
  EXPECT_THAT(renewer.Renew("jobs", lease->token), IsOk());
  return writer->Get("jobs")->place;
}

TEST(Renewal, KeepsThePlaceThatAWriteHasMovedMeanwhile) {
  World world;
  ASSERT_THAT(world->Create(Request("b"), Number(1)), IsOk());
  EXPECT_EQ(PlaceAfterRenewal(world, world->store()), (Place{2, {}}));
}
TEST(Renewal, WithoutAGuardOfTheStateThePlaceGoesBack) {
  World world;
  ASSERT_THAT(world->Create(Request("b"), Number(1)), IsOk());
  CarelessStore careless(world->store());
  EXPECT_EQ(PlaceAfterRenewal(world, careless), Place());
}

// Two events, whose handlers come to their commits in the wrong order, each until it is done. How
// many took effect.
class TwoHandlers : public Planted {
 protected:
  int64_t EffectsOf(const FenceOf& fence) {
    Effect(std::nullopt).IgnoreError();
    const Lease lease = Hold(leases, "worker-1");
    const int64_t before = Effects();
    std::vector<std::pair<Place, Place>> events = {{{1, 1}, {1, 0}}, {{1, 0}, {0, {}}}};
    for (int round = 0; round < 2; ++round) {
      for (const auto& [place, after] : events) {
        Effect(fence(*leases, Shown(lease, place, after), "worker-1")).IgnoreError();
      }
    }
    EXPECT_EQ(leases->Get("jobs")->place, (Place{1, 1}));
    return Effects() - before;
  }
};

TEST_F(TwoHandlers, BothEventsTakeEffect) { EXPECT_EQ(EffectsOf(RealFence), 2); }
TEST_F(TwoHandlers, WithoutACheckOfTheEventBeforeOneIsLost) {
  EXPECT_EQ(EffectsOf(OrderlessFence), 1);
}

}  // namespace
}  // namespace strata::lease::testing
