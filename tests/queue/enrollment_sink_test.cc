// Article 000 end to end: messages about enrollments through a queue that the server consumes.
#include "schemas/queue/enrollment_sink.h"

#include <chrono>
#include <map>
#include <random>

#include "schemas/base/utf8.h"
#include "schemas/versioning/names.h"
#include "schemas/versioning/record_codec.h"
#include "tests/queue/queues_world.h"
#include "tests/support/volume.h"

namespace strata::queue::testing {
namespace {

class EnrollmentSinkTest : public QueuesTest {
 protected:
  EnrollmentSinkTest() {
    QueueSettings settings;
    settings.enrollments = EnrollmentSink{"students", "classes", 16};
    EXPECT_THAT(queues.Create("enrollments", settings), IsOk());
  }
  static PushedMessage Message(const std::string& operation, int student, const std::string& name,
                               int64_t sequence_number) {
    versioning::BsonBuilder builder;
    builder.String("operation", operation).Int64("student_id", student).String("class", name);
    builder.Int64("sequence_number", sequence_number);
    PushedMessage message;
    message.payload = document::Content::FromTrusted(builder.Take());
    message.sequence_number = sequence_number;
    return message;
  }
  // Until nothing is left to do, but for what died. The clock follows real time: reservations must
  // not run out while a busy disk keeps the engine waiting.
  void Drain() {
    using RealClock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kRealSecond{50};
    sinks.Look();
    const RealClock::time_point end = RealClock::now() + std::chrono::seconds(120);
    RealClock::time_point next = RealClock::now() + kRealSecond;
    while (RealClock::now() < end) {
      queues.executor().RunDue();
      const auto statistics = queues->Statistics("enrollments");
      ASSERT_THAT(statistics, IsOk());
      const int64_t open = statistics->ready + statistics->reserved + statistics->scheduled;
      if (statistics->exact && open == 0) return;
      if (RealClock::now() >= next) {
        world.clock().Advance(seconds(1));
        next += kRealSecond;
      }
      std::this_thread::yield();
    }
    FAIL() << "messages are left";
  }

  enrollment::Enrollments enrollments{world->documents()};
  EnrollmentSinks sinks{*queues, world->documents(), enrollments, world->store().capabilities(),
                        {},      queues.executor()};
};
INSTANTIATE_TEST_SUITE_P(Engines, EnrollmentSinkTest, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(EnrollmentSinkTest, ShuffledAndRepeatedMessagesLeaveWhatTheHighestNumbersSay) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::map<std::pair<int, std::string>, std::pair<int64_t, bool>> expected;
  std::vector<PushedMessage> messages;
  for (int64_t number = 1; number <= test_support::Sampled(200, 60); ++number) {
    const int student = static_cast<int>(random() % 5);
    const std::string name = "CS " + std::to_string(random() % 4);
    const bool enroll = random() % 2 == 0;
    expected[{student, name}] = {number, enroll};
    const PushedMessage message = Message(enroll ? "insert" : "delete", student, name, number);
    for (uint64_t copies = 1 + random() % 2; copies > 0; --copies) messages.push_back(message);
  }
  std::shuffle(messages.begin(), messages.end(), random);
  for (const PushedMessage& message : messages) {
    ASSERT_THAT(queues.Push("enrollments", message), IsOk());
  }
  Drain();
  EXPECT_EQ(queues->Statistics("enrollments")->dead, 0);
  EXPECT_FALSE(queues->Statistics("enrollments")->low_watermark);
  std::map<std::pair<int, std::string>, std::pair<int64_t, bool>> found;
  for (int student = 0; student < 5; ++student) {
    const auto all = enrollments.Get({"students", std::to_string(student)}, "classes");
    ASSERT_THAT(all, IsOk());
    for (const enrollment::Enrollment& one : all->all) {
      found[{student, one.class_name}] = {one.sequence_number, one.enrolled};
    }
  }
  EXPECT_EQ(found, expected);
}

TEST_P(EnrollmentSinkTest, WhatDoesNotFitDiesWithTheReason) {
  ASSERT_THAT(queues.Push("enrollments", Message("insert", 1, "CS 1", 5)), IsOk());
  Drain();
  ASSERT_THAT(queues.Push("enrollments", Message("delete", 1, "CS 1", 5)), IsOk());  // CONFLICT
  ASSERT_THAT(queues.Push("enrollments", Message("drop", 1, "CS 1", 6)), IsOk());
  ASSERT_THAT(queues.Push("enrollments", Message("insert", 1, "", 7)), IsOk());
  ASSERT_THAT(queues.Push("enrollments", Numbered(1)), IsOk());
  Drain();
  EXPECT_EQ(queues->Statistics("enrollments")->dead, 4);
  EXPECT_EQ(queues->Statistics("enrollments")->low_watermark, 5);
  const auto dead = queues->ListMessages(
      {.queue = "enrollments", .state = State::kDead, .after = "", .stopped = {}}, 10);
  ASSERT_THAT(dead, IsOk());
  std::vector<std::string> reasons;
  for (const MessageView& view : dead->messages) {
    reasons.push_back(view.message.reason.substr(0, view.message.reason.find(':')));
  }
  EXPECT_THAT(reasons, ::testing::UnorderedElementsAre("CONFLICT", "INVALID_CONTENT",
                                                       ::testing::StartsWith("INVALID_"),
                                                       "INVALID_CONTENT"));
  // It was applied all the same: at equal numbers the deletion counts.
  const auto all = enrollments.Get({"students", "1"}, "classes");
  ASSERT_THAT(all, IsOk());
  EXPECT_FALSE(all->all.at(0).enrolled);
}

// A reason that is cut within a character could be stored, but no answer with it could be decoded.
TEST_P(EnrollmentSinkTest, AReasonThatQuotesALongNameIsTextAllTheSame) {
  for (const size_t ahead : {0U, 1U}) {  // so that one of them is cut within a character
    std::string name(ahead, 'a');
    for (size_t i = 0; i < versioning::kReasonBytesMax; ++i) name += "\u00e9";
    PushedMessage message;
    message.payload =
        document::Content::FromTrusted(versioning::BsonBuilder().Int64(name, 1).Take());
    ASSERT_THAT(queues.Push("enrollments", message), IsOk());
  }
  Drain();
  const auto dead = queues->ListMessages(
      {.queue = "enrollments", .state = State::kDead, .after = "", .stopped = {}}, 10);
  ASSERT_THAT(dead, IsOk());
  ASSERT_EQ(dead->messages.size(), 2);
  for (const MessageView& view : dead->messages) {
    EXPECT_TRUE(IsUtf8(view.message.reason));
    EXPECT_LE(view.message.reason.size(), versioning::kReasonBytesMax);
  }
}

}  // namespace
}  // namespace strata::queue::testing
