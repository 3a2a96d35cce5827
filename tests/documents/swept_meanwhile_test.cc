// Writes that read while another process deletes the collection and sweeps it, or makes the very
// write that is repeated here, on stores without snapshots: what does not fit together then is
// damage to nobody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "schemas/versioning/documents.h"
#include "tests/documents/swept.h"
#include "tests/documents/units.h"
#include "tests/documents/world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/live_store.h"
#include "tests/support/status_matchers.h"
#include "tests/support/volume.h"

namespace strata::versioning::testing {
namespace {

using store::Keyspace;
using test_support::IsOk;

constexpr int kVersions = 3;

class SweptMeanwhile : public CombinationTest {
 protected:
  // Has `call` made by a process that reads the live store, again and again, with what the other
  // one does before each of its reads of documents in turn, until there are no more.
  template <typename Call>
  void BeforeEachRead(Call call) {
    if (test_support::LeftOut(GetParam().engine != "memory")) GTEST_SKIP() << "sampled";
    bool happened = true;
    for (int at = 0; happened; ++at) {
      ASSERT_LT(at, 100);
      SCOPED_TRACE("before read " + std::to_string(at));
      Fill();
      int reads = 0;
      happened = false;
      const auto step_in = [&](Keyspace keyspace) {
        const bool of_documents = keyspace == Keyspace::kHeads || keyspace == Keyspace::kVersions ||
                                  keyspace == Keyspace::kRequests;
        if (!of_documents || reads++ != at) return;
        happened = true;
        deleter.DeleteAndSweep("things");
      };
      test_support::StoreHooks hooks;
      hooks.before_get = [&](Keyspace keyspace, std::string_view) { step_in(keyspace); };
      hooks.before_scan = [&](Keyspace keyspace, const store::Range&) { step_in(keyspace); };
      hooked.set_hooks(std::move(hooks));
      call();
      hooked.set_hooks({});
      // A repetition may have been answered as of before the deletion.
      if (deleter.IsThere("things")) deleter.DeleteAndSweep("things");
    }
  }
  // Without atomic batches nobody knows whether what was written into a collection that was deleted
  // meanwhile counts; whoever wants it repeats it.
  template <typename Call>
  auto Repeated(Call call) {
    auto result = call();
    const bool unknown = ReasonOf(result.status()) == ErrorReason::kOutcomeUnknown;
    if (unknown && !live.capabilities().atomic_batches) result = call();
    return result;
  }
  // The collection anew, with a document that was made under a request id.
  void Fill() {
    WriteRequest request = Request("a", "made-once");
    ASSERT_THAT(world->Update(request, Number(1), /*allow_missing=*/true), IsOk());
    for (int version = 2; version <= kVersions; ++version) {
      ASSERT_THAT(world->Update(Request(), Number(version)), IsOk());
    }
  }

  Deleter deleter{world->store(), world.clock()};
  test_support::HookedStore hooked{world->store()};
  test_support::LiveStore live{hooked, GetParam().mode == Mode::kAtomic
                                           ? test_support::Many::kOneMoment
                                           : test_support::Many::kEach};
  Process reading{live, {.strategy = GetParam().strategy, .seed = 2}, world.clock()};
};

TEST_P(SweptMeanwhile, IsWrittenAnew) {
  BeforeEachRead([&] {
    const auto written =
        Repeated([&] { return reading.Update(Request(), Number(10), /*allow_missing=*/true); });
    ASSERT_THAT(written, IsOk());
    const int64_t version = written->version.header.version;
    EXPECT_TRUE(version == 1 || version == kVersions + 1) << version;
  });
}

TEST_P(SweptMeanwhile, IsTheFirstTimeOfARequestThatWasMadeBefore) {
  BeforeEachRead([&] {
    const auto written = Repeated([&] {
      return reading.Update(Request("a", "made-once"), Number(1), /*allow_missing=*/true);
    });
    ASSERT_THAT(written, IsOk());
    EXPECT_EQ(written->version.header.version, 1);
  });
}

// What it would be restored to is gone with the document.
TEST_P(SweptMeanwhile, IsNotThereToBeRestored) {
  BeforeEachRead([&] {
    const auto written = Repeated([&] { return reading.Restore(Request(), 1); });
    EXPECT_TRUE(written.ok() || written.status().code() == absl::StatusCode::kNotFound)
        << written.status();
    Fill();
  });
}

TEST_P(SweptMeanwhile, IsWrittenAnewByAUnit) {
  if (!live.capabilities().atomic_batches) GTEST_SKIP() << "there are no units";
  BeforeEachRead([&] {
    EXPECT_THAT(Commit(reading, UnitOf({Adding(Named("a"), 1), Adding(Named("b"), 1)})), IsOk());
  });
}

// The record of a request names a version that was made after the head was read.
TEST_P(SweptMeanwhile, IsARepetitionOfWhatAnotherProcessMadeJustNow) {
  Fill();
  bool made = false;
  test_support::StoreHooks hooks;
  hooks.before_get = [&](Keyspace keyspace, std::string_view) {
    if (keyspace != Keyspace::kRequests || std::exchange(made, true)) return;
    ASSERT_THAT(world->Update(Request("a", "repeated"), Number(7)), IsOk());
    ASSERT_THAT(world->Update(Request(), Number(8)), IsOk());
  };
  hooked.set_hooks(std::move(hooks));
  const auto repeated = reading.Update(Request("a", "repeated"), Number(7));
  hooked.set_hooks({});
  EXPECT_TRUE(made);
  ASSERT_THAT(repeated, IsOk());
  EXPECT_EQ(repeated->version.header.version, kVersions + 1);
  EXPECT_TRUE(repeated->replayed);
}

STRATA_ALL_COMBINATIONS(SweptMeanwhile);

}  // namespace
}  // namespace strata::versioning::testing
