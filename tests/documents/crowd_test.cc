// Everything at once: what callers do to the same few documents and collections from many threads,
// reads and deletions of collections among it. It is there for ThreadSanitizer; what is left at the
// end is verified.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/documents/world.h"
#include "tests/support/status_matchers.h"
#include "tests/versioning/verify_world.h"

namespace strata::versioning::testing {
namespace {

using test_support::IsOk;
using ::testing::IsEmpty;

constexpr int kCallers = 6;
constexpr int kCallsEach = 60;

class EverybodyTest : public CombinationTest {
 protected:
  // One call that the random numbers choose. Whoever meets another's deletion is refused; that is
  // no matter here, but nobody may meet damage.
  absl::Status Call(std::mt19937_64& random) {
    WriteRequest request = Request("d" + std::to_string(random() % 3));
    request.name.collection = random() % 4 == 0 ? "other" : "things";
    request.max_attempts = 1'000'000;
    const DocumentName name = request.name;
    Documents& documents = world->documents();
    switch (random() % 12) {
      case 0:
        return world->Create(request, Number(0)).status();
      case 1:
        return world->Delete(request).status();
      case 2:
        return world->Restore(request, 1).status();
      case 3:
        return documents.Get(name, {}).status();
      case 4:
        return documents.Get(name, {.version = 1, .time = std::nullopt}).status();
      case 5:
        return world->History(name).status();
      case 6: {
        ListQuery query;
        query.collection = name.collection;
        ListCursor found = documents.List(std::move(query));
        while (found.Next()) {
        }
        return found.status();
      }
      case 7: {
        BatchGetCursor found = documents.BatchGet(name.collection, {"d0", "d1", "d2"});
        while (found.Next()) {
        }
        return found.status();
      }
      case 8: {
        CollectionCursor found = documents.collections().List("");
        while (found.Next()) {
        }
        return found.status();
      }
      case 9:
        return random() % 4 == 0 ? DeleteCollection(name.collection) : absl::OkStatus();
      default:
        return world->Update(request, Increment("/n", 1), /*allow_missing=*/true).status();
    }
  }

  absl::Status DeleteCollection(const std::string& name) {
    std::promise<absl::Status> deleted;
    world->documents().collections().Delete({.name = name, .force = true}, [&](const auto& result) {
      deleted.set_value(result.status());
    });
    return deleted.get_future().get();
  }
};
STRATA_ALL_COMBINATIONS(EverybodyTest);

TEST_P(EverybodyTest, CallsWhatTheyLikeAndNothingIsBroken) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::vector<std::thread> callers;
  for (uint64_t caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      std::mt19937_64 random(seed + caller);
      for (int call = 0; call < kCallsEach; ++call) {
        const absl::Status status = Call(random);
        EXPECT_NE(ReasonOf(status), ErrorReason::kInternal) << status;
        // Without snapshots a write may read while its collection, deleted, is swept away.
        if (GetParam().mode == Mode::kAtomic) {
          EXPECT_NE(ReasonOf(status), ErrorReason::kRecordCorrupt) << status;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();

  ASSERT_THAT(world->Update(Request(), Number(1), /*allow_missing=*/true), IsOk());
  ASSERT_OK_AND_ASSIGN(const Verified verified,
                       Verify(world.process(), world.clock(), {"things", "", false}));
  std::vector<Finding> broken = verified.findings;
  if (GetParam().mode != Mode::kAtomic) {
    std::erase_if(broken, [](const Finding& finding) { return finding.recoverable; });
  }
  EXPECT_THAT(broken, IsEmpty());
}

TEST_P(EverybodyTest, MakesTheSameCollectionsAtOnce) {
  constexpr int kCollections = 30;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < kCollections; ++i) {
        WriteRequest request = Request(std::to_string(caller));
        request.name.collection = "c" + std::to_string(i);
        EXPECT_THAT(world->Create(request, Number(i)), IsOk());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (int i = 0; i < kCollections; ++i) {
    for (int caller = 0; caller < kCallers; ++caller) {
      EXPECT_THAT(world->documents().Get({"c" + std::to_string(i), std::to_string(caller)}, At()),
                  IsOk());
    }
  }
}

}  // namespace
}  // namespace strata::versioning::testing
