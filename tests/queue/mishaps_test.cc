// What deaths, lost races, clocks and deletions of others leave behind.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "schemas/store/single_record_store.h"
#include "tests/queue/queues_world.h"
#include "tests/support/hooked_store.h"

namespace strata::queue::testing {
namespace {

using test_support::HookedStore;
using test_support::StoreHooks;
using ::testing::ElementsAre;
using ::testing::SizeIs;

class Mishaps : public QueuesTest {
 protected:
  void PassSeconds(int count) {
    for (int i = 0; i < count; ++i) {
      world.clock().Advance(seconds(1));
      queues.executor().RunDue();
    }
  }

  QueueProcess other{world->store(), world.clock(), 2};
};
INSTANTIATE_TEST_SUITE_P(Engines, Mishaps, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(Mishaps, TheWatermarkIsOfTheQueueThatHasTheNameNow) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  EXPECT_EQ(*queues->LowWatermark({"mails"}), std::nullopt);
  ASSERT_THAT(other.Delete("mails"), IsOk());
  ASSERT_THAT(other.Create("mails"), IsOk());
  PushedMessage message = Numbered(1);
  message.sequence_number = 7;
  ASSERT_THAT(other.Push("mails", message), IsOk());
  EXPECT_EQ(*queues->LowWatermark({"mails"}), 7);
  ASSERT_THAT(other.Delete("mails", true), IsOk());
  EXPECT_THAT(queues->LowWatermark({"mails"}), HasReason(ErrorReason::kQueueNotFound));
}

TEST_P(Mishaps, WhatDiesGoesToTheDeadLetterQueueThatHasTheNameNow) {
  QueueSettings settings;
  settings.dead_letter_queue = "dead";
  ASSERT_THAT(queues.Create("dead"), IsOk());
  ASSERT_THAT(queues.Create("mails", settings), IsOk());
  const auto die = [&](int number) {
    ASSERT_THAT(queues.Push("mails", Numbered(number)), IsOk());
    RollbackRequest refusal;
    refusal.tokens = {queues.Reserve("mails")->front().token};
    refusal.dead = true;
    ASSERT_THAT(queues.Rollback(refusal), IsOk());
  };
  die(1);
  ASSERT_THAT(other.Delete("dead", true), IsOk());
  ASSERT_THAT(other.Create("dead"), IsOk());
  die(2);
  EXPECT_THAT(NumbersOf(other.Reserve("dead", 10)), ElementsAre("2"));
}

TEST_P(Mishaps, WhatADeletedQueueHeldIsSweptThoughAnotherHasItsName) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  for (int i = 0; i < 20; ++i) ASSERT_THAT(queues.Push("mails", Numbered(i)), IsOk());
  ASSERT_THAT(queues.Delete("mails", true), IsOk());
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(99)), IsOk());
  queues->StartBackground();
  const auto left = [&] {
    int messages = 0;
    const auto cursor = world->store().Scan(store::Keyspace::kMessages, {});
    for (; cursor->Valid(); cursor->Next()) ++messages;
    return messages;
  };
  for (int tries = 0; tries < 60 && left() != 1; ++tries) {
    PassSeconds(10);
    queues.Settle("mails");
  }
  EXPECT_EQ(left(), 1);
  EXPECT_THAT(NumbersOf(queues.Reserve("mails")), ElementsAre("99"));
  EXPECT_THAT(*queues->List("", 10), SizeIs(1));
}

TEST_P(Mishaps, ARequestIsRememberedThoughTheQueueIsDeletedThatItsMessageWasMovedTo) {
  QueueSettings kept;
  kept.history_retention = std::chrono::hours(1);
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Create("archive", kept), IsOk());
  PushedMessage message = Numbered(1);
  message.request_id = "r-1";
  const auto pushed = queues.Push("mails", message);
  ASSERT_THAT(pushed, IsOk());
  MoveRequest move;
  move.token = queues.Reserve("mails")->front().token;
  move.queue = "archive";
  ASSERT_THAT(queues.Move(move), IsOk());
  ASSERT_THAT(queues.Acknowledge(queues.Reserve("archive")->front().token), IsOk());
  ASSERT_THAT(queues.Delete("archive"), IsOk());
  queues->StartBackground();
  for (int i = 0; i < 10; ++i) {
    PassSeconds(11);
    queues.Settle("mails");
  }
  const auto again = queues.Push("mails", message);
  ASSERT_THAT(again, IsOk());
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(again->id, pushed->id);
}

TEST_P(Mishaps, ACreditComesBackForWhatAnotherServerHasEnded) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  const auto sink = std::make_shared<Collected>();
  const auto receiver = queues->Receive({"mails", 1, std::nullopt}, sink);
  ASSERT_THAT(receiver, IsOk());
  queues.Settle("mails");
  ASSERT_THAT(sink->all, SizeIs(1));
  ASSERT_THAT(other.Acknowledge(sink->all[0].token), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(2)), IsOk());
  PassSeconds(40);
  queues.Settle("mails");
  EXPECT_THAT(sink->all, SizeIs(2));
}

// What another server does is noticed with what it has done to a consumer's message; nothing tells
// of it before.
TEST_P(Mishaps, StatisticsAreExactUntilSomethingOfAnotherServerIsMet) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  const auto sink = std::make_shared<Collected>();
  const auto receiver = queues->Receive({"mails", 1, std::nullopt}, sink);
  ASSERT_THAT(receiver, IsOk());
  queues.Settle("mails");
  ASSERT_THAT(sink->all, SizeIs(1));
  const auto ask = [&] {
    (void)queues->Statistics("mails");
    PassSeconds(2);
    const auto statistics = queues->Statistics("mails");
    EXPECT_THAT(statistics, IsOk());
    return statistics.value_or(QueueStatistics());
  };
  EXPECT_TRUE(ask().exact);
  EXPECT_EQ(ask().reserved, 1);
  ASSERT_THAT(other.Acknowledge(sink->all[0].token), IsOk());
  // The reservation is over, and the stream looks once a minute for what it holds.
  PassSeconds(120);
  QueueStatistics met = ask();
  EXPECT_FALSE(met.exact);
  PassSeconds(61);
  met = ask();
  EXPECT_FALSE(met.exact);
  EXPECT_EQ(met.ready + met.scheduled + met.reserved, 0);
}

TEST(DyingWriters, OfADeletionLeaveTheQueueUsable) {
  World world({.engine = "memory", .mode = Mode::kSingle});
  QueueProcess queues(world->store(), world.clock());
  ASSERT_THAT(queues.Create("mails"), IsOk());
  {
    test_support::SingleRecordStore dying(world.engine());
    QueueProcess other(dying, world.clock(), 2);
    dying.CrashAfter(1);
    EXPECT_FALSE(other.Delete("mails").ok());
  }
  EXPECT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  EXPECT_THAT(queues.Push("mails", Numbered(2)), IsOk());
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), ElementsAre("1", "2"));
}

size_t CountOf(const store::Store& store, store::Keyspace keyspace) {
  size_t records = 0;
  const auto cursor = store.Scan(keyspace, {});
  for (; cursor->Valid(); cursor->Next()) ++records;
  return records;
}

TEST(DyingWriters, OfPushesDoNotHoldAQueueThatIsToBeDeleted) {
  World world({.engine = "memory", .mode = Mode::kSingle});
  QueueProcess queues(world->store(), world.clock());
  ASSERT_THAT(queues.Create("mails"), IsOk());
  {
    test_support::SingleRecordStore dying(world.engine());
    QueueProcess other(dying, world.clock(), 2);
    dying.CrashAfter(1);
    EXPECT_FALSE(other.Push("mails", Numbered(1)).ok());
  }
  // Whoever pushed it may only be slow.
  EXPECT_THAT(queues.Delete("mails"), HasReason(ErrorReason::kQueueNotEmpty));
  world.clock().Advance(seconds(61));
  EXPECT_THAT(queues.Delete("mails"), IsOk());
  EXPECT_EQ(CountOf(world.engine(), store::Keyspace::kQueueIndex), 0U);
}

TEST(DyingWriters, OfReplaysDoNotHoldAQueueThatIsToBeDeletedEither) {
  World world({.engine = "memory", .mode = Mode::kSingle});
  QueueProcess queues(world->store(), world.clock());
  QueueSettings settings;
  settings.history_retention = std::chrono::hours(1'000);
  ASSERT_THAT(queues.Create("mails", settings), IsOk());
  ASSERT_THAT(queues.Create("again"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  ASSERT_THAT(queues.Acknowledge(queues.Reserve("mails")->front().token), IsOk());
  ReplayRequest replay;
  replay.queue = "mails";
  replay.target_queue = "again";
  replay.states = {State::kFinished};
  {
    test_support::SingleRecordStore dying(world.engine());
    QueueProcess other(dying, world.clock(), 2);
    dying.CrashAfter(1);
    EXPECT_FALSE(other.Replay(replay).ok());
  }
  EXPECT_THAT(queues.Delete("again"), HasReason(ErrorReason::kQueueNotEmpty));
  world.clock().Advance(seconds(61));
  EXPECT_THAT(queues.Delete("again"), IsOk());
  // What it was about to replay is as it was.
  replay.target_queue.clear();
  EXPECT_EQ(queues.Replay(replay)->messages, 1);
  EXPECT_THAT(NumbersOf(queues.Reserve("mails")), ElementsAre("1"));
}

TEST(DyingWriters, OfPushesHoldTheWatermarkForAMinute) {
  World world({.engine = "memory", .mode = Mode::kSingle});
  QueueProcess queues(world->store(), world.clock());
  ASSERT_THAT(queues.Create("mails"), IsOk());
  {
    test_support::SingleRecordStore dying(world.engine());
    QueueProcess other(dying, world.clock(), 2);
    PushedMessage message = Numbered(1);
    message.sequence_number = 7;
    dying.CrashAfter(2);
    EXPECT_FALSE(other.Push("mails", message).ok());
  }
  EXPECT_EQ(*queues->LowWatermark({"mails"}), 7);
  world.clock().Advance(seconds(59));
  EXPECT_EQ(*queues->LowWatermark({"mails"}), 7);
  world.clock().Advance(seconds(2));
  EXPECT_EQ(*queues->LowWatermark({"mails"}), 7);  // it is seen to now
  EXPECT_EQ(*queues->LowWatermark({"mails"}), std::nullopt);
  // Nor once nobody knows any more that it did not come.
  world.clock().Advance(std::chrono::hours(25));
  EXPECT_EQ(*queues->LowWatermark({"mails"}), std::nullopt);
}

// A message is about to come into the queue "to", by one way or another.
struct Arrival {
  std::string_view name;
  // Readies it; what is returned brings it.
  std::function<std::function<absl::Status()>(QueueProcess&)> ready;
};

const Arrival kArrivals[] = {
    {"Move",
     [](QueueProcess& queues) {
       EXPECT_THAT(queues.Push("from", Numbered(1)), IsOk());
       MoveRequest move;
       move.token = queues.Reserve("from")->front().token;
       move.queue = "to";
       return [&queues, move] { return queues.Move(move).status(); };
     }},
    {"DeadLetter",
     [](QueueProcess& queues) {
       EXPECT_THAT(queues.Push("from", Numbered(1)), IsOk());
       RollbackRequest refusal;
       refusal.tokens = {queues.Reserve("from")->front().token};
       refusal.dead = true;
       return [&queues, refusal] { return queues.Rollback(refusal).status(); };
     }},
    {"Replay",
     [](QueueProcess& queues) {
       EXPECT_THAT(queues.Push("from", Numbered(1)), IsOk());
       EXPECT_THAT(queues.Acknowledge(queues.Reserve("from")->front().token), IsOk());
       ReplayRequest replay;
       replay.queue = "from";
       replay.target_queue = "to";
       replay.states = {State::kFinished};
       return [&queues, replay] { return queues.Replay(replay).status(); };
     }},
    {"Push",
     [](QueueProcess& queues) {
       return [&queues] { return queues.Push("to", Numbered(1)).status(); };
     }},
};

// One process brings the message, the other one deletes the queue without force.
class Encounter {
 public:
  explicit Encounter(const Arrival& arrival) {
    QueueSettings settings;
    settings.dead_letter_queue = "to";
    settings.history_retention = std::chrono::hours(1);
    EXPECT_THAT(arriving.Create("to"), IsOk());
    EXPECT_THAT(arriving.Create("from", settings), IsOk());
    arrive_ = arrival.ready(arriving);
  }

  // The one steps in before the write of that number of the other one, from 1; whether there was
  // such a write.
  bool DeleteWithinArrival(int at, bool force = false) {
    return StepIn(
        slow_arrival, at, [&] { arrived = arrive_(); },
        [&] { deleted = deleting.Delete("to", force); });
  }
  bool ArriveWithinDeletion(int at) {
    return StepIn(
        slow_deletion, at, [&] { deleted = deleting.Delete("to"); }, [&] { arrived = arrive_(); });
  }

  bool queue_is_there() { return arriving->Get("to").ok(); }
  // How often the message is there, for somebody to have it or have it back.
  size_t CountMessages() {
    size_t count = 0;
    for (const char* name : {"from", "to"}) {
      for (const auto state : {std::optional<State>(), std::optional(State::kFinished)}) {
        const auto page =
            arriving->ListMessages({.queue = name, .state = state, .after = "", .stopped = {}}, 10);
        if (page.ok()) count += page->messages.size();
      }
    }
    return count;
  }

  World world{{.engine = "memory"}};
  HookedStore slow_arrival{world.engine()};
  HookedStore slow_deletion{world.engine()};
  store::SingleRecordStore arriving_store{slow_arrival};
  store::SingleRecordStore deleting_store{slow_deletion};
  QueueProcess arriving{arriving_store, world.clock()};
  QueueProcess deleting{deleting_store, world.clock(), 2};
  absl::Status arrived;
  absl::Status deleted;

 private:
  static bool StepIn(HookedStore& hooked, int at, const std::function<void()>& slow,
                     const std::function<void()>& fast) {
    int writes = 0;
    StoreHooks hooks;
    hooks.before_commit = [&](const store::WriteBatch&) {
      if (++writes == at) fast();
    };
    hooked.set_hooks(hooks);
    slow();
    hooked.set_hooks({});
    return writes >= at;
  }

  std::function<absl::Status()> arrive_;
};

class Arrivals : public ::testing::TestWithParam<Arrival> {
 protected:
  // What is there before it comes.
  size_t before() const { return GetParam().name == "Push" ? 0 : 1; }

  void Check(Encounter& met) {
    EXPECT_EQ(met.deleted.ok(), !met.queue_is_there());
    if (!met.deleted.ok()) {
      EXPECT_THAT(met.deleted, HasReason(ErrorReason::kQueueNotEmpty));
      EXPECT_THAT(met.arrived, IsOk());
    }
    // A push is refused; what was somewhere stays there, or dies where it is.
    const bool came = met.queue_is_there();
    EXPECT_EQ(met.CountMessages(), came ? 1U : before()) << met.arrived << ", " << met.deleted;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, Arrivals, ::testing::ValuesIn(kArrivals),
                         [](const auto& arrival) { return std::string(arrival.param.name); });

TEST_P(Arrivals, AreNotLostWhenTheirQueueIsDeletedBetweenAnyTwoWrites) {
  int refused = 0;
  int at = 0;
  for (bool met = true; met;) {
    SCOPED_TRACE(++at);
    Encounter encounter(GetParam());
    met = encounter.DeleteWithinArrival(at);
    if (met) Check(encounter);
    if (met && !encounter.queue_is_there()) ++refused;
  }
  EXPECT_GT(at, 2);
  EXPECT_GT(refused, 0);
}

TEST_P(Arrivals, AreNotLostWhenTheyComeBetweenAnyTwoWritesOfADeletion) {
  int kept = 0;
  int at = 0;
  for (bool met = true; met;) {
    SCOPED_TRACE(++at);
    Encounter encounter(GetParam());
    met = encounter.ArriveWithinDeletion(at);
    if (met) Check(encounter);
    if (met && encounter.queue_is_there()) ++kept;
  }
  EXPECT_GT(at, 2);
  EXPECT_GT(kept, 0);
}

// By force it is deleted, and what comes after it was looked for goes too; nothing of it is left.
TEST_P(Arrivals, LeaveNothingInAQueueThatIsDeletedByForceMeanwhile) {
  int at = 0;
  for (bool met = true; met;) {
    SCOPED_TRACE(++at);
    Encounter encounter(GetParam());
    encounter.deleting->StartBackground();
    met = encounter.DeleteWithinArrival(at, true);
    encounter.deleting.executor().RunDue();
    if (!met) break;
    EXPECT_THAT(encounter.deleted, IsOk());
    for (int tries = 0; tries < 12; ++tries) {
      encounter.world.clock().Advance(seconds(11));
      encounter.deleting.executor().RunDue();
    }
    size_t left = 0;
    const auto cursor = encounter.world.engine().Scan(store::Keyspace::kMessages, {});
    for (; cursor->Valid(); cursor->Next()) {
      const auto message = Message::Decode(Bytes(cursor->value()));
      ASSERT_THAT(message, IsOk());
      if (message->stage != Stage::kTombstone) ++left;
    }
    EXPECT_EQ(left, encounter.CountMessages());
  }
  EXPECT_GT(at, 2);
}

TEST(RacingWriters, OfLargePayloadsLeaveThoseOfOthersAlone) {
  World world({.engine = "rocksdb"});
  store::SingleRecordStore single(world.engine());
  QueueProcess queues(single, world.clock());
  ASSERT_THAT(queues.Create("mails"), IsOk());
  for (int i = 0; i < 20; ++i) {
    std::vector<PushedMessage> messages(2);
    for (size_t j = 0; j < 2; ++j) {
      const char letter = j == 0 ? 'a' : 'b';
      messages[j].payload = ToContent({{"number", std::string(5'000, letter)}});
      messages[j].request_id = "order-" + std::to_string(i);
    }
    const auto pushed = queues.Push("mails", messages);
    ASSERT_THAT(pushed, IsOk());
    const auto popped = queues.Pop("mails");
    ASSERT_THAT(*popped, SizeIs(1));
    for (size_t j = 0; j < 2; ++j) {
      const auto& result = (*pushed)[j];
      if (!result.ok() || result->replayed) continue;
      EXPECT_EQ(popped->front().message.payload, messages[j].payload) << i;
    }
  }
  // Nothing is left of those that were refused.
  const auto cursor = world.engine().Scan(store::Keyspace::kMessages, {});
  for (; cursor->Valid(); cursor->Next()) EXPECT_EQ(cursor->key().size(), MessageId::kBytes);
}

TEST(DrainingServers, AnswerWhatIsOnItsWay) {
  World world;
  HookedStore hooked(world->store());
  QueueProcess queues(hooked, world.clock());
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch&) { queues->StopWaiting(); };
  hooked.set_hooks(hooks);
  ReserveRequest request;
  request.queue = "mails";
  request.pop = true;
  request.wait = seconds(10);
  EXPECT_THAT(NumbersOf(queues.Reserve(request)), ElementsAre("1"));
}

TEST(Batches, OfLargePayloadsAreBounded) {
  constexpr int kMessages = 30;
  constexpr size_t kBytesMost = size_t{16} << 20;
  World world;
  HookedStore hooked(world->store());
  QueueProcess queues(hooked, world.clock());
  QueueSettings settings;
  settings.history_retention = std::chrono::hours(1);
  ASSERT_THAT(queues.Create("mails", settings), IsOk());
  size_t largest = 0;
  StoreHooks hooks;
  hooks.before_commit = [&](const store::WriteBatch& batch) {
    size_t bytes = 0;
    for (const store::Write& write : batch.writes()) bytes += write.value.size();
    largest = std::max(largest, bytes);
  };
  hooked.set_hooks(hooks);
  PushedMessage large;
  large.payload = ToContent({{"number", std::string(1'000'000, 'x')}});
  std::vector<std::string> tokens;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_THAT(queues.Push("mails", large), IsOk());
    tokens.push_back(queues.Reserve("mails")->front().token);
  }
  // Many calls at once: what is gathered behind the first is more than one commit.
  std::vector<std::unique_ptr<Answer<QueueProcess::Results>>> answers;
  bool gathered = false;
  hooks.before_commit = [&, count = hooks.before_commit](const store::WriteBatch& batch) {
    count(batch);
    if (std::exchange(gathered, true)) return;
    for (size_t i = 1; i < tokens.size(); ++i) {
      answers.push_back(std::make_unique<Answer<QueueProcess::Results>>());
      queues->Acknowledge({tokens[i]}, kNoDeadline, answers.back()->Callback());
    }
  };
  hooked.set_hooks(hooks);
  ASSERT_THAT(queues.Acknowledge(tokens[0]), IsOk());
  for (const auto& answer : answers) {
    const QueueProcess::Results results = queues.Await(*answer);
    EXPECT_THAT(results.front(), IsOk());
  }
  ReplayRequest replay;
  replay.queue = "mails";
  replay.states = {State::kFinished};
  int64_t replayed = 0;
  for (bool more = true; more;) {
    const auto swept = queues.Replay(replay);
    ASSERT_THAT(swept, IsOk());
    replayed += swept->messages;
    more = swept->more;
  }
  EXPECT_EQ(replayed, kMessages);
  EXPECT_LE(largest, kBytesMost);
}

TEST(Statistics, AreCountedAnewAfterAnOutcomeThatIsUnknown) {
  World world;
  HookedStore hooked(world->store());
  QueueProcess queues(hooked, world.clock());
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues->Statistics("mails"), IsOk());
  StoreHooks hooks;
  hooks.after_commit = [](store::CommitResult& result) {
    result.status = Error(ErrorReason::kOutcomeUnknown, "who knows");
  };
  hooked.set_hooks(hooks);
  EXPECT_FALSE(queues.Push("mails", Numbered(1)).ok());
  hooked.set_hooks({});
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(queues->Statistics("mails"), IsOk());
    world.clock().Advance(seconds(1));
    queues.executor().RunDue();
  }
  const auto statistics = queues->Statistics("mails");
  EXPECT_TRUE(statistics->exact);
  EXPECT_EQ(statistics->ready, 1);
}

}  // namespace
}  // namespace strata::queue::testing
