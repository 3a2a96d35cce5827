// Queues over any engine, by as many processes as a test wants, with time in the test's hands.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/queue/queues.h"
#include "tests/documents/world.h"
#include "tests/support/executors.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::queue::testing {

using std::chrono::microseconds;
using std::chrono::seconds;
using test_support::HasReason;
using test_support::IsOk;
using versioning::testing::Mode;
using versioning::testing::World;

// The answer to one call, on any thread.
template <typename T>
class Answer {
 public:
  auto Callback() {
    return [this](T value) {
      const std::lock_guard lock(mutex_);
      ASSERT_FALSE(value_) << "answered twice";
      value_.emplace(std::move(value));
    };
  }
  bool ready() const {
    const std::lock_guard lock(mutex_);
    return value_.has_value();
  }
  // REQUIRES: ready().
  T Take() {
    const std::lock_guard lock(mutex_);
    return *std::move(value_);
  }

 private:
  mutable std::mutex mutex_;
  std::optional<T> value_;
};

inline document::Content Payload(int number) {
  return ToContent({{"number", std::to_string(number)}});
}

inline PushedMessage Numbered(int number) {
  PushedMessage message;
  message.payload = Payload(number);
  return message;
}

// One process that knows of queues. Its executor's work is done while the test waits for an answer.
class QueueProcess {
 public:
  QueueProcess(store::Store& store, test_support::ManualClock& clock, uint64_t seed = 1,
               QueuesOptions options = {})
      : entropy_(seed),
        executor_(clock),
        queues_(std::make_unique<Queues>(store, clock, entropy_, executor_, options)) {}

  Queues& operator*() { return *queues_; }
  Queues* operator->() { return queues_.get(); }
  test_support::ManualExecutor& executor() { return executor_; }
  void Stop() { queues_.reset(); }

  template <typename T>
  T Await(Answer<T>& answer) {
    while (!answer.ready()) {
      if (executor_.RunDue() == 0) std::this_thread::yield();
    }
    return answer.Take();
  }

  absl::StatusOr<Queue> Create(const std::string& name, const QueueSettings& settings = {}) {
    Answer<absl::StatusOr<Queue>> answer;
    queues_->Create(name, settings, kNoDeadline, answer.Callback());
    return Await(answer);
  }
  absl::StatusOr<Queue> Update(const std::string& name,
                               std::function<absl::Status(QueueSettings&)> change) {
    Answer<absl::StatusOr<Queue>> answer;
    queues_->Update(name, std::move(change), kNoDeadline, answer.Callback());
    return Await(answer);
  }
  absl::Status Delete(const std::string& name, bool force = false) {
    Answer<absl::Status> answer;
    queues_->Delete(name, force, kNoDeadline, answer.Callback());
    return Await(answer);
  }

  using Pushes = absl::StatusOr<std::vector<absl::StatusOr<PushResult>>>;
  Pushes Push(const std::string& queue, std::vector<PushedMessage> messages) {
    Answer<Pushes> answer;
    PushRequest request;
    request.queue = queue;
    request.messages = std::move(messages);
    queues_->Push(std::move(request), answer.Callback());
    return Await(answer);
  }
  absl::StatusOr<PushResult> Push(const std::string& queue, PushedMessage message) {
    Pushes pushes = Push(queue, std::vector<PushedMessage>{std::move(message)});
    if (!pushes.ok()) return pushes.status();
    return pushes->front();
  }

  using Messages = absl::StatusOr<std::vector<MessageView>>;
  Messages Reserve(ReserveRequest request) {
    Answer<Messages> answer;
    queues_->Reserve(std::move(request), answer.Callback());
    return Await(answer);
  }
  Messages Reserve(const std::string& queue, int32_t count = 1) {
    ReserveRequest request;
    request.queue = queue;
    request.count = count;
    return Reserve(std::move(request));
  }
  Messages Pop(const std::string& queue, int32_t count = 1) {
    ReserveRequest request;
    request.queue = queue;
    request.count = count;
    request.pop = true;
    return Reserve(std::move(request));
  }

  using Results = std::vector<absl::StatusOr<bool>>;
  Results Acknowledge(std::vector<std::string> tokens) {
    Answer<Results> answer;
    queues_->Acknowledge(std::move(tokens), kNoDeadline, answer.Callback());
    return Await(answer);
  }
  absl::StatusOr<bool> Acknowledge(const std::string& token) {
    return Acknowledge(std::vector<std::string>{token}).front();
  }
  absl::StatusOr<bool> Rollback(RollbackRequest request) {
    Answer<Results> answer;
    absl::Status valid = queues_->Rollback(std::move(request), answer.Callback());
    if (!valid.ok()) return valid;
    return Await(answer).front();
  }
  absl::StatusOr<bool> Rollback(const std::string& token,
                                std::optional<microseconds> delay = std::nullopt) {
    RollbackRequest request;
    request.tokens = {token};
    request.delay = delay;
    return Rollback(std::move(request));
  }
  absl::StatusOr<bool> Extend(const std::string& token,
                              std::optional<microseconds> timeout = std::nullopt) {
    Answer<Results> answer;
    EXPECT_THAT(queues_->Extend({token}, timeout, kNoDeadline, answer.Callback()), IsOk());
    return Await(answer).front();
  }
  absl::StatusOr<MessageView> Move(MoveRequest request) {
    Answer<absl::StatusOr<MessageView>> answer;
    queues_->Move(std::move(request), answer.Callback());
    return Await(answer);
  }
  absl::StatusOr<Swept> Replay(ReplayRequest request) {
    Answer<absl::StatusOr<Swept>> answer;
    queues_->Replay(std::move(request), answer.Callback());
    return Await(answer);
  }
  absl::StatusOr<Swept> Purge(PurgeRequest request) {
    Answer<absl::StatusOr<Swept>> answer;
    queues_->Purge(std::move(request), answer.Callback());
    return Await(answer);
  }
  // Runs all that is due now, until nothing of this queue is under way. RocksDB commits in a thread
  // of its own.
  void Settle(const std::string& queue) {
    for (int i = 0; i < 3; ++i) {
      executor_.RunDue();
      // A call that goes through the queue's dispatcher ends behind what was under way.
      EXPECT_THAT(Extend(Token{queue, MessageId(), 1, 0}.ToText()),
                  HasReason(ErrorReason::kMessageNotFound));
    }
    executor_.RunDue();
  }
  absl::StatusOr<Schedule> CreateSchedule(Schedule schedule) {
    Answer<absl::StatusOr<Schedule>> answer;
    queues_->CreateSchedule(std::move(schedule), kNoDeadline, answer.Callback());
    return Await(answer);
  }

 private:
  test_support::SeededEntropy entropy_;
  test_support::ManualExecutor executor_;
  std::unique_ptr<Queues> queues_;
};

// Those of Numbered.
inline std::vector<std::string> NumbersOf(const QueueProcess::Messages& messages) {
  std::vector<std::string> numbers;
  EXPECT_THAT(messages, IsOk());
  if (!messages.ok()) return numbers;
  for (const MessageView& view : *messages) {
    numbers.push_back(ToHeaders(view.message.payload)->at("number"));
  }
  return numbers;
}

// What a stream is given.
class Collected final : public ReceiverSink {
 public:
  bool closed() const override { return false; }
  void Deliver(std::vector<MessageView> messages) override {
    for (MessageView& message : messages) all.push_back(std::move(message));
  }
  void Answer(std::vector<std::string> /*tokens*/,
              std::vector<absl::StatusOr<bool>> /*replayed*/) override {}
  void End(absl::Status /*status*/) override {}

  std::vector<MessageView> all;
};

// Where a test runs.
struct Engine {
  std::string_view name;
  Mode mode = Mode::kAtomic;

  bool atomic() const { return mode == Mode::kAtomic; }
};
inline void PrintTo(const Engine& engine, std::ostream* out) {
  *out << engine.name << " " << versioning::testing::ModeName(engine.mode);
}
inline constexpr Engine kEngines[] = {{"memory"},
                                      {"rocksdb"},
                                      {"live"},
                                      {"memory", Mode::kSingle},
                                      {"rocksdb", Mode::kSingle},
                                      {"restarting", Mode::kSingle}};
inline constexpr Engine kAtomicEngines[] = {{"memory"}, {"rocksdb"}, {"live"}};

inline std::string EngineName(const ::testing::TestParamInfo<Engine>& info) {
  return std::string(info.param.name) + "_" +
         std::string(versioning::testing::ModeName(info.param.mode));
}

class QueuesTest : public ::testing::TestWithParam<Engine> {
 protected:
  explicit QueuesTest(Engine engine) : world({.engine = engine.name, .mode = engine.mode}) {}
  QueuesTest() : QueuesTest(GetParam()) {}

  World world;
  QueueProcess queues{world->store(), world.clock()};
};

}  // namespace strata::queue::testing
