// A pool of threads with a timer queue: where the server does what must not hold up its event loop.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "schemas/base/executor.h"

namespace strata::app {

// Runs what is due first, work of the same time in the order of scheduling. Work may block; it
// holds up other work only when all threads are busy, so what blocks for long has a pool that
// nobody needs who could end that.
class ThreadPool final : public Executor {
 public:
  explicit ThreadPool(int threads);
  // As Stop.
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  using Executor::Schedule;
  // After Stop, drops the work.
  void Schedule(std::chrono::microseconds delay, std::function<void()> work) override;

  // Ends the threads after the work that they are doing; drops the rest. Not from a thread of the
  // pool. May be called again.
  void Stop();

 private:
  using Time = std::chrono::steady_clock::time_point;
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::multimap<Time, std::function<void()>> work_;
  std::vector<std::thread> threads_;
};

}  // namespace strata::app
