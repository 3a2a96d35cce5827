// Tombstones are purged by a queue's watermark while enrollment messages come through the queue in
// any order: what is left is what the highest numbers say, and nothing comes back.
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "schemas/document/bson_builder.h"
#include "schemas/queue/enrollment_sink.h"
#include "tests/enrollment/oracle.h"
#include "tests/queue/queues_world.h"
#include "tests/support/volume.h"

namespace strata::queue::testing {
namespace {

using enrollment::Operation;

constexpr std::string_view kQueue = "enrollments";
constexpr std::string_view kByHand = "refused by hand";
constexpr int kStudents = 40;
constexpr int kClasses = 6;

enum class Watermark {
  kOfQueue,          // as the product says
  kWithoutDead,      // planted: those that may be replayed are not heeded
  kWithoutReserved,  // planted: those that are out are not heeded
};

struct StormOptions {
  Engine engine;
  Watermark watermark = Watermark::kOfQueue;
  int messages = 2'000;
  uint64_t seed = 1;
};

// Producers push through two processes, a sink applies, a hand takes some of them away for a while,
// and tombstones are purged all the time.
class PurgedStorm {
 public:
  explicit PurgedStorm(const StormOptions& options)
      : options_(options),
        random_(options.seed),
        world_({.engine = options.engine.name, .mode = options.engine.mode}) {
    QueueSettings settings;
    settings.reservation_timeout = seconds(2);
    settings.enrollments = EnrollmentSink{"students", "classes", 16};
    EXPECT_THAT(queues_.Create(std::string(kQueue), settings), IsOk());
    MakeMessages();
    sinks_.Look();
  }

  // What is wrong after it; empty: nothing.
  std::string Run() {
    while (problem_.empty() && left_ > 0) {
      Push();
      if (Chance(25)) TakeByHand();
      if (Chance(60)) RunAll();
      if (Chance(25)) Purge();
      if (Chance(5)) LookAtTheDead();
      world_.clock().Advance(std::chrono::milliseconds(random_() % 700));
    }
    Drain();
    if (problem_.empty()) Purge();
    if (problem_.empty()) Check();
    return problem_;
  }

  int64_t purged() const { return purged_; }

 private:
  struct Copy {
    PushedMessage message;
    int64_t number = 0;
  };

  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  void Say(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

  static PushedMessage MessageOf(std::string_view operation, int student, const std::string& name,
                                 int64_t number) {
    document::BsonBuilder builder;
    builder.String("operation", operation).Int64("student_id", student).String("class", name);
    builder.Int64("sequence_number", number);
    PushedMessage message;
    message.payload = document::Content::FromTrusted(builder.Take());
    message.sequence_number = number;
    return message;
  }

  // Each producer's own are nearly in order, and some come twice.
  void MakeMessages() {
    for (int64_t number = 1; number <= options_.messages; ++number) {
      const int student = static_cast<int>(random_() % kStudents);
      const std::string name = "CS " + std::to_string(random_() % kClasses);
      const bool enroll = Chance(50);
      PushedMessage message = MessageOf(enroll ? "insert" : "delete", student, name, number);
      if (Chance(2)) {
        message = MessageOf("drop", student, name, number);
        malformed_.insert(number);
      } else {
        sent_[student].push_back({std::string(enrollment::kDefaultSet), name, number,
                                  enroll ? Operation::kEnroll : Operation::kUnenroll});
      }
      std::vector<Copy>& producer = producers_[random_() % std::size(producers_)];
      const bool twice = !malformed_.contains(number) && Chance(30);
      for (int copies = twice ? 2 : 1; copies > 0; --copies) producer.push_back({message, number});
    }
    constexpr size_t kBlock = 50;
    for (std::vector<Copy>& producer : producers_) {
      for (size_t i = 0; i < producer.size(); i += kBlock) {
        const auto begin = producer.begin() + static_cast<std::ptrdiff_t>(i);
        const auto end =
            producer.begin() + static_cast<std::ptrdiff_t>(std::min(i + kBlock, producer.size()));
        std::shuffle(begin, end, random_);
      }
      std::reverse(producer.begin(), producer.end());
      left_ += producer.size();
    }
  }

  void Push() {
    std::vector<Copy>& producer = producers_[random_() % std::size(producers_)];
    std::vector<PushedMessage> messages;
    for (uint64_t i = 1 + random_() % 12; i > 0 && !producer.empty(); --i, --left_) {
      messages.push_back(producer.back().message);
      producer.pop_back();
    }
    if (messages.empty()) return;
    const auto pushed = AnyProcess().Push(std::string(kQueue), std::move(messages));
    if (!pushed.ok()) Say("a push fails: " + pushed.status().ToString());
  }

  QueueProcess& AnyProcess() { return Chance(50) ? queues_ : other_; }

  // Some are kept away from the sink: forgotten, put off, or refused until they are replayed.
  void TakeByHand() {
    QueueProcess& process = AnyProcess();
    const auto taken =
        process.Reserve(std::string(kQueue), 1 + static_cast<int32_t>(random_() % 4));
    if (!taken.ok()) return Say("a reservation fails: " + taken.status().ToString());
    for (const MessageView& view : *taken) {
      RollbackRequest rollback;
      rollback.tokens = {view.token};
      rollback.reason = kByHand;
      switch (random_() % 3) {
        case 0:
          continue;
        case 1:
          rollback.delay = seconds(random_() % 5);
          break;
        default:
          rollback.dead = true;
      }
      if (!process.Rollback(rollback).ok()) Say("a roll back fails");
    }
  }

  void RunAll() {
    queues_.executor().RunDue();
    other_.executor().RunDue();
  }

  std::vector<MessageView> List(std::optional<State> state) {
    std::vector<MessageView> all;
    MessageQuery query;
    query.queue = kQueue;
    query.state = state;
    for (;;) {
      const auto page = other_->ListMessages(query, 1'000);
      if (!page.ok()) {
        Say("messages cannot be listed: " + page.status().ToString());
        return all;
      }
      all.insert(all.end(), page->messages.begin(), page->messages.end());
      if (!page->resume_after) return all;
      query.after = *page->resume_after;
    }
  }

  std::optional<int64_t> ListedWatermark() {
    std::optional<int64_t> least;
    for (const MessageView& view : List(std::nullopt)) {
      if (options_.watermark == Watermark::kWithoutDead && view.state == State::kDead) continue;
      if (options_.watermark == Watermark::kWithoutReserved && view.state == State::kReserved) {
        continue;
      }
      const std::optional<int64_t>& number = view.message.sequence_number;
      if (number && (!least || *number < *least)) least = number;
    }
    return least;
  }

  void Purge() {
    // What was not pushed yet is the producers' to know.
    int64_t through = options_.messages;
    for (const std::vector<Copy>& producer : producers_) {
      for (const Copy& copy : producer) through = std::min(through, copy.number - 1);
    }
    std::optional<int64_t> low;
    if (options_.watermark == Watermark::kOfQueue) {
      const auto watermark = AnyProcess()->LowWatermark({std::string(kQueue)});
      if (!watermark.ok()) return Say("no watermark: " + watermark.status().ToString());
      low = *watermark;
    } else {
      low = ListedWatermark();
    }
    if (low) through = std::min(through, *low - 1);
    if (through < 1) return;
    enrollment::PurgeRequest request;
    request.collection = "students";
    request.through = through;
    Answer<absl::StatusOr<enrollment::Purged>> answer;
    enrollments_.Purge(request, answer.Callback());
    const auto purged = queues_.Await(answer);
    if (ReasonOf(purged.status()) == ErrorReason::kCollectionNotFound) return;
    if (!purged.ok()) return Say("a purge fails: " + purged.status().ToString());
    if (purged->resume_after) Say("a purge is not whole");
    purged_ += purged->tombstones;
  }

  // Those that do not fit have the reason and are removed, for they hold the watermark; those that
  // were refused by hand come back.
  void LookAtTheDead() {
    for (const MessageView& view : List(State::kDead)) {
      const int64_t number = view.message.sequence_number.value_or(0);
      if (view.message.reason == kByHand) {
        ReplayRequest replay;
        replay.queue = kQueue;
        replay.message_ids = {view.id.ToText()};
        if (!queues_.Replay(replay).ok()) Say("a replay fails");
        continue;
      }
      if (!view.message.reason.starts_with("INVALID_CONTENT") || malformed_.erase(number) == 0) {
        return Say("message " + std::to_string(number) + " is dead: " + view.message.reason);
      }
      PurgeRequest purge;
      purge.queue = kQueue;
      purge.message_ids = {view.id.ToText()};
      if (!queues_.Purge(purge).ok()) Say("a purge of messages fails");
    }
  }

  // Until nothing is left to do.
  void Drain() {
    for (int i = 0; i < 2'000 && problem_.empty(); ++i) {
      RunAll();
      LookAtTheDead();
      if (List(std::nullopt).empty()) return;
      world_.clock().Advance(seconds(1));
      std::this_thread::yield();
    }
    Say("messages are left");
  }

  void Check() {
    if (!malformed_.empty()) Say("a message that does not fit is not among the dead");
    for (int student = 0; student < kStudents; ++student) {
      const auto found = enrollments_.Get({"students", std::to_string(student)},
                                          std::string(enrollment::kDefaultSet));
      if (!found.ok()) return Say("a student cannot be read: " + found.status().ToString());
      enrollment::testing::Classes expected =
          enrollment::testing::OracleClasses(enrollment::testing::NoDocument(), sent_[student]);
      for (const enrollment::Enrollment& one : found->all) {
        const auto known = expected.find(one.class_name);
        const bool right =
            known != expected.end() &&
            known->second == enrollment::testing::Known{one.sequence_number, one.enrolled};
        if (!right) Say("student " + std::to_string(student) + " has a wrong " + one.class_name);
        if (known != expected.end()) expected.erase(known);
      }
      for (const auto& [name, known] : expected) {
        if (known.enrolled) Say("student " + std::to_string(student) + " lacks " + name);
      }
    }
  }

  const StormOptions options_;
  std::mt19937_64 random_;
  World world_;
  QueueProcess queues_{world_->store(), world_.clock()};
  QueueProcess other_{world_->store(), world_.clock(), 2};
  enrollment::Enrollments enrollments_{world_->documents()};
  EnrollmentSinks sinks_{*queues_,     world_->documents(),
                         enrollments_, world_->store().capabilities(),
                         {},           queues_.executor()};
  std::vector<Copy> producers_[4];  // the next one last
  size_t left_ = 0;
  std::set<int64_t> malformed_;
  std::map<int, std::vector<enrollment::Message>> sent_;  // by student
  int64_t purged_ = 0;
  std::string problem_;
};

class Watermarks : public ::testing::TestWithParam<Engine> {};
INSTANTIATE_TEST_SUITE_P(Engines, Watermarks, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(Watermarks, LetTombstonesGoInTheMidstAndNothingComesBack) {
  StormOptions options{.engine = GetParam(), .seed = test_support::TestSeed()};
  // Without batches each write waits for the disk.
  const bool slow = GetParam().name == "rocksdb" && !GetParam().atomic();
  options.messages = static_cast<int>(test_support::NumberOr(
      "STRATA_WATERMARK_MESSAGES", test_support::Sampled(slow ? 150 : 2'000, 100)));
  std::printf("STRATA_SEED=%llu\n", static_cast<unsigned long long>(options.seed));
  PurgedStorm storm(options);
  EXPECT_EQ(storm.Run(), "");
  EXPECT_GT(storm.purged(), std::min(options.messages / 30, 500));
}

// Whether one of some storms finds the fault.
bool IsFound(Watermark watermark) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const StormOptions options{
        .engine = {"memory"}, .watermark = watermark, .messages = 400, .seed = seed};
    const std::string problem = PurgedStorm(options).Run();
    if (problem.empty()) continue;
    std::printf("seed %d: %s\n", static_cast<int>(seed), problem.c_str());
    return true;
  }
  return false;
}

TEST(PlantedWatermark, ThatLeavesOutTheDeadIsFound) {
  EXPECT_TRUE(IsFound(Watermark::kWithoutDead));
}

TEST(PlantedWatermark, ThatLeavesOutTheReservedIsFound) {
  EXPECT_TRUE(IsFound(Watermark::kWithoutReserved));
}

}  // namespace
}  // namespace strata::queue::testing
