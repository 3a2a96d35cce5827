// A storm of enrollment messages through a queue that the server consumes itself, killed in the
// midst, while tombstones are purged as far as the queue allows: every student is left as if each
// message had been applied once, in order, and nobody is enrolled again by what was forgotten.
//
// STRATA_QUEUE_ENROLLMENTS: so many messages (10,000).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/fault/queue_client.h"
#include "tests/long/storm_messages.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::fault {
namespace {

using testing::StartsWith;
using v1::EnrollmentService;

constexpr size_t kProducers = 4;
constexpr size_t kAtOnce = 100;
constexpr std::chrono::minutes kPatience{10};
constexpr char kQueue[] = "enrollments";
constexpr char kStudents[] = "students";

v1::PushedMessage MessageOf(const StormMessage& storm) {
  v1::PushedMessage message;
  auto& fields = *message.mutable_payload()->mutable_json()->mutable_fields();
  fields["operation"].set_string_value(storm.enroll ? "insert" : "delete");
  fields["student_id"].set_string_value(StudentId(storm.student));
  fields["class"].set_string_value(ClassName(storm.class_number));
  fields["sequence_number"].set_number_value(static_cast<double>(storm.sequence_number));
  message.set_sequence_number(storm.sequence_number);
  return message;
}

// What no consumer can apply. It has no number for the queue, and so holds up no purge.
constexpr size_t kMalformedKinds = 5;
v1::PushedMessage MalformedMessage(size_t index) {
  v1::PushedMessage message = MessageOf({1, 1, 1, true});
  message.clear_sequence_number();
  message.set_request_id("malformed-" + std::to_string(index));
  auto& fields = *message.mutable_payload()->mutable_json()->mutable_fields();
  fields["reason"].set_string_value(message.request_id());
  switch (index % kMalformedKinds) {
    case 0:
      fields["operation"].set_string_value("drop");
      break;
    case 1:
      fields.erase("sequence_number");
      break;
    case 2:
      fields["class"].set_string_value("");
      break;
    case 3:
      fields["sequence_number"].set_number_value(0);
      break;
    default:
      fields["year"].set_number_value(2026);
  }
  return message;
}

std::string TextAt(const v1::QueueMessage& message, const std::string& member) {
  const auto& fields = message.payload().json().fields();
  return fields.contains(member) ? fields.at(member).string_value() : "";
}

class QueueEnrollment : public testing::Test {
 protected:
  void Create() {
    v1::QueueSettings settings;
    settings.mutable_enrollments()->set_collection(kStudents);
    settings.mutable_reservation_timeout()->set_seconds(1);
    client_.Create(kQueue, settings);
  }
  void SetPaused(bool paused) {
    v1::UpdateQueueRequest request;
    request.set_name(kQueue);
    request.mutable_settings()->set_paused(paused);
    request.mutable_update_mask()->add_paths("paused");
    v1::UpdateQueueResponse response;
    EXPECT_TRUE(
        QueueClient::Call(client_.queues(), &v1::QueueService::Stub::UpdateQueue, request, response)
            .ok());
  }

  void Push(const std::vector<v1::PushedMessage>& messages) {
    for (size_t begin = 0; begin < messages.size() && !HasFailure(); begin += kAtOnce) {
      v1::PushRequest request;
      request.set_queue(kQueue);
      for (size_t i = begin; i < std::min(messages.size(), begin + kAtOnce); ++i) {
        *request.add_messages() = messages[i];
      }
      client_.Push(request);
      pushed_ += request.messages_size();
    }
  }
  static void Pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }
  // By several at once, with a kill in the midst, and `meanwhile` until they are through.
  void PushByAll(const std::vector<v1::PushedMessage>& messages,
                 const std::function<void()>& meanwhile) {
    pushed_ = 0;
    std::atomic<size_t> left = kProducers;
    std::vector<std::thread> producers;
    for (size_t i = 0; i < kProducers; ++i) {
      producers.emplace_back([&, i] {
        const auto at = [&](size_t part) {
          return messages.begin() +
                 static_cast<std::ptrdiff_t>(messages.size() * part / kProducers);
        };
        Push({at(i), at(i + 1)});
        --left;
      });
    }
    while (left > 0 && pushed_ < static_cast<int64_t>(messages.size() / 2)) meanwhile();
    server_.Kill();
    do meanwhile();
    while (left > 0);
    for (std::thread& producer : producers) producer.join();
  }

  void Drain(const std::function<void()>& meanwhile = Pause) {
    v1::QueueStatistics statistics;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    do {
      meanwhile();
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << statistics.ShortDebugString();
      statistics = client_.Statistics(kQueue);
    } while (statistics.ready() + statistics.scheduled() + statistics.reserved() > 0);
  }

  // All students' tombstones; answers the number up to which they went.
  int64_t Purge(int64_t through, bool ask_queue = true) {
    int64_t used = through;
    v1::PurgeTombstonesRequest request;
    request.set_through_sequence_number(through);
    if (ask_queue) request.add_queues(kQueue);
    do {
      v1::PurgeTombstonesResponse response;
      const grpc::Status status = QueueClient::Call(
          client_.enrollments(), &EnrollmentService::Stub::PurgeTombstones, request, response);
      // Before the first message was applied there is no collection.
      if (!status.ok()) {
        EXPECT_EQ(ReasonOf(status), "COLLECTION_NOT_FOUND");
        return 0;
      }
      EXPECT_EQ(response.refused_student_ids_size(), 0);
      used = std::min(used, response.through_sequence_number());
      purged_ += response.purged_tombstones();
      request.set_page_token(response.next_page_token());
    } while (!request.page_token().empty());
    return used;
  }

  v1::GetEnrollmentsResponse Enrollments(const std::string& student) {
    v1::GetEnrollmentsRequest request;
    request.set_student_id(student);
    request.set_include_tombstones(true);
    v1::GetEnrollmentsResponse response;
    const grpc::Status status = QueueClient::Call(
        client_.enrollments(), &EnrollmentService::Stub::GetEnrollments, request, response);
    EXPECT_TRUE(status.ok()) << student << ": " << status.error_message();
    return response;
  }

  // Tombstones up to `floor` may be gone; if `purged`, they are.
  void ExpectOracle(const StormOracle& oracle, int64_t floor, bool purged) {
    for (size_t student = 0; student < oracle.size(); ++student) {
      std::map<std::string, v1::Enrollment> found;
      const v1::GetEnrollmentsResponse response =
          Enrollments(StudentId(static_cast<int64_t>(student)));
      for (const v1::Enrollment& one : response.enrollments()) found[one.class_name()] = one;
      size_t expected = 0;
      for (const auto& [name, last] : oracle[student]) {
        const auto actual = found.find(name);
        const bool may_be_gone = !last.enroll && last.sequence_number <= floor;
        if (may_be_gone && (purged || actual == found.end())) continue;
        ++expected;
        ASSERT_NE(actual, found.end()) << student << " " << name;
        ASSERT_EQ(actual->second.enrolled(), last.enroll) << student << " " << name;
        ASSERT_EQ(actual->second.sequence_number(), last.sequence_number) << student;
      }
      ASSERT_EQ(found.size(), expected) << student << ": " << response.ShortDebugString();
    }
  }

  RevivedServer server_;
  QueueClient client_{server_.Connect()};
  std::atomic<int64_t> pushed_ = 0;
  int64_t purged_ = 0;
};

TEST_F(QueueEnrollment, AStormLeavesWhatItsHighestNumbersSay) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  const int64_t count = Wanted("STRATA_QUEUE_ENROLLMENTS", 10'000);
  const int64_t students = std::max<int64_t>(1, count / 100);
  const std::vector<StormMessage> storm = MakeStormMessages(count, students, random);
  const StormOracle oracle = MakeStormOracle(students, storm);
  int64_t last = 0;
  for (const StormMessage& message : storm) last = std::max(last, message.sequence_number);
  // What comes after the first half has been pushed does not stand below it.
  const int64_t half = last / 2;
  std::vector<v1::PushedMessage> first;
  std::vector<v1::PushedMessage> second;
  for (const StormMessage& message : storm) {
    (message.sequence_number <= half ? first : second).push_back(MessageOf(message));
  }
  const size_t malformed = storm.size() / 100;
  for (size_t i = 0; i < malformed; ++i) {
    std::vector<v1::PushedMessage>& part = i % 2 == 0 ? first : second;
    part.insert(part.begin() + static_cast<std::ptrdiff_t>(random() % part.size()),
                MalformedMessage(i));
  }

  Create();
  PushByAll(first, Pause);
  int64_t floor = 0;
  int purges = 0;
  const auto purge = [&] {
    Pause();
    floor = std::max(floor, Purge(half));
    ++purges;
  };
  // The last tenth comes when the first half is through, and forgotten.
  const auto rest = second.begin() + static_cast<std::ptrdiff_t>(second.size() * 9 / 10);
  PushByAll({second.begin(), rest}, purge);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (floor < half && std::chrono::steady_clock::now() < deadline) purge();
  EXPECT_EQ(floor, half);
  EXPECT_GT(purged_, 0);
  PushByAll({rest, second.end()}, purge);
  Drain(purge);
  ASSERT_NO_FATAL_FAILURE(ExpectOracle(oracle, floor, /*purged=*/false));
  std::map<std::string, int> refused;
  for (const v1::QueueMessage& message : client_.List(kQueue, v1::MESSAGE_STATE_DEAD)) {
    EXPECT_THAT(message.reason(), StartsWith("INVALID_")) << message.ShortDebugString();
    ++refused[TextAt(message, "reason")];
  }
  EXPECT_EQ(refused.size(), malformed);
  for (const auto& [which, times] : refused) EXPECT_EQ(times, 1) << which;

  // All is forgotten; what comes late all the same enrolls nobody again, and is not lost either.
  EXPECT_EQ(Purge(last), last);
  ASSERT_NO_FATAL_FAILURE(ExpectOracle(oracle, last, /*purged=*/true));
  size_t late = 0;
  std::vector<v1::PushedMessage> repeated;
  for (size_t i = 0; i < storm.size(); i += 10) {
    repeated.push_back(MessageOf(storm[i]));
    const auto& classes = oracle[static_cast<size_t>(storm[i].student)];
    if (!classes.at(ClassName(storm[i].class_number)).enroll) ++late;
  }
  Push(repeated);
  Drain();
  ASSERT_NO_FATAL_FAILURE(ExpectOracle(oracle, last, /*purged=*/true));
  size_t below = 0;
  for (const v1::QueueMessage& message : client_.List(kQueue, v1::MESSAGE_STATE_DEAD)) {
    if (message.reason().starts_with("BELOW_FLOOR")) ++below;
  }
  EXPECT_EQ(below, late);
  EXPECT_GT(late, 0U);
  std::printf("%zu messages, %zu malformed, %d purges beside them, %lld tombstones, seed %llu\n",
              storm.size(), malformed, purges, static_cast<long long>(purged_),
              static_cast<unsigned long long>(seed));
  EXPECT_EQ(server_.Stop(), 0);
}

// The watermark counts what waits and what is dead; whoever purges without asking the queue has
// messages die that would have counted.
TEST_F(QueueEnrollment, APurgeSparesWhatTheQueueStillHolds) {
  Create();
  Push({MessageOf({7, 0, 3, false}), MessageOf({7, 1, 7, false})});
  Drain();
  SetPaused(true);
  Push({MessageOf({7, 2, 5, true})});
  EXPECT_EQ(client_.Statistics(kQueue).low_watermark(), 5);
  EXPECT_EQ(Purge(9), 4);
  EXPECT_EQ(Enrollments("7").enrollments_size(), 1);
  EXPECT_EQ(Purge(9, /*ask_queue=*/false), 9);
  EXPECT_EQ(Enrollments("7").enrollments_size(), 0);
  SetPaused(false);
  Drain();
  const std::vector<v1::QueueMessage> dead = client_.List(kQueue, v1::MESSAGE_STATE_DEAD);
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_THAT(dead[0].reason(), StartsWith("BELOW_FLOOR"));
  EXPECT_EQ(Enrollments("7").enrollments_size(), 0);
  EXPECT_EQ(Purge(9), 4);
}

}  // namespace
}  // namespace strata::fault
