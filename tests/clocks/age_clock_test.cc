// What the class promises of ages, whatever the wall clock does.
#include "schemas/base/age_clock.h"

#include <chrono>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using test_support::ManualClock;

constexpr UnixMicros kHour = UnixMicros{3600} * 1'000'000;

// The wall clock alone.
void Jump(ManualClock& clock, UnixMicros by) { clock.SetNow(clock.Now() + by); }

TEST(AgeClock, IsTheWallClockAsLongAsThatRunsEvenly) {
  ManualClock clock;
  const AgeClock ages(clock);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ages.Now(), clock.Now());
    clock.Advance(hours(i));
  }
}

TEST(AgeClock, AJumpForwardMakesNothingOlder) {
  ManualClock clock;
  const AgeClock ages(clock);
  const UnixMicros before = ages.Now();
  Jump(clock, 1000 * kHour);
  EXPECT_EQ(ages.Now(), before);
  clock.Advance(hours(23));
  EXPECT_EQ(ages.Now(), before + 23 * kHour);
}

TEST(AgeClock, CatchesUpOnceTheJumpIsTwoDaysOld) {
  ManualClock clock;
  const AgeClock ages(clock);
  Jump(clock, 1000 * kHour);
  for (int i = 0; i < 48; ++i) {
    clock.Advance(hours(1));
    ages.Now();
  }
  EXPECT_EQ(ages.Now(), clock.Now());
}

TEST(AgeClock, CatchesUpAlsoIfNobodyAsked) {
  ManualClock clock;
  const AgeClock ages(clock);
  Jump(clock, 1000 * kHour);
  clock.Advance(hours(48));
  EXPECT_EQ(ages.Now(), clock.Now());
}

TEST(AgeClock, AStepBackMakesNothingOlderNorDoesItsCorrection) {
  ManualClock clock;
  const AgeClock ages(clock);
  Jump(clock, -30 * kHour);
  const UnixMicros used = ages.Now();
  EXPECT_EQ(used, clock.Now());
  clock.Advance(hours(1));
  Jump(clock, 30 * kHour);
  EXPECT_EQ(ages.Now() - used, kHour);
}

// The class's promise itself: whatever the wall clock does, an age is the lesser of the two, or
// less.
TEST(AgeClock, NothingIsOlderThanByEitherClock) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 chance(seed);
  for (int run = 0; run < 200; ++run) {
    ManualClock clock;
    const AgeClock ages(clock);
    struct Use {
      UnixMicros wall;
      std::chrono::steady_clock::time_point steady;
    };
    std::vector<Use> uses;
    for (int step = 0; step < 60; ++step) {
      clock.Advance(std::chrono::minutes(chance() % 600));
      if (chance() % 3 == 0) Jump(clock, (static_cast<int64_t>(chance() % 200) - 100) * kHour);
      const UnixMicros now = ages.Now();
      uses.push_back({clock.Now(), clock.SteadyNow()});
      for (const Use& use : uses) {
        if (now - use.wall < 24 * kHour) continue;
        EXPECT_GE(clock.SteadyNow() - use.steady, hours(24));
        EXPECT_GE(clock.Now() - use.wall, 24 * kHour);
      }
    }
  }
}

}  // namespace
}  // namespace strata
