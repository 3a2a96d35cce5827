// Queues as their callers see them, over every kind of engine.
#include "schemas/queue/queues.h"

#include <set>
#include <string>

#include "tests/queue/queues_world.h"

namespace strata::queue::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class CallsOfQueues : public QueuesTest {};
INSTANTIATE_TEST_SUITE_P(Engines, CallsOfQueues, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(CallsOfQueues, QueuesAreMadeChangedAndDeleted) {
  QueueSettings settings;
  settings.max_tries = 3;
  ASSERT_THAT(queues.Create("mails", settings), IsOk());
  EXPECT_THAT(queues.Create("mails"), HasReason(ErrorReason::kQueueExists));
  EXPECT_EQ(queues->Get("mails")->settings, settings);
  const auto changed = queues.Update("mails", [](QueueSettings& changing) {
    changing.max_tries = 5;
    return absl::OkStatus();
  });
  ASSERT_THAT(changed, IsOk());
  EXPECT_EQ(queues->Get("mails")->settings.max_tries, 5);
  ASSERT_THAT(queues.Create("bills"), IsOk());
  const auto listed = queues->List("", 10);
  ASSERT_THAT(listed, IsOk());
  ASSERT_THAT(*listed, SizeIs(2));
  EXPECT_EQ((*listed)[0].name, "bills");
  ASSERT_THAT(queues.Delete("bills"), IsOk());
  EXPECT_THAT(queues->Get("bills"), HasReason(ErrorReason::kQueueNotFound));
  EXPECT_THAT(queues.Push("bills", Numbered(1)), HasReason(ErrorReason::kQueueNotFound));
  ASSERT_THAT(queues.Create("bills"), IsOk());
  EXPECT_THAT(NumbersOf(queues.Reserve("bills")), IsEmpty());
}

TEST_P(CallsOfQueues, AQueueWithMessagesIsDeletedByForceAlone) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  EXPECT_THAT(queues.Delete("mails"), HasReason(ErrorReason::kQueueNotEmpty));
  // The mark that the deletion had set stands in nobody's way.
  ASSERT_THAT(queues.Push("mails", Numbered(2)), IsOk());
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 5)), ElementsAre("1", "2"));
  ASSERT_THAT(queues.Delete("mails", true), IsOk());
  EXPECT_THAT(queues.Reserve("mails"), HasReason(ErrorReason::kQueueNotFound));
}

TEST_P(CallsOfQueues, MessagesComeInTheOrderOfPriorityAndPush) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  for (int i = 1; i <= 3; ++i) ASSERT_THAT(queues.Push("mails", Numbered(i)), IsOk());
  PushedMessage urgent = Numbered(4);
  urgent.priority = 9;
  ASSERT_THAT(queues.Push("mails", urgent), IsOk());
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 2)), ElementsAre("4", "1"));
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), ElementsAre("2", "3"));
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 10)), IsEmpty());
}

TEST_P(CallsOfQueues, AnAcknowledgedMessageIsGone) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  const auto reserved = queues.Reserve("mails");
  ASSERT_THAT(reserved, IsOk());
  ASSERT_THAT(*reserved, SizeIs(1));
  const MessageView& message = reserved->front();
  EXPECT_EQ(message.message.delivery, 1);
  EXPECT_EQ(message.message.tries, 1);
  EXPECT_THAT(queues.Acknowledge(message.token), IsOk());
  EXPECT_THAT(queues.Acknowledge(message.token), HasReason(ErrorReason::kMessageNotFound));
  EXPECT_THAT(queues->GetMessage("mails", message.id.ToText()),
              HasReason(ErrorReason::kMessageNotFound));
  world.clock().Advance(seconds(60));
  EXPECT_THAT(NumbersOf(queues.Reserve("mails")), IsEmpty());
}

TEST_P(CallsOfQueues, WithHistoryItIsKeptAndReplayed) {
  QueueSettings settings;
  settings.history_retention = std::chrono::hours(1);
  ASSERT_THAT(queues.Create("mails", settings), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  const auto reserved = queues.Reserve("mails");
  ASSERT_THAT(queues.Acknowledge(reserved->front().token), IsOk());
  const auto repeated = queues.Acknowledge(reserved->front().token);
  ASSERT_THAT(repeated, IsOk());
  EXPECT_TRUE(*repeated);
  const auto kept = queues->GetMessage("mails", reserved->front().id.ToText());
  ASSERT_THAT(kept, IsOk());
  EXPECT_EQ(kept->state, State::kFinished);
  ReplayRequest replay;
  replay.queue = "mails";
  replay.states = {State::kFinished};
  const auto replayed = queues.Replay(replay);
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->messages, 1);
  const auto again = queues.Reserve("mails");
  EXPECT_THAT(NumbersOf(again), ElementsAre("1"));
  EXPECT_EQ(again->front().message.delivery, 2);
  EXPECT_EQ(again->front().message.tries, 1);
  EXPECT_THAT(queues.Acknowledge(reserved->front().token),
              HasReason(ErrorReason::kReservationLost));
}

TEST_P(CallsOfQueues, AMessageWhoseReservationRanOutIsHandedOutAgain) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  const auto first = queues.Reserve("mails");
  ASSERT_THAT(*first, SizeIs(1));
  world.clock().Advance(seconds(31));
  const auto second = queues.Reserve("mails");
  ASSERT_THAT(second, IsOk());
  ASSERT_THAT(*second, SizeIs(1));
  EXPECT_EQ(second->front().message.delivery, 2);
  EXPECT_THAT(queues.Acknowledge(first->front().token), HasReason(ErrorReason::kReservationLost));
  EXPECT_THAT(queues.Acknowledge(second->front().token), IsOk());
}

TEST_P(CallsOfQueues, ADelayedMessageComesInTime) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  PushedMessage late = Numbered(1);
  late.delay = seconds(10);
  ASSERT_THAT(queues.Push("mails", late), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(2)), IsOk());
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 5)), ElementsAre("2"));
  world.clock().Advance(seconds(9));
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 5)), IsEmpty());
  world.clock().Advance(seconds(2));
  EXPECT_THAT(NumbersOf(queues.Reserve("mails", 5)), ElementsAre("1"));
}

TEST_P(CallsOfQueues, WhoeverWaitsGetsWhatComes) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  Answer<QueueProcess::Messages> waiting;
  ReserveRequest request;
  request.queue = "mails";
  request.wait = seconds(20);
  queues->Reserve(request, waiting.Callback());
  queues.executor().RunDue();
  EXPECT_FALSE(waiting.ready());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  EXPECT_THAT(NumbersOf(queues.Await(waiting)), ElementsAre("1"));

  Answer<QueueProcess::Messages> in_vain;
  queues->Reserve(request, in_vain.Callback());
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(in_vain.ready());
    world.clock().Advance(seconds(1));
    queues.executor().RunDue();
  }
  EXPECT_THAT(NumbersOf(queues.Await(in_vain)), IsEmpty());
}

TEST_P(CallsOfQueues, ARolledBackMessageComesAgainAfterItsDelay) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  auto reserved = queues.Reserve("mails");
  ASSERT_THAT(queues.Rollback(reserved->front().token, seconds(5)), IsOk());
  EXPECT_THAT(queues.Acknowledge(reserved->front().token),
              HasReason(ErrorReason::kReservationLost));
  EXPECT_THAT(NumbersOf(queues.Reserve("mails")), IsEmpty());
  world.clock().Advance(seconds(6));
  reserved = queues.Reserve("mails");
  ASSERT_THAT(*reserved, SizeIs(1));
  EXPECT_EQ(reserved->front().message.tries, 2);
  EXPECT_THAT(queues.Extend(reserved->front().token, seconds(100)), IsOk());
  world.clock().Advance(seconds(60));
  EXPECT_THAT(NumbersOf(queues.Reserve("mails")), IsEmpty());
  EXPECT_THAT(queues.Acknowledge(reserved->front().token), IsOk());
}

TEST_P(CallsOfQueues, TriesThatAreUsedUpEndInTheDeadLetterQueue) {
  ASSERT_THAT(queues.Create("dead"), IsOk());
  QueueSettings settings;
  settings.max_tries = 2;
  settings.dead_letter_queue = "dead";
  ASSERT_THAT(queues.Create("mails", settings), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  for (int i = 0; i < 2; ++i) {
    const auto reserved = queues.Reserve("mails");
    ASSERT_THAT(*reserved, SizeIs(1));
    ASSERT_THAT(queues.Rollback(reserved->front().token, seconds(0)), IsOk());
  }
  // The roll back that used the last one up, so that nothing has to ask for it first.
  EXPECT_EQ(queues->Statistics("mails")->ready, 0);
  const auto dead = queues.Reserve("dead");
  EXPECT_THAT(NumbersOf(dead), ElementsAre("1"));
  const auto headers = ToHeaders(dead->front().message.headers);
  EXPECT_EQ(headers->at("dead_letter_queue"), "mails");
  EXPECT_EQ(headers->at("dead_letter_reason"), "TRIES");
  EXPECT_EQ(headers->at("dead_letter_tries"), "2");
}

TEST_P(CallsOfQueues, OneThatDiesInItsOwnQueueSaysWhyAndWhatWasSaidLast) {
  QueueSettings settings;
  settings.max_tries = 1;
  ASSERT_THAT(queues.Create("mails", settings), IsOk());
  const auto reserve = [&](int number) {
    EXPECT_THAT(queues.Push("mails", Numbered(number)), IsOk());
    return queues.Reserve("mails")->front().token;
  };
  RollbackRequest rollback;
  rollback.tokens = {reserve(1)};
  rollback.reason = "no ink";
  ASSERT_THAT(queues.Rollback(rollback), IsOk());
  // One that was not tried, one that nothing was said of, and one whose reservation ran out.
  rollback.tokens = {reserve(2)};
  rollback.not_counted = true;
  rollback.delay = std::chrono::hours(1);
  ASSERT_THAT(queues.Rollback(rollback), IsOk());
  ASSERT_THAT(queues.Rollback(reserve(3)), IsOk());
  reserve(4);
  world.clock().Advance(std::chrono::minutes(1));
  EXPECT_THAT(NumbersOf(queues.Reserve("mails")), IsEmpty());
  const auto listed = queues->ListMessages({.queue = "mails", .state = State::kDead}, 10);
  ASSERT_THAT(listed, IsOk());
  std::multiset<std::string> reasons;
  for (const MessageView& view : listed->messages) reasons.insert(view.message.reason);
  EXPECT_THAT(reasons, ElementsAre("TRIES", "TRIES", "TRIES: no ink"));
}

TEST_P(CallsOfQueues, ARefusedMessageKeepsWhatWasSaidOfItBesideTheCause) {
  ASSERT_THAT(queues.Create("dead"), IsOk());
  QueueSettings settings;
  settings.dead_letter_queue = "dead";
  ASSERT_THAT(queues.Create("mails", settings), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  RollbackRequest refusal;
  refusal.tokens = {queues.Reserve("mails")->front().token};
  refusal.dead = true;
  refusal.reason = "no such address";
  ASSERT_THAT(queues.Rollback(refusal), IsOk());
  const auto dead = queues.Reserve("dead");
  ASSERT_THAT(*dead, SizeIs(1));
  EXPECT_EQ(ToHeaders(dead->front().message.headers)->at("dead_letter_reason"), "REFUSED");
  EXPECT_EQ(dead->front().message.reason, "no such address");
}

TEST_P(CallsOfQueues, WhatDiesInARingOfDeadLetterQueuesStaysDeadTheSecondTime) {
  const std::string names[] = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) {
    QueueSettings settings;
    settings.dead_letter_queue = names[(i + 1) % 3];
    ASSERT_THAT(queues.Create(names[i], settings), IsOk());
  }
  ASSERT_THAT(queues.Push("a", Numbered(1)), IsOk());
  int deaths = 0;
  for (int round = 0; round < 4; ++round) {
    for (const std::string& name : names) {
      const auto reserved = queues.Reserve(name);
      ASSERT_THAT(reserved, IsOk());
      if (reserved->empty()) continue;
      RollbackRequest refusal;
      refusal.tokens = {reserved->front().token};
      refusal.dead = true;
      refusal.reason = "no such address";
      ASSERT_THAT(queues.Rollback(refusal), IsOk());
      ++deaths;
    }
  }
  EXPECT_EQ(deaths, 2);
  const auto dead = queues->ListMessages({"b", State::kDead, ""}, 10);
  ASSERT_THAT(dead, IsOk());
  ASSERT_THAT(dead->messages, SizeIs(1));
  EXPECT_EQ(dead->messages.front().message.reason, "no such address");
}

TEST_P(CallsOfQueues, NoWaitForTheNextTryIsLongerThanTheLongest) {
  QueueSettings settings;
  settings.retry_delay = seconds(100);
  settings.retry_delay_max = seconds(100);
  ASSERT_THAT(queues.Create("mails", settings), IsOk());
  for (int i = 0; i < 50; ++i) {
    ASSERT_THAT(queues.Push("mails", Numbered(i)), IsOk());
    const auto reserved = queues.Reserve("mails");
    ASSERT_THAT(*reserved, SizeIs(1));
    ASSERT_THAT(queues.Rollback(reserved->front().token), IsOk());
    const auto view = queues->GetMessage("mails", reserved->front().id.ToText());
    ASSERT_THAT(view, IsOk());
    const UnixMicros wait = view->message.time - world.clock().Now();
    EXPECT_LE(wait, microseconds(seconds(100)).count());
    EXPECT_GE(wait, microseconds(seconds(89)).count());
  }
}

TEST_P(CallsOfQueues, AMessageThatIsHandedBackUntriedKeepsTheReasonThatItHad) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  const auto roll_back = [&](bool not_counted, const std::string& reason) {
    RollbackRequest rollback;
    rollback.tokens = {queues.Reserve("mails")->front().token};
    rollback.delay = seconds(0);
    rollback.not_counted = not_counted;
    rollback.reason = reason;
    EXPECT_THAT(queues.Rollback(rollback), IsOk());
    world.clock().Advance(seconds(1));
  };
  const auto reason = [&] {
    const auto reserved = queues.Reserve("mails");
    EXPECT_THAT(*reserved, SizeIs(1));
    EXPECT_THAT(queues.Rollback(reserved->front().token, seconds(0)), IsOk());
    world.clock().Advance(seconds(1));
    return reserved->front().message.reason;
  };
  roll_back(false, "killed by signal 9");
  roll_back(true, "");
  EXPECT_EQ(reason(), "killed by signal 9");
  // Nobody said anything of a try that counts.
  EXPECT_EQ(reason(), "");
  roll_back(true, "shutting down");
  EXPECT_EQ(reason(), "shutting down");
}

TEST_P(CallsOfQueues, APushIsRememberedByItsRequest) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  PushedMessage message = Numbered(1);
  message.request_id = "order-1";
  const auto first = queues.Push("mails", message);
  ASSERT_THAT(first, IsOk());
  EXPECT_FALSE(first->replayed);
  const auto second = queues.Push("mails", message);
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(second->replayed);
  EXPECT_EQ(second->id, first->id);
  PushedMessage other = Numbered(2);
  other.request_id = "order-1";
  EXPECT_THAT(queues.Push("mails", other), HasReason(ErrorReason::kRequestIdReused));
  const auto popped = queues.Pop("mails");
  EXPECT_THAT(NumbersOf(popped), ElementsAre("1"));
  EXPECT_TRUE(queues.Push("mails", message)->replayed);
  world.clock().Advance(std::chrono::hours(25));
  EXPECT_FALSE(queues.Push("mails", message)->replayed);
  EXPECT_THAT(NumbersOf(queues.Pop("mails")), ElementsAre("1"));
}

TEST_P(CallsOfQueues, AMovedMessageIsInTheOtherQueueAlone) {
  ASSERT_THAT(queues.Create("in"), IsOk());
  ASSERT_THAT(queues.Create("out"), IsOk());
  ASSERT_THAT(queues.Push("in", Numbered(1)), IsOk());
  const auto reserved = queues.Reserve("in");
  MoveRequest move;
  move.token = reserved->front().token;
  move.queue = "nowhere";
  EXPECT_THAT(queues.Move(move), HasReason(ErrorReason::kQueueNotFound));
  move.queue = "out";
  move.payload = Payload(2);
  const auto moved = queues.Move(move);
  ASSERT_THAT(moved, IsOk());
  EXPECT_EQ(moved->queue, "out");
  EXPECT_EQ(moved->state, State::kReady);
  EXPECT_THAT(queues.Move(move), HasReason(ErrorReason::kReservationLost));
  world.clock().Advance(seconds(60));
  EXPECT_THAT(NumbersOf(queues.Reserve("in")), IsEmpty());
  EXPECT_THAT(NumbersOf(queues.Reserve("out")), ElementsAre("2"));
}

TEST_P(CallsOfQueues, APausedQueueHandsNothingOut) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  const auto pause = [&](bool paused) {
    return queues.Update("mails", [paused](QueueSettings& settings) {
      settings.paused = paused;
      return absl::OkStatus();
    });
  };
  ASSERT_THAT(pause(true), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  EXPECT_THAT(NumbersOf(queues.Reserve("mails")), IsEmpty());
  ASSERT_THAT(pause(false), IsOk());
  EXPECT_THAT(NumbersOf(queues.Reserve("mails")), ElementsAre("1"));
}

TEST_P(CallsOfQueues, LargePayloadsComeWhole) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  for (const size_t size : {4'000, 100'000}) {
    PushedMessage message;
    message.payload = ToContent({{"text", std::string(size, 'x')}});
    ASSERT_THAT(queues.Push("mails", message), IsOk());
    const auto reserved = queues.Reserve("mails");
    ASSERT_THAT(*reserved, SizeIs(1));
    EXPECT_EQ(reserved->front().message.payload, message.payload);
    ASSERT_THAT(queues.Acknowledge(reserved->front().token), IsOk());
  }
}

// What is popped cannot be given back, so it has to fit into an answer of 4 MiB.
TEST_P(CallsOfQueues, OfLargeMessagesAsManyArePoppedAsFitTheAnswer) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  constexpr size_t kBytes = 600'000;
  PushedMessage message;
  message.payload = ToContent({{"text", std::string(kBytes, 'x')}});
  constexpr size_t kMessages = 9;
  for (size_t i = 0; i < kMessages; ++i) ASSERT_THAT(queues.Push("mails", message), IsOk());
  size_t popped = 0;
  while (popped < kMessages) {
    const auto some = queues.Pop("mails", 10);
    ASSERT_THAT(some, IsOk());
    ASSERT_GE(some->size(), 1u);
    // Where each is a commit of its own, two fit whatever they hold.
    EXPECT_LE(some->size(), GetParam().atomic() ? 6u : 2u);
    popped += some->size();
  }
}

TEST_P(CallsOfQueues, StatisticsTellWhatThereIs) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  for (int i = 0; i < 5; ++i) {
    PushedMessage message = Numbered(i);
    message.sequence_number = 10 + i;
    if (i == 4) message.delay = std::chrono::hours(1);
    ASSERT_THAT(queues.Push("mails", message), IsOk());
  }
  const auto reserved = queues.Reserve("mails", 2);
  ASSERT_THAT(*reserved, SizeIs(2));
  RollbackRequest dead;
  dead.tokens = {reserved->front().token};
  dead.dead = true;
  ASSERT_THAT(queues.Rollback(dead), IsOk());
  world.clock().Advance(seconds(5));
  const auto statistics = queues->Statistics("mails");
  ASSERT_THAT(statistics, IsOk());
  EXPECT_EQ(statistics->ready, 2);
  EXPECT_EQ(statistics->reserved, 1);
  EXPECT_EQ(statistics->scheduled, 1);
  EXPECT_EQ(statistics->dead, 1);
  EXPECT_EQ(statistics->low_watermark, 10);
  EXPECT_TRUE(statistics->exact);
  world.clock().Advance(seconds(30));
  EXPECT_EQ(queues->Statistics("mails")->ready, 3);
  EXPECT_EQ(queues->Statistics("mails")->reserved, 0);
  PurgeRequest purge;
  purge.queue = "mails";
  purge.states = {State::kDead};
  EXPECT_EQ(queues.Purge(purge)->messages, 1);
  EXPECT_EQ(queues->Statistics("mails")->low_watermark, 11);
  const auto listed =
      queues->ListMessages({.queue = "mails", .state = {}, .after = "", .stopped = {}}, 100);
  ASSERT_THAT(listed, IsOk());
  EXPECT_THAT(listed->messages, SizeIs(4));
}

// Two servers over one store: neither hands out what the other has.
TEST_P(CallsOfQueues, TwoProcessesShareAQueue) {
  QueueProcess other(world->store(), world.clock(), 2);
  ASSERT_THAT(queues.Create("mails"), IsOk());
  constexpr int kMessages = 40;
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_THAT((i % 2 == 0 ? queues : other).Push("mails", Numbered(i)), IsOk());
  }
  int handed = 0;
  for (int i = 0; i < 4 * kMessages && handed < kMessages; ++i) {
    world.clock().Advance(microseconds(100'000));
    QueueProcess& process = i % 2 == 0 ? queues : other;
    const auto reserved = process.Reserve("mails");
    ASSERT_THAT(reserved, IsOk());
    for (const MessageView& message : *reserved) {
      EXPECT_EQ(message.message.delivery, 1);
      EXPECT_THAT((i % 3 == 0 ? queues : other).Acknowledge(message.token), IsOk());
      ++handed;
    }
  }
  EXPECT_EQ(handed, kMessages);
}

// What a process remembers of a message is no reason to refuse a token that another one gave.
TEST_P(CallsOfQueues, ATokenOfAnotherProcessIsTakenAsItStands) {
  QueueProcess other(world->store(), world.clock(), 2);
  ASSERT_THAT(queues.Create("mails"), IsOk());
  ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
  const auto first = queues.Reserve("mails");
  ASSERT_THAT(*first, SizeIs(1));
  ASSERT_THAT(queues.Rollback(first->front().token, seconds(0)), IsOk());
  const auto second = other.Reserve("mails");
  ASSERT_THAT(second, IsOk());
  ASSERT_THAT(*second, SizeIs(1));
  EXPECT_EQ(second->front().message.delivery, 2);
  EXPECT_THAT(queues.Acknowledge(second->front().token), IsOk());
}

TEST_P(CallsOfQueues, OneRequestIdForTwoMessagesOfAPushIsRefusedForAll) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  std::vector<PushedMessage> messages = {Numbered(1), Numbered(2), Numbered(2)};
  for (PushedMessage& message : messages) message.request_id = "order-1";
  const auto pushed = queues.Push("mails", messages);
  if (GetParam().atomic()) {
    EXPECT_THAT(pushed, HasReason(ErrorReason::kRequestIdReused));
    EXPECT_THAT(NumbersOf(queues.Reserve("mails", 5)), IsEmpty());
  } else {
    ASSERT_THAT(pushed, IsOk());
    EXPECT_THAT(NumbersOf(queues.Reserve("mails", 5)), SizeIs(1));
  }
  ASSERT_THAT(queues.Create("bills"), IsOk());
  messages.erase(messages.begin());
  const auto twice = queues.Push("bills", messages);
  ASSERT_THAT(twice, IsOk());
  EXPECT_TRUE((*twice)[0]->replayed || (*twice)[1]->replayed);
  EXPECT_THAT(NumbersOf(queues.Reserve("bills", 5)), ElementsAre("2"));
}

TEST_P(CallsOfQueues, APurgedMessageIsNotTakenForAcknowledged) {
  ASSERT_THAT(queues.Create("mails"), IsOk());
  PushedMessage message = Numbered(1);
  message.request_id = "order-1";
  ASSERT_THAT(queues.Push("mails", message), IsOk());
  const auto reserved = queues.Reserve("mails");
  ASSERT_THAT(*reserved, SizeIs(1));
  PurgeRequest purge;
  purge.queue = "mails";
  purge.message_ids = {reserved->front().id.ToText()};
  ASSERT_THAT(queues.Purge(purge), IsOk());
  EXPECT_THAT(queues.Acknowledge(reserved->front().token),
              HasReason(ErrorReason::kMessageNotFound));
  EXPECT_TRUE(queues.Push("mails", message)->replayed);
}

TEST_P(CallsOfQueues, TheWatermarkIsTheLeastOfAllQueuesNamed) {
  for (const char* name : {"mails", "bills"}) ASSERT_THAT(queues.Create(name), IsOk());
  EXPECT_EQ(*queues->LowWatermark({"mails", "bills"}), std::nullopt);
  PushedMessage message = Numbered(1);
  message.sequence_number = 7;
  ASSERT_THAT(queues.Push("mails", message), IsOk());
  message.sequence_number = 5;
  ASSERT_THAT(queues.Push("bills", message), IsOk());
  EXPECT_EQ(*queues->LowWatermark({"mails", "bills"}), 5);
  EXPECT_THAT(queues->LowWatermark({"mails", "none"}), HasReason(ErrorReason::kQueueNotFound));
  const auto reserved = queues.Reserve("bills");
  ASSERT_THAT(queues.Acknowledge(reserved->front().token), IsOk());
  EXPECT_EQ(*queues->LowWatermark({"bills", "mails"}), 7);
}

}  // namespace
}  // namespace strata::queue::testing
