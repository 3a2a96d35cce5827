// Writers over a store that loses outcomes and goes on: what is repeated under its request id takes
// effect once, however late its first attempt does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/versioning/documents.h"
#include "tests/documents/units.h"
#include "tests/documents/world.h"
#include "tests/support/late_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::versioning::testing {
namespace {

using test_support::IsOk;

constexpr double kLost = 0.25;

class LateOutcomes : public CombinationTest {
 protected:
  LateOutcomes() : seed_(test_support::TestSeed()), late_(world.engine(), seed_, kLost) {
    const WorldOptions options{GetParam().engine, GetParam().mode, GetParam().strategy, seed_};
    for (auto& process : processes) {
      process = std::make_unique<Process>(late_, options, world.clock());
    }
  }

  Process& AnyProcess() { return *processes[random_() % 2]; }
  // Calls until the outcome is known.
  template <typename Call>
  auto Repeated(Call call) {
    auto result = call(AnyProcess());
    for (int i = 0; i < 200 && ReasonOf(result.status()) == ErrorReason::kOutcomeUnknown; ++i) {
      world.clock().Advance(std::chrono::milliseconds(1));
      result = call(AnyProcess());
    }
    return result;
  }

  const uint64_t seed_;
  std::mt19937_64 random_{seed_};
  test_support::LateStore late_;
  std::unique_ptr<Process> processes[2];
};

TEST_P(LateOutcomes, ARepeatedWriteTakesEffectOnce) {
  STRATA_TRACE_SEED(seed_);
  constexpr int kWrites = 60;
  std::map<std::string, int64_t> written;
  for (int i = 0; i < kWrites; ++i) {
    const std::string id = "d" + std::to_string(random_() % 3);
    const auto result = Repeated([&](Process& process) {
      return process.Update(Request(id, "r" + std::to_string(i)), Increment("/n", 1), true);
    });
    ASSERT_THAT(result, IsOk());
    ++written[id];
  }
  EXPECT_GT(late_.unknown(), 0u);
  late_.StopLosing();
  late_.Settle();
  for (const auto& [id, count] : written) {
    ASSERT_OK_AND_ASSIGN(const auto history, world->History({"things", id}));
    ASSERT_EQ(static_cast<int64_t>(history.size()), count) << id;
    std::set<std::string> requests;
    for (const StoredVersion& version : history) requests.insert(version.header.request_id);
    EXPECT_EQ(static_cast<int64_t>(requests.size()), count) << id;
    // Whoever comes later goes on behind all that.
    ASSERT_OK_AND_ASSIGN(const WriteResult next, world->Update(Request(id), Increment("/n", 1)));
    EXPECT_EQ(next.version.header.version, count + 1);
    ASSERT_OK_AND_ASSIGN(const auto then, world->History({"things", id}));
    EXPECT_EQ(static_cast<int64_t>(then.size()), count + 1) << id;
  }
}

TEST_P(LateOutcomes, ARepeatedUnitTakesEffectOnceAndWhole) {
  if (!late_.capabilities().atomic_batches || GetParam().mode != Mode::kAtomic) {
    GTEST_SKIP() << "there are no units";
  }
  STRATA_TRACE_SEED(seed_);
  constexpr int kUnits = 40;
  for (int i = 0; i < kUnits; ++i) {
    const auto result = Repeated([&](Process& process) {
      return Commit(process, Remembered(UnitOf({Adding(Named("a"), 1), Adding(Named("b"), -1)},
                                               "t" + std::to_string(i))));
    });
    ASSERT_THAT(result, IsOk());
  }
  late_.StopLosing();
  late_.Settle();
  for (const char* id : {"a", "b"}) {
    ASSERT_OK_AND_ASSIGN(const auto history, world->History(Named(id)));
    EXPECT_EQ(history.size(), static_cast<size_t>(kUnits)) << id;
  }
}

TEST_P(LateOutcomes, ACollectionIsDeletedAndMadeAnew) {
  STRATA_TRACE_SEED(seed_);
  for (int i = 0; i < 6; ++i) {
    ASSERT_THAT(Repeated([&](Process& process) {
                  return process.Update(Request("a", "r" + std::to_string(i)), Number(i), true);
                }),
                IsOk());
    absl::Status deleted;
    do {
      std::promise<absl::Status> answer;
      AnyProcess().documents().collections().Delete(
          {.name = "things", .force = true},
          [&](const auto& deletion) { answer.set_value(deletion.status()); });
      deleted = answer.get_future().get();
    } while (ReasonOf(deleted) == ErrorReason::kOutcomeUnknown);
    // What took effect late, or before the answer was lost, is found to be done.
    EXPECT_TRUE(deleted.ok() || ReasonOf(deleted) == ErrorReason::kCollectionNotFound) << deleted;
  }
  late_.StopLosing();
  late_.Settle();
  const auto written = world->Update(Request("a"), Number(9), true);
  ASSERT_THAT(written, IsOk());
  EXPECT_EQ(written->version.header.version, 1);
}

STRATA_ALL_COMBINATIONS(LateOutcomes);

}  // namespace
}  // namespace strata::versioning::testing
