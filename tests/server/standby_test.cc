// Work goes on while the thread that does it is away for long.
#include "service/server/standby.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

namespace strata::server {
namespace {

constexpr std::chrono::seconds kPatience{30};

bool Await(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(StandbyTest, WorksWhileTheOwnerIsAwayForLongAndNeverBesideIt) {
  std::atomic<bool> owner_works = true;
  std::atomic<int> worked = 0;
  Standby standby([&] {
    EXPECT_FALSE(owner_works);
    ++worked;
  });
  standby.TakeBaton();
  for (int round = 0; round < 20; ++round) {
    const int before = worked;
    owner_works = false;
    standby.AwayFor([&] { EXPECT_TRUE(Await([&] { return worked > before; })) << round; });
    owner_works = true;
    // Room to do wrong.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  }
  standby.PutBatonDown();
}

// A pause long enough for the watcher to have gone to sleep, or to be just about to.
TEST(StandbyTest, IsThereAfterAnyPause) {
  std::atomic<int> worked = 0;
  Standby standby([&] { ++worked; });
  standby.TakeBaton();
  for (const int pause_ms : {0, 1, 20, 95, 100, 105, 110, 150}) {
    const int before = worked;
    std::promise<void> never;  // a pause that nothing ends
    never.get_future().wait_for(std::chrono::milliseconds(pause_ms));
    standby.AwayFor([&] { EXPECT_TRUE(Await([&] { return worked > before; })) << pause_ms; });
  }
  standby.PutBatonDown();
}

TEST(StandbyTest, DoesNothingForAnOwnerWhoIsSoonBack) {
  // Nobody can say how soon a busy machine lets an owner come back, so only what must hold always.
  std::atomic<int> owner = 0;
  int both = 0;
  Standby standby([&] { both += owner.load(); });
  standby.TakeBaton();
  for (int i = 0; i < 100'000; ++i) {
    owner = 1;
    owner = 0;
    standby.AwayFor([] {});
  }
  standby.PutBatonDown();
  EXPECT_EQ(both, 0);
}

}  // namespace
}  // namespace strata::server
