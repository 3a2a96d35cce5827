// Statistics against a full count of what is stored, while queues are used at random and time goes
// by.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/queue/queues_world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/volume.h"

namespace strata::queue::testing {
namespace {

using std::chrono::hours;

// What matters of statistics, to be compared and printed.
struct Figures {
  int64_t ready = 0;
  int64_t scheduled = 0;
  int64_t reserved = 0;
  int64_t waiting = 0;
  int64_t dead = 0;
  std::optional<int64_t> low_watermark;

  friend bool operator==(const Figures&, const Figures&) = default;
};

void PrintTo(const Figures& figures, std::ostream* out) {
  *out << figures.ready << " ready, " << figures.scheduled << " scheduled, " << figures.reserved
       << " reserved, " << figures.waiting << " waiting, " << figures.dead << " dead, watermark "
       << (figures.low_watermark ? std::to_string(*figures.low_watermark) : "none");
}

Figures FiguresOf(const QueueStatistics& statistics) {
  return {statistics.ready,   statistics.scheduled, statistics.reserved,
          statistics.waiting, statistics.dead,      statistics.low_watermark};
}

class StatisticsOfQueues : public QueuesTest {
 protected:
  static constexpr std::string_view kNames[] = {"a", "b"};

  StatisticsOfQueues() {
    world.clock().StepAtEachCall(microseconds(0));
    std::printf("STRATA_SEED=%llu\n", static_cast<unsigned long long>(seed));
    for (const std::string_view name : kNames) {
      QueueSettings settings;
      settings.max_tries = name == "a" ? 3 : 0;
      settings.dead_letter_queue = name == "a" && Chance(50) ? "b" : "";
      if (Chance(50)) settings.history_retention = hours(2);
      EXPECT_THAT(queues.Create(std::string(name), settings), IsOk());
    }
  }

  bool Chance(int percent) { return static_cast<int>(random() % 100) < percent; }
  std::string DrawQueue() { return Chance(70) ? "a" : "b"; }

  // Of every record that there is.
  std::map<std::string, Figures> CountAll() {
    std::map<int64_t, std::string> names;
    std::map<std::string, Figures> all;
    for (const std::string_view name : kNames) {
      const auto queue = ReadQueue(world.engine(), name);
      EXPECT_THAT(queue, IsOk());
      names[(*queue)->incarnation] = name;
      all[std::string(name)] = {};
    }
    const UnixMicros now = world.clock().Now();
    const auto cursor = world.engine().Scan(store::Keyspace::kMessages, {});
    for (; cursor->Valid(); cursor->Next()) {
      if (cursor->key().size() != MessageId::kBytes) continue;
      const auto message = Message::Decode(Bytes(cursor->value()));
      EXPECT_THAT(message, IsOk());
      if (!message.ok() || (!message->live() && message->stage != Stage::kDead)) continue;
      CountOne(*message, now, all[names[message->queue]]);
    }
    return all;
  }
  static void CountOne(const Message& message, UnixMicros now, Figures& figures) {
    switch (message.StateAt(now)) {
      case State::kReady:
        ++figures.ready;
        break;
      case State::kScheduled:
        ++figures.scheduled;
        break;
      case State::kReserved:
        ++figures.reserved;
        break;
      case State::kWaiting:
        ++figures.waiting;
        break;
      case State::kDead:
        ++figures.dead;
        break;
      case State::kFinished:
        break;
    }
    if (!message.sequence_number) return;
    figures.low_watermark = std::min(figures.low_watermark.value_or(*message.sequence_number),
                                     *message.sequence_number);
  }

  // So that times that were given out ahead of the clock are over; and what is to be counted anew
  // has been.
  QueueStatistics Ask(QueueProcess& process, const std::string& name) {
    absl::StatusOr<QueueStatistics> statistics = process->Statistics(name);
    for (int i = 0; i < 20 && statistics.ok() && !statistics->exact; ++i) {
      world.clock().Advance(std::chrono::milliseconds(2));
      process.executor().RunDue();
      statistics = process->Statistics(name);
    }
    EXPECT_THAT(statistics, IsOk());
    return statistics.value_or(QueueStatistics());
  }

  void PassTime() {
    switch (random() % 8) {
      case 0:
        return world.clock().Advance(microseconds(random() % 20'000));
      case 1:
      case 2:
        return world.clock().Advance(microseconds(random() % 2'000'000));
      case 3:
      case 4:
      case 5:
        return world.clock().Advance(microseconds(random() % 40'000'000));
      case 6:
        return world.clock().Advance(seconds(random() % 7'200));
      default:
        return world.clock().Advance(std::chrono::minutes(random() % 2'000));
    }
  }

  // A second, an hour, days ahead: each is counted otherwise.
  microseconds DrawDelay() {
    switch (random() % 4) {
      case 0:
        return microseconds(random() % 3'000'000);
      case 1:
        return microseconds(seconds(random() % 7'200));
      case 2:
        return microseconds(std::chrono::minutes(random() % 4'320));
      default:
        return microseconds(0);
    }
  }

  void Push(QueueProcess& process) {
    std::vector<PushedMessage> messages;
    for (uint64_t i = 1 + random() % 5; i > 0; --i) {
      PushedMessage message = Numbered(++pushed);
      message.priority = static_cast<int32_t>(random() % 10);
      if (Chance(50)) message.delay = DrawDelay();
      if (Chance(10)) {
        message.expire_time = world.clock().Now() +
                              message.delay.value_or(microseconds(0)).count() +
                              microseconds(hours(1)).count();
      }
      if (Chance(40)) message.sequence_number = static_cast<int64_t>(1 + random() % 1'000);
      if (GetParam().atomic() && Chance(40)) {
        message.ordering_key = "k" + std::to_string(random() % 5);
      }
      messages.push_back(std::move(message));
    }
    ASSERT_THAT(process.Push(DrawQueue(), std::move(messages)), IsOk());
  }

  void Step(QueueProcess& process) {
    switch (random() % 12) {
      case 0:
      case 1:
      case 2:
        return Push(process);
      case 3:
      case 4:
      case 5: {
        const auto messages = process.Reserve(DrawQueue(), 1 + static_cast<int32_t>(random() % 8));
        ASSERT_THAT(messages, IsOk());
        for (const MessageView& view : *messages) tokens.push_back(view.token);
        return;
      }
      case 6:
        return (void)process.Pop(DrawQueue(), 1 + static_cast<int32_t>(random() % 3));
      case 7:
        return Sweep(process);
      default:
        return UseTokens(process);
    }
  }

  void UseTokens(QueueProcess& process) {
    for (uint64_t i = random() % 6; i > 0 && !tokens.empty(); --i) {
      const size_t which = random() % tokens.size();
      const std::string token = tokens[which];
      switch (random() % 6) {
        case 0: {
          RollbackRequest rollback;
          rollback.tokens = {token};
          rollback.dead = Chance(20);
          if (!rollback.dead) rollback.delay = DrawDelay();
          (void)process.Rollback(rollback);
          break;
        }
        case 1:
          (void)process.Extend(token, seconds(1 + random() % 600));
          continue;
        case 2: {
          MoveRequest move;
          move.token = token;
          move.queue = DrawQueue();
          move.delay = DrawDelay();
          (void)process.Move(move);
          break;
        }
        case 3:
          break;  // forgotten
        default:
          (void)process.Acknowledge(token);
      }
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  void Sweep(QueueProcess& process) {
    if (Chance(60)) {
      ReplayRequest replay;
      replay.queue = DrawQueue();
      replay.states = {Chance(50) ? State::kDead : State::kFinished};
      if (Chance(50)) replay.target_queue = DrawQueue();
      return (void)process.Replay(replay);
    }
    PurgeRequest purge;
    purge.queue = DrawQueue();
    constexpr State kStates[] = {State::kScheduled, State::kReady, State::kReserved,
                                 State::kWaiting,   State::kDead,  State::kFinished};
    purge.states = {kStates[random() % 6]};
    (void)process.Purge(purge);
  }

  // One of them hands out what the other has pushed.
  void Meet(QueueProcess& pushing, QueueProcess& reserving, const std::string& queue) {
    ASSERT_THAT(reserving.Reserve(queue), IsOk());
    ASSERT_THAT(pushing.Push(queue, Numbered(0)), IsOk());
    world.clock().Advance(seconds(2));
    const auto reserved = reserving.Reserve(queue);
    ASSERT_THAT(reserved, IsOk());
    ASSERT_THAT(*reserved, ::testing::SizeIs(1));
    ASSERT_THAT(reserving.Acknowledge(reserved->front().token), IsOk());
  }

  // Each commit of RocksDB waits for the disk.
  static int steps_max() {
    return GetParam().name == "memory" ? test_support::Sampled(400, 80)
                                       : test_support::Sampled(60, 20);
  }

  const uint64_t seed = test_support::TestSeed();
  std::mt19937_64 random{seed};
  int pushed = 0;
  std::vector<std::string> tokens;
};
INSTANTIATE_TEST_SUITE_P(Engines, StatisticsOfQueues, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(StatisticsOfQueues, AreExactAtEveryQuietMomentWhatTimeItIs) {
  int64_t most = 0;
  // Few steps may be all of the same kind: then more, until there was something to count.
  for (int step = 0; step < steps_max() || (most <= 2 && step < 20 * steps_max()); ++step) {
    ASSERT_NO_FATAL_FAILURE(Step(queues));
    // Of what happened and of what only time did.
    for (int look = 0; look < 2; ++look) {
      if (look == 1) PassTime();
      world.clock().Advance(std::chrono::milliseconds(1));
      for (const std::string_view name : kNames) {
        const QueueStatistics statistics = Ask(queues, std::string(name));
        ASSERT_TRUE(statistics.exact) << name << " at step " << step;
        const Figures counted = CountAll()[std::string(name)];
        ASSERT_EQ(FiguresOf(statistics), counted) << name << " at step " << step;
        most = std::max(most, counted.ready + counted.scheduled + counted.waiting);
      }
    }
  }
  EXPECT_GT(most, 2);
}

// What is exact is right; what is not is, once it has been counted anew.
TEST_P(StatisticsOfQueues, AreRightWhileAnotherServerWorksOnTheQueue) {
  QueueProcess other(world->store(), world.clock(), 2);
  for (const std::string_view name : kNames) {
    ASSERT_NO_FATAL_FAILURE(Meet(queues, other, std::string(name)));
    ASSERT_NO_FATAL_FAILURE(Meet(other, queues, std::string(name)));
  }
  for (int step = 0; step < steps_max(); ++step) {
    QueueProcess& process = Chance(50) ? queues : other;
    ASSERT_NO_FATAL_FAILURE(Step(process));
    if (Chance(50)) PassTime();
    world.clock().Advance(std::chrono::milliseconds(1));
    for (QueueProcess* const asked : {&queues, &other}) {
      for (const std::string_view name : kNames) {
        const auto statistics = (*asked)->Statistics(std::string(name));
        ASSERT_THAT(statistics, IsOk());
        if (!statistics->exact) continue;
        ASSERT_EQ(FiguresOf(*statistics), CountAll()[std::string(name)])
            << name << " at step " << step << (asked == &other ? ", the other server" : "");
      }
    }
    if (step % 10 != 9) continue;
    world.clock().Advance(seconds(61));
    for (QueueProcess* const asked : {&queues, &other}) {
      for (const std::string_view name : kNames) {
        const QueueStatistics statistics = Ask(*asked, std::string(name));
        ASSERT_EQ(FiguresOf(statistics), CountAll()[std::string(name)])
            << name << " at step " << step << (asked == &other ? ", the other server" : "");
      }
    }
  }
}

// More reservations that have run out than are remembered as suspects are nobody else's.
TEST(StatisticsOfManySuspects, StayExact) {
  constexpr int kBatch = kBatchMax;
  constexpr int kMessages = 5'000;
  World world({.engine = "memory"});
  QueueProcess queues(world->store(), world.clock());
  ASSERT_THAT(queues.Create("mails"), IsOk());
  for (int i = 0; i < kMessages; i += kBatch) {
    std::vector<PushedMessage> messages;
    for (int j = 0; j < kBatch; ++j) messages.push_back(Numbered(i + j));
    ASSERT_THAT(queues.Push("mails", std::move(messages)), IsOk());
  }
  for (const bool again : {false, true}) {
    int taken = 0;
    while (taken < kMessages) {
      const auto reserved = queues.Reserve("mails", 100);
      ASSERT_THAT(reserved, IsOk());
      taken += static_cast<int>(reserved->size());
      if (!reserved->empty()) continue;
      // Those left out are found when all is looked at again.
      world.clock().Advance(seconds(2));
    }
    EXPECT_EQ(taken, kMessages) << again;
    if (!again) world.clock().Advance(seconds(60));
  }
  (void)queues->Statistics("mails");
  for (int i = 0; i < 100 && !queues->Statistics("mails")->exact; ++i) {
    world.clock().Advance(std::chrono::milliseconds(20));
    queues.executor().RunDue();
  }
  const auto statistics = queues->Statistics("mails");
  EXPECT_TRUE(statistics->exact);
  EXPECT_EQ(statistics->reserved, kMessages);
}

// Statistics that are asked for when the store shows a commit, and the queue has not heard of it.
class StatisticsOfTheMoment : public QueuesTest {
 protected:
  StatisticsOfTheMoment() { world.clock().StepAtEachCall(microseconds(0)); }

  static Figures ReadyAndOneScheduled(int64_t ready) {
    Figures figures;
    figures.ready = ready;
    figures.scheduled = 1;
    return figures;
  }
  // What `step` finds asked in the midst of each of its commits.
  std::vector<Figures> AskedDuring(const std::function<void()>& step) {
    std::vector<Figures> all;
    test_support::StoreHooks hooks;
    hooks.after_commit = [&](store::CommitResult&) {
      const auto statistics = hooked_queues->Statistics("mails");
      ASSERT_THAT(statistics, IsOk());
      EXPECT_TRUE(statistics->exact);
      all.push_back(FiguresOf(*statistics));
    };
    hooked.set_hooks(hooks);
    step();
    hooked.set_hooks({});
    EXPECT_THAT(all, ::testing::Not(::testing::IsEmpty()));
    return all;
  }

  test_support::HookedStore hooked{world->store()};
  QueueProcess hooked_queues{hooked, world.clock(), 2};
};
INSTANTIATE_TEST_SUITE_P(Engines, StatisticsOfTheMoment, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(StatisticsOfTheMoment, AreThoseBeforeACommitOrAfterIt) {
  QueueProcess& mails = hooked_queues;
  ASSERT_THAT(mails.Create("mails"), IsOk());
  ASSERT_THAT(mails->Statistics("mails"), IsOk());
  ASSERT_THAT(mails.Push("mails", {Numbered(1), Numbered(2)}), IsOk());
  PushedMessage delayed = Numbered(3);
  delayed.delay = std::chrono::milliseconds(500);
  ASSERT_THAT(mails.Push("mails", delayed), IsOk());
  world.clock().Advance(std::chrono::milliseconds(1));
  ASSERT_EQ(FiguresOf(*mails->Statistics("mails")), ReadyAndOneScheduled(2));
  const auto pushed = AskedDuring([&] { EXPECT_THAT(mails.Push("mails", Numbered(4)), IsOk()); });
  for (const Figures& figures : pushed) EXPECT_EQ(figures, ReadyAndOneScheduled(2));
  world.clock().Advance(std::chrono::milliseconds(1));
  ASSERT_EQ(FiguresOf(*mails->Statistics("mails")), ReadyAndOneScheduled(3));
  const auto popped = AskedDuring([&] { EXPECT_THAT(mails.Pop("mails", 1), IsOk()); });
  for (const Figures& figures : popped) EXPECT_EQ(figures, ReadyAndOneScheduled(3));
  world.clock().Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(FiguresOf(*mails->Statistics("mails")), ReadyAndOneScheduled(2));
}

// Of another process, which this one hears of only when it meets them.
TEST_P(StatisticsOfTheMoment, AreNeverBelowNothing) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues->Statistics("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  world.clock().Advance(std::chrono::milliseconds(1));
  for (int i = 2; i <= 4; ++i) ASSERT_THAT(hooked_queues.Push("mails", Numbered(i)), IsOk());
  world.clock().Advance(std::chrono::milliseconds(1));
  const auto statistics = queues->Statistics("mails");
  ASSERT_THAT(statistics, IsOk());
  EXPECT_EQ(statistics->scheduled, 0);
  EXPECT_EQ(statistics->reserved, 0);
  EXPECT_GE(statistics->ready, 1);
}

}  // namespace
}  // namespace strata::queue::testing
