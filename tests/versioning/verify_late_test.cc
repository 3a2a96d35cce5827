// Verification with repair over a store that loses outcomes and goes on: repairs that are repeated,
// and those that take effect beside later writes, leave everything whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/late_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"
#include "tests/versioning/verify_scene.h"

namespace strata::versioning::testing {
namespace {

using test_support::IsOk;
using ::testing::IsEmpty;

// Of the layouts in which there is something to repair.
std::vector<Combination> CombinationsInMemory() {
  std::vector<Combination> all = AllCombinations();
  std::erase_if(all, [](const Combination& each) {
    return each.engine == "rocksdb" || each.strategy == "full-copies" ||
           each.strategy == "embedded-history";
  });
  return all;
}

class LateRepairs : public ::testing::TestWithParam<Combination> {
 protected:
  static constexpr double kLost = 0.35;

  static bool IsUnknown(const absl::Status& status) {
    return ReasonOf(status) == ErrorReason::kOutcomeUnknown;
  }
  VerifyQuery Query() const { return {"things", "", /*repair=*/true}; }

  // As a caller does whose verification ends so: goes on where the last step was told to be, or
  // begins anew.
  absl::Status RepairedAtLast() {
    VerifyPlace place;
    for (int tries = 0; tries < 100; ++tries) {
      absl::Status status = RepairedFrom(place);
      if (!IsUnknown(status)) return status;
      if (random_() % 2 == 0) place = {};
    }
    return Error(ErrorReason::kRetriesExhausted, "it does not come to an end");
  }
  absl::Status RepairedFrom(VerifyPlace& place) {
    Verification verification(process_->store(), process_->documents().collections(),
                              world_.clock(), Query(), place);
    while (true) {
      auto step = verification.Next();
      if (!step.ok()) return step.status();
      for (const Finding& finding : step->findings) {
        EXPECT_TRUE(finding.recoverable) << ::testing::PrintToString(finding);
        repaired_ += finding.repaired ? 1 : 0;
      }
      place = std::move(step->place);
      if (!step->complete) continue;
      ExpectClean();
      return absl::OkStatus();
    }
  }

  // What was said to be repaired is. (Single records leave early copies for the next update.)
  void ExpectClean() {
    VerifyQuery query = Query();
    query.repair = false;
    ASSERT_OK_AND_ASSIGN(const Verified verified, Verify(*process_, world_.clock(), query));
    for (const Finding& finding : verified.findings) {
      EXPECT_TRUE(GetParam().mode != Mode::kAtomic && finding.kind == FindingKind::kEarlyCopy)
          << ::testing::PrintToString(finding);
    }
  }

  void Write() {
    WriteRequest request = Request(kPlantedId, "late-" + std::to_string(written_++));
    absl::StatusOr<WriteResult> result;
    do {
      world_.clock().Advance(std::chrono::milliseconds(1));
      result = process_->Update(request, Documents::NewContent(ContentOf(written_)));
    } while (IsUnknown(result.status()));
    ASSERT_THAT(result, IsOk());
  }

  // What a crash may leave, and writers live with.
  void PlantLeftover() {
    const int64_t head = scene_.ReadHead().version.header.version;
    if (scene_.flagged()) {
      scene_.Edit(1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(head - 1)),
                  [](VersionRecord& record) { record.current = true; });
    } else if (scene_.copies()) {
      scene_.Put(store::Keyspace::kVersions, store::VersionKey(scene_.key(), head),
                 scene_.RightCopy());
    }
  }
  // The same, where the next write may not come before the repair.
  void PlantWrongCopy() {
    if (!scene_.copies()) return;
    const int64_t head = scene_.ReadHead().version.header.version;
    scene_.Put(store::Keyspace::kVersions, store::VersionKey(scene_.key(), head),
               EncodeVersion(scene_.Read(head - 1)));
  }

  const uint64_t seed_ = test_support::TestSeed();
  std::mt19937_64 random_{seed_};
  const WorldOptions options_{GetParam().engine, GetParam().mode, GetParam().strategy, seed_};
  World world_{{GetParam().engine, Mode::kAtomic, GetParam().strategy, seed_}};
  Scene scene_{world_, GetParam().strategy, "things"};
  test_support::LateStore late_{world_.engine(), seed_, kLost};
  std::unique_ptr<Process> process_ = std::make_unique<Process>(late_, options_, world_.clock());
  int written_ = 0;
  int repaired_ = 0;
};

TEST_P(LateRepairs, LeaveEverythingWhole) {
  STRATA_TRACE_SEED(seed_);
  for (int round = 0; round < test_support::Sampled(60, 15); ++round) {
    PlantLeftover();
    VerifyPlace place;
    const absl::Status once = RepairedFrom(place);
    ASSERT_TRUE(once.ok() || IsUnknown(once)) << once;
    for (uint64_t writes = random_() % 3; writes > 0; --writes) {
      ASSERT_NO_FATAL_FAILURE(Write());
    }
    ASSERT_THAT(RepairedAtLast(), IsOk());
    if (random_() % 3 == 0) {
      PlantWrongCopy();
      ASSERT_THAT(RepairedAtLast(), IsOk());
    }
  }
  EXPECT_GT(late_.unknown(), 0u);
  EXPECT_GT(repaired_, 0);
  late_.StopLosing();
  late_.Settle();
  ASSERT_NO_FATAL_FAILURE(Write());
  ASSERT_THAT(RepairedAtLast(), IsOk());
  ASSERT_OK_AND_ASSIGN(const Verified verified, Verify(*process_, world_.clock(), Query()));
  EXPECT_THAT(verified.findings, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const auto history, world_->History({"things", std::string(kPlantedId)}));
  EXPECT_EQ(history.size(), static_cast<size_t>(kPlantedVersions + written_));
}

INSTANTIATE_TEST_SUITE_P(All, LateRepairs, ::testing::ValuesIn(CombinationsInMemory()),
                         CombinationName);

}  // namespace
}  // namespace strata::versioning::testing
