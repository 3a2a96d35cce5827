// Calls that make much work of few bytes.
#include <poll.h>
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <thread>

#include "tests/withstand/attacks.h"
#include "tests/withstand/withstand_world.h"

namespace strata::withstand {
namespace {

constexpr int kLists = 8;
// Of 200 KB each: enough to keep all lists at work for many times their deadline. tests/run --long
// asks for more.
int DocumentsWanted() {
  const char* wanted = std::getenv("STRATA_SCAN_DOCUMENTS");
  return wanted == nullptr ? 150 : std::atoi(wanted);
}
constexpr size_t kLetters = 200'000;

class Scans : public WithstandTest {
 protected:
  void StartWithTexts(const std::vector<std::string>& flags) {
    Start(flags);
    Fill("texts", DocumentsWanted(), kLetters);
    Fill("small", 10, 100);
  }

  std::unique_ptr<RawConnection> ConnectAttacker() const {
    return std::make_unique<RawConnection>(ConnectionSettings{.port = port_});
  }

  static std::vector<uint32_t> BeginLists(RawConnection& connection,
                                          const Metadata& metadata = {}) {
    std::vector<uint32_t> lists;
    for (int i = 0; i < kLists; ++i) {
      lists.push_back(
          connection.Begin(CallHeaders(kListMethod, metadata), CostlyListMessage("texts")));
    }
    return lists;
  }

  std::unique_ptr<HonestCaller> HonestLists() {
    return std::make_unique<HonestCaller>(
        [this](grpc::ClientContext& context, int64_t) {
          return documents_->List(context, "small");
        },
        milliseconds(20), kPatience);
  }
};

TEST_F(Scans, EndWithTheDeadlineOfTheirCallers) {
  StartWithTexts({});
  const auto honest = HonestLists();
  const auto attacker = ConnectAttacker();
  BeginLists(*attacker, {{"grpc-timeout", "1S"}});
  AdvanceUntil({attacker.get()}, seconds(2), [&] { return attacker->open() == 0; });
  EXPECT_EQ(attacker->open(), 0);
  EXPECT_EQ(attacker->Count(Outcome::kAnswered), 0) << "they are to be too much for a second";
  const HonestResult result = honest->End();
  EXPECT_TRUE(RestsWithin(pid(), seconds(1)));
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  EXPECT_GT(result.answered(), 0u);
  EXPECT_LT(Milliseconds(result.longest()), 2000);
  std::cout << "beside them " << Describe(result) << "\n";
}

TEST_F(Scans, EndWithCallersWhoGiveUp) {
  StartWithTexts({});
  const auto attacker = ConnectAttacker();
  const std::vector<uint32_t> lists = BeginLists(*attacker);
  AdvanceUntil({attacker.get()}, kPatience,
               [&, begun = CpuTime(pid())] { return CpuTime(pid()) > begun + milliseconds(200); });
  for (const uint32_t list : lists) attacker->Cancel(list);
  attacker->Advance();
  EXPECT_TRUE(RestsWithin(pid(), seconds(1)));
}

TEST_F(Scans, EndWithTheServer) {
  constexpr seconds kGrace{2};
  StartWithTexts({"--grace=2"});
  const auto attacker = ConnectAttacker();
  BeginLists(*attacker);
  AdvanceUntil({attacker.get()}, kPatience,
               [&, begun = CpuTime(pid())] { return CpuTime(pid()) > begun + milliseconds(200); });
  kill(pid(), SIGTERM);
  ASSERT_TRUE(EndsWithin(pid(), kGrace + seconds(1)));
  EXPECT_EQ(server_->Stop(), 0);
}

TEST_F(Scans, OfOneLargeDocumentBeforeAWriteStopNobodyElse) {
  constexpr seconds kAttack{3};
  Start({});
  Fill("large", 1, 1'000'000);
  Fill("small", 1, 100);
  AttackCounts counts;
  HonestResult result;
  {
    const std::jthread attack([&](std::stop_token stop) {
      Repeat(port_,
             {.method = kUpdateMethod, .message = CostlyUpdateMessage("large", "0"), .callers = 4},
             stop, counts);
    });
    const auto honest = HonestGets(milliseconds(5));
    poll(nullptr, 0, static_cast<int>(milliseconds(kAttack).count()));
    result = honest->End();
  }
  EXPECT_GT(counts.ended, 0);
  EXPECT_TRUE(result.failures.empty()) << Describe(result);
  EXPECT_LT(Milliseconds(result.Quantile(0.9)), 200);
  std::cout << counts.ended << " updates ended; beside them " << Describe(result) << "\n";
}

}  // namespace
}  // namespace strata::withstand
