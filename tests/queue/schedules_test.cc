// Whatever stops whom between which two writes: no message is lost, none comes early or twice, and
// what the rules of these writes are for is found once one of them is broken.
#include <algorithm>
#include <cstdio>
#include <initializer_list>

#include "tests/queue/schedule.h"
#include "tests/support/volume.h"

namespace strata::queue::testing {
namespace {

int64_t ScheduleCount() {
  return test_support::NumberOr("STRATA_QUEUE_SCHEDULES", test_support::Sampled(5'000, 150));
}

// Enough of each kind of step: the count is the least of its kinds.
struct Wanted {
  int (*count)(const Seen& seen);
  int64_t least;
};

// Runs the schedules, and more while they met too little of what is wanted: what is rare in a
// schedule may be missing in a few hundred of them. At most ten times as many.
void RunAll(int64_t schedules, bool single, std::initializer_list<Wanted> wanted, Seen& seen) {
  const uint64_t seed = test_support::TestSeed();
  std::printf("STRATA_SEED=%llu\n", static_cast<unsigned long long>(seed));
  const auto enough = [&] {
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const Wanted& each) { return each.count(seen) >= each.least; });
  };
  for (int64_t i = 0; i < schedules || (!enough() && i < 10 * schedules); ++i) {
    const ScheduleOptions options{.single = single, .seed = seed + static_cast<uint64_t>(i)};
    QueueSchedule schedule(options);
    const std::string problem = schedule.Run();
    schedule.AddTo(seen);
    ASSERT_EQ(problem, "") << "STRATA_SEED=" << options.seed << "\n" << schedule.Story();
  }
  EXPECT_TRUE(enough());
}

void Print(const Seen& seen) {
  std::printf(
      "pushed %d, handed out %d (after a reservation ran out %d), acknowledged %d, rolled back %d, "
      "extended %d, moved %d, died %d, replayed %d, popped or purged %d, promoted %d, tombstones "
      "%d, tokens refused %d, queues deleted %d, not empty %d\n",
      seen.pushed, seen.handed_out, seen.ran_out, seen.acknowledged, seen.rolled_back,
      seen.extended, seen.moved, seen.died, seen.replayed, seen.popped_or_purged, seen.promoted,
      seen.tombstones, seen.tokens_refused, seen.queues_deleted, seen.queues_not_empty);
}

TEST(Schedules, OfSingleRecordsKeepWhatQueuesPromise) {
  const int64_t schedules = ScheduleCount();
  Seen seen;
  RunAll(schedules, true,
         {{[](const Seen& all) {
             return std::min({all.ran_out, all.rolled_back, all.extended, all.moved, all.died});
           },
           schedules / 20},
          {[](const Seen& all) {
             return std::min({all.replayed, all.popped_or_purged, all.tombstones,
                              all.queues_deleted, all.queues_not_empty});
           },
           1 + schedules / 100}},
         seen);
  Print(seen);
}

TEST(Schedules, OfAtomicBatchesAndOrderingKeysKeepWhatQueuesPromise) {
  const int64_t schedules = ScheduleCount();
  Seen seen;
  RunAll(schedules, false,
         {{[](const Seen& all) {
             return std::min({all.ran_out, all.rolled_back, all.extended, all.moved, all.promoted});
           },
           schedules / 20},
          {[](const Seen& all) {
             return std::min({all.died, all.replayed, all.popped_or_purged, all.queues_deleted,
                              all.queues_not_empty});
           },
           1 + schedules / 100}},
         seen);
  Print(seen);
}

// The first of so many schedules that finds the fault; 0: none does.
int FoundIn(int schedules, Fault fault, bool single, bool deletes = false) {
  for (int i = 1; i <= schedules; ++i) {
    const ScheduleOptions options{
        .single = single, .seed = static_cast<uint64_t>(i), .fault = fault, .deletes = deletes};
    const std::string problem = QueueSchedule(options).Run();
    if (problem.empty()) continue;
    std::printf("seed %d: %s\n", i, problem.c_str());
    return i;
  }
  return 0;
}

TEST(PlantedFault, ATokenThatDoesNotNameItsDeliveryIsFound) {
  EXPECT_NE(FoundIn(500, Fault::kTokenWithoutDelivery, true), 0);
  EXPECT_NE(FoundIn(500, Fault::kTokenWithoutDelivery, false), 0);
}

TEST(PlantedFault, AHintThatIsWrittenAfterItsMessageIsFound) {
  EXPECT_NE(FoundIn(500, Fault::kHintAfterMessage, true), 0);
}

TEST(PlantedFault, AHintThatIsDroppedThoughItCanComeTrueIsFound) {
  EXPECT_NE(FoundIn(2'000, Fault::kEagerCleanUp, true), 0);
}

TEST(PlantedFault, AHintThatIsDroppedBeforeItsMessageComesIsFound) {
  EXPECT_NE(FoundIn(2'000, Fault::kOrphanDropped, true), 0);
}

TEST(PlantedFault, TriesThatAreLookedAtInARollBackAloneAreFound) {
  EXPECT_NE(FoundIn(500, Fault::kDeadLetterOnRollback, true), 0);
  EXPECT_NE(FoundIn(500, Fault::kDeadLetterOnRollback, false), 0);
}

TEST(PlantedFault, AKeyWhoseRecordIsWrittenWithoutItsGuardIsFound) {
  EXPECT_NE(FoundIn(500, Fault::kKeyWithoutGuard, false), 0);
}

TEST(PlantedFault, AMovedMessageThatKeepsItsReservationsTimeIsFound) {
  EXPECT_NE(FoundIn(500, Fault::kMoveKeepsTime, true), 0);
  EXPECT_NE(FoundIn(500, Fault::kMoveKeepsTime, false), 0);
}

TEST(PlantedFault, AReservationWithoutItsGuardIsFound) {
  EXPECT_NE(FoundIn(500, Fault::kReservationWithoutGuard, true), 0);
}

TEST(PlantedFault, AQueueThatIsLookedForBeforeTheHintOfWhatComesIsWrittenIsFound) {
  EXPECT_NE(FoundIn(5'000, Fault::kLookBeforeHint, true, true), 0);
}

TEST(PlantedFault, ADeletionsMarkThatIsNotTakenBackIsFound) {
  EXPECT_NE(FoundIn(5'000, Fault::kMarkNotHeeded, true, true), 0);
  EXPECT_NE(FoundIn(5'000, Fault::kMarkNotHeeded, false, true), 0);
}

}  // namespace
}  // namespace strata::queue::testing
