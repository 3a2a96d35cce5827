// A wall clock that is an hour ahead for a moment and then right again: what was stored meanwhile
// is not waited for, and what is stored afterwards goes by the right time; in the same process, and
// in one that begins then and knows of nothing.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schemas/queue/queue_keys.h"
#include "schemas/queue/queue_record.h"
#include "tests/queue/queues_world.h"
#include "tests/support/await_commit.h"

namespace strata::queue::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr UnixMicros kHour = UnixMicros{3600} * 1'000'000;

class SetClock : public QueuesTest {
 protected:
  SetClock() { EXPECT_THAT(queues.Create("mails"), IsOk()); }

  void SetAhead() { world.clock().SetNow(world.clock().Now() + kHour); }
  void SetRight() { world.clock().SetNow(world.clock().Now() - kHour); }
  void PassSeconds(int count, QueueProcess& process) {
    for (int i = 0; i < count; ++i) {
      world.clock().Advance(seconds(1));
      process.executor().RunDue();
    }
  }
  void PassSeconds(int count) { PassSeconds(count, queues); }
  UnixMicros Now() { return world.clock().Now(); }
  // A process that begins now.
  std::unique_ptr<QueueProcess> Another() {
    return std::make_unique<QueueProcess>(world->store(), world.clock(), 7);
  }
  QueueStatistics Statistics(QueueProcess& process) {
    (void)process->Statistics("mails");
    PassSeconds(1, process);
    const absl::StatusOr<QueueStatistics> statistics = process->Statistics("mails");
    EXPECT_THAT(statistics, IsOk());
    return statistics.value_or(QueueStatistics());
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, SetClock, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(SetClock, WhatIsReadyAtOnceIsReadyUnderAnyClock) {
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  SetAhead();
  ASSERT_THAT(queues.Push("mails", Numbered(2)), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(3)), IsOk());
  SetRight();
  ASSERT_THAT(queues.Push("mails", Numbered(4)), IsOk());
  // By their dues, and each has one.
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), ElementsAre("1", "4", "2", "3"));
}

TEST_P(SetClock, WhatIsReadyAtOnceIsReadyForAProcessThatBeginsLater) {
  SetAhead();
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  ASSERT_THAT(queues.Rollback(queues.Reserve("mails")->front().token, microseconds(0)), IsOk());
  SetRight();
  const auto later = Another();
  ASSERT_THAT(later->Push("mails", Numbered(2)), IsOk());
  const QueueStatistics statistics = Statistics(*later);
  EXPECT_EQ(statistics.ready, 2);
  EXPECT_EQ(statistics.scheduled, 0);
  EXPECT_TRUE(statistics.exact);
  EXPECT_THAT(NumbersOf(later->Reserve("mails", 10)), ElementsAre("2", "1"));
}

TEST_P(SetClock, TimesThatAreAskedForGoByTheClockAsItIsNow) {
  SetAhead();
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  SetRight();
  ASSERT_THAT(*queues.Pop("mails"), SizeIs(1));
  PushedMessage delivered = Numbered(2);
  delivered.deliver_time = Now() + 600'000'000;
  ASSERT_THAT(queues.Push("mails", delivered), IsOk());
  PushedMessage expiring = Numbered(3);
  expiring.expire_time = Now() + 600'000'000;
  ASSERT_THAT(queues.Push("mails", expiring), IsOk());
  PushedMessage delayed = Numbered(4);
  delayed.delay = seconds(4);
  ASSERT_THAT(queues.Push("mails", delayed), IsOk());
  EXPECT_THAT(NumbersOf(queues.Pop("mails", 10)), ElementsAre("3"));
  PassSeconds(3);
  EXPECT_THAT(*queues.Pop("mails", 10), IsEmpty());
  PassSeconds(1);
  EXPECT_THAT(NumbersOf(queues.Pop("mails", 10)), ElementsAre("4"));
  PassSeconds(595);
  EXPECT_THAT(*queues.Pop("mails", 10), IsEmpty());
  PassSeconds(1);
  EXPECT_THAT(NumbersOf(queues.Pop("mails", 10)), ElementsAre("2"));
}

TEST_P(SetClock, AReservationEndsAfterItsOwnTimeout) {
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  SetAhead();
  ASSERT_THAT(*queues.Reserve("mails"), SizeIs(1));  // for 30 s
  SetRight();
  EXPECT_THAT(*queues.Reserve("mails"), IsEmpty());  // meets the reservation
  PassSeconds(29);
  EXPECT_THAT(*queues.Reserve("mails"), IsEmpty());
  PassSeconds(1);
  const auto again = queues.Reserve("mails");
  ASSERT_THAT(*again, SizeIs(1));
  EXPECT_EQ(again->front().message.delivery, 2);
  // By the right clock this time.
  PassSeconds(29);
  EXPECT_THAT(*queues.Reserve("mails"), IsEmpty());
  PassSeconds(1);
  EXPECT_THAT(*queues.Reserve("mails"), SizeIs(1));
}

TEST_P(SetClock, AReservationOfAProcessThatEndedEndsAfterItsOwnTimeout) {
  ASSERT_THAT(queues.Push("mails", {Numbered(1), Numbered(2)}), IsOk());
  SetAhead();
  const auto held = queues.Reserve("mails", 2);
  ASSERT_THAT(*held, SizeIs(2));
  SetRight();
  const auto later = Another();
  EXPECT_THAT(*later->Reserve("mails", 2), IsEmpty());
  PassSeconds(20, *later);
  // Who holds it may go on until then.
  ASSERT_THAT(later->Extend(held->at(1).token), IsOk());
  PassSeconds(10, *later);
  const auto again = later->Reserve("mails", 2);
  ASSERT_THAT(*again, SizeIs(1));
  EXPECT_EQ(again->front().id, held->at(0).id);
  EXPECT_THAT(later->Acknowledge(held->at(0).token), HasReason(ErrorReason::kReservationLost));
  EXPECT_THAT(later->Acknowledge(held->at(1).token), IsOk());
}

TEST_P(SetClock, AStreamGetsItsCreditBackAfterTheTimeout) {
  ASSERT_THAT(queues.Push("mails", {Numbered(1), Numbered(2)}), IsOk());
  SetAhead();
  const auto sink = std::make_shared<Collected>();
  const auto receiver = queues->Receive({"mails", 1, std::nullopt}, sink);
  ASSERT_THAT(receiver, IsOk());
  queues.Settle("mails");
  ASSERT_THAT(sink->all, SizeIs(1));
  SetRight();
  PassSeconds(29);
  queues.Settle("mails");
  EXPECT_THAT(sink->all, SizeIs(1));
  PassSeconds(1);
  queues.Settle("mails");
  EXPECT_THAT(sink->all, SizeIs(2));
}

TEST_P(SetClock, ADelayIsNotTakenForAnotherClocks) {
  PushedMessage delayed = Numbered(1);
  delayed.delay = std::chrono::hours(2);
  ASSERT_THAT(queues.Push("mails", delayed), IsOk());
  const auto later = Another();
  EXPECT_THAT(*later->Reserve("mails"), IsEmpty());
  EXPECT_EQ(Statistics(*later).scheduled, 1);
  PassSeconds(120, *later);
  EXPECT_THAT(*later->Reserve("mails"), IsEmpty());
}

TEST_P(SetClock, SmallStepsBackAreNoOtherClock) {
  for (int i = 1; i <= 4; ++i) {
    ASSERT_THAT(queues.Push("mails", Numbered(i)), IsOk());
    world.clock().SetNow(Now() - 200'000);
  }
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), ElementsAre("1", "2", "3", "4"));
}

// What builds left that knew neither of messages that are ready at once nor of timeouts.
TEST_P(SetClock, RecordsOfOlderBuildsGoByTheirTimes) {
  const auto queue = world->store().Get(store::Keyspace::kQueues, "mails");
  const int64_t incarnation = QueueRecord::Decode("mails", **queue)->incarnation;
  const auto store = [&](char name, Stage stage, UnixMicros time, std::string_view value) {
    const MessageId id = *MessageId::FromBytes(std::string(MessageId::kBytes, name));
    Message message;
    message.queue = incarnation;
    message.stage = stage;
    message.time = time;
    message.payload = Payload(name - '0');
    const Hint hint{HintKind::kDue, 0, time, id, 0};
    store::WriteBatch batch;
    batch.Put(store::Keyspace::kQueueIndex, HintKey(incarnation, hint), std::string(value));
    batch.Put(store::Keyspace::kMessages, std::string(id.bytes()), message.Encode());
    batch.MarkAsBackground();
    EXPECT_TRUE(test_support::AwaitCommit(world->store(), std::move(batch)).committed);
  };
  const std::string_view plain("\x05\0\0\0\0", 5);
  const std::string_view reserved("\x09\0\0\0\x08r\0\x01\0", 9);
  store('1', Stage::kOpen, Now() - 5, plain);
  store('2', Stage::kOpen, Now() + 5'000'000, plain);
  store('3', Stage::kReserved, Now() - 4, reserved);
  store('4', Stage::kReserved, Now() + 5'000'000, reserved);
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), ElementsAre("1", "3"));
  PassSeconds(5);
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), UnorderedElementsAre("2", "4"));
}

// Of what another clock made more than is kept in memory, all comes all the same.
TEST(ManyOfAnotherClock, AllAreHandedOut) {
  World world({.engine = "memory", .mode = Mode::kAtomic});
  constexpr int kMessages = 4'500;
  std::vector<PushedMessage> hundred(100, Numbered(1));
  {
    QueueProcess before(world->store(), world.clock());
    ASSERT_THAT(before.Create("mails"), IsOk());
    world.clock().SetNow(world.clock().Now() + kHour);
    for (int i = 0; i < kMessages; i += 100) ASSERT_THAT(before.Push("mails", hundred), IsOk());
  }
  world.clock().SetNow(world.clock().Now() - kHour);
  QueueProcess later(world->store(), world.clock(), 2);
  size_t handed = 0;
  for (int turns = 0; handed < kMessages && turns < 200; ++turns) {
    world.clock().Advance(std::chrono::milliseconds(10));
    later.executor().RunDue();
    const auto popped = later.Pop("mails", 100);
    ASSERT_THAT(popped, IsOk());
    handed += popped->size();
  }
  EXPECT_EQ(handed, size_t{kMessages});
}

class LastTries : public SetClock {
 protected:
  LastTries() {
    EXPECT_THAT(queues.Update("mails",
                              [](QueueSettings& settings) {
                                settings.max_tries = 1;
                                return absl::OkStatus();
                              }),
                IsOk());
    EXPECT_THAT(queues.Push("mails", Numbered(1)), IsOk());
    const auto held = queues.Reserve("mails");
    EXPECT_THAT(*held, SizeIs(1));
    token = held->front().token;
  }

  std::string token;
};
INSTANTIATE_TEST_SUITE_P(Engines, LastTries, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(LastTries, AMessageDiesWithTheEndOfItsLastThoughNobodyAsks) {
  queues->StartBackground();
  PassSeconds(28);
  EXPECT_EQ(Statistics(queues).reserved, 1);
  PassSeconds(12);
  queues.Settle("mails");
  const QueueStatistics statistics = Statistics(queues);
  EXPECT_EQ(statistics.dead, 1);
  EXPECT_EQ(statistics.ready, 0);
  EXPECT_THAT(queues.Acknowledge(token), HasReason(ErrorReason::kReservationLost));
}

TEST_P(LastTries, OneThatIsExtendedLivesOn) {
  queues->StartBackground();
  PassSeconds(20);
  ASSERT_THAT(queues.Extend(token), IsOk());
  PassSeconds(25);
  EXPECT_THAT(queues.Acknowledge(token), IsOk());
}

TEST_P(LastTries, AProcessThatBeginsLaterBuriesItWhereItIsCounted) {
  const auto later = Another();
  (*later)->StartBackground();
  EXPECT_EQ(Statistics(*later).reserved, 1);
  PassSeconds(45, *later);
  later->Settle("mails");
  EXPECT_EQ(Statistics(*later).dead, 1);
}

}  // namespace
}  // namespace strata::queue::testing
