// Connections without end: refused beyond the cap, cheap below it, and forgotten when they are
// gone.
#include <sys/resource.h>

#include <algorithm>
#include <iostream>

#include "tests/withstand/attacks.h"
#include "tests/withstand/withstand_world.h"

namespace strata::withstand {
namespace {

class Connections : public WithstandTest {
 protected:
  // The first fresh call that is answered, at most `patience` from now; those before are refused.
  std::optional<milliseconds> FirstAnswerWithin(milliseconds patience) {
    const Clock::time_point start = Clock::now();
    while (Clock::now() - start < patience) {
      const FreshCall call = GetAfresh(patience);
      if (call.outcome == Outcome::kAnswered) {
        return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
      }
    }
    return std::nullopt;
  }
};

TEST_F(Connections, AFloodBeyondTheLimitOfOpenFilesIsSurvived) {
  constexpr int kOpenFiles = 256;
  constexpr int64_t kCap = kOpenFiles / 2;
  constexpr int64_t kFlood = 400;
  Start({"--engine=memory"}, kOpenFiles);
  Fill("small", 1, 100);
  const auto honest = HonestGets(milliseconds(10));
  {
    IdleConnections flood(port_);
    ASSERT_TRUE(flood.Open(kFlood, kPatience));
    // One of them is the honest caller's.
    EXPECT_EQ(flood.greeted(), kCap - 1);
    EXPECT_EQ(flood.refused(), kFlood - (kCap - 1));
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(GetAfresh(kPatience).outcome, Outcome::kReset) << "refused, not stuck";
    }
    for (const int64_t calls = honest->calls(); honest->calls() < calls + 20;) GetAfresh(kPatience);
  }
  const std::optional<milliseconds> again = FirstAnswerWithin(seconds(3));
  ASSERT_TRUE(again) << "no fresh call within 3 s";
  const HonestResult result = honest->End();
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  std::cout << "a fresh call " << again->count() << " ms after the flood; beside it "
            << Describe(result) << "\n";
  EXPECT_EQ(server_->Stop(), 0);
}

TEST_F(Connections, IdleOnesAreCheapAndBeyondTheCapRefused) {
  constexpr int64_t kWanted = 15'000;
  constexpr int64_t kBeyond = 100;
  // Of which gRPC takes two slots for each method that the server has (about 170 bytes a method).
  constexpr int64_t kBytesEach = 32 << 10;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  // The server takes half of what it may open, and this process needs some files besides.
  const auto most = static_cast<int64_t>(std::min<rlim_t>(files.rlim_max, 1 << 20));
  const int64_t cap = std::min({kWanted, most / 2, most - kBeyond - 200});
  if (cap < kWanted) {
    std::cout << "of " << most << " open files, room for " << cap << " connections\n";
  }
  Start({"--engine=memory", "--connections-max=" + std::to_string(cap)});
  Fill("small", 1, 100);
  ASSERT_EQ(GetAfresh(kPatience).outcome, Outcome::kAnswered);
  const int64_t before = ResidentBytes(pid());

  IdleConnections idle(port_);
  // The honest caller's, those of fresh calls, which are counted for a moment when they are closed.
  constexpr int64_t kOthers = 4;
  ASSERT_TRUE(idle.Open(cap - kOthers, kPatience));
  EXPECT_EQ(idle.greeted(), cap - kOthers);
  const int64_t each = (ResidentBytes(pid()) - before) / idle.greeted();
  EXPECT_LE(each, kBytesEach);
  const FreshCall beside = GetAfresh(kPatience);
  EXPECT_EQ(beside.outcome, Outcome::kAnswered);
  EXPECT_LT(beside.took, seconds(2));

  ASSERT_TRUE(idle.Open(kBeyond, kPatience));
  EXPECT_LE(idle.greeted(), cap - 1);
  EXPECT_GE(idle.refused(), kBeyond - kOthers);
  std::cout << idle.greeted() << " idle connections, " << each << " bytes each; a fresh call in "
            << beside.took.count() << " ms\n";
}

}  // namespace
}  // namespace strata::withstand
