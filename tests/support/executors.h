// Executors whose time a test owns, and one with a thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "schemas/base/executor.h"
#include "tests/support/manual_clock.h"

namespace strata::test_support {

// Keeps all work until the test runs it, on the test's thread. Thread-safe, but two threads that
// run work at once share it out between them.
class ManualExecutor final : public Executor {
 public:
  // Delays are measured on the clock's steady time.
  explicit ManualExecutor(ManualClock& clock) : clock_(clock) {}

  using Executor::Schedule;
  void Schedule(std::chrono::microseconds delay, std::function<void()> work) override;

  // Runs what is due, by due time and then in the order of scheduling, with what it schedules in
  // turn if that is due too. Returns how many ran.
  size_t RunDue();
  // Runs everything, moving the clock to each due time. Stops after `runs_max`, so that work that
  // schedules itself for ever fails a test instead of hanging it. Returns how many ran.
  size_t RunAll(size_t runs_max = 1'000'000);
  size_t pending() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  bool RunFirst(Time until);

  ManualClock& clock_;
  mutable std::mutex mutex_;
  uint64_t scheduled_ = 0;
  std::map<std::pair<Time, uint64_t>, std::function<void()>> work_;  // by due time, then by age
};

// Runs work at once, on the caller's thread, whatever the delay; work scheduled by work runs when
// that has returned.
class InlineExecutor final : public Executor {
 public:
  using Executor::Schedule;
  void Schedule(std::chrono::microseconds delay, std::function<void()> work) override;
};

// Runs work on one thread of its own, in real time. The destructor drops what is not yet due.
class ThreadExecutor final : public Executor {
 public:
  ThreadExecutor();
  ~ThreadExecutor() override;

  // Ends the thread after the work that it is doing; drops the rest, and what is scheduled from now
  // on.
  void Stop();

  using Executor::Schedule;
  void Schedule(std::chrono::microseconds delay, std::function<void()> work) override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::multimap<Time, std::function<void()>> work_;  // equal times keep their order
  std::thread thread_;
};

}  // namespace strata::test_support
