// The power goes at a random moment, while commits are on their way, while the store opens, or
// while it opens again after that.
//
// STRATA_POWER_LOSSES: how often it goes; 500.
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/disk/disk_world.h"
#include "tests/documents/world.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"
#include "tests/versioning/verify_world.h"

namespace strata::engines::rocks {
namespace {

using test_support::IsOk;

// One after the other on one disk.
constexpr int kLossesOfARun = 4;

// The power goes at one of the next calls, in a first start as often as not within it.
void PlanPowerLoss(DiskWorld& world, std::mt19937_64& chance) {
  const uint64_t reach = uint64_t{1} << (3 + chance() % 7);
  world.files->CutPowerAt(static_cast<int64_t>(1 + chance() % reach), chance());
}

void CommitUntilItFails(DiskWorld& world, std::mt19937_64& chance) {
  const int rounds = static_cast<int>(chance() % 40);
  for (int round = 0; round < rounds && !world.commits.failed(); ++round) {
    const uint64_t draw = chance() % 64;
    if (draw == 0) {
      (void)world.store->CompactAll();
    } else if (draw == 1) {
      world.commits.CommitLarge(*world.store, chance);
    } else {
      world.commits.CommitSome(*world.store, static_cast<int>(1 + chance() % 6), chance);
    }
  }
}

void RunCommits(uint64_t seed) {
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 chance(seed);
  DiskWorld world;
  if (chance() % 4 == 0) world.files->RefuseDirectWrites();
  world.options.beacon_behind_max = std::chrono::milliseconds(1 + chance() % 4);
  for (int loss = 0; loss < kLossesOfARun; ++loss) {
    PlanPowerLoss(world, chance);
    if (world.Open().ok()) CommitUntilItFails(world, chance);
    const bool orderly = world.files->has_power() && chance() % 4 == 0;
    if (!orderly) world.files->CutPower(chance());
    world.Close();
    // It may go again, however often, while the store is opened.
    for (int again = 0; again < 3 && chance() % 2 == 0; ++again) {
      world.files->RestorePower();
      PlanPowerLoss(world, chance);
      (void)world.Open();
      world.files->CutPower(chance());
      world.Close();
    }
    world.files->RestorePower();
    ASSERT_THAT(world.Open(), IsOk()) << "after loss " << loss;
    ASSERT_NO_FATAL_FAILURE(world.commits.ExpectStored(*world.store)) << "after loss " << loss;
    world.commits.RestartAt(world.store->LastPosition());
    world.commits.CommitSome(*world.store, 1, chance);
    ASSERT_FALSE(world.commits.failed());
    world.Close();
  }
}

TEST(PowerLoss, KeepsWhatWasAcknowledgedAndAllCommitsWhole) {
  const uint64_t seed = test_support::TestSeed();
  const int64_t losses = Volume("STRATA_POWER_LOSSES", 160) * 4 / 5;
  for (int64_t loss = 0; loss < losses; loss += kLossesOfARun) {
    RunCommits(seed + static_cast<uint64_t>(loss));
    if (testing::Test::HasFailure()) return;
  }
}

// Documents through the facade: what it answered, and what it answers when asked again after an
// answer was lost.
class DocumentRun {
 public:
  explicit DocumentRun(uint64_t seed) : chance_(seed) {
    const auto& strategies = versioning::AllStrategies();
    facade_.strategy = strategies[chance_() % strategies.size()].name;
    facade_.seed = seed;
    world_.options.beacon_behind_max = std::chrono::milliseconds(1 + chance_() % 4);
    world_.clock.StepAtEachCall(std::chrono::microseconds(7));
  }

  void LosePowerAndCheck() {
    SCOPED_TRACE(facade_.strategy);
    PlanPowerLoss(world_, chance_);
    if (world_.Open().ok()) WriteUntilItFails();
    world_.files->CutPower(chance_());
    world_.Close();
    world_.files->RestorePower();
    ASSERT_THAT(world_.Open(), IsOk());
    {
      Process process(*world_.store, facade_, world_.clock);
      ASSERT_NO_FATAL_FAILURE(Settle(process));
      ASSERT_NO_FATAL_FAILURE(ExpectHistories(process));
    }
    world_.Close();
  }

 private:
  using Process = versioning::testing::Process;

  struct Write {
    std::string id;
    std::string request_id;
    int64_t number = 0;  // the content; negative: a deletion
  };

  absl::StatusOr<versioning::WriteResult> Do(Process& process, const Write& write) {
    using namespace versioning::testing;  // NOLINT: its little helpers
    versioning::WriteRequest request = Request(write.id, write.request_id);
    if (write.number < 0) return process.Delete(std::move(request));
    return process.Update(std::move(request), Number(write.number), /*allow_missing=*/true);
  }

  void WriteUntilItFails() {
    Process process(*world_.store, facade_, world_.clock);
    const uint64_t writes = chance_() % 40;
    for (uint64_t i = 0; i < writes && !unsettled_; ++i) {
      Write write;
      write.id = std::string(1, static_cast<char>('a' + chance_() % 3));
      write.request_id = "request-" + std::to_string(++written_);
      const std::vector<int64_t>& history = histories_[write.id];
      const bool live = !history.empty() && history.back() >= 0;
      write.number = live && chance_() % 8 == 0 ? -written_ : written_;
      const auto result = Do(process, write);
      if (result.ok()) {
        Learn(write, *result);
      } else {
        unsettled_ = write;
      }
    }
  }

  // The write whose answer was lost: made now, or found to have been made.
  void Settle(Process& process) {
    if (!unsettled_) return;
    const auto result = Do(process, *unsettled_);
    ASSERT_THAT(result, IsOk());
    Learn(*unsettled_, *result);
    unsettled_.reset();
  }

  void Learn(const Write& write, const versioning::WriteResult& result) {
    std::vector<int64_t>& history = histories_[write.id];
    history.push_back(write.number);
    EXPECT_EQ(result.version.header.version, static_cast<int64_t>(history.size()));
  }

  void ExpectHistories(Process& process) {
    for (const auto& [id, numbers] : histories_) {
      if (numbers.empty()) continue;
      ASSERT_OK_AND_ASSIGN(const auto versions, process.History({"things", id}));
      ASSERT_EQ(versions.size(), numbers.size()) << id;
      for (size_t i = 0; i < numbers.size(); ++i) {
        const versioning::StoredVersion& version = versions[numbers.size() - 1 - i];
        ASSERT_EQ(version.deleted(), numbers[i] < 0);
        if (version.deleted()) continue;
        ASSERT_TRUE(*version.content == versioning::testing::Number(numbers[i]));
      }
    }
    if (written_ == 0) return;
    const auto verified = versioning::testing::Verify(process, world_.clock, {"things", "", false});
    ASSERT_THAT(verified, IsOk());
    EXPECT_THAT(verified->findings, testing::IsEmpty());
  }

  std::mt19937_64 chance_;
  versioning::testing::WorldOptions facade_;
  DiskWorld world_;
  int64_t written_ = 0;
  std::optional<Write> unsettled_;
  std::map<std::string, std::vector<int64_t>> histories_;
};

TEST(PowerLoss, KeepsEveryVersionThatTheFacadeAcknowledged) {
  const uint64_t seed = test_support::TestSeed();
  const int64_t losses = Volume("STRATA_POWER_LOSSES", 160) / 5;
  for (int64_t loss = 0; loss < losses; loss += kLossesOfARun) {
    STRATA_TRACE_SEED(seed + static_cast<uint64_t>(loss));
    DocumentRun run(seed + static_cast<uint64_t>(loss));
    for (int i = 0; i < kLossesOfARun; ++i) {
      run.LosePowerAndCheck();
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace strata::engines::rocks
