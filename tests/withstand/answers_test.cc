// Answers that their caller asks for and does not take.
#include <algorithm>
#include <iostream>
#include <vector>

#include "tests/withstand/withstand_world.h"

namespace strata::withstand {
namespace {

constexpr int64_t kInFlightMib = 256;
constexpr int kAttackingConnections = 40;
constexpr int kPagesEach = 100;
// Three to a page, which is then of 2.7 MiB.
constexpr int kDocuments = 3;
constexpr size_t kLetters = 943'000;

class Answers : public WithstandTest {
 protected:
  // Asks for as many pages as the server takes. A page is asked for again when it is refused, up to
  // twice as many in all.
  void Ask() {
    const std::string headers = CallHeaders(kListMethod);
    const std::string message = ListMessage("large");
    for (RawConnection* connection : attackers_) {
      while (connection->open() < kPagesEach && asked_ < 2 * kPagesEach * kAttackingConnections &&
             !connection->closed()) {
        connection->Begin(headers, message);
        ++asked_;
      }
    }
  }

  int64_t Count(Outcome outcome) const {
    int64_t count = 0;
    for (const RawConnection* connection : attackers_) count += connection->Count(outcome);
    return count;
  }

  void Connect(uint32_t window = 0) {
    for (int i = 0; i < kAttackingConnections; ++i) {
      connections_.push_back(std::make_unique<RawConnection>(
          ConnectionSettings{.port = port_, .source = "127.0.0.2", .window = window}));
      attackers_.push_back(connections_.back().get());
    }
  }

  std::vector<std::unique_ptr<RawConnection>> connections_;
  std::vector<RawConnection*> attackers_;
  int64_t asked_ = 0;
};

TEST_F(Answers, ThatAreNotTakenFillNoServerAndLeaveRoomForOthers) {
  constexpr int64_t kBytesMax = (kInFlightMib + 128) * kMiB;
  constexpr int64_t kHonestCalls = 500;
  Start({"--engine=memory", "--in-flight-mib-max=" + std::to_string(kInFlightMib), "--deadline=5"});
  Fill("large", kDocuments, kLetters);
  Fill("small", 1, 100);
  const int64_t before = ResidentBytes(pid());
  HonestCaller honest(
      [this](grpc::ClientContext& context, int64_t n) {
        return n % 2 == 0 ? documents_->Get(context, "small", "0")
                          : documents_->Count(context, "small", "0");
      },
      milliseconds(10), kPatience);
  Connect();
  const Clock::time_point start = Clock::now();
  const auto far_too_much = [&] { return ResidentPeak(pid()) > 4 * kBytesMax; };
  AdvanceUntil(attackers_, seconds(12), [&] {
    Ask();
    return far_too_much() || honest.calls() >= kHonestCalls;
  });
  const HonestResult result = honest.End();
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  EXPECT_GE(result.answered(), size_t{kHonestCalls});
  EXPECT_LE(Mebibytes(ResidentPeak(pid())), Mebibytes(kBytesMax));
  // They are still connected, and still take nothing.
  const auto open = [&] {
    int64_t count = 0;
    for (const RawConnection* connection : attackers_) count += connection->open();
    return count;
  };
  const bool back =
      !far_too_much() &&
      AdvanceUntil(attackers_, std::chrono::floor<milliseconds>(start + seconds(15) - Clock::now()),
                   [&] { return open() == 0 && ResidentBytes(pid()) <= before + 64 * kMiB; });
  EXPECT_TRUE(back) << Mebibytes(ResidentBytes(pid())) << " MiB, at the start " << Mebibytes(before)
                    << "; " << open() << " answers are waited for";
  std::cout << "of " << asked_ << " pages " << Count(Outcome::kAnswered) << " were made, "
            << Count(Outcome::kRefused) << " refused, " << Count(Outcome::kReset)
            << " reset; memory " << Mebibytes(before) << " MiB before, "
            << Mebibytes(ResidentPeak(pid())) << " at the peak, " << Mebibytes(ResidentBytes(pid()))
            << " after " << Milliseconds(Clock::now() - start) / 1000 << " s; beside them "
            << Describe(result) << "\n";
}

// Each stream takes its first, small message, and of the next one only the beginning.
TEST_F(Answers, OfWatchesThatAreNotTakenFillNoServerEither) {
  constexpr int64_t kWatchesEach = 7;
  constexpr int64_t kMib = 64;
  constexpr int64_t kBytesMax = (kMib + 128) * kMiB;
  constexpr int64_t kHonestCalls = 300;
  Start({"--engine=memory", "--in-flight-mib-max=" + std::to_string(kMib)});
  Fill("large", 1, 100);
  Fill("small", 1, 100);
  Connect(/*window=*/4096);
  const std::string headers = CallHeaders(kWatchMethod);
  for (RawConnection* connection : attackers_) {
    for (int i = 0; i < kWatchesEach; ++i) connection->Begin(headers, WatchMessage("large"));
  }
  ASSERT_TRUE(AdvanceUntil(attackers_, kPatience, [&] {
    return Count(Outcome::kAnswered) == kAttackingConnections * kWatchesEach;
  }));
  HonestCaller honest(
      [this](grpc::ClientContext& context, int64_t n) {
        return n % 2 == 0 ? documents_->Get(context, "small", "0")
                          : documents_->Count(context, "small", "0");
      },
      milliseconds(10), kPatience);
  const int64_t before = ResidentBytes(pid());
  for (int i = 0; i < 3; ++i) Fill("large", 1, kLetters);
  AdvanceUntil(attackers_, kPatience, [&] { return honest.calls() >= kHonestCalls; });
  const HonestResult result = honest.End();
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  EXPECT_GE(result.answered(), size_t{kHonestCalls});
  EXPECT_LE(Mebibytes(ResidentPeak(pid())), Mebibytes(kBytesMax));
  // Some of them have as much as their caller may hold.
  EXPECT_GE(Mebibytes(ResidentBytes(pid()) - before), 8);
  std::cout << "memory " << Mebibytes(before) << " MiB before, " << Mebibytes(ResidentPeak(pid()))
            << " at the peak; beside them " << Describe(result) << "\n";
}

}  // namespace
}  // namespace strata::withstand
