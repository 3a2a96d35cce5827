// What lasts: watches, subscriptions, receivers and enrollments, over the real server.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "strata/client/client.h"
#include "tests/client/serving.h"

namespace strata::client {
namespace {

using Streams = Serving;

TEST_F(Streams, AWatchGivesEachEventAndGoesOnWhereItWas) {
  const Collection books = client_->collection("books");
  for (int i = 1; i <= 5; ++i) {
    ASSERT_TRUE(books.Create("b" + std::to_string(i), Object{{"i", i}}).ok());
  }
  std::optional<int64_t> position;
  {
    Watch watch = books.Watch({.include_content = true, .after_position = 0});
    for (int i = 1; i <= 3; ++i) {
      const auto item = watch.Next();
      ASSERT_TRUE(item.has_value()) << watch.status();
      EXPECT_EQ(item->event->id, "b" + std::to_string(i));
      EXPECT_EQ(*item->event->version.content, Value(Object{{"i", i}}));
      if (i == 1) position = item->event->position;
    }
  }
  Watch watch = books.Watch({.after_position = position});
  EXPECT_EQ(watch.Next()->event->id, "b2");
  // Whoever waits is woken.
  for (int i = 3; i <= 5; ++i) EXPECT_TRUE(watch.Next().has_value());
  std::thread canceller([&] { watch.Cancel(); });
  EXPECT_FALSE(watch.Next().has_value());
  EXPECT_TRUE(watch.status().ok()) << watch.status();
  canceller.join();

  Watch copy = client_->Watch({.collections = {"books"}, .snapshot = Snapshot()});
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(copy.Next()->document->id, "b" + std::to_string(i));
  ASSERT_TRUE(books.Delete("b1").ok());
  EXPECT_EQ(copy.Next()->event->version.kind, VersionKind::kDeleted);
  EXPECT_TRUE(copy.snapshot()->complete);
  Watch late = client_->Watch({.after_position = int64_t{1} << 62});
  EXPECT_FALSE(late.Next().has_value());
  EXPECT_EQ(ReasonOf(late.status()), Reason::kPositionUnknown) << ErrorOf(late.status()).ToString();
}

TEST_F(Streams, AWatchSaysWhereAnotherGoesOn) {
  const auto before = client_->collection("commits").Create("before", Object{});
  ASSERT_TRUE(before.ok()) << before.status();
  Transaction transaction = client_->transaction();
  for (const char* id : {"a", "b", "c"}) transaction.Create("commits", id, Object{});
  const auto committed = transaction.Commit();
  ASSERT_TRUE(committed.ok()) << committed.status();
  // A watcher that dies again and again: the commit comes again until all of it was given.
  std::string seen;
  std::optional<int64_t> saved = before->commit_position;
  for (int count = 1; count <= 3; ++count) {
    Watch watch = client_->Watch({.collections = {"commits"}, .after_position = saved});
    for (int i = 0; i < count; ++i) {
      const auto item = watch.Next();
      ASSERT_TRUE(item.has_value()) << watch.status();
      seen += item->event->id;
    }
    EXPECT_EQ(watch.caught_up(), count == 3);
    saved = watch.resume_position();
  }
  EXPECT_EQ(seen, "aababc");
  EXPECT_GE(saved, committed->commit_position);
}

TEST_F(Streams, ASubscriptionIsConsumedOnceWhereItIsAcknowledged) {
  const Collection books = client_->collection("books");
  const Subscriptions subscriptions = client_->subscriptions();
  ASSERT_TRUE(subscriptions
                  .Create("mail", {.after_position = 0,
                                   .partitions = 2,
                                   .max_attempts = 2,
                                   .backoff_first = absl::Milliseconds(1)})
                  .ok());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(books.Create("b" + std::to_string(i), Object{{"i", i}}).ok());
  }
  std::set<std::string> seen;
  int failed = 0;
  {
    Consumer consumer = subscriptions.Consume("mail", "c1", {.include_content = true});
    while (seen.size() + 1 < 20 || failed < 2) {
      const auto delivery = consumer.Next(absl::Seconds(20));
      ASSERT_TRUE(delivery.has_value()) << consumer.status() << " " << seen.size();
      if (delivery->event.id == "b7") {
        ++failed;
        consumer.Nack(*delivery, "no");
        continue;
      }
      EXPECT_TRUE(seen.insert(delivery->event.id).second) << delivery->event.id;
      consumer.Ack(*delivery);
    }
    consumer.Close();
    EXPECT_TRUE(consumer.status().ok()) << consumer.status();
    EXPECT_FALSE(consumer.Next().has_value());
  }
  const auto parked = All(subscriptions.Parked("mail"));
  ASSERT_TRUE(parked.ok() && parked->size() == 1) << parked.status();
  EXPECT_EQ(parked->front().reason, "no");
  EXPECT_EQ(*subscriptions.ReplayParked("mail"), 1);
  Consumer consumer = subscriptions.Consume("mail", "c2");
  const auto replayed = consumer.Next(absl::Seconds(20));
  ASSERT_TRUE(replayed.has_value()) << consumer.status();
  EXPECT_TRUE(replayed->replay);
  consumer.Ack(*replayed);
  consumer.Close();
  EXPECT_EQ(subscriptions.Get("mail")->parked, 0);
  EXPECT_TRUE(subscriptions.Delete("mail").ok());
  Consumer of_nothing = subscriptions.Consume("nothing", "c");
  EXPECT_FALSE(of_nothing.Next().has_value());
  EXPECT_EQ(ReasonOf(of_nothing.status()), Reason::kSubscriptionNotFound);
}

TEST_F(Streams, AReceiverAcknowledgesByFutures) {
  const Queues queues = client_->queues();
  ASSERT_TRUE(queues.Create("mails").ok());
  std::vector<PushedMessage> messages(50);
  for (int i = 0; i < 50; ++i) messages[static_cast<size_t>(i)].payload = Object{{"i", i}};
  ASSERT_TRUE(queues.Push("mails", messages).ok());
  Receiver receiver = queues.Receive("mails", {.credits = 10});
  for (int i = 0; i < 50; ++i) {
    const auto message = receiver.Next(absl::Seconds(20));
    ASSERT_TRUE(message.has_value()) << receiver.status() << " " << i;
    const auto result = receiver.Acknowledge(*message).get();
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->status.ok()) << result->status;
  }
  EXPECT_FALSE(receiver.Next(absl::Milliseconds(10)).has_value());
  ASSERT_TRUE(queues.Push("mails", PushedMessage{}).ok());
  const auto message = receiver.Next(absl::Seconds(20));
  ASSERT_TRUE(message.has_value());
  EXPECT_TRUE(receiver.Extend(*message).get()->status.ok());
  EXPECT_TRUE(receiver.Rollback(*message, {.dead = true, .reason = "bad"}).get()->status.ok());
  receiver.Close();
  EXPECT_TRUE(receiver.status().ok()) << receiver.status();
  EXPECT_EQ(queues.Get("mails")->statistics->dead, 1);
}

TEST_F(Streams, EnrollmentsAreAppliedInTheOrderOfTheirResults) {
  const Enrollments enrollments = client_->enrollments();
  ApplyStream stream = enrollments.Apply();
  constexpr int kMessages = 3000;
  std::thread sender([&] {
    for (int i = 0; i < kMessages; ++i) {
      EnrollmentMessage message{.student_id = std::to_string(i % 10),
                                .class_name = "c",
                                .sequence_number = 1 + i / 10,
                                .operation = EnrollmentOperation::kEnroll};
      if (i == 5) message.sequence_number = -1;
      EXPECT_TRUE(stream.Send(message).ok());
    }
    stream.Finish();
  });
  int results = 0;
  while (const auto result = stream.Next()) {
    if (results == 5) {
      EXPECT_EQ(ReasonOf(result->status), Reason::kInvalidField);
    } else {
      EXPECT_TRUE(result->status.ok()) << result->status;
      EXPECT_NE(result->result, EnrollmentResult::kUnspecified);
    }
    ++results;
  }
  sender.join();
  EXPECT_TRUE(stream.status().ok()) << stream.status();
  EXPECT_EQ(results, kMessages);
  EXPECT_EQ(All(enrollments.Roster("c"))->size(), 10u);
  EXPECT_EQ(enrollments.Get("3")->enrollments.front().sequence_number, 300);
  EXPECT_EQ(enrollments.Unenroll("3", "c", 400)->result, EnrollmentResult::kApplied);
  EXPECT_EQ(enrollments.Enroll("3", "c", 350)->result, EnrollmentResult::kSuperseded);
  EXPECT_EQ(enrollments.PurgeTombstones(400)->purged_tombstones, 1);
}

}  // namespace
}  // namespace strata::client
