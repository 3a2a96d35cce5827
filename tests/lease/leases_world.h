// Leases over any engine, by as many processes as a test wants, with time in the test's hands.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/lease/leases.h"
#include "tests/documents/world.h"
#include "tests/support/executors.h"
#include "tests/support/status_matchers.h"

namespace strata::lease::testing {

using std::chrono::microseconds;
using std::chrono::seconds;
using test_support::HasReason;
using test_support::IsOk;
using versioning::testing::Mode;
using versioning::testing::Process;
using versioning::testing::World;

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

// The answer to one call, on any thread.
class LeaseAnswer {
 public:
  LeaseCallback Callback() {
    return [this](absl::StatusOr<Lease> lease) {
      const std::lock_guard lock(mutex_);
      ASSERT_FALSE(lease_) << "answered twice";
      lease_ = std::move(lease);
    };
  }
  bool ready() const {
    const std::lock_guard lock(mutex_);
    return lease_.has_value();
  }
  // REQUIRES: ready().
  const absl::StatusOr<Lease>& get() const {
    const std::lock_guard lock(mutex_);
    return *lease_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<absl::StatusOr<Lease>> lease_;
};

inline AcquireRequest Wanted(std::string name, std::string holder,
                             microseconds wait = microseconds(0)) {
  AcquireRequest request;
  request.name = std::move(name);
  request.holder = std::move(holder);
  request.wait = wait;
  return request;
}

// One process that knows of leases. Its executor's work is done while the test waits for an answer.
class LeasingProcess {
 public:
  LeasingProcess(store::Store& store, test_support::ManualClock& clock, LeasesOptions options = {})
      : executor_(clock),
        leases_(std::make_unique<Leases>(store, clock, executor_, std::move(options))) {}

  Leases& operator*() { return *leases_; }
  Leases* operator->() { return leases_.get(); }
  test_support::ManualExecutor& executor() { return executor_; }
  void Stop() { leases_.reset(); }

  const absl::StatusOr<Lease>& Await(const LeaseAnswer& answer) {
    while (!answer.ready()) {
      if (executor_.RunDue() == 0) std::this_thread::yield();
    }
    return answer.get();
  }

  absl::StatusOr<Lease> Acquire(AcquireRequest request) {
    LeaseAnswer answer;
    leases_->Acquire(std::move(request), answer.Callback());
    return Await(answer);
  }
  absl::StatusOr<Lease> Acquire(std::string name, std::string holder) {
    return Acquire(Wanted(std::move(name), std::move(holder)));
  }
  absl::StatusOr<Lease> Renew(RenewRequest request) {
    LeaseAnswer answer;
    leases_->Renew(std::move(request), answer.Callback());
    return Await(answer);
  }
  absl::StatusOr<Lease> Renew(std::string name, store::Stamp token,
                              std::optional<store::CommitPosition> position = {}) {
    RenewRequest request;
    request.name = std::move(name);
    request.token = token;
    request.position = position;
    return Renew(std::move(request));
  }
  absl::StatusOr<Lease> Release(std::string name, store::Stamp token) {
    LeaseAnswer answer;
    ReleaseRequest request;
    request.name = std::move(name);
    request.token = token;
    leases_->Release(std::move(request), answer.Callback());
    return Await(answer);
  }
  std::vector<std::string> Names(const LeaseQuery& query = {}, size_t most = 1000) {
    std::vector<std::string> names;
    const absl::StatusOr<std::vector<Lease>> listed = leases_->List(query, most);
    EXPECT_THAT(listed, IsOk());
    for (const Lease& lease : *listed) names.push_back(lease.name);
    return names;
  }

 private:
  test_support::ManualExecutor executor_;
  std::unique_ptr<Leases> leases_;
};

// An engine, and processes over it.
class LeasesTest : public ::testing::TestWithParam<Engine> {
 protected:
  explicit LeasesTest(Engine engine) : world({.engine = engine.name, .mode = engine.mode}) {}
  LeasesTest() : LeasesTest(GetParam()) {}

  World world;
  LeasingProcess leases{world->store(), world.clock()};
};

}  // namespace strata::lease::testing
