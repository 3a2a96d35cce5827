// Finished messages are kept as long as their queue says, and no longer: not for the sake of their
// request ids either, which are remembered for a day.
#include <chrono>
#include <string>

#include "schemas/store/store.h"
#include "tests/queue/queues_world.h"

namespace strata::queue::testing {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class History : public QueuesTest {
 protected:
  void SetUp() override {
    QueueSettings settings;
    settings.history_retention = minutes(1);
    ASSERT_THAT(queues.Create("mails", settings), IsOk());
    ASSERT_THAT(queues.Create("other"), IsOk());
  }
  // Pushes a message with a payload of so many bytes, and acknowledges it.
  std::string Finish(const std::string& request_id, size_t bytes = 10) {
    message.payload = ToContent({{"number", "1"}, {"padding", std::string(bytes, 'x')}});
    message.request_id = request_id;
    const auto pushed = queues.Push("mails", message);
    EXPECT_THAT(pushed, IsOk());
    const auto reserved = queues.Reserve("mails");
    EXPECT_THAT(*reserved, SizeIs(1));
    token = reserved->front().token;
    EXPECT_THAT(queues.Acknowledge(token), IsOk());
    return pushed->id.ToText();
  }
  QueueProcess::Messages Listed(State state) {
    const auto page = queues->ListMessages({"mails", state, ""}, 10);
    if (!page.ok()) return page.status();
    return page->messages;
  }
  void Pass(microseconds time) {
    for (microseconds passed{0}; passed < time; passed += seconds(10)) {
      world.clock().Advance(seconds(10));
      queues.executor().RunDue();
    }
    // Commits are in order: behind this one those of the background have ended.
    ASSERT_THAT(queues.Push("other", Numbered(0)), IsOk());
    ASSERT_THAT(*queues.Pop("other"), SizeIs(1));
  }
  // Of all messages, with what lies beside them.
  size_t BytesStored() {
    size_t bytes = 0;
    const auto cursor = world.engine().Scan(store::Keyspace::kMessages, {});
    for (; cursor->Valid(); cursor->Next()) bytes += cursor->value().size();
    return bytes;
  }
  absl::StatusOr<Swept> ReplayFinished() {
    ReplayRequest replay;
    replay.queue = "mails";
    replay.states = {State::kFinished};
    return queues.Replay(replay);
  }

  PushedMessage message;
  std::string token;
};
INSTANTIATE_TEST_SUITE_P(Engines, History, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(History, EndsWithItsTimeForMessagesWithARequestIdToo) {
  for (const std::string request_id : {"", "order-1"}) {
    const std::string id = Finish(request_id);
    world.clock().Advance(seconds(50));
    EXPECT_THAT(queues->GetMessage("mails", id), IsOk()) << request_id;
    EXPECT_THAT(*Listed(State::kFinished), SizeIs(1)) << request_id;
    // Before any sweeper has come by.
    world.clock().Advance(seconds(11));
    EXPECT_THAT(queues->GetMessage("mails", id), HasReason(ErrorReason::kMessageNotFound));
    EXPECT_THAT(*Listed(State::kFinished), IsEmpty()) << request_id;
    EXPECT_EQ(ReplayFinished()->messages, 0) << request_id;
    ReplayRequest replay;
    replay.queue = "mails";
    replay.message_ids = {id};
    EXPECT_EQ(queues.Replay(replay)->messages, 0) << request_id;
    PurgeRequest purge;
    purge.queue = "mails";
    purge.message_ids = {id};
    EXPECT_EQ(queues.Purge(purge)->messages, 0) << request_id;
  }
}

TEST_P(History, LeavesNoPayloadBehindAndTheRequestIsRemembered) {
  queues->StartBackground();
  for (const size_t bytes : {size_t{1'000}, size_t{100'000}}) {
    const std::string request_id = "order-" + std::to_string(bytes);
    Finish(request_id, bytes);
    EXPECT_GT(BytesStored(), bytes);
    Pass(minutes(3));
    EXPECT_LT(BytesStored(), 1'000u);
    EXPECT_THAT(queues.Push("mails", message), IsOk());
    EXPECT_TRUE(queues.Push("mails", message)->replayed);
    // The acknowledgement has not been forgotten either.
    const auto again = queues.Acknowledge(token);
    ASSERT_THAT(again, IsOk());
    EXPECT_TRUE(*again);
  }
  EXPECT_THAT(*queues.Reserve("mails"), IsEmpty());
  world.clock().Advance(hours(25));
  EXPECT_FALSE(queues.Push("mails", message)->replayed);
}

// As for what is kept longer than requests are remembered.
TEST_P(History, IsKeptForLongerThanADay) {
  ASSERT_THAT(queues.Update("mails",
                            [](QueueSettings& settings) {
                              settings.history_retention = hours(48);
                              return absl::OkStatus();
                            }),
              IsOk());
  queues->StartBackground();
  const std::string id = Finish("order-1");
  world.clock().Advance(hours(47));
  Pass(minutes(2));
  EXPECT_THAT(queues->GetMessage("mails", id), IsOk());
  EXPECT_EQ(ReplayFinished()->messages, 1);
}

// Whatever was finished under the longer one.
TEST_P(History, ThatIsShortenedEndsEarlierForMessagesWithARequestId) {
  ASSERT_THAT(queues.Update("mails",
                            [](QueueSettings& settings) {
                              settings.history_retention = hours(10);
                              return absl::OkStatus();
                            }),
              IsOk());
  queues->StartBackground();
  Finish("order-1", 1'000);
  Pass(minutes(3));
  EXPECT_THAT(*Listed(State::kFinished), SizeIs(1));
  ASSERT_THAT(queues.Update("mails",
                            [](QueueSettings& settings) {
                              settings.history_retention = minutes(1);
                              return absl::OkStatus();
                            }),
              IsOk());
  EXPECT_THAT(*Listed(State::kFinished), IsEmpty());
  Pass(minutes(1));
  EXPECT_LT(BytesStored(), 1'000u);
}

}  // namespace
}  // namespace strata::queue::testing
