// Several servers over one store: what one makes of a queue counts for the others too.
#include <memory>
#include <optional>
#include <utility>

#include "tests/queue/queues_world.h"
#include "tests/support/hooked_store.h"

namespace strata::queue::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

absl::Status SetPaused(QueueProcess& process, bool paused) {
  return process
      .Update("mails",
              [paused](QueueSettings& settings) {
                settings.paused = paused;
                return absl::OkStatus();
              })
      .status();
}

// Of a stream of which nothing but its end matters.
class EndOnly final : public ReceiverSink {
 public:
  bool closed() const override { return false; }
  void Deliver(std::vector<MessageView> /*messages*/) override {}
  void Answer(std::vector<std::string> /*tokens*/,
              std::vector<absl::StatusOr<bool>> /*replayed*/) override {}
  void End(absl::Status status) override { ended = std::move(status); }

  std::optional<absl::Status> ended;
};

class Servers : public QueuesTest {
 protected:
  // The background of the first one looks every ten seconds.
  void PassTime() {
    for (int i = 0; i < 12; ++i) {
      world.clock().Advance(seconds(1));
      queues.executor().RunDue();
    }
  }

  QueueProcess other{world->store(), world.clock(), 2};
};
INSTANTIATE_TEST_SUITE_P(Engines, Servers, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(Servers, HandOutAgainWhatAnotherOneHasResumed) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  queues->StartBackground();
  ASSERT_THAT(*queues.Reserve("mails"), IsEmpty());
  ASSERT_THAT(SetPaused(queues, true), IsOk());
  ASSERT_THAT(SetPaused(other, false), IsOk());
  ASSERT_THAT(other.Push("mails", Numbered(1)), IsOk());
  PassTime();
  EXPECT_THAT(*queues.Reserve("mails"), SizeIs(1));
}

TEST_P(Servers, FindOutThatAnotherOneHasDeletedAQueueAndMadeItAnew) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  queues->StartBackground();
  ASSERT_THAT(*queues.Reserve("mails"), IsEmpty());
  ASSERT_THAT(other.Delete("mails"), IsOk());
  PassTime();
  EXPECT_THAT(queues.Reserve("mails"), HasReason(ErrorReason::kQueueNotFound));
  ASSERT_THAT(other.Create("mails"), IsOk());
  ASSERT_THAT(*queues.Reserve("mails"), IsEmpty());
  ASSERT_THAT(other.Delete("mails"), IsOk());
  ASSERT_THAT(other.Create("mails"), IsOk());
  ASSERT_THAT(other.Push("mails", Numbered(1)), IsOk());
  PassTime();
  EXPECT_THAT(*queues.Reserve("mails"), SizeIs(1));
}

TEST_P(Servers, EndStreamsOfAQueueThatAnotherOneHasDeleted) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  queues->StartBackground();
  const auto sink = std::make_shared<EndOnly>();
  const auto receiver = queues->Receive({"mails", 10, std::nullopt}, sink);
  ASSERT_THAT(receiver, IsOk());
  PassTime();
  EXPECT_FALSE(sink->ended);
  ASSERT_THAT(other.Delete("mails"), IsOk());
  PassTime();
  ASSERT_TRUE(sink->ended);
  EXPECT_THAT(*sink->ended, HasReason(ErrorReason::kQueueNotFound));
}

TEST_P(Servers, CountTheQueuesThatOthersHaveDeleted) {
  QueueProcess counting(world->store(), world.clock(), 3, {.queues_max = 2});
  for (const char* name : {"mails", "bills"}) ASSERT_THAT(counting.Create(name), IsOk());
  EXPECT_THAT(counting.Create("jobs"), HasReason(ErrorReason::kQueueLimit));
  ASSERT_THAT(other.Delete("bills"), IsOk());
  EXPECT_THAT(counting.Create("jobs"), IsOk());
}

// With atomic batches nothing can come into a deleted queue any more, so what is left of many of
// one name is the last one's tombstone, until other servers have heard of it.
TEST_P(Servers, KeepTombstonesOfQueuesAsLongAsTheyAreNeeded) {
  const auto records = [&] {
    int count = 0;
    for (auto cursor = world.engine().Scan(store::Keyspace::kQueues, {}); cursor->Valid();
         cursor->Next()) {
      ++count;
    }
    return count;
  };
  const auto pass = [&](std::chrono::microseconds time) {
    world.clock().Advance(time);
    for (int turn = 0; turn < 3; ++turn) {
      world.clock().Advance(seconds(11));
      queues.executor().RunDue();
      // Stored after what the turn has written, so that the next one sees that.
      ASSERT_THAT(queues.Push("other", Numbered(1)), IsOk());
    }
  };
  queues->StartBackground();
  ASSERT_THAT(queues.Create("other"), IsOk());
  for (int i = 0; i < 5; ++i) {
    ASSERT_THAT(queues.Create("mails"), IsOk());
    ASSERT_THAT(queues.Push("mails", Numbered(i)), IsOk());
    ASSERT_THAT(queues.Delete("mails", /*force=*/true), IsOk());
  }
  const auto listed = queues->List("", 10);
  ASSERT_THAT(listed, IsOk());
  ASSERT_THAT(*listed, SizeIs(1));
  EXPECT_EQ(listed->front().name, "other");
  pass(seconds(0));
  EXPECT_EQ(records(), GetParam().atomic() ? 2 : 6);
  pass(std::chrono::minutes(2));
  EXPECT_EQ(records(), GetParam().atomic() ? 1 : 6);
  pass(std::chrono::hours(25));
  EXPECT_EQ(records(), 1);
}

// One that knows a queue which the other one deletes and makes anew, again and again: what it asks
// for next is of the new one.
class ServersOfAQueueMadeAnew : public Servers {
 protected:
  ServersOfAQueueMadeAnew() {
    EXPECT_THAT(queues.Create("bills"), IsOk());
    EXPECT_THAT(queues.Create("mails"), IsOk());
    EXPECT_THAT(queues.Push("mails", Numbered(0)), IsOk());
  }

  // The new one holds the message with the next number.
  MessageId MakeAnew() {
    EXPECT_THAT(other.Delete("mails", /*force=*/true), IsOk());
    EXPECT_THAT(other.Create("mails"), IsOk());
    const absl::StatusOr<PushResult> pushed = other.Push("mails", Numbered(++number));
    EXPECT_THAT(pushed, IsOk());
    return pushed.ok() ? pushed->id : MessageId();
  }
  std::string MakeAnewAndReserve() {
    MakeAnew();
    const QueueProcess::Messages held = other.Reserve("mails");
    EXPECT_THAT(held, IsOk());
    EXPECT_THAT(*held, SizeIs(1));
    return held->front().token;
  }
  std::vector<std::string> NumbersAt(QueueProcess& process, const std::string& queue) {
    MessageQuery query;
    query.queue = queue;
    const absl::StatusOr<MessagePage> page = process->ListMessages(query, 100);
    EXPECT_THAT(page, IsOk());
    return page.ok() ? NumbersOf(page->messages) : std::vector<std::string>();
  }

  int number = 0;
};
INSTANTIATE_TEST_SUITE_P(Engines, ServersOfAQueueMadeAnew, ::testing::ValuesIn(kEngines),
                         EngineName);

TEST_P(ServersOfAQueueMadeAnew, ReadWhatTheNewOneHolds) {
  const MessageId id = MakeAnew();
  EXPECT_THAT(queues->GetMessage("mails", id.ToText()), IsOk());
  MakeAnew();
  EXPECT_THAT(NumbersAt(queues, "mails"), ElementsAre(std::to_string(number)));
  MakeAnew();
  ASSERT_THAT(other.Push("mails", Numbered(++number)), IsOk());
  const auto statistics = queues->Statistics("mails");
  ASSERT_THAT(statistics, IsOk());
  EXPECT_EQ(statistics->ready, 2);
  MakeAnew();
  Schedule schedule;
  schedule.queue = "mails";
  schedule.name = "nightly";
  schedule.cron = "30 2 * * *";
  ASSERT_THAT(other.CreateSchedule(schedule), IsOk());
  EXPECT_THAT(*queues->ListSchedules("mails", "", 10), SizeIs(1));
}

// Where stamps are no positions, the record of the new one may have the stamp of the old one's.
TEST_P(ServersOfAQueueMadeAnew, ReadWhatTheNewOneHoldsOnceTheTombstoneIsSwept) {
  ASSERT_THAT(other.Delete("mails", /*force=*/true), IsOk());
  other->StartBackground();
  for (int turn = 0; turn < 6; ++turn) {
    world.clock().Advance(turn == 2 ? std::chrono::hours(25) : seconds(11));
    other.executor().RunDue();
    ASSERT_THAT(other.Push("bills", Numbered(turn)), IsOk());  // behind what the turn has written
  }
  const auto record = world.engine().Get(store::Keyspace::kQueues, "mails");
  ASSERT_THAT(record, IsOk());
  EXPECT_FALSE(record->has_value());
  ASSERT_THAT(other.Create("mails"), IsOk());
  const absl::StatusOr<PushResult> pushed = other.Push("mails", Numbered(++number));
  ASSERT_THAT(pushed, IsOk());
  EXPECT_THAT(queues->GetMessage("mails", pushed->id.ToText()), IsOk());
  EXPECT_THAT(NumbersAt(queues, "mails"), ElementsAre(std::to_string(number)));
  EXPECT_THAT(*queues.Reserve("mails"), SizeIs(1));
}

TEST_P(ServersOfAQueueMadeAnew, SweepWhatTheNewOneHolds) {
  MakeAnew();
  PurgeRequest purge;
  purge.queue = "mails";
  purge.states = {State::kReady};
  const absl::StatusOr<Swept> purged = queues.Purge(purge);
  ASSERT_THAT(purged, IsOk());
  EXPECT_EQ(purged->messages, 1);
  RollbackRequest rollback;
  rollback.tokens = {MakeAnewAndReserve()};
  rollback.dead = true;
  ASSERT_THAT(other.Rollback(rollback), IsOk());
  ReplayRequest replay;
  replay.queue = "mails";
  replay.states = {State::kDead};
  const absl::StatusOr<Swept> replayed = queues.Replay(replay);
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->messages, 1);
}

TEST_P(ServersOfAQueueMadeAnew, PushIntoTheNewOne) {
  MakeAnew();
  ASSERT_THAT(queues.Push("mails", Numbered(++number)), IsOk());
  EXPECT_THAT(NumbersAt(other, "mails"),
              UnorderedElementsAre(std::to_string(number - 1), std::to_string(number)));
  ASSERT_THAT(other.Delete("mails", /*force=*/true), IsOk());
  EXPECT_THAT(queues.Push("mails", Numbered(++number)).status(),
              HasReason(ErrorReason::kQueueNotFound));
}

TEST_P(ServersOfAQueueMadeAnew, TakeTheTokensOfTheNewOne) {
  EXPECT_THAT(queues.Extend(MakeAnewAndReserve()), IsOk());
  EXPECT_THAT(queues.Rollback(MakeAnewAndReserve()), IsOk());
  EXPECT_THAT(queues.Acknowledge(MakeAnewAndReserve()), IsOk());
  EXPECT_THAT(NumbersAt(other, "mails"), IsEmpty());
  MoveRequest move;
  move.token = MakeAnewAndReserve();
  move.queue = "bills";
  EXPECT_THAT(queues.Move(move), IsOk());
  EXPECT_THAT(NumbersAt(other, "bills"), ElementsAre(std::to_string(number)));
  // Of the one before, which is no other's by now.
  const std::string token = MakeAnewAndReserve();
  MakeAnew();
  EXPECT_THAT(queues.Acknowledge(token), Not(IsOk()));
}

TEST_P(ServersOfAQueueMadeAnew, StreamFromTheNewOne) {
  const auto sink = std::make_shared<EndOnly>();
  MakeAnew();
  const auto receiver = queues->Receive({"mails", 10, std::nullopt}, sink);
  ASSERT_THAT(receiver, IsOk());
  queues.executor().RunDue();
  queues->StartBackground();
  PassTime();
  EXPECT_FALSE(sink->ended);
}

// One server over a store in which a test steps in, another one beside it.
class ServersInARace : public ::testing::Test {
 protected:
  versioning::testing::World world;
  test_support::HookedStore hooked{world->store()};
  QueueProcess queues{hooked, world.clock()};
  QueueProcess other{world->store(), world.clock(), 2};
};

TEST_F(ServersInARace, HandNothingOutOnceAnotherOneHasAnsweredThatItIsPaused) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  bool paused = false;
  test_support::StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch&) {
    if (!std::exchange(paused, true)) {
      EXPECT_THAT(SetPaused(other, true), IsOk());
    }
  };
  hooked.set_hooks(hooks);
  EXPECT_THAT(*queues.Reserve("mails"), IsEmpty());
  hooked.set_hooks({});
  EXPECT_TRUE(paused);
  ASSERT_THAT(SetPaused(other, false), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(2)), IsOk());
  EXPECT_THAT(*queues.Reserve("mails", 2), SizeIs(2));
}

// Who writes documents may go on for longer than the queues are there.
TEST_F(ServersInARace, PlanNothingOnceTheyHaveEnded) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  const auto reserved = queues.Reserve("mails");
  ASSERT_THAT(reserved, IsOk());
  ASSERT_THAT(*reserved, SizeIs(1));
  const auto steps = queues->PlanUnit({reserved->front().token}, {});
  ASSERT_THAT(steps, IsOk());
  const store::JoinedPlan plan = (*steps)->plan();
  const auto snapshot = world->store().Snapshot();
  store::WriteBatch batch;
  ASSERT_THAT(plan(*snapshot, batch), IsOk());
  queues.Stop();
  EXPECT_THAT(plan(*snapshot, batch), HasReason(ErrorReason::kDraining));
}

// Its payload lies beside it, and went with it after the message was read.
TEST_F(ServersInARace, HandOutNothingThatAnotherOneHasPoppedMeanwhile) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  PushedMessage large = Numbered(1);
  large.payload = ToContent({{"number", std::string(5'000, 'x')}});
  ASSERT_THAT(queues.Push("mails", large), IsOk());
  bool popped = false;
  test_support::StoreHooks hooks;
  hooks.before_get = [&](store::Keyspace keyspace, std::string_view key) {
    const bool of_payload =
        keyspace == store::Keyspace::kMessages && key.size() > MessageId::kBytes;
    if (!of_payload || std::exchange(popped, true)) return;
    EXPECT_THAT(*other.Pop("mails"), SizeIs(1));
  };
  hooked.set_hooks(hooks);
  const auto reserved = queues.Reserve("mails");
  ASSERT_THAT(reserved, IsOk());
  EXPECT_THAT(*reserved, IsEmpty());
  EXPECT_TRUE(popped);
  hooked.set_hooks({});
  ASSERT_THAT(queues.Push("mails", Numbered(2)), IsOk());
  EXPECT_THAT(*queues.Reserve("mails"), SizeIs(1));
}

TEST_F(ServersInARace, SweepNoScheduleOfAQueueThatWasMadeAnew) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Delete("mails"), IsOk());
  bool made = false;
  test_support::StoreHooks hooks;
  hooks.before_scan = [&](store::Keyspace keyspace, const store::Range& range) {
    // The sweeper is past the tombstone, and looks for the schedules of its queue.
    if (keyspace != store::Keyspace::kQueues || range.begin.empty()) return;
    if (std::exchange(made, true)) return;
    ASSERT_THAT(other.Create("mails"), IsOk());
    Schedule schedule;
    schedule.queue = "mails";
    schedule.name = "nightly";
    schedule.cron = "30 2 * * *";
    ASSERT_THAT(other.CreateSchedule(schedule), IsOk());
  };
  hooked.set_hooks(hooks);
  queues->StartBackground();
  queues.executor().RunDue();
  hooked.set_hooks({});
  EXPECT_TRUE(made);
  EXPECT_THAT(*other->ListSchedules("mails", "", 10), SizeIs(1));
}

}  // namespace
}  // namespace strata::queue::testing
