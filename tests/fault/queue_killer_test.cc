// A message that kills the processes of its consumers, among others that do not: it uses up its
// own tries, and not those of the messages that were out beside it.
//
// STRATA_QUEUE_GOOD_MESSAGES: so many others (5,000).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <set>
#include <thread>

#include "tests/fault/child_process.h"
#include "tests/fault/queue_client.h"
#include "tests/support/places.h"

namespace strata::fault {
namespace {

constexpr int kConsumers = 4;
constexpr int kTries = 3;
constexpr char kCredits[] = "256";
constexpr char kQueue[] = "jobs";

class QueueKiller : public testing::Test {
 protected:
  // A process after the other, each until it dies of a message.
  void ConsumeWith(int consumer) {
    while (true) {
      ChildProcess process({test_support::BuiltPath("tests/fault/queue_consumer"),
                            server_.address(), kQueue, kCredits},
                           directory_.Join("consumer-" + std::to_string(consumer)));
      const int status = process.Wait();
      if (status == 0) return;
      ASSERT_EQ(status, 128 + SIGKILL);
      ++deaths_;
    }
  }

  test_support::TemporaryDirectory directory_;
  RevivedServer server_;
  QueueClient client_{server_.Connect()};
  std::atomic<int> deaths_ = 0;
};

TEST_F(QueueKiller, AMessageThatKillsItsConsumersDiesAlone) {
  const int64_t good = Wanted("STRATA_QUEUE_GOOD_MESSAGES", 5'000);
  v1::QueueSettings settings;
  settings.set_max_tries(kTries);
  settings.mutable_history_retention()->set_seconds(3600);
  client_.Create(kQueue, settings);
  client_.PushNumbers(kQueue, 0, good / 2);
  client_.PushNumbers(kQueue, -1, 0);
  client_.PushNumbers(kQueue, good / 2, good);

  std::vector<std::thread> consumers;
  for (int i = 0; i < kConsumers; ++i) consumers.emplace_back([this, i] { ConsumeWith(i); });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  v1::QueueStatistics left;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    left = client_.Statistics(kQueue);
  } while ((left.dead() == 0 || left.ready() + left.scheduled() + left.reserved() > 0) &&
           std::chrono::steady_clock::now() < deadline);
  const std::vector<v1::QueueMessage> dead = client_.List(kQueue, v1::MESSAGE_STATE_DEAD);
  const std::vector<v1::QueueMessage> done = client_.List(kQueue, v1::MESSAGE_STATE_FINISHED);
  EXPECT_EQ(server_.Stop(), 0);
  for (std::thread& consumer : consumers) consumer.join();

  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(NumberOf(dead[0].payload()), -1);
  EXPECT_EQ(dead[0].tries(), kTries);
  EXPECT_EQ(dead[0].reason(), "TRIES");
  EXPECT_EQ(deaths_, kTries);
  std::set<int64_t> acknowledged;
  int32_t tries_max = 0;
  for (const v1::QueueMessage& message : done) {
    EXPECT_TRUE(acknowledged.insert(NumberOf(message.payload())).second);
    tries_max = std::max(tries_max, message.tries());
  }
  EXPECT_EQ(static_cast<int64_t>(acknowledged.size()), good);
  EXPECT_LE(tries_max, kTries);
  std::printf("%d processes died; a good message had at most %d tries\n", deaths_.load(),
              tries_max);
}

}  // namespace
}  // namespace strata::fault
