// Consumers of two servers with threads of their own, who come, go, fail and share, while documents
// are written: nothing is lost, nothing comes out of order, and everything ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/feed/consumers_world.h"

namespace strata::feed::testing {
namespace {

using test_support::IsOk;

// Several threads; work goes to one after the other.
class Threads final : public Executor {
 public:
  using Executor::Schedule;
  void Schedule(microseconds delay, std::function<void()> work) override {
    threads_[next_++ % threads_.size()].Schedule(delay, std::move(work));
  }
  void Stop() {
    for (test_support::ThreadExecutor& thread : threads_) thread.Stop();
  }

 private:
  std::atomic<size_t> next_ = 0;
  std::array<test_support::ThreadExecutor, 3> threads_;
};

// A server in real time.
struct ThreadedServer {
  ThreadedServer(SubscriptionsWorld& world, uint64_t seed)
      : store(world.world->store(), world.fleet),
        entropy(seed),
        feed(store, world.world->documents(), Clock::System(), executor),
        leases(store, Clock::System(), executor),
        subscriptions(store, feed, leases, Clock::System(), entropy, executor) {}
  ~ThreadedServer() { executor.Stop(); }

  test_support::SharedStore store;
  test_support::SeededEntropy entropy;
  Threads executor;
  Feed feed;
  lease::Leases leases;
  Subscriptions subscriptions;
};

class ConsumerThreadsTest : public ::testing::TestWithParam<std::string> {
 protected:
  // What one consumer does until all is taken, again and again with a new stream.
  void Consume(ThreadedServer& server, uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!all_taken) {
      auto sink = std::make_shared<TestSink>(1 + random() % 20);
      auto opened = server.subscriptions.Open({.subscription = "mail",
                                               .consumer = "worker",
                                               .window = 1 + static_cast<int32_t>(random() % 30),
                                               .include_content = random() % 2 == 0},
                                              sink);
      ASSERT_THAT(opened, IsOk());
      (*opened)->Ready();
      const size_t events = 20 + random() % 200;
      size_t handled = 0;
      while (!all_taken && handled < events) {
        if (!HandleNext(**opened, *sink, random)) {
          std::this_thread::sleep_for(milliseconds(1));
          if (random() % 500 == 0) break;
        } else {
          ++handled;
        }
      }
      if (random() % 2 == 0) {
        (*opened)->Leave();
        const auto finished = [&] { return sink->With([](Told& told) { return told.finished; }); };
        while (!finished()) std::this_thread::sleep_for(milliseconds(1));
      }
      sink->is_closed = true;
    }
  }

  bool HandleNext(Consumer& consumer, TestSink& sink, std::mt19937_64& random) {
    std::optional<std::pair<int32_t, Delivery>> next;
    bool ready = false;
    sink.With([&](Told& told) {
      ready = std::exchange(told.waiting, 0) > 0;
      if (told.deliveries.empty()) return;
      next = std::move(told.deliveries.front());
      told.deliveries.pop_front();
    });
    if (ready) consumer.Ready();
    if (!next) return false;
    const int32_t partition = next->first;
    const Delivery& delivery = next->second;
    const lease::Place place = PlaceOf(delivery.event);
    if (random() % 50 == 0) {
      (void)consumer.Nack(partition, place, "now and then", false);
      sink.With([&](Told& told) {
        std::erase_if(told.deliveries, [&](const auto& each) { return each.first == partition; });
      });
      return true;
    }
    const std::lock_guard lock(mutex);
    const bool mine = sink.With([&](Told& told) {
      const auto assigned = told.assigned.find(partition);
      return assigned != told.assigned.end() && assigned->second.token == delivery.lease.token;
    });
    // If it is revoked in between it comes again, which does no harm.
    if (!mine || !consumer.Ack(partition, place).ok()) return true;
    int64_t& last = taken[delivery.event.id];
    const int64_t version = delivery.event.version.header.version;
    EXPECT_LE(version, last + 1) << delivery.event.id;
    last = std::max(last, version);
    all_taken = written_all && taken == written;
    return true;
  }

  std::mutex mutex;
  std::map<std::string, int64_t> taken;
  std::map<std::string, int64_t> written;
  bool written_all = false;
  std::atomic<bool> all_taken = false;
};
INSTANTIATE_TEST_SUITE_P(Engines, ConsumerThreadsTest,
                         ::testing::Values("memory", "rocksdb", "live"),
                         [](const auto& engine) { return engine.param; });

TEST_P(ConsumerThreadsTest, CrowdsLoseNothing) {
  SubscriptionsWorld world(GetParam());
  std::vector<std::unique_ptr<ThreadedServer>> servers;
  for (uint64_t i = 0; i < 2; ++i) {
    servers.push_back(std::make_unique<ThreadedServer>(world, i + 1));
  }
  CreateSubscription request = Wanted("mail", FromPosition{0}, 4);
  request.subscription.selection.collections = {"things"};
  request.subscription.max_attempts = kMaxAttemptsMax;
  request.subscription.backoff_first = request.subscription.backoff_max = milliseconds(1);
  request.subscription.lease_ttl = seconds(1);
  std::promise<void> made;
  servers[0]->subscriptions.Create(request, [&](const auto& subscription) {
    EXPECT_THAT(subscription, IsOk());
    made.set_value();
  });
  made.get_future().get();
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { Consume(*servers[i % 2], i); });
  }
  std::map<std::string, int64_t> versions;
  for (int i = 0; i < 800; ++i) {
    const std::string id = std::to_string(i * 7 % 23);
    world.Put(id, i);
    ++versions[id];
  }
  {
    const std::lock_guard lock(mutex);
    written = versions;
    written_all = true;
    all_taken = taken == written;
  }
  const auto give_up = std::chrono::steady_clock::now() + seconds(120);
  while (!all_taken && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(all_taken);
  all_taken = true;
  for (std::thread& thread : threads) thread.join();
  for (const auto& server : servers) server->subscriptions.StopConsumers();
}

}  // namespace
}  // namespace strata::feed::testing
