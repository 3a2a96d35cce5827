// Many threads, two processes over one store, consumers that die, dawdle and roll back: each
// message is acknowledged exactly once.
#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <random>
#include <thread>

#include "schemas/queue/queues.h"
#include "service/app/executor.h"
#include "tests/queue/queues_world.h"
#include "tests/support/hooked_store.h"
#include "tests/support/volume.h"

namespace strata::queue::testing {
namespace {

// A process whose executor has a thread.
class RunningQueues {
 public:
  RunningQueues(store::Store& store, const Clock& clock, uint64_t seed)
      : entropy_(seed), queues_(std::in_place, store, clock, entropy_, executor_) {}
  ~RunningQueues() {
    queues_.reset();
    executor_.Stop();
  }
  Queues& operator*() { return *queues_; }

  QueueProcess::Messages Reserve(const std::string& queue, int32_t count) {
    std::promise<QueueProcess::Messages> promise;
    ReserveRequest request;
    request.queue = queue;
    request.count = count;
    queues_->Reserve(
        request, [&](QueueProcess::Messages messages) { promise.set_value(std::move(messages)); });
    return promise.get_future().get();
  }
  QueueProcess::Pushes Push(const std::string& queue, std::vector<PushedMessage> messages) {
    std::promise<QueueProcess::Pushes> promise;
    queues_->Push({queue, std::move(messages)},
                  [&](QueueProcess::Pushes pushed) { promise.set_value(std::move(pushed)); });
    return promise.get_future().get();
  }
  QueueProcess::Results Acknowledge(std::vector<std::string> tokens) {
    std::promise<QueueProcess::Results> promise;
    queues_->Acknowledge(std::move(tokens), kNoDeadline,
                         [&](QueueProcess::Results results) { promise.set_value(results); });
    return promise.get_future().get();
  }
  QueueProcess::Results Rollback(RollbackRequest request) {
    std::promise<QueueProcess::Results> promise;
    EXPECT_THAT(queues_->Rollback(
                    std::move(request),
                    [&](QueueProcess::Results results) { promise.set_value(std::move(results)); }),
                IsOk());
    return promise.get_future().get();
  }

 private:
  test_support::SeededEntropy entropy_;
  test_support::ThreadExecutor executor_;
  std::optional<Queues> queues_;
};

class Storm : public ::testing::TestWithParam<Engine> {};
INSTANTIATE_TEST_SUITE_P(Engines, Storm, ::testing::ValuesIn(kEngines), EngineName);

TEST_P(Storm, EachMessageIsAcknowledgedOnce) {
  const bool decorated = GetParam().name != "memory" && GetParam().name != "rocksdb";
  if (test_support::LeftOut(decorated)) GTEST_SKIP() << "sampled";
  constexpr int kMessages = test_support::Sampled(600, 80);
  constexpr int kConsumers = 6;
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  World world({.engine = GetParam().name, .mode = GetParam().mode});
  RunningQueues first(world->store(), world.clock(), seed);
  RunningQueues second(world->store(), world.clock(), seed + 1);
  {
    std::promise<absl::StatusOr<Queue>> made;
    (*first).Create("mails", {}, kNoDeadline,
                    [&](absl::StatusOr<Queue> queue) { made.set_value(queue); });
    ASSERT_THAT(made.get_future().get(), IsOk());
  }
  // Of each consumer; the patience is in turns, not in seconds.
  constexpr int kTurnsMax = 200'000;
  std::vector<std::atomic<int>> acknowledged(kMessages);
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (int p = 0; p < 2; ++p) {
    threads.emplace_back([&, p] {
      for (int i = p; i < kMessages; i += 2) {
        const auto pushed = (p == 0 ? first : second).Push("mails", {Numbered(i)});
        EXPECT_THAT(pushed, IsOk());
      }
    });
  }
  for (int c = 0; c < kConsumers; ++c) {
    threads.emplace_back([&, c] {
      std::mt19937_64 random(seed + 10 + static_cast<uint64_t>(c));
      std::vector<std::pair<int, std::string>> dawdled;
      const auto acknowledge = [&](RunningQueues& queues, int number, const std::string& token) {
        const auto results = queues.Acknowledge({token});
        if (results[0].ok()) {
          EXPECT_FALSE(*results[0]);
          ++acknowledged[static_cast<size_t>(number)];
          ++done;
          return;
        }
        const ErrorReason reason = ReasonOf(results[0].status()).value_or(ErrorReason::kInternal);
        EXPECT_TRUE(reason == ErrorReason::kReservationLost ||
                    reason == ErrorReason::kMessageNotFound)
            << results[0].status();
      };
      for (int turn = 0; turn < kTurnsMax && done < kMessages; ++turn) {
        world.clock().Advance(microseconds(2'000));  // so that reservations run out
        RunningQueues& queues = random() % 2 == 0 ? first : second;
        const auto messages = queues.Reserve("mails", 1 + static_cast<int>(random() % 5));
        ASSERT_THAT(messages, IsOk());
        if (messages->empty()) std::this_thread::yield();
        for (const MessageView& view : *messages) {
          const int number = std::stoi(ToHeaders(view.message.payload)->at("number"));
          switch (random() % 20) {
            case 0:
              break;  // it dies
            case 1:
              dawdled.emplace_back(number, view.token);
              break;
            case 2: {
              RollbackRequest rollback;
              rollback.tokens = {view.token};
              rollback.delay = microseconds(0);
              (void)queues.Rollback(rollback);
              break;
            }
            default:
              acknowledge(queues, number, view.token);
          }
        }
        if (dawdled.size() > 3) {
          acknowledge(queues, dawdled.front().first, dawdled.front().second);
          dawdled.erase(dawdled.begin());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done, kMessages);
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_EQ(acknowledged[static_cast<size_t>(i)], 1) << "message " << i;
  }
}

// Two threads in one turn would share what it knows without a lock, and double each of its commits.
TEST(Background, WhatIsAskedForWhileATurnRunsComesAfterIt) {
  World world({.engine = "memory"});
  test_support::HookedStore store(world->store());
  test_support::SeededEntropy entropy(1);
  app::ThreadPool pool(2);
  Queues queues(store, world.clock(), entropy, pool);
  const auto create = [&] {
    std::promise<absl::Status> made;
    queues.Create("mails", {}, kNoDeadline,
                  [&](const auto& queue) { made.set_value(queue.status()); });
    return made.get_future().get();
  };
  const auto remove = [&](const std::string& name) {
    std::promise<absl::Status> removed;
    queues.Delete(name, true, kNoDeadline, [&](absl::Status status) { removed.set_value(status); });
    return removed.get_future().get();
  };
  ASSERT_THAT(create(), IsOk());
  std::promise<absl::Status> pushed;
  queues.Push({"mails", {Numbered(1)}}, [&](auto all) { pushed.set_value(all.status()); });
  ASSERT_THAT(pushed.get_future().get(), IsOk());
  std::promise<void> begun;
  std::promise<void> go_on;
  const std::shared_future<void> may_go_on = go_on.get_future().share();
  std::atomic<int> looks = 0;
  store.set_hooks({.before_scan = [&, caller = std::this_thread::get_id()](auto&&...) {
    if (std::this_thread::get_id() == caller) return;
    if (looks++ == 0) begun.set_value();
    may_go_on.wait();
  }});
  queues.StartBackground();
  begun.get_future().get();
  for (int i = 0; i < 5; ++i) EXPECT_THAT(remove("none"), HasReason(ErrorReason::kQueueNotFound));
  ASSERT_THAT(remove("mails"), IsOk());
  // The other thread has come to this, and so past all that was scheduled before.
  std::promise<void> idle;
  pool.Schedule([&] { idle.set_value(); });
  idle.get_future().get();
  EXPECT_EQ(looks, 1);
  // Of the deletion the running turn knew nothing; the next one follows at once, not after ten
  // seconds.
  go_on.set_value();
  const auto asked = std::chrono::steady_clock::now();
  const auto swept = [&] {
    return !world->store().Scan(store::Keyspace::kQueueIndex, {})->Valid();
  };
  while (!swept() && std::chrono::steady_clock::now() < asked + std::chrono::seconds(9)) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(swept());
  pool.Stop();
}

}  // namespace
}  // namespace strata::queue::testing
