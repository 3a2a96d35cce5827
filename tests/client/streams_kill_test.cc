// Streams through kills of the server: nothing is missed, and nothing is done twice that must not
// be.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/client/client.h"
#include "tests/fault/server_process.h"
#include "tests/support/temporary_directory.h"

namespace strata::client {
namespace {

class Killed : public ::testing::Test {
 protected:
  Killed() {
    settings_.data = folder_.Join("data");
    settings_.log = folder_.Join("log");
    server_ = std::make_unique<fault::ServerProcess>(settings_);
    settings_.listen = server_->address();
    client_.emplace(
        *Client::Connect({.target = server_->address(), .retry_for = absl::Minutes(1)}));
  }

  void KillAndStart() {
    server_->Kill();
    server_ = std::make_unique<fault::ServerProcess>(settings_);
  }

  const test_support::TemporaryDirectory folder_;
  fault::ServerSettings settings_;
  std::unique_ptr<fault::ServerProcess> server_;
  std::optional<Client> client_;
};

TEST_F(Killed, AWatchGivesEachEventOnce) {
  const Collection books = client_->collection("books");
  ASSERT_TRUE(books.Create("first", Object{}).ok());
  Watch watch = books.Watch({.after_position = 0});
  std::map<std::string, int> seen;
  std::thread watcher([&] {
    while (const auto item = watch.Next()) {
      ++seen[item->event->id];
      if (item->event->id == "last") return;
    }
  });
  for (int i = 0; i < 60; ++i) {
    if (i % 20 == 10) KillAndStart();
    ASSERT_TRUE(books.Create("b" + std::to_string(i), Object{}).ok());
  }
  ASSERT_TRUE(books.Create("last", Object{}).ok());
  watcher.join();
  EXPECT_TRUE(watch.status().ok()) << watch.status();
  EXPECT_EQ(seen.size(), 62u);
  for (const auto& [id, times] : seen) EXPECT_EQ(times, 1) << id;
}

TEST_F(Killed, EnrollmentsAreAnsweredInOrder) {
  ApplyStream stream = client_->enrollments().Apply();
  constexpr int kMessages = 6000;
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(stream
                      .Send({.student_id = std::to_string(i % 50),
                             .class_name = "c",
                             .sequence_number = 1 + i / 50,
                             .operation = EnrollmentOperation::kEnroll})
                      .ok());
    }
    stream.Finish();
  });
  int results = 0;
  while (const auto result = stream.Next()) {
    EXPECT_TRUE(result->status.ok()) << result->status;
    if (++results % 2000 == 1000) KillAndStart();
  }
  sender.join();
  EXPECT_TRUE(stream.status().ok()) << stream.status();
  EXPECT_EQ(results, kMessages);
  const auto roster = All(client_->enrollments().Roster("c"));
  ASSERT_TRUE(roster.ok()) << roster.status();
  EXPECT_EQ(roster->size(), 50u);
  for (const RosterEntry& entry : *roster) EXPECT_EQ(entry.sequence_number, kMessages / 50);
}

TEST_F(Killed, AReceiverEmptiesItsQueue) {
  const Queues queues = client_->queues();
  ASSERT_TRUE(queues.Create("mails", {.reservation_timeout = absl::Seconds(2)}).ok());
  std::vector<PushedMessage> messages(90);
  for (size_t i = 0; i < messages.size(); ++i) {
    messages[i].payload = Object{{"i", static_cast<int32_t>(i)}};
  }
  ASSERT_TRUE(queues.Push("mails", messages).ok());
  Receiver receiver = queues.Receive("mails", {.credits = 5});
  std::set<int64_t> done;
  int handed_out = 0;
  while (done.size() < messages.size()) {
    const auto message = receiver.Next(absl::Seconds(30));
    ASSERT_TRUE(message.has_value()) << receiver.status() << " after " << done.size();
    auto acknowledged = receiver.Acknowledge(*message);
    if (++handed_out % 40 == 20) KillAndStart();
    const auto result = acknowledged.get();
    ASSERT_TRUE(result.ok()) << result.status();
    if (!result->status.ok()) continue;
    EXPECT_TRUE(done.insert(*message->payload->At("/i")->AsInteger()).second)
        << "acknowledged twice";
  }
  receiver.Close();
  const auto queue = queues.Get("mails");
  ASSERT_TRUE(queue.ok()) << queue.status();
  EXPECT_EQ(queue->statistics->ready + queue->statistics->reserved, 0);
}

TEST_F(Killed, AConsumerIsToldEverything) {
  const Subscriptions subscriptions = client_->subscriptions();
  ASSERT_TRUE(subscriptions
                  .Create("mail", {.after_position = 0,
                                   .partitions = 2,
                                   .max_attempts = 100,
                                   .backoff_first = absl::Milliseconds(1),
                                   .lease_ttl = absl::Seconds(1)})
                  .ok());
  const Collection books = client_->collection("books");
  for (int i = 0; i < 60; ++i) {
    ASSERT_TRUE(books.Create("b" + std::to_string(i), Object{}).ok());
  }
  Consumer consumer = subscriptions.Consume("mail", "c", {.window = 5});
  std::set<std::string> seen;
  int delivered = 0;
  while (seen.size() < 60) {
    const auto delivery = consumer.Next(absl::Seconds(60));
    ASSERT_TRUE(delivery.has_value()) << consumer.status() << " after " << seen.size();
    seen.insert(delivery->event.id);
    consumer.Ack(*delivery);
    if (++delivered % 40 == 20 && delivered < 100) KillAndStart();
  }
  consumer.Close();
  EXPECT_TRUE(consumer.status().ok()) << consumer.status();
}

}  // namespace
}  // namespace strata::client
