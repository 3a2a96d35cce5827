// Leases whose times were written under a clock that was ahead: they end a ttl after they were
// seen, for who asks, who waits and who looks, and no holder loses any of its time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "tests/lease/leases_world.h"

namespace strata::lease::testing {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class WrongTimes : public LeasesTest {
 protected:
  static constexpr microseconds kTtl = seconds(10);

  ~WrongTimes() override { leases.Stop(); }

  // The clock is an hour ahead while the holder acquires or renews, then right again.
  template <typename Call>
  auto WhileAhead(Call call) {
    const UnixMicros right = world.clock().Now();
    world.clock().SetNow(right + microseconds(hours(1)).count());
    auto result = call();
    world.clock().SetNow(right);
    return result;
  }
  store::Stamp HoldWhileAhead(const std::string& name = "jobs") {
    const auto lease = WhileAhead([&] { return leases.Acquire(name, "holder"); });
    EXPECT_THAT(lease, IsOk());
    return lease->token;
  }
  std::unique_ptr<LeasingProcess> Restarted(LeasesOptions options = {}) {
    return std::make_unique<LeasingProcess>(world->store(), world.clock(), options);
  }
  void Advance(microseconds by) { world.clock().Advance(by); }
  // Where another may have the lease in so long, and is told so by whoever says it.
  void ExpectFreeIn(LeasingProcess& process, microseconds time) {
    const UnixMicros at = world.clock().Now() + time.count();
    constexpr UnixMicros kSlack = 1'000;  // the clock steps at each look
    const auto refused = process.Acquire("jobs", "other");
    ASSERT_THAT(refused, HasReason(ErrorReason::kLeaseHeld));
    absl::Time told;
    std::string problem;
    ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, *MetadataOf(refused.status(), "expire_time"),
                                &told, &problem))
        << problem;
    EXPECT_NEAR(static_cast<double>(absl::ToUnixMicros(told)), static_cast<double>(at), kSlack);
    EXPECT_LE(*RetryAfterOf(refused.status()), time);
    EXPECT_GT(*RetryAfterOf(refused.status()), time - milliseconds(1));
    const auto got = process->Get("jobs");
    ASSERT_THAT(got, IsOk());
    EXPECT_NEAR(static_cast<double>(got->expire_time), static_cast<double>(at), kSlack);
    const auto listed = process->List({}, 10);
    ASSERT_THAT(listed, IsOk());
    EXPECT_NEAR(static_cast<double>(listed->front().expire_time), static_cast<double>(at), kSlack);
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, WrongTimes, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(WrongTimes, EndATtlAfterTheyWereSeen) {
  HoldWhileAhead();
  Advance(seconds(3));
  ExpectFreeIn(leases, kTtl);
  Advance(seconds(4));
  ExpectFreeIn(leases, seconds(6));
  Advance(seconds(6));
  const auto other = leases.Acquire("jobs", "other");
  ASSERT_THAT(other, IsOk());
  ASSERT_TRUE(other->abandoned);
  EXPECT_LE(*other->abandoned, world.clock().Now());
  EXPECT_GE(*other->abandoned, world.clock().Now() - 1'000);
}

TEST_P(WrongTimes, StayWrongWhenTheClockComesUpToThem) {
  HoldWhileAhead();
  ExpectFreeIn(leases, kTtl);
  Advance(hours(1) + seconds(5));
  EXPECT_LE(leases->Get("jobs")->expire_time, world.clock().Now());
  EXPECT_THAT(leases.Acquire("jobs", "other"), IsOk());
}

TEST_P(WrongTimes, WakeWhoWaits) {
  HoldWhileAhead();
  LeaseAnswer answer;
  leases->Acquire(Wanted("jobs", "other", seconds(20)), answer.Callback());
  for (microseconds passed{0}; passed < seconds(9) + milliseconds(900);
       passed += milliseconds(50)) {
    Advance(milliseconds(50));
    leases.executor().RunDue();
  }
  EXPECT_FALSE(answer.ready());
  Advance(milliseconds(110));
  EXPECT_THAT(leases.Await(answer), IsOk());
}

TEST_P(WrongTimes, AreRightAgainOnceRenewed) {
  const store::Stamp token = HoldWhileAhead();
  ExpectFreeIn(leases, kTtl);
  Advance(seconds(8));
  const auto renewed = leases.Renew("jobs", token);
  ASSERT_THAT(renewed, IsOk());
  EXPECT_LE(renewed->expire_time, world.clock().Now() + kTtl.count());
  Advance(seconds(8));
  ExpectFreeIn(leases, seconds(2));
  ExpectFreeIn(*Restarted(), seconds(2));
}

// The process whose clock was set back stores when they end, for those that begin later.
TEST_P(WrongTimes, AreStoredAsTheyAreOnceTheClockWasSetBack) {
  HoldWhileAhead();
  leases->SetRight();
  leases.executor().RunDue();
  const auto stored = [&] { return *ReadLease(world->store(), "jobs"); };
  while (stored().state->expire_time > world.clock().Now() + kTtl.count()) {
    ASSERT_LT(leases.executor().RunDue(), 1'000U);
    std::this_thread::yield();
  }
  Advance(seconds(7));
  ExpectFreeIn(*Restarted(), seconds(3));
}

// A holder under the wrong clock that goes on renewing has its lease for as long as it does.
TEST_P(WrongTimes, CountAnewWithEachRenewal) {
  const store::Stamp token = HoldWhileAhead();
  for (int i = 0; i < 5; ++i) {
    ExpectFreeIn(leases, kTtl);
    Advance(seconds(8));
    ExpectFreeIn(leases, seconds(2));
    ASSERT_THAT(WhileAhead([&] { return leases.Renew("jobs", token); }), IsOk());
  }
  Advance(kTtl);
  // It was seen last two seconds before it was renewed.
  ExpectFreeIn(leases, kTtl);
}

TEST_P(WrongTimes, EndATtlAfterARestart) {
  HoldWhileAhead();
  leases.Stop();
  const auto restarted = Restarted();
  // Where stamps say what was there before, nobody has to have asked for it.
  if (GetParam().atomic()) {
    Advance(seconds(4));
    ExpectFreeIn(*restarted, seconds(6));
    Advance(seconds(6));
  } else {
    ExpectFreeIn(*restarted, kTtl);
    Advance(kTtl);
  }
  EXPECT_THAT(restarted->Acquire("jobs", "other"), IsOk());
}

TEST_P(WrongTimes, OfOneProcessAreReadByAnother) {
  const auto other = Restarted();
  Advance(seconds(60));
  HoldWhileAhead();
  // The lease is younger than the process, which may not count from its own beginning.
  ExpectFreeIn(*other, kTtl);
  Advance(kTtl);
  EXPECT_THAT(other->Acquire("jobs", "other"), IsOk());
}

TEST_P(WrongTimes, AreToldFromClocksThatAgree) {
  const UnixMicros right = world.clock().Now();
  world.clock().SetNow(right + 900'000);
  ASSERT_THAT(leases.Acquire("jobs", "holder"), IsOk());
  world.clock().SetNow(right);
  ExpectFreeIn(leases, kTtl + milliseconds(900));
  Advance(seconds(5));
  ExpectFreeIn(leases, seconds(5) + milliseconds(900));
}

TEST_P(WrongTimes, AreRememberedOfSoManyLeases) {
  const auto few = Restarted({.wrong_times_max = 2});
  for (const char* const name : {"jobs", "a", "b"}) HoldWhileAhead(name);
  ASSERT_THAT((*few)->List({}, 10), IsOk());  // in the order of the names: "a" is forgotten
  Advance(kTtl);
  EXPECT_THAT(few->Acquire("b", "other"), IsOk());
  EXPECT_THAT(few->Acquire("jobs", "other"), IsOk());
  // Another ttl begins for it, and no more than that.
  EXPECT_THAT(few->Acquire("a", "other"), HasReason(ErrorReason::kLeaseHeld));
  Advance(kTtl);
  EXPECT_THAT(few->Acquire("a", "other"), IsOk());
}

}  // namespace
}  // namespace strata::lease::testing
