// Floods of frames, which gRPC takes before any of our code sees a call.
#include <gmock/gmock.h>
#include <poll.h>

#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/fault/child_process.h"
#include "tests/withstand/attacks.h"
#include "tests/withstand/withstand_world.h"

namespace strata::withstand {
namespace {

class Frames : public WithstandTest {};

// Runs the attack so long beside an honest caller of another address.
template <typename Attack>
HonestResult Withstood(const std::unique_ptr<HonestCaller>& honest, seconds duration,
                       const Attack& attack) {
  {
    const std::jthread attacker(attack);
    poll(nullptr, 0, static_cast<int>(milliseconds(duration).count()));
  }
  return honest->End();
}

// At full speed, connecting again whenever it is reset.
TEST_F(Frames, OfCallsThatAreResetAtOnceEndTheirConnectionAndLeaveOthersAlone) {
  Start({"--engine=memory", "--event-loops=2"});
  Fill("small", 1, 100);
  ForgetResidentPeak(pid());
  const int64_t before = ResidentBytes(pid());
  AttackCounts counts;
  const HonestResult result =
      Withstood(HonestGets(milliseconds(10)), seconds(12),
                [&](std::stop_token stop) { RapidReset(port_, 0, std::move(stop), counts); });
  const int64_t grown = ResidentPeak(pid()) - before;
  EXPECT_GT(counts.connections, 1);
  EXPECT_LT(Mebibytes(grown), 128);
  EXPECT_LT(Milliseconds(result.Quantile(0.99)), 500);
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  std::cout << Mebibytes(grown) << " MiB more, " << counts.connections
            << " times connected; beside it " << Describe(result) << "\n";
  EXPECT_EQ(server_->Stop(), 0);
  EXPECT_THAT(fault::ReadFile(directory_.Join("log")),
              testing::HasSubstr("connections were reset"));
}

TEST_F(Frames, OfMoreStreamsThanThereMayBeEndTheirConnection) {
  Start({"--engine=memory"});
  AttackCounts counts;
  const std::jthread attacker(
      [&](std::stop_token stop) { TooManyStreams(port_, 71'000, std::move(stop), counts); });
  const Clock::time_point end = Clock::now() + kPatience;
  while (fault::ReadFile(directory_.Join("log")).find("connections were reset") ==
         std::string::npos) {
    ASSERT_LT(Clock::now(), end);
    poll(nullptr, 0, 20);
  }
  EXPECT_EQ(server_->Stop(), 0);
}

// As callers do whose deadlines are too short, though not one in a hundred is so busy.
TEST_F(Frames, OfTwoThousandCallsASecondThatAreGivenUpAreNoFlood) {
  constexpr int64_t kPerSecond = 2'000;
  Start({"--engine=memory", "--event-loops=2"});
  Fill("small", 1, 100);
  AttackCounts counts;
  const HonestResult result = Withstood(
      HonestGets(milliseconds(10)), seconds(3),
      [&](std::stop_token stop) { RapidReset(port_, kPerSecond, std::move(stop), counts); });
  EXPECT_GT(counts.sent, kPerSecond);
  EXPECT_EQ(counts.connections, 1);
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  EXPECT_EQ(server_->Stop(), 0);
}

TEST_F(Frames, OfCallsThatAreAllAnsweredWithAnErrorAreNoFlood) {
  Start({"--engine=memory"});
  Fill("small", 1, 100);
  AttackCounts counts;
  const HonestResult result =
      Withstood(HonestGets(milliseconds(10)), seconds(2), [&](std::stop_token stop) {
        Repeat(port_,
               {.method = kGetMethod, .message = GetMessage("small", "missing"), .at_once = 64},
               std::move(stop), counts);
      });
  EXPECT_GT(counts.ended, 10'000);  // many more than may be given up
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  EXPECT_EQ(server_->Stop(), 0);
  EXPECT_THAT(fault::ReadFile(directory_.Join("log")),
              testing::Not(testing::HasSubstr("connections were reset")));
}

// As those do who want to know whether the server is still there while nothing happens.
TEST_F(Frames, OfPingsEveryFewSecondsBesideASilentStreamAreNoFlood) {
  constexpr int kPings = 5;  // gRPC's own limit forgives two
  Start({"--engine=memory"});
  RawConnection connection({.port = port_});
  const uint32_t watch = connection.Begin(CallHeaders("/strata.v1.FeedService/Watch"), "");
  ASSERT_TRUE(AdvanceUntil({&connection}, kPatience,
                           [&] { return connection.outcome(watch) == Outcome::kAnswered; }));
  for (int i = 0; i < kPings; ++i) {
    const Clock::time_point next = Clock::now() + milliseconds(2'100);
    AdvanceUntil({&connection}, seconds(10), [&] { return Clock::now() >= next; });
    connection.Send(Frame(FrameType::kPing, 0, 0, "whatever"));
  }
  const uint32_t get = connection.Begin(CallHeaders(kGetMethod), GetMessage("small", "missing"));
  ASSERT_TRUE(AdvanceUntil({&connection}, kPatience, [&] { return connection.over(get); }));
  EXPECT_EQ(connection.outcome(get), Outcome::kRefused);  // NOT_FOUND, not reset
  EXPECT_FALSE(connection.over(watch));
}

TEST_F(Frames, OfPingsWithoutPauseEndTheirConnection) {
  Start({"--engine=memory"});
  RawConnection connection({.port = port_});
  const Clock::time_point end = Clock::now() + kPatience;
  while (!connection.closed()) {
    ASSERT_LT(Clock::now(), end);
    if (connection.unsent() == 0) connection.Send(Frame(FrameType::kPing, 0, 0, "whatever"));
    Advance({&connection}, milliseconds(1));
  }
}

}  // namespace
}  // namespace strata::withstand
