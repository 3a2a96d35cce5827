// Leases over a store that loses outcomes and goes on: never two holders, and tokens that grow.
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "tests/lease/leases_world.h"
#include "tests/support/await_commit.h"
#include "tests/support/late_store.h"
#include "tests/support/volume.h"

namespace strata::lease::testing {
namespace {

class LateOutcomesOfLeases : public ::testing::TestWithParam<Engine> {};
INSTANTIATE_TEST_SUITE_P(Engines, LateOutcomesOfLeases, ::testing::ValuesIn(kEngines), EngineName);

// Returns when all commits before are done.
void Behind(store::Store& engine) {
  store::WriteBatch last;
  last.Put(store::Keyspace::kMeta, "test/behind", document::BsonBuilder().Take());
  test_support::AwaitCommit(engine, std::move(last));
}

TEST_P(LateOutcomesOfLeases, NeverGiveALeaseToTwo) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  World world({.engine = GetParam().name, .mode = GetParam().mode});
  test_support::LateStore late(world.engine(), seed, 0.25);
  Process below(late, {.engine = GetParam().name, .mode = GetParam().mode}, world.clock());
  LeasingProcess processes[2] = {{below.store(), world.clock()}, {below.store(), world.clock()}};
  const bool has_places = below.store().capabilities().commit_positions;
  struct Holder {
    store::Stamp token = 0;   // that it believes to have
    UnixMicros expires = 0;   // until when it does
    bool unanswered = false;  // it asked for the lease, and what became of that is still open
  };
  std::map<std::string, Holder> holders;
  store::Stamp greatest = 0;
  std::string greatest_of;
  store::CommitPosition place = 0;
  int changes = 0;
  const int steps = GetParam().name == "rocksdb" ? test_support::Sampled(1500, 400)
                                                 : test_support::Sampled(6000, 2000);
  for (int step = 0; step < steps; ++step) {
    LeasingProcess& process = processes[random() % 2];
    const std::string name = "holder-" + std::to_string(random() % 3);
    Holder& holder = holders[name];
    absl::StatusOr<Lease> lease;
    const UnixMicros asked = world.clock().Now();
    const uint64_t what = random() % 6;
    if (what == 0) {
      world.clock().Advance(std::chrono::milliseconds(random() % 12'000));
      continue;
    }
    if (what == 1) {
      // What is on its way takes effect now or never.
      late.Settle();
      Behind(world.engine());
      const absl::StatusOr<Lease> stands = process->Get("jobs");
      if (stands.ok() && !stands->holder.empty() && stands->token != greatest) {
        ASSERT_TRUE(holders[stands->holder].unanswered)
            << "step " << step << ": " << stands->holder << " has what it was refused";
      }
      if (stands.ok()) {
        ASSERT_GE(stands->place.position, place) << "step " << step;
      }
      for (auto& [other, each] : holders) each.unanswered = stands.ok() && other == stands->holder;
      continue;
    }
    if (what <= 3) {
      if (holder.token == 0) continue;
      if (what == 2) {
        std::optional<store::CommitPosition> position;
        if (has_places) position = below.store().LastPosition();
        lease = process.Renew("jobs", holder.token, position);
      } else {
        const store::Stamp token = holder.token;
        holder.token = 0;  // from when it asks
        holder.expires = 0;
        (void)process.Release("jobs", token);
        continue;
      }
    } else {
      lease = process.Acquire("jobs", name);
      if (ReasonOf(lease.status()) == ErrorReason::kOutcomeUnknown) holder.unanswered = true;
    }
    if (!lease.ok()) {
      const std::optional<ErrorReason> reason = ReasonOf(lease.status());
      ASSERT_TRUE(reason == ErrorReason::kOutcomeUnknown || reason == ErrorReason::kLeaseHeld ||
                  reason == ErrorReason::kLeaseLost || reason == ErrorReason::kRetriesExhausted)
          << lease.status();
      continue;
    }
    ASSERT_GE(lease->token, greatest) << "step " << step;
    if (lease->token > greatest) {
      ++changes;
      greatest = lease->token;
      greatest_of = name;
    }
    ASSERT_EQ(greatest_of, name) << "step " << step;
    ASSERT_GE(lease->place.position, place) << "step " << step;
    place = lease->place.position;
    holder.token = lease->token;
    holder.expires = asked + lease->ttl.count();
    // Single records: a renewal after its time may come between the two writes of whoever takes the
    // lease, and both are told that they have it. The greater token tells.
    if (!GetParam().atomic()) continue;
    for (const auto& [other_name, other] : holders) {
      if (other_name == name) continue;
      ASSERT_LE(other.expires, world.clock().Now())
          << "step " << step << ": " << other_name << " and " << name;
    }
  }
  EXPECT_GT(changes, 10);
  EXPECT_GT(late.unknown(), 10u);
}

}  // namespace
}  // namespace strata::lease::testing
