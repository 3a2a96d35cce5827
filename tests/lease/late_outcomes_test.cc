// Leases over a store that loses outcomes and goes on: never two holders, and tokens that grow.
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "tests/lease/leases_world.h"
#include "tests/support/late_store.h"
#include "tests/support/volume.h"

namespace strata::lease::testing {
namespace {

class LateOutcomesOfLeases : public ::testing::TestWithParam<Engine> {};
INSTANTIATE_TEST_SUITE_P(Engines, LateOutcomesOfLeases, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(LateOutcomesOfLeases, NeverGiveALeaseToTwo) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  World world({.engine = GetParam().name, .mode = GetParam().mode});
  test_support::LateStore late(world.engine(), seed, 0.25);
  Process below(late, {.engine = GetParam().name, .mode = GetParam().mode}, world.clock());
  LeasingProcess processes[2] = {{below.store(), world.clock()}, {below.store(), world.clock()}};
  struct Belief {
    store::Stamp token = 0;
    UnixMicros expires = 0;
  };
  std::map<std::string, Belief> holders;  // what each believes to hold
  store::Stamp greatest = 0;
  std::string greatest_of;
  int changes = 0;
  for (int step = 0; step < test_support::Sampled(1500, 400); ++step) {
    LeasingProcess& process = processes[random() % 2];
    const std::string holder = "holder-" + std::to_string(random() % 3);
    Belief& belief = holders[holder];
    absl::StatusOr<Lease> lease;
    const UnixMicros asked = world.clock().Now();
    switch (random() % 4) {
      case 0:
        world.clock().Advance(std::chrono::milliseconds(random() % 12'000));
        continue;
      case 1:
        if (belief.token == 0) continue;
        lease = process.Renew("jobs", belief.token);
        break;
      case 2: {
        if (belief.token == 0) continue;
        const store::Stamp token = belief.token;
        belief = {};  // from when it asks
        (void)process.Release("jobs", token);
        continue;
      }
      default:
        lease = process.Acquire("jobs", holder);
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
      greatest_of = holder;
    }
    ASSERT_EQ(greatest_of, holder) << "step " << step;
    belief = {lease->token, asked + lease->ttl.count()};
    for (const auto& [name, other] : holders) {
      if (name == holder) continue;
      EXPECT_LE(other.expires, world.clock().Now())
          << "step " << step << ": " << name << " and " << holder;
    }
  }
  EXPECT_GT(changes, 10);
  EXPECT_GT(late.unknown(), 10u);
}

}  // namespace
}  // namespace strata::lease::testing
