// Floods of frames, which gRPC takes before any of our code sees a call.
#include <poll.h>

#include <iostream>
#include <thread>

#include "tests/withstand/attacks.h"
#include "tests/withstand/withstand_world.h"

namespace strata::withstand {
namespace {

class Frames : public WithstandTest {};

// As many as the server can just read are another matter: README.md has what they do.
TEST_F(Frames, OfCallsThatAreResetAtOnceTakeLittleMemoryFromTwoEventLoops) {
  constexpr seconds kAttack{12};
  constexpr int64_t kResetsPerSecond = 10'000;
  Start({"--engine=memory", "--event-loops=2"});
  Fill("small", 1, 100);
  ForgetResidentPeak(pid());
  const int64_t before = ResidentBytes(pid());
  const auto honest = HonestGets(milliseconds(10));
  AttackCounts counts;
  {
    const std::jthread attack(
        [&](std::stop_token stop) { RapidReset(port_, kResetsPerSecond, stop, counts); });
    poll(nullptr, 0, static_cast<int>(milliseconds(kAttack).count()));
  }
  const HonestResult result = honest->End();
  const int64_t grown = ResidentPeak(pid()) - before;
  EXPECT_GT(counts.sent, 50'000);
  EXPECT_LT(Mebibytes(grown), 128);
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  std::cout << counts.sent << " calls reset on " << counts.connections << " connection; "
            << Mebibytes(grown) << " MiB more; beside them " << Describe(result) << "\n";
  EXPECT_EQ(server_->Stop(), 0);
}

}  // namespace
}  // namespace strata::withstand
