// Ordering keys, schedules, and steps that commit with units.
#include <map>
#include <random>

#include "schemas/queue/draft.h"
#include "schemas/queue/queues.h"
#include "schemas/transaction/transactions.h"
#include "tests/queue/queues_world.h"
#include "tests/support/hooked_store.h"

namespace strata::queue::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

PushedMessage Keyed(int number, std::string key) {
  PushedMessage message = Numbered(number);
  message.ordering_key = std::move(key);
  return message;
}

class OrderingKeys : public QueuesTest {};
INSTANTIATE_TEST_SUITE_P(Engines, OrderingKeys, ::testing::ValuesIn(kAtomicEngines), EngineName);

TEST_P(OrderingKeys, TheHeadBlocksItsFollowersAndNobodyElse) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", {Keyed(1, "a"), Keyed(2, "a"), Keyed(3, "b"), Numbered(4)}),
              IsOk());
  auto reserved = queues.Reserve("mails", 10);
  EXPECT_THAT(NumbersOf(reserved), ElementsAre("1", "3", "4"));
  EXPECT_EQ(queues->Statistics("mails")->waiting, 1);
  ASSERT_THAT(queues.Rollback(reserved->front().token, seconds(10)), IsOk());
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), IsEmpty());
  world.clock().Advance(seconds(11));
  reserved = queues.Reserve("mails", 10);
  EXPECT_THAT(NumbersOf(reserved), ElementsAre("1"));
  ASSERT_THAT(queues.Acknowledge(reserved->front().token), IsOk());
  reserved = queues.Reserve("mails", 10);
  EXPECT_THAT(NumbersOf(reserved), ElementsAre("2"));
  ASSERT_THAT(queues.Acknowledge(reserved->front().token), IsOk());
  EXPECT_EQ(queues->Statistics("mails")->waiting, 0);
  ASSERT_THAT(queues.Push("mails", Keyed(5, "a")), IsOk());
  EXPECT_THAT(NumbersOf(queues.Pop("mails", 10)), ElementsAre("5"));
}

TEST_P(OrderingKeys, RandomStepsOfManyKeysKeepTheOrderOfEach) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  constexpr int kMessages = 300;
  std::map<std::string, std::vector<int>> pushed;
  std::map<std::string, size_t> done;
  int next = 0;
  int acknowledged = 0;
  for (int step = 0; step < 20'000 && acknowledged < kMessages; ++step) {
    if (next < kMessages && random() % 2 == 0) {
      const std::string key = "k" + std::to_string(random() % 7);
      ASSERT_THAT(queues.Push("mails", Keyed(next, key)), IsOk());
      pushed[key].push_back(next++);
      continue;
    }
    const auto reserved = queues.Reserve("mails", 1 + static_cast<int>(random() % 4));
    ASSERT_THAT(reserved, IsOk());
    for (const MessageView& view : *reserved) {
      const std::string& key = view.message.ordering_key;
      const int number = std::stoi(ToHeaders(view.message.payload)->at("number"));
      ASSERT_EQ(number, pushed[key][done[key]]) << key;
      switch (random() % 4) {
        case 0:
          ASSERT_THAT(queues.Rollback(view.token, microseconds(random() % 3'000'000)), IsOk());
          break;
        case 1:
          world.clock().Advance(seconds(40));  // it runs out
          break;
        default:
          ASSERT_THAT(queues.Acknowledge(view.token), IsOk());
          ++done[key];
          ++acknowledged;
      }
    }
    world.clock().Advance(seconds(1));
  }
  EXPECT_EQ(acknowledged, kMessages);
  const auto statistics = queues->Statistics("mails");
  ASSERT_THAT(statistics, IsOk());
  EXPECT_EQ(statistics->ready + statistics->scheduled + statistics->waiting, 0);
}

TEST(OrderingKeysOfWeakEngines, AreRefused) {
  World world({.engine = "memory", .mode = Mode::kSingle});
  QueueProcess queues(world->store(), world.clock());
  ASSERT_THAT(queues.Create("mails"), IsOk());
  EXPECT_THAT(queues.Push("mails", {Numbered(1), Keyed(2, "a")}),
              HasReason(ErrorReason::kUnsupportedByEngine));
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), IsEmpty());
}

class RecurringMessages : public QueuesTest {};
INSTANTIATE_TEST_SUITE_P(Engines, RecurringMessages, ::testing::ValuesIn(kEngines), EngineName);

// 30 days of two servers, of which two days without any.
TEST_P(RecurringMessages, ComeOnceAtEachTimeAndOnceForThoseMissed) {
  auto other = std::make_unique<QueueProcess>(world->store(), world.clock(), 2);
  ASSERT_THAT(queues.Create("jobs"), IsOk());
  queues->StartBackground();
  (*other)->StartBackground();
  Schedule schedule;
  schedule.queue = "jobs";
  schedule.name = "nightly";
  schedule.cron = "30 2 * * *";
  schedule.message = Numbered(7);
  ASSERT_THAT(queues.CreateSchedule(schedule), IsOk());
  int64_t fired = 0;
  const auto hour = [&](bool running) {
    world.clock().Advance(std::chrono::hours(1));
    if (!running) return;
    queues.executor().RunDue();
    other->executor().RunDue();
    const auto popped = queues.Pop("jobs", 10);
    ASSERT_THAT(popped, IsOk());
    fired += static_cast<int64_t>(popped->size());
    EXPECT_LE(popped->size(), 1u);
  };
  for (int day = 0; day < 30; ++day) {
    for (int h = 0; h < 24; ++h) hour(day != 10 && day != 11);
    // Days 10 and 11 were missed, and come as one on day 12, before that day's own.
    if (day == 9) {
      EXPECT_EQ(fired, 10);
    }
  }
  EXPECT_EQ(fired, 28 + 1);
}

// Two looks of the background before the first firing is committed put it into a batch twice.
TEST(Drafts, ReplaceARecordThatIsJoinedOnce) {
  World world;
  Draft draft(world->store(), true);
  EXPECT_TRUE(draft.Join(store::Keyspace::kQueues, "a", "1", 1));
  EXPECT_FALSE(draft.Join(store::Keyspace::kQueues, "a", "2", 1));
  EXPECT_TRUE(draft.Join(store::Keyspace::kQueues, "b", "1", 1));
  EXPECT_EQ(draft.Take().batch.writes().size(), 2u);
}

TEST_P(RecurringMessages, AreReplacedAndDeletedWhileTheyFire) {
  ASSERT_THAT(queues.Create("jobs"), IsOk());
  Schedule schedule;
  schedule.queue = "jobs";
  schedule.name = "often";
  schedule.every = seconds(10);
  schedule.message = Numbered(7);
  ASSERT_THAT(queues.CreateSchedule(schedule), IsOk());
  QueueProcess second(world->store(), world.clock(), 2);
  world.clock().Advance(seconds(25));
  queues->StartBackground();
  second->StartBackground();
  queues.executor().RunDue();
  second.executor().RunDue();
  EXPECT_THAT(NumbersOf(queues.Pop("jobs", 10)), ElementsAre("7"));
  ASSERT_THAT(queues->ListSchedules("jobs", "", 10), IsOk());
  schedule.every = seconds(20);
  ASSERT_THAT(queues.CreateSchedule(schedule), IsOk());
  Answer<absl::Status> deleted;
  queues->DeleteSchedule("jobs", "often", kNoDeadline, deleted.Callback());
  EXPECT_THAT(queues.Await(deleted), IsOk());
  Answer<absl::Status> again;
  queues->DeleteSchedule("jobs", "often", kNoDeadline, again.Callback());
  EXPECT_THAT(queues.Await(again), HasReason(ErrorReason::kScheduleNotFound));
}

// Each of them holds a payload, and all together may be a gigabyte.
TEST_P(RecurringMessages, AreNotReadWholeToBeMadeOrToFire) {
  test_support::HookedStore hooked(world->store());
  QueueProcess process(hooked, world.clock(), 2);
  int scans = 0;
  int schedules_read = 0;
  test_support::StoreHooks hooks;
  hooks.before_scan = [&](store::Keyspace keyspace, const store::Range& range) {
    // One that begins at the first schedule passes over the rest.
    if (keyspace == store::Keyspace::kQueues && range.begin < "jobs") ++scans;
  };
  hooks.before_get = [&](store::Keyspace keyspace, std::string_view key) {
    if (keyspace == store::Keyspace::kQueues && key.find('\0') != key.npos) ++schedules_read;
  };
  hooked.set_hooks(hooks);
  ASSERT_THAT(process.Create("jobs"), IsOk());
  process->StartBackground();
  process.executor().RunDue();
  Schedule schedule;
  schedule.queue = "jobs";
  schedule.cron = "30 2 * * *";
  schedule.message = Numbered(7);
  constexpr int kSchedules = 20;
  const int scans_before = scans;
  for (int i = 0; i < kSchedules; ++i) {
    schedule.name = "nightly-" + std::to_string(i);
    ASSERT_THAT(process.CreateSchedule(schedule), IsOk());
    process.executor().RunDue();
  }
  // The background looks at the queues each time, not at the schedules of others.
  EXPECT_LE(scans - scans_before, kSchedules + 1);
  EXPECT_LE(schedules_read, 3 * kSchedules);
  schedules_read = 0;
  for (int i = 0; i < 100; ++i) {
    world.clock().Advance(seconds(10));
    process.executor().RunDue();
  }
  EXPECT_EQ(schedules_read, 0);
  hooked.set_hooks({});
}

TEST_P(RecurringMessages, AreAThousandOfAQueueAtMost) {
  if (GetParam().name != "memory") GTEST_SKIP() << "each of them waits for the disk";
  ASSERT_THAT(queues.Create("jobs"), IsOk());
  ASSERT_THAT(queues.Create("other"), IsOk());
  Schedule schedule;
  schedule.queue = "jobs";
  schedule.cron = "30 2 * * *";
  for (size_t i = 0; i < kSchedulesMax; ++i) {
    schedule.name = "s" + std::to_string(i);
    ASSERT_THAT(queues.CreateSchedule(schedule), IsOk());
  }
  ASSERT_THAT(queues.CreateSchedule(schedule), IsOk());  // one of them anew
  schedule.name = "another";
  EXPECT_THAT(queues.CreateSchedule(schedule), HasReason(ErrorReason::kQueueLimit));
  // Another server deletes one.
  QueueProcess other(world->store(), world.clock(), 2);
  Answer<absl::Status> deleted;
  other->DeleteSchedule("jobs", "s7", kNoDeadline, deleted.Callback());
  ASSERT_THAT(other.Await(deleted), IsOk());
  EXPECT_THAT(queues.CreateSchedule(schedule), IsOk());
  schedule.queue = "other";
  EXPECT_THAT(queues.CreateSchedule(schedule), IsOk());
}

// Within a minute, whoever has made it.
TEST_P(RecurringMessages, AreFiredByAServerThatDidNotMakeThem) {
  ASSERT_THAT(queues.Create("jobs"), IsOk());
  queues->StartBackground();
  queues.executor().RunDue();
  {
    QueueProcess other(world->store(), world.clock(), 2);
    Schedule schedule;
    schedule.queue = "jobs";
    schedule.name = "often";
    schedule.every = seconds(30);
    schedule.message = Numbered(7);
    ASSERT_THAT(other.CreateSchedule(schedule), IsOk());
  }
  for (int i = 0; i < 8; ++i) {
    world.clock().Advance(seconds(10));
    queues.executor().RunDue();
  }
  EXPECT_THAT(NumbersOf(queues.Pop("jobs", 10)), ElementsAre("7"));
}

TEST_P(RecurringMessages, ComeAsOftenAsEachSecond) {
  ASSERT_THAT(queues.Create("jobs"), IsOk());
  queues->StartBackground();
  Schedule schedule;
  schedule.queue = "jobs";
  schedule.name = "often";
  schedule.every = seconds(1);
  schedule.message = Numbered(7);
  ASSERT_THAT(queues.CreateSchedule(schedule), IsOk());
  size_t fired = 0;
  for (int tenth = 0; tenth < 300; ++tenth) {
    world.clock().Advance(microseconds(100'000));
    queues.executor().RunDue();
    const auto popped = queues.Pop("jobs", 10);
    ASSERT_THAT(popped, IsOk());
    fired += popped->size();
  }
  EXPECT_GE(fired, 28u);
  EXPECT_LE(fired, 30u);
}

class Units : public QueuesTest {
 protected:
  absl::StatusOr<transaction::Committed> Commit(transaction::CommitRequest request,
                                                UnitSteps& steps) {
    request.joined.push_back(steps.plan());
    Answer<absl::StatusOr<transaction::Committed>> answer;
    transactions.Commit(std::move(request), answer.Callback());
    auto committed = queues.Await(answer);
    if (committed.ok()) steps.Committed(committed->position);
    return committed;
  }
  transaction::CommitRequest Update(const std::string& id) {
    transaction::CommitRequest request;
    transaction::Operation operation;
    operation.name = {"stock", id};
    operation.what = transaction::Update{Payload(1), true};
    request.writes.push_back(std::move(operation));
    return request;
  }

  test_support::SeededEntropy entropy{3};
  transaction::Transactions transactions{world->store(), world->documents(), world.clock(),
                                         entropy,        queues.executor(),  {}};
};
INSTANTIATE_TEST_SUITE_P(Engines, Units, ::testing::ValuesIn(kAtomicEngines), EngineName);

TEST_P(Units, AcknowledgeWriteAndPushInOneCommit) {
  ASSERT_THAT(queues.Create("orders"), IsOk());
  ASSERT_THAT(queues.Create("bills"), IsOk());
  ASSERT_THAT(queues.Push("orders", Numbered(1)), IsOk());
  const auto reserved = queues.Reserve("orders");
  ASSERT_THAT(*reserved, SizeIs(1));
  const std::string token = reserved->front().token;
  auto steps = queues->PlanUnit({token}, {{"bills", Numbered(2)}});
  ASSERT_THAT(steps, IsOk());
  ASSERT_THAT(Commit(Update("apples"), **steps), IsOk());
  EXPECT_THAT(queues.Acknowledge(token), HasReason(ErrorReason::kMessageNotFound));
  const auto bill = queues.Reserve("bills");
  EXPECT_THAT(NumbersOf(bill), ElementsAre("2"));
  EXPECT_EQ(bill->front().id, (*steps)->pushed().front());
  // The same once more is refused, and does nothing.
  auto again = queues->PlanUnit({token}, {{"bills", Numbered(3)}});
  ASSERT_THAT(again, IsOk());
  EXPECT_THAT(Commit(Update("pears"), **again), HasReason(ErrorReason::kMessageNotFound));
  EXPECT_THAT(NumbersOf(queues.Reserve("bills")), IsEmpty());
}

TEST_P(Units, ALostReservationRefusesAllOfIt) {
  QueueSettings settings;
  settings.history_retention = std::chrono::hours(1);
  ASSERT_THAT(queues.Create("orders", settings), IsOk());
  ASSERT_THAT(queues.Push("orders", Numbered(1)), IsOk());
  const auto first = queues.Reserve("orders");
  world.clock().Advance(seconds(31));
  const auto second = queues.Reserve("orders");
  ASSERT_THAT(*second, SizeIs(1));
  auto late = queues->PlanUnit({first->front().token}, {});
  ASSERT_THAT(late, IsOk());
  EXPECT_THAT(Commit(Update("apples"), **late), HasReason(ErrorReason::kReservationLost));
  EXPECT_THAT(world->documents().Get({"stock", "apples"}, {}),
              HasReason(ErrorReason::kCollectionNotFound));
  auto steps = queues->PlanUnit({second->front().token}, {});
  ASSERT_THAT(Commit(Update("apples"), **steps), IsOk());
  auto again = queues->PlanUnit({second->front().token}, {});
  EXPECT_THAT(Commit(Update("apples"), **again), HasReason(ErrorReason::kAlreadyAcknowledged));
}

TEST_P(Units, CountAPushOnceHoweverOftenItIsRepeated) {
  ASSERT_THAT(queues.Create("bills"), IsOk());
  PushedMessage message = Numbered(1);
  message.request_id = "bill-1";
  for (int i = 0; i < 3; ++i) {
    auto steps = queues->PlanUnit({}, {{"bills", message}});
    ASSERT_THAT(steps, IsOk());
    ASSERT_THAT(Commit(Update("apples" + std::to_string(i)), **steps), IsOk());
  }
  EXPECT_EQ(queues->Counts("bills")->pushed, 1);
}

TEST_P(Units, APushWakesWhoeverWaits) {
  ASSERT_THAT(queues.Create("bills"), IsOk());
  Answer<QueueProcess::Messages> waiting;
  ReserveRequest request;
  request.queue = "bills";
  request.wait = seconds(20);
  queues->Reserve(request, waiting.Callback());
  queues.executor().RunDue();
  auto steps = queues->PlanUnit({}, {{"bills", Numbered(2)}});
  ASSERT_THAT(Commit(Update("apples"), **steps), IsOk());
  EXPECT_THAT(NumbersOf(queues.Await(waiting)), ElementsAre("2"));
}

// What a unit pushed is in the store before its queue is told of it, and may be met there.
TEST_P(Units, AreNoOtherServersWhereTheyAreMetBeforeTheyAreTold) {
  ASSERT_THAT(queues.Create("bills"), IsOk());
  const auto exact_in_two_seconds = [&] {
    (void)queues->Statistics("bills");
    world.clock().Advance(seconds(2));
    queues.executor().RunDue();
    const auto statistics = queues->Statistics("bills");
    EXPECT_THAT(statistics, IsOk());
    return statistics->exact;
  };
  EXPECT_TRUE(exact_in_two_seconds());
  for (const bool told : {true, false}) {
    Answer<QueueProcess::Messages> waiting;
    ReserveRequest request;
    request.queue = "bills";
    request.wait = seconds(20);
    queues->Reserve(request, waiting.Callback());
    queues.executor().RunDue();
    auto steps = queues->PlanUnit({}, {{"bills", Numbered(2)}});
    transaction::CommitRequest unit = Update("apples");
    unit.joined.push_back((*steps)->plan());
    Answer<absl::StatusOr<transaction::Committed>> answer;
    transactions.Commit(std::move(unit), answer.Callback());
    const auto committed = queues.Await(answer);
    ASSERT_THAT(committed, IsOk());
    // The look of whoever waits is sooner.
    world.clock().Advance(seconds(2));
    EXPECT_THAT(NumbersOf(queues.Await(waiting)), ElementsAre("2"));
    EXPECT_FALSE(queues->Statistics("bills")->exact);
    if (told) (*steps)->Committed(committed->position);
    EXPECT_EQ(exact_in_two_seconds(), told);
  }
  // It is counted each minute from then on.
  world.clock().Advance(seconds(61));
  EXPECT_FALSE(exact_in_two_seconds());
  const auto statistics = queues->Statistics("bills");
  EXPECT_EQ(statistics->ready + statistics->reserved, 2);
}

}  // namespace
}  // namespace strata::queue::testing
