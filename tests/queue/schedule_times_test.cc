// Schedules after a clock that was ahead, and beside one whose record is damaged: each goes on.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/queue/queue_keys.h"
#include "tests/queue/queues_world.h"
#include "tests/support/await_commit.h"

namespace strata::queue::testing {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

class ScheduleTimes : public QueuesTest {
 protected:
  void SetUp() override { ASSERT_THAT(queues.Create("jobs"), IsOk()); }

  Schedule Made(QueueProcess& process, const std::string& name, microseconds every,
                const std::string& cron = "") {
    Schedule schedule;
    schedule.queue = "jobs";
    schedule.name = name;
    schedule.every = every;
    schedule.cron = cron;
    schedule.message = Numbered(7);
    const absl::StatusOr<Schedule> made = process.CreateSchedule(schedule);
    EXPECT_THAT(made, IsOk());
    return *made;
  }
  // How often messages come in that time, which passes a tenth of a second at a time.
  size_t Fired(QueueProcess& process, microseconds time) {
    size_t fired = 0;
    for (; time > microseconds(0); time -= milliseconds(100)) {
      world.clock().Advance(milliseconds(100));
      if (process.executor().RunDue() > 0) Flush();
      const auto popped = process.Pop("jobs", 10);
      EXPECT_THAT(popped, IsOk());
      fired += popped->size();
    }
    return fired;
  }
  // What was written before is stored, however little of the test's time has passed.
  void Flush() {
    store::WriteBatch last;
    last.Put(store::Keyspace::kMeta, "test/last", document::BsonBuilder().Take());
    ASSERT_TRUE(test_support::AwaitCommit(world->store(), std::move(last)).committed);
  }
  UnixMicros NextTime(const std::string& name) {
    const auto schedules = queues->ListSchedules("jobs", "", 10);
    EXPECT_THAT(schedules, IsOk());
    for (const Schedule& schedule : *schedules) {
      if (schedule.name == name) return schedule.next_time;
    }
    ADD_FAILURE() << "no schedule " << name;
    return 0;
  }
  void Set(microseconds ahead) { world.clock().SetNow(world.clock().Now() + ahead.count()); }
  void Damage(const std::string& name) {
    store::WriteBatch batch;
    batch.Put(store::Keyspace::kQueues, ScheduleKey("jobs", name), "no schedule");
    ASSERT_TRUE(test_support::AwaitCommit(world->store(), std::move(batch)).committed);
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, ScheduleTimes, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(ScheduleTimes, AreRightAsSoonAsTheClockIs) {
  queues->StartBackground();
  Made(queues, "often", seconds(1));
  Made(queues, "each-minute", {}, "* * * * *");
  EXPECT_THAT(Fired(queues, seconds(10)), AllOf(Ge(9u), Le(11u)));
  Set(hours(1));
  Fired(queues, seconds(2));
  Set(-hours(1));
  EXPECT_THAT(Fired(queues, seconds(4)), AllOf(Ge(2u), Le(4u)));
  EXPECT_LE(NextTime("each-minute"), world.clock().Now() + 60'000'000);
  EXPECT_THAT(Fired(queues, seconds(60)), AllOf(Ge(60u), Le(62u)));
}

TEST_P(ScheduleTimes, OfBeforeTheProcessAreSetRight) {
  Set(hours(1));
  Made(queues, "often", seconds(30));
  Made(queues, "each-minute", {}, "* * * * *");
  Set(-hours(1));
  queues.Stop();
  QueueProcess restarted(world->store(), world.clock(), 2);
  restarted->StartBackground();
  EXPECT_THAT(Fired(restarted, seconds(120)), AllOf(Ge(5u), Le(6u)));
}

// Another server's clock was ahead; this one's never was.
TEST_P(ScheduleTimes, OfAnotherServerAreSetRightWithinAMinute) {
  queues->StartBackground();
  queues.executor().RunDue();
  QueueProcess other(world->store(), world.clock(), 2);
  world.clock().Advance(seconds(1));
  const UnixMicros right = world.clock().Now();
  Set(hours(1));
  Made(other, "often", seconds(5));
  world.clock().SetNow(right);
  EXPECT_THAT(Fired(queues, seconds(90)), AllOf(Ge(4u), Le(7u)));
}

TEST_P(ScheduleTimes, StayAsTheyAreWhenTheClockGoesBackALittle) {
  queues->StartBackground();
  Made(queues, "often", seconds(10));
  Made(queues, "each-minute", {}, "* * * * *");
  Fired(queues, seconds(60));
  const UnixMicros often = NextTime("often");
  const UnixMicros each_minute = NextTime("each-minute");
  Set(-milliseconds(900));
  queues.executor().RunDue();
  QueueProcess restarted(world->store(), world.clock(), 2);
  restarted->StartBackground();
  restarted.executor().RunDue();
  Flush();
  EXPECT_EQ(NextTime("often"), often);
  EXPECT_EQ(NextTime("each-minute"), each_minute);
}

TEST_P(ScheduleTimes, OfADamagedOneStopNoOthers) {
  Made(queues, "a", seconds(5));
  Made(queues, "b", seconds(5));
  Made(queues, "c", seconds(5));
  Damage("b");
  std::vector<std::string> damaged;
  QueuesOptions options;
  options.damaged_schedule = [&](std::string_view queue, std::string_view schedule,
                                 const absl::Status& status) {
    EXPECT_THAT(status, HasReason(ErrorReason::kRecordCorrupt));
    damaged.push_back(std::string(queue) + "/" + std::string(schedule));
  };
  QueueProcess restarted(world->store(), world.clock(), 2, options);
  restarted->StartBackground();
  EXPECT_THAT(Fired(restarted, seconds(150)), AllOf(Ge(58u), Le(60u)));
  EXPECT_THAT(damaged, ElementsAre("jobs/b"));
  // So does one that is damaged while it is known.
  Damage("a");
  EXPECT_THAT(Fired(restarted, seconds(150)), AllOf(Ge(28u), Le(31u)));
  EXPECT_THAT(damaged, ElementsAre("jobs/b", "jobs/a"));
  // Who may do so makes it anew, or has it go.
  Made(restarted, "a", seconds(5));
  Answer<absl::Status> deleted;
  restarted->DeleteSchedule("jobs", "b", kNoDeadline, deleted.Callback());
  EXPECT_THAT(restarted.Await(deleted), IsOk());
  EXPECT_THAT(Fired(restarted, seconds(150)), AllOf(Ge(58u), Le(60u)));
  restarted.Stop();
}

}  // namespace
}  // namespace strata::queue::testing
