// Streams of messages: credits, suspects, what becomes of what a stream held.
#include <algorithm>

#include "schemas/queue/queues.h"
#include "tests/queue/queues_world.h"

namespace strata::queue::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Sink final : public ReceiverSink {
 public:
  bool closed() const override { return closed_; }
  bool full() const override { return full_; }
  void Deliver(std::vector<MessageView> messages) override {
    for (MessageView& message : messages) all.push_back(std::move(message));
  }
  void Answer(std::vector<std::string> /*tokens*/,
              std::vector<absl::StatusOr<bool>> replayed) override {
    for (absl::StatusOr<bool>& result : replayed) results.push_back(std::move(result));
  }
  void End(absl::Status status) override { ended = std::move(status); }

  void Close() { closed_ = true; }
  void SetFull(bool full) { full_ = full; }

  std::vector<std::string> Numbers() const {
    std::vector<std::string> numbers;
    for (const MessageView& message : all) {
      numbers.push_back(ToHeaders(message.message.payload)->at("number"));
    }
    return numbers;
  }

  std::vector<MessageView> all;
  std::vector<absl::StatusOr<bool>> results;
  std::optional<absl::Status> ended;

 private:
  bool closed_ = false;
  bool full_ = false;
};

class Streams : public QueuesTest {
 protected:
  struct Stream {
    std::shared_ptr<Sink> sink = std::make_shared<Sink>();
    std::unique_ptr<Receiver> receiver;
  };
  Stream Open(int32_t credits) {
    Stream stream;
    auto receiver = queues->Receive({"mails", credits, std::nullopt}, stream.sink);
    EXPECT_THAT(receiver, IsOk());
    if (receiver.ok()) stream.receiver = *std::move(receiver);
    Settle();
    return stream;
  }
  void Settle() { queues.Settle("mails"); }
  void Push(int from, int to) {
    for (int i = from; i <= to; ++i) ASSERT_THAT(queues.Push("mails", Numbered(i)), IsOk());
    Settle();
  }
  void MakeQueue(QueueSettings settings = {}) {
    ASSERT_THAT(queues.Create("mails", settings), IsOk());
  }
};
INSTANTIATE_TEST_SUITE_P(Engines, Streams, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(Streams, GetAsManyMessagesAsTheyHaveCredits) {
  MakeQueue();
  Push(1, 5);
  Stream stream = Open(2);
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1", "2"));
  stream.receiver->Acknowledge({stream.sink->all[0].token});
  Settle();
  ASSERT_THAT(stream.sink->results, SizeIs(1));
  EXPECT_THAT(stream.sink->results[0], IsOk());
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1", "2", "3"));
  ASSERT_THAT(stream.receiver->AddCredits(1), IsOk());
  Settle();
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1", "2", "3", "4"));
  EXPECT_THAT(stream.receiver->AddCredits(kCreditsMax), HasReason(ErrorReason::kInvalidField));
}

TEST_P(Streams, AMessageThatEndsOtherwiseGivesItsCreditBack) {
  MakeQueue();
  Push(1, 3);
  Stream stream = Open(1);
  ASSERT_THAT(stream.sink->all, SizeIs(1));
  ASSERT_THAT(queues.Acknowledge(stream.sink->all[0].token), IsOk());
  Settle();
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1", "2"));
  PurgeRequest purge;
  purge.queue = "mails";
  purge.message_ids = {stream.sink->all[1].id.ToText()};
  ASSERT_THAT(queues.Purge(purge), IsOk());
  Settle();
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1", "2", "3"));
}

TEST_P(Streams, OneThatLeavesInOrderCostsNoTry) {
  MakeQueue();
  Push(1, 1);
  {
    Stream stream = Open(1);
    ASSERT_THAT(stream.sink->all, SizeIs(1));
    stream.receiver->Leave(true);
  }
  Settle();
  const auto reserved = queues.Reserve("mails");
  ASSERT_THAT(reserved, IsOk());
  ASSERT_THAT(*reserved, SizeIs(1));
  EXPECT_EQ(reserved->front().message.tries, 1);
  EXPECT_EQ(reserved->front().message.delivery, 2);
}

TEST_P(Streams, OneThatBreaksLeavesSuspectsOfWhichAStreamHoldsOne) {
  MakeQueue();
  Push(1, 3);
  { Stream broken = Open(3); }
  Settle();
  Push(4, 5);
  Stream stream = Open(10);
  // One suspect, and those that nobody had.
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1", "4", "5"));
  EXPECT_EQ(stream.sink->all[0].message.tries, 2);
  // Another stream gets the next one.
  Stream other = Open(10);
  EXPECT_THAT(other.sink->Numbers(), ElementsAre("2"));
  stream.receiver->Acknowledge({stream.sink->all[0].token});
  Settle();
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1", "4", "5", "3"));
}

TEST_P(Streams, GetACreditBackForEachMessageWhoseReservationRunsOut) {
  MakeQueue();
  Push(1, 3);
  Stream stream = Open(1);
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1"));
  // Nobody else asks for anything: what comes, comes by the queue's own timer.
  world.clock().Advance(seconds(29));
  queues.executor().RunDue();
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1"));
  world.clock().Advance(seconds(2));
  Settle();
  EXPECT_THAT(stream.sink->Numbers(), SizeIs(2));
  world.clock().Advance(seconds(31));
  Settle();
  EXPECT_THAT(stream.sink->Numbers(), SizeIs(3));
  // It comes again, to the only stream that there is.
  const auto again = [&] { return std::ranges::count(stream.sink->Numbers(), "1"); };
  for (int i = 0; i < 4 && again() < 2; ++i) {
    world.clock().Advance(seconds(31));
    Settle();
  }
  EXPECT_GE(again(), 2);
}

TEST_P(Streams, KeepTheCreditOfAMessageWhoseReservationTheyExtend) {
  MakeQueue();
  Push(1, 2);
  Stream stream = Open(1);
  ASSERT_THAT(stream.sink->all, SizeIs(1));
  for (int i = 0; i < 3; ++i) {
    world.clock().Advance(seconds(20));
    EXPECT_THAT(stream.receiver->Extend({stream.sink->all[0].token}, std::nullopt), IsOk());
    Settle();
    ASSERT_THAT(stream.sink->Numbers(), ElementsAre("1"));
  }
  world.clock().Advance(seconds(31));
  Settle();
  EXPECT_THAT(stream.sink->Numbers(), SizeIs(2));
}

TEST_P(Streams, MayAcknowledgeLateWhatNobodyElseHas) {
  MakeQueue();
  Push(1, 1);
  Stream stream = Open(1);
  ASSERT_THAT(stream.sink->all, SizeIs(1));
  ASSERT_THAT(queues.Update("mails",
                            [](QueueSettings& settings) {
                              settings.paused = true;
                              return absl::OkStatus();
                            }),
              IsOk());
  world.clock().Advance(seconds(31));
  Settle();
  ASSERT_THAT(stream.sink->all, SizeIs(1));
  stream.receiver->Acknowledge({stream.sink->all[0].token});
  Settle();
  ASSERT_THAT(stream.sink->results, SizeIs(1));
  EXPECT_THAT(stream.sink->results[0], IsOk());
}

TEST_P(Streams, OneThatIsFullGetsNothingUntilItIsReady) {
  MakeQueue();
  Stream stream = Open(5);
  stream.sink->SetFull(true);
  Push(1, 2);
  EXPECT_THAT(stream.sink->all, IsEmpty());
  stream.sink->SetFull(false);
  stream.receiver->Ready();
  Settle();
  EXPECT_THAT(stream.sink->Numbers(), ElementsAre("1", "2"));
}

TEST_P(Streams, EndWithTheQueue) {
  MakeQueue();
  Stream stream = Open(5);
  ASSERT_THAT(queues.Delete("mails", true), IsOk());
  queues.executor().RunDue();
  ASSERT_TRUE(stream.sink->ended);
  EXPECT_THAT(*stream.sink->ended, HasReason(ErrorReason::kQueueNotFound));
}

TEST_P(Streams, EndWithTheServerWithoutCostingATry) {
  MakeQueue();
  Push(1, 1);
  Stream stream = Open(5);
  ASSERT_THAT(stream.sink->all, SizeIs(1));
  queues->StopWaiting();
  Settle();
  ASSERT_TRUE(stream.sink->ended);
  EXPECT_THAT(*stream.sink->ended, HasReason(ErrorReason::kDraining));
  const auto view = queues->GetMessage("mails", stream.sink->all[0].id.ToText());
  ASSERT_THAT(view, IsOk());
  EXPECT_EQ(view->message.tries, 0);
  EXPECT_EQ(view->state, State::kReady);
}

TEST_P(Streams, ThatLeaveBeforeTheyAreTakenUpAreForgotten) {
  MakeQueue();
  auto sink = std::make_shared<Sink>();
  const std::weak_ptr<Sink> left = sink;
  auto receiver = queues->Receive({"mails", 2, std::nullopt}, std::move(sink));
  ASSERT_THAT(receiver, IsOk());
  receiver->reset();
  Settle();
  EXPECT_TRUE(left.expired());
}

}  // namespace
}  // namespace strata::queue::testing
