// Subscriptions over an engine, by as many servers as a test wants, with time in the test's hands.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/feed/subscriptions.h"
#include "tests/documents/world.h"
#include "tests/support/executors.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/shared_store.h"
#include "tests/support/status_matchers.h"

namespace strata::feed::testing {

// One server: its own feed, leases and subscriptions over a store that it shares.
class Server {
 public:
  // Its wall is `ahead` of the clock's.
  Server(store::Store& store, test_support::Fleet& fleet, versioning::Documents& documents,
         test_support::ManualClock& clock, uint64_t seed, const SubscriptionsOptions& options,
         std::chrono::microseconds ahead)
      : store_(store, fleet),
        clock_(clock, ahead),
        executor_(clock),
        entropy_(seed),
        feed_(std::make_unique<Feed>(store_, documents, clock_, executor_)),
        leases_(std::make_unique<lease::Leases>(store_, clock_, executor_)),
        subscriptions_(std::make_unique<Subscriptions>(store_, *feed_, *leases_, clock_, entropy_,
                                                       executor_, options)) {}
  ~Server() {
    subscriptions_.reset();
    leases_.reset();
  }

  Subscriptions* operator->() { return subscriptions_.get(); }
  Subscriptions& subscriptions() { return *subscriptions_; }
  lease::Leases& leases() { return *leases_; }
  Feed& feed() { return *feed_; }
  test_support::ManualExecutor& executor() { return executor_; }

  template <typename Result>
  Result Await(std::future<Result> future) {
    while (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      if (executor_.RunDue() == 0) std::this_thread::yield();
    }
    return future.get();
  }

  absl::StatusOr<Subscription> Create(CreateSubscription request) {
    auto promise = std::make_shared<std::promise<absl::StatusOr<Subscription>>>();
    auto future = promise->get_future();
    subscriptions_->Create(std::move(request),
                           [promise](const auto& made) { promise->set_value(made); });
    return Await(std::move(future));
  }
  absl::Status Delete(const std::string& name) {
    auto promise = std::make_shared<std::promise<absl::Status>>();
    auto future = promise->get_future();
    subscriptions_->Delete(name, std::chrono::steady_clock::time_point::max(),
                           [promise](const absl::Status& status) { promise->set_value(status); });
    return Await(std::move(future));
  }
  absl::StatusOr<int32_t> Request(const std::string& name, Subscriptions::ParkedRequest request,
                                  std::optional<DocumentToReplay> document = {}) {
    auto promise = std::make_shared<std::promise<absl::StatusOr<int32_t>>>();
    auto future = promise->get_future();
    subscriptions_->Request(name, request, std::move(document),
                            std::chrono::steady_clock::time_point::max(),
                            [promise](const auto& asked) { promise->set_value(asked); });
    return Await(std::move(future));
  }
  std::vector<ParkedDocument> Parked(const std::string& name) {
    const auto parked = subscriptions_->ListParked(name, std::nullopt, 100'000, {});
    EXPECT_TRUE(parked.ok()) << parked.status();
    return parked.ok() ? *parked : std::vector<ParkedDocument>();
  }

 private:
  class ClockAhead final : public Clock {
   public:
    ClockAhead(const Clock& clock, std::chrono::microseconds ahead)
        : clock_(clock), ahead_(ahead) {}
    UnixMicros Now() const override { return clock_.Now() + ahead_.count(); }
    std::chrono::steady_clock::time_point SteadyNow() const override { return clock_.SteadyNow(); }

   private:
    const Clock& clock_;
    const std::chrono::microseconds ahead_;
  };

  test_support::SharedStore store_;
  const ClockAhead clock_;
  test_support::ManualExecutor executor_;
  test_support::SeededEntropy entropy_;
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<lease::Leases> leases_;
  std::unique_ptr<Subscriptions> subscriptions_;
};

inline CreateSubscription Wanted(std::string name, Start start = FromPosition{0},
                                 int32_t partitions = kPartitionsDefault) {
  CreateSubscription request;
  request.subscription.name = std::move(name);
  request.subscription.partitions = partitions;
  request.start = start;
  return request;
}

// An engine, and servers over it.
class SubscriptionsWorld {
 public:
  explicit SubscriptionsWorld(std::string_view engine,
                              versioning::testing::Mode mode = versioning::testing::Mode::kAtomic)
      : world({.engine = engine, .mode = mode}) {}

  std::unique_ptr<Server> NewServer(uint64_t seed = 1, const SubscriptionsOptions& options = {}) {
    return NewServer(world->store(), seed, options);
  }
  // One over `store`, which forwards to the engine.
  std::unique_ptr<Server> NewServer(store::Store& store, uint64_t seed = 1,
                                    const SubscriptionsOptions& options = {},
                                    std::chrono::microseconds ahead = {}) {
    return std::make_unique<Server>(store, fleet, world->documents(), world.clock(), seed, options,
                                    ahead);
  }

  store::CommitPosition Put(std::string_view id, int64_t number = 1,
                            std::string_view collection = "things") {
    versioning::WriteRequest request = versioning::testing::Request(id);
    request.name.collection = collection;
    const auto written =
        world->Update(std::move(request), versioning::testing::Number(number), true);
    EXPECT_TRUE(written.ok()) << written.status();
    return written.ok() ? written->position : 0;
  }
  void DeleteCollection(const std::string& name) {
    std::promise<absl::Status> deleted;
    world->documents().collections().Delete({.name = name, .force = true}, [&](const auto& result) {
      deleted.set_value(result.status());
    });
    EXPECT_TRUE(deleted.get_future().get().ok());
  }

  versioning::testing::World world;
  test_support::Fleet fleet{world->store()};
};

}  // namespace strata::feed::testing
