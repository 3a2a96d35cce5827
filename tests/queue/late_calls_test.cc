// What becomes of calls whose deadline passes while their commit waits in the engine.
#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/queue/queues_world.h"
#include "tests/support/hooked_store.h"

namespace strata::queue::testing {
namespace {

constexpr auto kSoon = std::chrono::seconds(1);

// A queue whose commits wait in the engine when the test says so.
struct Stalled {
  explicit Stalled(const Engine& engine) : world({.engine = engine.name, .mode = engine.mode}) {
    EXPECT_THAT(queues.Create("mails"), IsOk());
  }

  // The next commit waits while `meanwhile` is called, and the one of that number for longer than
  // kSoon.
  void Stall(int long_commit, std::function<void()> meanwhile) {
    commits = 0;
    test_support::StoreHooks hooks;
    hooks.before_commit = [this, long_commit,
                           meanwhile = std::move(meanwhile)](const store::WriteBatch&) {
      const int number = ++commits;
      if (number == 1) meanwhile();
      if (number == long_commit) world.clock().Advance(2 * kSoon);
    };
    // As an engine does.
    hooks.instead_of_commit =
        [this](const store::WriteBatch& batch) -> std::optional<store::CommitResult> {
      if (batch.deadline() > world.clock().SteadyNow()) return std::nullopt;
      store::CommitResult late;
      late.status = Error(ErrorReason::kDeadlineExceeded, "the deadline passed");
      return late;
    };
    hooked.set_hooks(hooks);
  }
  Deadline Soon() { return world.clock().SteadyNow() + kSoon; }
  void Push(int number, Deadline deadline, Answer<QueueProcess::Pushes>& answer) {
    PushRequest request;
    request.queue = "mails";
    request.messages = {Numbered(number)};
    request.deadline = deadline;
    queues->Push(std::move(request), answer.Callback());
  }

  World world;
  test_support::HookedStore hooked{world->store()};
  QueueProcess queues{hooked, world.clock()};
  std::atomic<int> commits = 0;
};

class LateCalls : public ::testing::TestWithParam<Engine> {};
INSTANTIATE_TEST_SUITE_P(Engines, LateCalls, ::testing::ValuesIn(kEngines), EngineName);

// Calls share a commit with one another, and a commit of single records has two steps: at whichever
// of them time runs out, the calls that are late do nothing, and the others are done.
TEST_P(LateCalls, DoNothingAndTakeNobodyWithThem) {
  int late_pushes = 0;
  int late_reserves = 0;
  for (int long_commit = 2; long_commit < 9; ++long_commit) {
    SCOPED_TRACE(long_commit);
    Stalled stalled(GetParam());
    QueueProcess& queues = stalled.queues;
    ASSERT_THAT(queues.Push("mails", Numbered(1)), IsOk());
    Answer<QueueProcess::Pushes> first;
    Answer<QueueProcess::Pushes> hurried;
    Answer<QueueProcess::Pushes> patient;
    Answer<QueueProcess::Messages> reserved;
    stalled.Stall(long_commit, [&] {
      stalled.Push(3, stalled.Soon(), hurried);
      stalled.Push(4, kNoDeadline, patient);
      ReserveRequest reserve;
      reserve.queue = "mails";
      reserve.deadline = stalled.Soon();
      queues->Reserve(std::move(reserve), reserved.Callback());
    });
    stalled.Push(2, kNoDeadline, first);
    EXPECT_THAT(queues.Await(first), IsOk());
    EXPECT_THAT(queues.Await(patient), IsOk());
    const QueueProcess::Pushes pushes = queues.Await(hurried);
    // With single records each message has its own answer.
    const absl::Status pushed = pushes.ok() ? pushes->front().status() : pushes.status();
    const QueueProcess::Messages handed = queues.Await(reserved);
    stalled.hooked.set_hooks({});
    std::vector<std::string> expected = {"1", "2", "3", "4"};
    if (!pushed.ok()) {
      EXPECT_THAT(pushed, HasReason(ErrorReason::kDeadlineExceeded));
      std::erase(expected, "3");
      ++late_pushes;
    }
    if (handed.ok()) {
      for (const std::string& number : NumbersOf(handed)) std::erase(expected, number);
    } else {
      EXPECT_THAT(handed, HasReason(ErrorReason::kDeadlineExceeded));
      ++late_reserves;
    }
    const auto there = queues.Reserve("mails", 10);
    ASSERT_THAT(there, IsOk());
    EXPECT_THAT(NumbersOf(there), ::testing::UnorderedElementsAreArray(expected));
    for (const MessageView& message : *there) EXPECT_EQ(message.message.delivery, 1);
  }
  EXPECT_GE(late_pushes, 1);
  EXPECT_GE(late_reserves, 1);
}

TEST_P(LateCalls, OfAdministrationDoNothing) {
  Stalled stalled(GetParam());
  QueueProcess& queues = stalled.queues;
  const auto expect_late = [&](auto call) {
    stalled.Stall(1, [] {});
    Answer<absl::Status> answer;
    call(stalled.Soon(), [done = answer.Callback()](const auto& ended) {
      if constexpr (std::is_same_v<decltype(ended), const absl::Status&>) {
        done(ended);
      } else {
        done(ended.status());
      }
    });
    EXPECT_THAT(queues.Await(answer), HasReason(ErrorReason::kDeadlineExceeded));
    stalled.hooked.set_hooks({});
  };
  expect_late([&](Deadline deadline, auto done) { queues->Create("more", {}, deadline, done); });
  EXPECT_THAT(queues->Get("more"), HasReason(ErrorReason::kQueueNotFound));
  expect_late([&](Deadline deadline, auto done) {
    queues->Update(
        "mails",
        [](QueueSettings& settings) {
          settings.paused = true;
          return absl::OkStatus();
        },
        deadline, done);
  });
  Schedule schedule;
  schedule.queue = "mails";
  schedule.name = "often";
  schedule.every = std::chrono::minutes(1);
  schedule.message = Numbered(1);
  expect_late(
      [&](Deadline deadline, auto done) { queues->CreateSchedule(schedule, deadline, done); });
  expect_late(
      [&](Deadline deadline, auto done) { queues->Delete("mails", false, deadline, done); });
  expect_late([&](Deadline deadline, auto done) { queues->Delete("mails", true, deadline, done); });
  const absl::StatusOr<Queue> stands = queues->Get("mails");
  ASSERT_THAT(stands, IsOk());
  EXPECT_FALSE(stands->settings.paused);
  ASSERT_THAT(queues.CreateSchedule(schedule), IsOk());
  expect_late([&](Deadline deadline, auto done) {
    queues->DeleteSchedule("mails", "often", deadline, done);
  });
  const auto schedules = queues->ListSchedules("mails", "", 10);
  ASSERT_THAT(schedules, IsOk());
  EXPECT_THAT(*schedules, ::testing::SizeIs(1));
}

}  // namespace
}  // namespace strata::queue::testing
