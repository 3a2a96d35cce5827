// Who waits for writes, with turns that a test gives.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/waiter.h"
#include "tests/support/manual_clock.h"

namespace strata::versioning::testing {

// Keeps what is deferred until the test runs it.
class Turn final : public Waiter {
 public:
  bool gone() const override {
    if (clock_ != nullptr) clock_->Advance(std::chrono::milliseconds(1));
    return ++asked_ > asks_left_;
  }
  absl::Status Defer(std::function<void()> work) const override {
    if (refuses_) return Error(ErrorReason::kOverloaded, "too much waits");
    const std::lock_guard lock(mutex_);
    deferred_.push_back(std::move(work));
    return absl::OkStatus();
  }

  const void* line() const override { return this; }

  size_t deferred() const {
    const std::lock_guard lock(mutex_);
    return deferred_.size();
  }
  // Others may still run the write queue, for a moment.
  void AwaitDeferred() const {
    while (deferred() == 0) std::this_thread::yield();
  }
  void RunAll() {
    while (deferred() > 0) {
      std::function<void()> work;
      {
        const std::lock_guard lock(mutex_);
        work = std::move(deferred_.front());
        deferred_.pop_front();
      }
      work();
    }
  }
  // Is gone once it was asked so often whether it is.
  void LeaveAfter(int asks) {
    asks_left_ = asks;
    asked_ = 0;
  }
  void RefuseAll() { refuses_ = true; }
  // A millisecond passes whenever it is asked whether it is gone.
  void TakeTime(test_support::ManualClock& clock) { clock_ = &clock; }

 private:
  mutable std::mutex mutex_;
  mutable std::deque<std::function<void()>> deferred_;
  mutable std::atomic<int> asked_ = 0;
  int asks_left_ = 1'000'000;
  bool refuses_ = false;
  test_support::ManualClock* clock_ = nullptr;
};

}  // namespace strata::versioning::testing
