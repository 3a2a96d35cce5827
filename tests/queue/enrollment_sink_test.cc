// Article 000 end to end: messages about enrollments through a queue that the server consumes.
#include "schemas/queue/enrollment_sink.h"

#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/utf8.h"
#include "schemas/document/bson_builder.h"
#include "tests/queue/queues_world.h"
#include "tests/support/volume.h"

namespace strata::queue::testing {
namespace {

// Until nothing is left to do of the queue "enrollments", but for what died. The clock follows real
// time: reservations must not run out while a busy disk keeps the engine waiting.
void DrainQueue(QueueProcess& queues, EnrollmentSinks& sinks, test_support::ManualClock& clock) {
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
      clock.Advance(seconds(1));
      next += kRealSecond;
    }
    std::this_thread::yield();
  }
  FAIL() << "messages are left";
}

class EnrollmentSinkTest : public QueuesTest {
 protected:
  EnrollmentSinkTest() {
    QueueSettings settings;
    settings.enrollments = EnrollmentSink{"students", "classes", 16};
    EXPECT_THAT(queues.Create("enrollments", settings), IsOk());
  }
  static PushedMessage Message(const std::string& operation, int student, const std::string& name,
                               int64_t sequence_number) {
    document::BsonBuilder builder;
    builder.String("operation", operation).Int64("student_id", student).String("class", name);
    builder.Int64("sequence_number", sequence_number);
    PushedMessage message;
    message.payload = document::Content::FromTrusted(builder.Take());
    message.sequence_number = sequence_number;
    return message;
  }
  void Drain() { DrainQueue(queues, sinks, world.clock()); }

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

// Who may write what is in the test's hands.
class GrantsInHand final : public StandingGrants {
 public:
  bool MayWriteCollection(const std::string& principal, std::string_view) const override {
    return !denied.contains(principal);
  }
  bool MayWriteQueue(const std::string& principal, std::string_view) const override {
    return !denied.contains(principal);
  }
  absl::Status MayActFor(const std::string& principal, std::string_view name,
                         std::string_view) const override {
    if (acts_for.contains({principal, std::string(name)})) return absl::OkStatus();
    return Error(ErrorReason::kActForDenied, principal + " may not act for " + std::string(name));
  }

  std::set<std::string> denied;
  std::set<std::pair<std::string, std::string>> acts_for;
};

class GrantedQueues : public QueuesTest {
 protected:
  GrantedQueues() {
    QueuesOptions options;
    options.grants = &grants;
    granted.emplace(world->store(), world.clock(), 7, options);
    QueueSettings settings;
    settings.owner = "user:owner";
    EXPECT_THAT(granted->Create("dead", settings), IsOk());
    settings.enrollments = EnrollmentSink{"students", "classes", 16};
    settings.dead_letter_queue = "dead";
    EXPECT_THAT(granted->Create("enrollments", settings), IsOk());
    sinks.emplace(**granted, world->documents(), enrollments, world->store().capabilities(),
                  document::Limits{}, granted->executor(), &grants);
  }
  ~GrantedQueues() override { sinks.reset(); }

  static PushedMessage Message(int64_t number, const std::string& pusher,
                               const std::map<std::string, std::string>& others = {}) {
    document::BsonBuilder builder;
    builder.String("operation", "insert").Int64("student_id", number).String("class", "CS 1");
    builder.Int64("sequence_number", number);
    for (const auto& [name, value] : others) builder.String(name, value);
    PushedMessage message;
    message.payload = document::Content::FromTrusted(builder.Take());
    message.pusher = pusher;
    return message;
  }
  // What the student's first version says of who changed it; none: it was not made.
  std::optional<std::string> OnBehalfOf(int64_t student) {
    const auto history = world->History({"students", std::to_string(student)});
    if (!history.ok() || history->empty()) return std::nullopt;
    EXPECT_EQ(history->front().header.change.actor, "queue/enrollments");
    return history->front().header.change.on_behalf_of;
  }
  void Drain() { DrainQueue(*granted, *sinks, world.clock()); }
  // Whatever the sink does within a look and what follows from it.
  void Settle() {
    sinks->Look();
    for (int i = 0; i < 5; ++i) {
      world.clock().Advance(seconds(1));
      granted->Settle("enrollments");
      granted->Settle("dead");
    }
  }
  size_t CountIn(const std::string& queue) {
    return (*granted)->ListMessages({.queue = queue}, 100)->messages.size();
  }

  GrantsInHand grants;
  std::optional<QueueProcess> granted;
  enrollment::Enrollments enrollments{world->documents()};
  std::optional<EnrollmentSinks> sinks;
};
INSTANTIATE_TEST_SUITE_P(Engines, GrantedQueues, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(GrantedQueues, WhoPushedAMessageSignsItUnlessItMayActForAnother) {
  grants.acts_for = {{"user:bob", "user:ann"}};
  const auto push = [&](const PushedMessage& message) {
    ASSERT_THAT(granted->Push("enrollments", message), IsOk());
  };
  push(Message(1, "user:bob"));
  push(Message(2, "user:bob", {{"on_behalf_of", "user:bob"}}));
  push(Message(3, "user:bob", {{"actor", "user:ann"}}));
  push(Message(4, "user:bob", {{"on_behalf_of", "user:dean"}}));
  push(Message(5, "user:ann", {{"actor", "user:bob"}}));
  push(Message(6, "", {{"on_behalf_of", "user:dean"}}));
  push(Message(7, ""));
  push(Message(8, "user:bob", {{"set", "classes"}}));
  push(Message(9, "user:bob", {{"set", "roles"}}));
  Drain();
  EXPECT_EQ(OnBehalfOf(1), "user:bob");
  EXPECT_EQ(OnBehalfOf(2), "user:bob");
  EXPECT_EQ(OnBehalfOf(3), "user:ann");
  for (const int64_t refused : {4, 5, 6, 9}) EXPECT_EQ(OnBehalfOf(refused), std::nullopt);
  EXPECT_EQ(OnBehalfOf(7), "");
  EXPECT_EQ(OnBehalfOf(8), "user:bob");
  EXPECT_EQ(CountIn("dead"), 4u);
  std::multiset<std::string> reasons;
  const auto listed = (*granted)->ListMessages({.queue = "dead"}, 100);
  ASSERT_THAT(listed, IsOk());
  for (const MessageView& view : listed->messages) {
    reasons.insert(view.message.reason.substr(0, view.message.reason.find(':')));
  }
  EXPECT_THAT(reasons, ::testing::ElementsAre("ACT_FOR_DENIED", "ACT_FOR_DENIED", "ACT_FOR_DENIED",
                                              "INVALID_CONTENT"));
}

TEST_P(GrantedQueues, WhatAMoverPutsIntoAMessageIsTheMovers) {
  ASSERT_THAT(granted->Create("inbox", {}), IsOk());
  for (const bool replaced : {false, true}) {
    ASSERT_THAT(granted->Push("inbox", Message(replaced ? 2 : 1, "user:bob")), IsOk());
    const auto reserved = granted->Reserve("inbox");
    ASSERT_THAT(reserved, IsOk());
    ASSERT_EQ(reserved->size(), 1u);
    MoveRequest move;
    move.token = reserved->front().token;
    move.queue = "enrollments";
    move.mover = "user:ann";
    if (replaced) move.payload = Message(2, "").payload;
    ASSERT_THAT(granted->Move(move), IsOk());
  }
  Drain();
  EXPECT_EQ(OnBehalfOf(1), "user:bob");
  EXPECT_EQ(OnBehalfOf(2), "user:ann");
}

TEST_P(GrantedQueues, WhatTheirOwnerOrderedEndsWithItsGrant) {
  ASSERT_THAT(granted->Push("enrollments", Message(1, "")), IsOk());
  Drain();
  EXPECT_EQ(OnBehalfOf(1), "");
  Schedule schedule;
  schedule.queue = "dead";
  schedule.name = "often";
  schedule.every = seconds(1);
  schedule.message = Numbered(1);
  schedule.message.pusher = "user:owner";
  ASSERT_THAT(granted->CreateSchedule(schedule), IsOk());
  (*granted)->StartBackground();
  Settle();
  const size_t fired = CountIn("dead");
  EXPECT_GT(fired, 0u);

  grants.denied = {"user:owner"};
  Settle();
  ASSERT_THAT(granted->Push("enrollments", Message(2, "")), IsOk());
  Settle();
  EXPECT_EQ(OnBehalfOf(2), std::nullopt);
  EXPECT_EQ(CountIn("enrollments"), 1u);
  // By hand, what dies stays where it is.
  const auto reserved = granted->Reserve("enrollments");
  ASSERT_THAT(reserved, IsOk());
  ASSERT_EQ(reserved->size(), 1u);
  RollbackRequest died;
  died.tokens = {reserved->front().token};
  died.dead = true;
  ASSERT_THAT(granted->Rollback(died), IsOk());
  EXPECT_EQ((*granted)->Statistics("enrollments")->dead, 1);
  EXPECT_LE(CountIn("dead"), fired + 1) << "the schedule goes on";

  // Whoever orders it anew answers for it from then on.
  ASSERT_THAT(granted->Update("enrollments",
                              [](QueueSettings& settings) {
                                settings.owner = "user:other";
                                return absl::OkStatus();
                              }),
              IsOk());
  ASSERT_THAT(granted->Push("enrollments", Message(3, "")), IsOk());
  Drain();
  EXPECT_EQ(OnBehalfOf(3), "");
}

// A reason that is cut within a character could be stored, but no answer with it could be decoded.
TEST_P(EnrollmentSinkTest, AReasonThatQuotesALongNameIsTextAllTheSame) {
  for (const size_t ahead : {0U, 1U}) {  // so that one of them is cut within a character
    std::string name(ahead, 'a');
    for (size_t i = 0; i < kReasonBytesMax; ++i) name += "\u00e9";
    PushedMessage message;
    message.payload = document::Content::FromTrusted(document::BsonBuilder().Int64(name, 1).Take());
    ASSERT_THAT(queues.Push("enrollments", message), IsOk());
  }
  Drain();
  const auto dead = queues->ListMessages(
      {.queue = "enrollments", .state = State::kDead, .after = "", .stopped = {}}, 10);
  ASSERT_THAT(dead, IsOk());
  ASSERT_EQ(dead->messages.size(), 2);
  for (const MessageView& view : dead->messages) {
    EXPECT_TRUE(IsUtf8(view.message.reason));
    EXPECT_LE(view.message.reason.size(), kReasonBytesMax);
  }
}

}  // namespace
}  // namespace strata::queue::testing
