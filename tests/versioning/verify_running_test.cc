// Verification beside writers, and after crashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/support/volume.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using test_support::IsOk;
using ::testing::IsEmpty;

class RunningTest : public CombinationTest {};
STRATA_ALL_COMBINATIONS(RunningTest);

TEST_P(RunningTest, WritersInTheMiddleAreNoFindings) {
  constexpr int kWriters = 16;
  const bool slow = GetParam().engine == "rocksdb";
  const int writes = slow                               ? test_support::Sampled(25, 8)
                     : GetParam().mode == Mode::kAtomic ? test_support::Sampled(120, 30)
                                                        : test_support::Sampled(6, 3);
  ASSERT_THAT(world->Create(Request("d0", "first"), Number(0)), IsOk());
  std::atomic<int> running = kWriters;
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      for (int j = 0; j < writes; ++j) {
        const std::string id = "d" + std::to_string((i + j) % 5);
        const std::string request = std::to_string(i) + "-" + std::to_string(j);
        if (j % 11 == 10) {
          world->Delete(Request(id, request)).status().IgnoreError();
        } else {
          EXPECT_THAT(world->Update(Request(id, request), Increment("/n", 1), true), IsOk());
        }
      }
      --running;
    });
  }
  int runs = 0;
  bool last = false;
  while (!last) {
    last = running == 0;
    const absl::StatusOr<Verified> verified =
        Verify(world.process(), world.clock(), {"things", "", runs % 2 == 1});
    ASSERT_THAT(verified, IsOk());
    for (const Finding& finding : verified->findings) {
      // Between two writes of a plan a document looks as after a crash.
      EXPECT_TRUE(GetParam().mode != Mode::kAtomic && finding.recoverable)
          << ::testing::PrintToString(finding);
    }
    ++runs;
  }
  for (std::thread& writer : writers) writer.join();
  ASSERT_OK_AND_ASSIGN(const Verified verified,
                       Verify(world.process(), world.clock(), {"things", "", true}));
  EXPECT_THAT(verified.findings, GetParam().mode == Mode::kAtomic
                                     ? ::testing::Matcher<std::vector<Finding>>(IsEmpty())
                                     : ::testing::_);
  std::printf("%d verifications beside %d writers, %lld versions\n", runs, kWriters,
              static_cast<long long>(verified.last.versions));
}

// Every crash leaves what is recoverable at most; a repair or the next update ends it.
TEST_P(RunningTest, ACrashLeavesNothingThatIsBroken) {
  if (GetParam().mode == Mode::kAtomic) GTEST_SKIP() << "dies between batches only";
  int crashes = 0;
  int seen = 0;
  for (const bool repair : {false, true}) {
    bool died = true;
    for (size_t first = 0; died; ++first) {
      bool died_again = true;
      for (size_t second = 0; died_again; ++second) {
        WriteRequest request = Request("d" + std::to_string(crashes++) + (repair ? "r" : "u"));
        request.name.collection = "crashes";
        ASSERT_THAT(world->Create(request, Number(1)), IsOk());
        request.request_id = "second";
        ASSERT_THAT(world->Update(request, Increment("/n", 1)), IsOk());
        const auto dies = [&](std::string_view name, size_t writes) {
          const auto dying = world.Another();
          dying->single().CrashAfter(writes);
          request.request_id = name;
          const auto result = dying->Update(request, Increment("/n", 1));
          EXPECT_TRUE(result.ok() || dying->single().crashed()) << result.status();
          return dying->single().crashed();
        };
        died = dies("dies", first);
        died_again = dies("dies-again", second);
        VerifyQuery query{"crashes", request.name.id, repair};
        const auto survivor = world.Another();
        ASSERT_OK_AND_ASSIGN(Verified verified, Verify(*survivor, world.clock(), query));
        seen += static_cast<int>(verified.findings.size());
        for (const Finding& finding : verified.findings) {
          EXPECT_TRUE(finding.recoverable) << ::testing::PrintToString(finding);
          EXPECT_EQ(finding.repaired, repair && finding.kind != FindingKind::kEarlyCopy)
              << ::testing::PrintToString(finding);
        }
        if (repair) {
          ASSERT_OK_AND_ASSIGN(verified, Verify(*survivor, world.clock(), query));
          for (const Finding& finding : verified.findings) {
            EXPECT_EQ(finding.kind, FindingKind::kEarlyCopy) << ::testing::PrintToString(finding);
          }
        }
        request.request_id = "next";
        ASSERT_THAT(survivor->Update(request, Increment("/n", 1)), IsOk());
        ASSERT_OK_AND_ASSIGN(verified, Verify(*survivor, world.clock(), query));
        EXPECT_THAT(verified.findings, IsEmpty());
      }
    }
  }
  const auto survivor = world.Another();
  ASSERT_OK_AND_ASSIGN(const Verified verified,
                       Verify(*survivor, world.clock(), {"crashes", "", false}));
  EXPECT_THAT(verified.findings, IsEmpty());
  std::printf("%d documents crashed twice, %d recoverable findings\n", crashes, seen);
}

}  // namespace
}  // namespace strata::versioning::testing
