// Consumers of subscriptions who keep what they are told, on servers that the test runs and stops.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "tests/feed/subscriptions_world.h"

namespace strata::feed::testing {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// What a consumer was told.
struct Told {
  struct Assignment {
    store::Stamp token = 0;
    lease::Place place;
  };
  std::map<int32_t, Assignment> assigned;  // and not revoked
  std::vector<std::pair<int32_t, RevokeReason>> revoked;
  std::deque<std::pair<int32_t, Delivery>> deliveries;  // that nobody has looked at
  std::map<int32_t, lease::Place> acknowledged;
  std::optional<absl::Status> finished;
  std::vector<std::string> wrong;  // fails the test, unless it takes it out
  int messages = 0;
  int waiting = 0;  // messages after which Ready is to follow
};

class TestSink final : public ConsumerSink {
 public:
  explicit TestSink(size_t most) : most_(most) {}
  ~TestSink() override { EXPECT_THAT(told.wrong, ::testing::IsEmpty()); }

  bool closed() const override { return is_closed; }
  absl::Status Admit() override {
    return is_admitted ? absl::OkStatus() : Error(ErrorReason::kPermissionDenied, "no more");
  }
  void Assigned(int32_t partition, store::Stamp token, const lease::Place& place) override {
    const Alone alone(*this);
    const bool is_new = told.assigned.emplace(partition, Told::Assignment{token, place}).second;
    EXPECT_TRUE(is_new) << partition << " is assigned twice";
  }
  void Revoked(int32_t partition, RevokeReason reason) override {
    const Alone alone(*this);
    EXPECT_EQ(told.assigned.erase(partition), 1u) << partition << " was not assigned";
    told.revoked.emplace_back(partition, reason);
    std::erase_if(told.deliveries, [&](const auto& each) { return each.first == partition; });
  }
  void Acknowledged(int32_t partition, const lease::Place& place) override {
    const Alone alone(*this);
    lease::Place& last = told.acknowledged[partition];
    if (place < last) told.wrong.push_back(std::to_string(partition) + " goes back");
    last = place;
  }
  bool Add(int32_t partition, Delivery&& delivery) override {
    const Alone alone(*this);
    if (message_.size() == most_) return false;
    EXPECT_TRUE(message_.empty() || of_ == partition);
    EXPECT_TRUE(told.assigned.contains(partition));
    of_ = partition;
    message_.push_back(std::move(delivery));
    return true;
  }
  void SendDeliveries(int32_t partition) override {
    const Alone alone(*this);
    EXPECT_EQ(partition, of_);
    EXPECT_FALSE(message_.empty());
    EXPECT_EQ(told.waiting, 0) << "a message without room";
    for (Delivery& delivery : message_)
      told.deliveries.emplace_back(partition, std::move(delivery));
    message_.clear();
    ++told.messages;
    ++told.waiting;
  }
  void Finish(const absl::Status& status) override {
    const Alone alone(*this);
    EXPECT_FALSE(told.finished) << "finished twice";
    told.finished = status;
  }

  // Takes what was told, for who runs on another thread.
  template <typename Do>
  auto With(const Do& work) {
    const std::lock_guard lock(mutex_);
    return work(told);
  }

  std::atomic<bool> is_closed = false;
  std::atomic<bool> is_admitted = true;
  Told told;

 private:
  // One call at a time, and none while the test looks.
  class Alone {
   public:
    explicit Alone(TestSink& sink) : sink_(sink), lock_(sink.mutex_) {
      EXPECT_FALSE(sink_.inside_.exchange(true)) << "two calls at once";
    }
    ~Alone() { sink_.inside_ = false; }

   private:
    TestSink& sink_;
    const std::lock_guard<std::mutex> lock_;
  };

  const size_t most_;
  std::mutex mutex_;
  std::atomic<bool> inside_ = false;
  int32_t of_ = 0;
  std::vector<Delivery> message_;
};

inline lease::Place PlaceOf(const Event& event) {
  return {event.position, static_cast<int32_t>(event.index)};
}
// "things/a@1", or a deleted collection's name.
inline std::string NameOf(const Event& event) {
  if (event.type != EventType::kVersion) return event.collection;
  return event.collection + "/" + event.id + "@" + std::to_string(event.version.header.version);
}

// A consumer on a server.
class TestConsumer {
 public:
  TestConsumer(Server& server, const std::string& subscription, int32_t window = kWindowDefault,
               const std::string& name = "worker", size_t message = 1000, bool contents = false)
      : sink(std::make_shared<TestSink>(message)) {
    ConsumeQuery query;
    query.subscription = subscription;
    query.consumer = name;
    query.window = window;
    query.include_content = contents;
    auto opened = server->Open(std::move(query), sink);
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return;
    consumer = *std::move(opened);
    consumer->Ready();
  }

  Told& told() { return sink->told; }
  // Takes the next delivery.
  std::optional<std::pair<int32_t, Delivery>> Next() {
    if (told().deliveries.empty()) return std::nullopt;
    auto next = std::move(told().deliveries.front());
    told().deliveries.pop_front();
    return next;
  }
  absl::Status Ack(const std::pair<int32_t, Delivery>& taken) {
    return consumer->Ack(taken.first, PlaceOf(taken.second.event));
  }
  absl::Status Nack(const std::pair<int32_t, Delivery>& taken, const std::string& reason = "why",
                    bool park = false) {
    return consumer->Nack(taken.first, PlaceOf(taken.second.event), reason, park);
  }
  // There is room again after each message that came.
  bool TakeIn() {
    if (consumer == nullptr || told().waiting == 0) return false;
    --told().waiting;
    consumer->Ready();
    return true;
  }
  // The names of all that came and was not looked at, taken and acknowledged.
  std::vector<std::string> TakeAll() {
    std::vector<std::string> names;
    while (auto next = Next()) {
      names.push_back(NameOf(next->second.event));
      const absl::Status acknowledged = Ack(*next);
      EXPECT_TRUE(acknowledged.ok()) << acknowledged;
    }
    return names;
  }

  std::shared_ptr<TestSink> sink;
  std::unique_ptr<Consumer> consumer;
};

// Servers and their consumers, run in turn on the test's thread.
class ConsumersWorld : public SubscriptionsWorld {
 public:
  using SubscriptionsWorld::SubscriptionsWorld;

  void Watch(Server& server) { servers_.push_back(&server); }
  void Watch(TestConsumer& consumer) { consumers_.push_back(&consumer); }
  // As if it stood still; or ran again.
  void Stop(Server& server) { std::erase(servers_, &server); }
  void Forget(TestConsumer& consumer) { std::erase(consumers_, &consumer); }

  // Does what there is to do now.
  size_t Run() {
    size_t all = 0;
    size_t done = 1;
    while (done > 0) {
      done = 0;
      for (Server* server : servers_) done += server->executor().RunDue();
      for (TestConsumer* consumer : consumers_) done += consumer->TakeIn() ? 1 : 0;
      all += done;
    }
    return all;
  }
  // Until it is true. Time passes when there is nothing to do and no commit is waited for.
  bool RunUntil(const std::function<bool()>& is_true) {
    const auto give_up = std::chrono::steady_clock::now() + seconds(30);
    auto idle_since = std::chrono::steady_clock::now();
    while (true) {
      const size_t done = Run();
      if (is_true()) return true;
      const auto now = std::chrono::steady_clock::now();
      if (now > give_up) return false;
      if (done > 0) {
        idle_since = now;
      } else if (now - idle_since > patience) {
        world.clock().Advance(idle_step);
        idle_since = now;
      } else {
        std::this_thread::yield();
      }
    }
  }
  // Lets so much time pass, in which everything happens that is due.
  void Pass(microseconds time, microseconds step = milliseconds(50)) {
    const UnixMicros end = world.clock().Now() + time.count();
    while (world.clock().Now() < end) {
      world.clock().Advance(step);
      Settle();
    }
  }
  // Until nothing happens any more, commits included.
  void Settle() {
    auto idle_since = std::chrono::steady_clock::now();
    do {
      if (Run() > 0) {
        idle_since = std::chrono::steady_clock::now();
      } else {
        std::this_thread::yield();
      }
    } while (std::chrono::steady_clock::now() - idle_since < patience);
  }

  // How long in real time a commit takes at most, mostly; the wrong guess only takes longer.
  microseconds patience = milliseconds(2);
  // How far the clock moves when there is nothing to do.
  microseconds idle_step = milliseconds(100);

 private:
  std::vector<Server*> servers_;
  std::vector<TestConsumer*> consumers_;
};

// A subscription "mail" over an engine, and a server.
class ConsumersTest : public ::testing::TestWithParam<std::string> {
 protected:
  ConsumersTest() {
    if (GetParam() != "rocksdb") {
      world.patience = microseconds(0);
      world.idle_step = milliseconds(20);
    }
    world.Watch(*server);
  }

  Subscription Make(CreateSubscription request) {
    const auto made = server->Create(std::move(request));
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : Subscription();
  }
  Subscription Make(int32_t partitions = 1, int32_t max_attempts = 5) {
    CreateSubscription request = Wanted("mail", FromPosition{0}, partitions);
    request.subscription.max_attempts = max_attempts;
    request.subscription.selection.collections = {"things"};
    return Make(std::move(request));
  }
  std::unique_ptr<TestConsumer> Open(Server& on, int32_t window = kWindowDefault,
                                     size_t message = 1000) {
    auto consumer = std::make_unique<TestConsumer>(on, "mail", window, "worker", message);
    world.Watch(*consumer);
    return consumer;
  }
  std::unique_ptr<TestConsumer> Open(int32_t window = kWindowDefault, size_t message = 1000) {
    return Open(*server, window, message);
  }
  void Close(std::unique_ptr<TestConsumer>& consumer) {
    world.Forget(*consumer);
    consumer.reset();
  }
  PartitionState StateOf(int32_t partition = 0) {
    const auto state = (*server)->Get("mail");
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? state->partitions[static_cast<size_t>(partition)] : PartitionState();
  }
  SubscriptionState State() { return *(*server)->Get("mail"); }
  // Until it has so many deliveries that nobody has looked at.
  void AwaitDeliveries(TestConsumer& consumer, size_t deliveries) {
    EXPECT_TRUE(world.RunUntil([&] { return consumer.told().deliveries.size() >= deliveries; }))
        << consumer.told().deliveries.size() << " of " << deliveries;
  }
  void AwaitAssigned(TestConsumer& consumer, size_t partitions) {
    EXPECT_TRUE(world.RunUntil([&] { return consumer.told().assigned.size() == partitions; }))
        << consumer.told().assigned.size() << " of " << partitions;
  }

  ConsumersWorld world{GetParam()};
  std::unique_ptr<Server> server = world.NewServer(1);
};

}  // namespace strata::feed::testing
