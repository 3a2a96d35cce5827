// Replay and Purge by state: they look at what they are asked for, and end with their caller.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/queue/queues_world.h"

namespace strata::queue::testing {
namespace {

using std::chrono::hours;
using test_support::HasReason;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Sweeps : public QueuesTest {
 protected:
  // Messages of each state but WAITING: 40 that are READY, 3 SCHEDULED, 5 RESERVED, 6 DEAD, 7 that
  // were acknowledged, an hour later 8 more, and an hour later still 9.
  void SetUp() override {
    QueueSettings settings;
    settings.history_retention = hours(24);
    settings.reservation_timeout = hours(12);
    ASSERT_THAT(queues.Create("mails", settings), IsOk());
    for (const int finished : {7, 8, 9}) {
      Push(finished);
      for (const std::string& token : Reserve(finished)) {
        ASSERT_THAT(queues.Acknowledge(token), IsOk());
      }
      ends_.push_back(world.clock().Now());
      world.clock().Advance(hours(1));
    }
    Push(6);
    for (const std::string& token : Reserve(6)) {
      RollbackRequest died;
      died.tokens = {token};
      died.dead = true;
      ASSERT_THAT(queues.Rollback(died), IsOk());
    }
    Push(5);
    ASSERT_THAT(Reserve(5), SizeIs(5));
    Push(40);
    Push(3, hours(1));
  }

  void Push(int count, std::optional<microseconds> delay = std::nullopt) {
    for (int i = 0; i < count; ++i) {
      PushedMessage message = Numbered(i);
      message.priority = i % (kPriorityMax + 1);
      message.delay = delay;
      ASSERT_THAT(queues.Push("mails", message), IsOk());
    }
  }
  std::vector<std::string> Reserve(int count) {
    std::vector<std::string> tokens;
    const auto reserved = queues.Reserve("mails", count);
    EXPECT_THAT(reserved, IsOk());
    for (const MessageView& view : *reserved) tokens.push_back(view.token);
    return tokens;
  }
  // Asks not to stop until it has been asked so often.
  StopCheck StopAfter(int times) {
    return [this, times] { return ++looked_at_ > times; };
  }
  size_t Count(State state) {
    const auto page = queues->ListMessages({.queue = "mails", .state = state}, 100);
    EXPECT_THAT(page, IsOk());
    return page->messages.size();
  }

  std::vector<UnixMicros> ends_;
  int looked_at_ = 0;
};

TEST_P(Sweeps, LookAtWhatTheyAreAskedFor) {
  const std::pair<State, int> counts[] = {
      {State::kReady, 40}, {State::kDead, 6}, {State::kFinished, 24}};
  for (const auto& [state, count] : counts) {
    EXPECT_EQ(Count(state), static_cast<size_t>(count));
    looked_at_ = 0;
    PurgeRequest purge;
    purge.queue = "mails";
    purge.states = {state};
    purge.stopped = StopAfter(count);
    ASSERT_THAT(queues.Purge(purge), IsOk());
    EXPECT_EQ(looked_at_, count);
    EXPECT_EQ(Count(state), 0u);
  }
  // Of these neither knows by its time what it is.
  for (const auto& [state, count] : {std::pair{State::kScheduled, 3}, {State::kReserved, 5}}) {
    EXPECT_EQ(Count(state), static_cast<size_t>(count));
    looked_at_ = 0;
    PurgeRequest purge;
    purge.queue = "mails";
    purge.states = {state};
    purge.stopped = StopAfter(8);
    ASSERT_THAT(queues.Purge(purge), IsOk());
    EXPECT_EQ(Count(state), 0u);
  }
}

TEST_P(Sweeps, OfATimeBeginAndEndThere) {
  ReplayRequest replay;
  replay.queue = "mails";
  replay.states = {State::kFinished};
  replay.start_time = ends_[1] - 60'000'000;
  replay.end_time = ends_[1];
  replay.stopped = StopAfter(8);
  const auto replayed = queues.Replay(replay);
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->messages, 8);
  EXPECT_EQ(looked_at_, 8);
  EXPECT_EQ(Count(State::kFinished), 16u);
  EXPECT_EQ(Count(State::kReady), 48u);
  replay.end_time = replay.start_time;
  EXPECT_THAT(queues.Replay(replay).status(), HasReason(ErrorReason::kInvalidField));
}

TEST_P(Sweeps, EndWithTheirCaller) {
  PurgeRequest purge;
  purge.queue = "mails";
  purge.states = {State::kReady};
  purge.stopped = StopAfter(10);
  EXPECT_EQ(queues.Purge(purge).status(), StoppedError());
  ReplayRequest replay;
  replay.queue = "mails";
  replay.states = {State::kDead};
  replay.stopped = StopAfter(0);
  EXPECT_EQ(queues.Replay(replay).status(), StoppedError());
  EXPECT_EQ(Count(State::kReady), 40u);
  EXPECT_EQ(Count(State::kDead), 6u);
}

INSTANTIATE_TEST_SUITE_P(Engines, Sweeps, ::testing::ValuesIn(kEngines), EngineName);

}  // namespace
}  // namespace strata::queue::testing
