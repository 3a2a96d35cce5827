// Random operations against a map, with all strategies side by side: same answers, same versions,
// same hashes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "schemas/versioning/documents.h"
#include "tests/documents/world.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::versioning::testing {
namespace {

using test_support::IsOk;

// What a document is, told as simply as can be: its versions, absent for deletions.
using Model = std::map<std::string, std::vector<std::optional<int64_t>>>;

struct Step {
  int kind;
  std::string id;
  int64_t value;
  int64_t version;
};

std::string Show(const absl::StatusOr<WriteResult>& result) {
  if (!result.ok()) {
    return std::string(ReasonName(ReasonOf(result.status()).value_or(ErrorReason::kInternal)));
  }
  return std::to_string(result->version.header.version) + (result->changed ? "!" : "=");
}

// What the step must answer, and what it leaves.
std::string Expect(const Step& step, Model& model, bool any_written) {
  auto& versions = model[step.id];
  const auto newest = static_cast<int64_t>(versions.size());
  const bool live = newest > 0 && versions.back().has_value();
  const auto write = [&](std::optional<int64_t> value) {
    versions.push_back(value);
    return std::to_string(newest + 1) + "!";
  };
  const auto missing = [&]() -> std::string {
    if (newest > 0) return "DOCUMENT_DELETED";
    return any_written ? "DOCUMENT_NOT_FOUND" : "COLLECTION_NOT_FOUND";
  };
  switch (step.kind) {
    case 0:
      return live ? "DOCUMENT_EXISTS" : write(step.value);
    case 1:
      if (!live) return missing();
      return *versions.back() == step.value ? std::to_string(newest) + "=" : write(step.value);
    case 2:
      return live && *versions.back() == step.value ? std::to_string(newest) + "="
                                                    : write(step.value);
    case 3:
      return live ? write(std::nullopt) : missing();
    case 4: {
      if (newest == 0) return missing();
      if (step.version > newest) return "VERSION_NOT_FOUND";
      const auto old = versions[static_cast<size_t>(step.version - 1)];
      if (!old) return "DOCUMENT_DELETED";
      return live && *versions.back() == *old ? std::to_string(newest) + "=" : write(old);
    }
    default: {
      if (step.version != newest) return "VERSION_CONFLICT";
      return live && *versions.back() == step.value ? std::to_string(newest) + "="
                                                    : write(step.value);
    }
  }
}

absl::StatusOr<WriteResult> Take(const Step& step, Process& process) {
  WriteRequest request = Request(step.id);
  switch (step.kind) {
    case 0:
      return process.Create(request, Number(step.value));
    case 1:
      return process.Update(request, Number(step.value));
    case 2:
      return process.Update(request, Number(step.value), true);
    case 3:
      return process.Delete(request);
    case 4:
      return process.Restore(request, step.version);
    default:
      request.precondition.version = step.version;
      return process.Update(request, Number(step.value), true);
  }
}

struct Kind {
  std::string_view engine;
  Mode mode;
};

class ModelTest : public ::testing::TestWithParam<Kind> {};

TEST_P(ModelTest, AllStrategiesAnswerAsTheModel) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<std::unique_ptr<World>> worlds;
  for (const StrategyEntry& strategy : AllStrategies()) {
    worlds.push_back(std::make_unique<World>(
        WorldOptions{GetParam().engine, GetParam().mode, strategy.name, 4, true}));
    // How often a clock is read depends on the strategy; what it shows must not.
    worlds.back()->clock().StepAtEachCall(std::chrono::microseconds(0));
  }
  Model model;
  bool any_written = false;
  for (int i = 0; i < test_support::Sampled(1500, 200); ++i) {
    Step step{static_cast<int>(random() % 6), "doc" + std::to_string(random() % 4),
              static_cast<int64_t>(random() % 3), 0};
    const int64_t newest = static_cast<int64_t>(model[step.id].size());
    step.version = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(newest + 2));
    const std::string expected = Expect(step, model, any_written);
    any_written = any_written || expected.back() == '!';
    for (auto& world : worlds) {
      world->clock().Advance(std::chrono::microseconds(5));
      ASSERT_EQ(Show(Take(step, world->process())), expected) << "step " << i;
    }
  }
  for (const auto& [id, versions] : model) {
    if (versions.empty()) continue;
    std::optional<document::Hash> chain;
    for (auto& world : worlds) {
      ASSERT_OK_AND_ASSIGN(const auto history, (*world)->History({"things", id}));
      ASSERT_EQ(history.size(), versions.size());
      for (size_t i = 0; i < history.size(); ++i) {
        const auto& expected = versions[versions.size() - 1 - i];
        ASSERT_EQ(history[i].content.has_value(), expected.has_value());
        if (expected) {
          ASSERT_EQ(*history[i].content, Number(*expected));
        }
      }
      // With the same clock and salts, the hashes agree across strategies to the last bit.
      if (!chain) chain = history[0].header.chain_hash;
      EXPECT_EQ(history[0].header.chain_hash, *chain);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ModelTest,
    ::testing::Values(Kind{"memory", Mode::kAtomic}, Kind{"live", Mode::kAtomic},
                      Kind{"memory", Mode::kSingle}, Kind{"memory", Mode::kStale},
                      Kind{"restarting", Mode::kSingle}),
    [](const auto& kind) {
      return std::string(kind.param.engine) + "_" + std::string(ModeName(kind.param.mode));
    });

}  // namespace
}  // namespace strata::versioning::testing
