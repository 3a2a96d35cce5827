// Messages that are due in a day, before others that are ready: these come at once, in calls that
// do not wait, also after the server was killed.
//
// STRATA_QUEUE_DELAYED: so many delayed messages (100,000).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/fault/queue_client.h"

namespace strata::fault {
namespace {

constexpr char kQueue[] = "jobs";
constexpr int64_t kReady = 1'000;
constexpr int kAtOnce = 100;
constexpr int kProducers = 4;

class QueueDepth : public testing::Test {
 protected:
  void PushDelayed(int64_t count) {
    std::vector<std::thread> producers;
    for (int64_t i = 0; i < kProducers; ++i) {
      producers.emplace_back([this, count, i] {
        client_.PushNumbers(kQueue, 0, count / kProducers, [](v1::PushedMessage& message) {
          message.mutable_delay()->set_seconds(24 * 3600);
        });
      });
    }
    for (std::thread& producer : producers) producer.join();
  }
  // Call after call until one finds nothing; as few as there can be, and in order.
  void ExpectAtOnce(int64_t first) {
    for (int64_t call = 0; call < kReady / kAtOnce; ++call) {
      const std::vector<v1::QueueMessage> messages = client_.Reserve(kQueue, kAtOnce);
      ASSERT_EQ(messages.size(), static_cast<size_t>(kAtOnce)) << "call " << call;
      for (const v1::QueueMessage& message : messages) {
        EXPECT_EQ(NumberOf(message.payload()), first++);
      }
    }
    EXPECT_TRUE(client_.Reserve(kQueue, kAtOnce).empty());
  }

  RevivedServer server_;
  QueueClient client_{server_.Connect()};
};

TEST_F(QueueDepth, DelayedMessagesStandBeforeNoReadyOnes) {
  const int64_t delayed = Wanted("STRATA_QUEUE_DELAYED", 100'000);
  v1::QueueSettings settings;
  settings.mutable_reservation_timeout()->set_seconds(3600);
  client_.Create(kQueue, settings);
  PushDelayed(delayed);
  client_.PushNumbers(kQueue, 0, kReady);
  ExpectAtOnce(0);
  client_.PushNumbers(kQueue, kReady, 2 * kReady);
  server_.Kill();
  ExpectAtOnce(kReady);
  client_.PushNumbers(kQueue, 2 * kReady, 3 * kReady);
  ReceiveStream stream(client_, kQueue, kReady);
  int64_t next = 2 * kReady;
  for (v1::ReceiveResponse response; next < 3 * kReady && stream.Read(response);) {
    for (const v1::QueueMessage& message : response.messages().messages()) {
      ASSERT_EQ(NumberOf(message.payload()), next++);
    }
  }
  EXPECT_EQ(next, 3 * kReady);
  const v1::QueueStatistics statistics = client_.Statistics(kQueue);
  EXPECT_EQ(statistics.scheduled(), delayed);
  EXPECT_EQ(statistics.reserved(), 3 * kReady);
  EXPECT_EQ(statistics.ready(), 0);
}

}  // namespace
}  // namespace strata::fault
