// Floods of frames, which gRPC takes before any of our code sees a call.
#include <poll.h>

#include <iostream>
#include <thread>

#include "tests/withstand/attacks.h"
#include "tests/withstand/withstand_world.h"

namespace strata::withstand {
namespace {

class Frames : public WithstandTest {};

TEST_F(Frames, OfCallsThatAreResetAtOnceTakeLittleMemoryFromTwoEventLoops) {
  constexpr seconds kAttack{12};
  Start({"--engine=memory", "--event-loops=2"});
  Fill("small", 1, 100);
  ForgetResidentPeak(pid());
  const int64_t before = ResidentBytes(pid());
  AttackCounts counts;
  HonestResult result;
  {
    const std::jthread attack([&](std::stop_token stop) { RapidReset(port_, stop, counts); });
    const auto honest = HonestGets(milliseconds(10));
    poll(nullptr, 0, static_cast<int>(milliseconds(kAttack).count()));
    result = honest->End();
  }
  const int64_t grown = ResidentPeak(pid()) - before;
  EXPECT_GT(counts.sent, 10'000);
  EXPECT_LT(Mebibytes(grown), 128);
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  std::cout << counts.sent << " calls reset on " << counts.connections << " connection; "
            << Mebibytes(grown) << " MiB more; beside them " << Describe(result) << ", p50 "
            << Milliseconds(result.Quantile(0.5)) << " ms, p99 "
            << Milliseconds(result.Quantile(0.99)) << ", the longest "
            << Milliseconds(result.longest()) << "\n";
  EXPECT_EQ(server_->Stop(), 0);
}

}  // namespace
}  // namespace strata::withstand
