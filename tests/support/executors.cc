#include "tests/support/executors.h"

#include <algorithm>

namespace strata::test_support {

using std::chrono::microseconds;

void ManualExecutor::Schedule(microseconds delay, std::function<void()> work) {
  const Time due = clock_.SteadyNow() + std::max(delay, microseconds(0));
  const std::lock_guard lock(mutex_);
  work_.emplace(std::pair(due, scheduled_++), std::move(work));
}

bool ManualExecutor::RunFirst(Time until) {
  std::function<void()> work;
  {
    const std::lock_guard lock(mutex_);
    if (work_.empty()) return false;
    const Time due = work_.begin()->first.first;
    if (due > until) return false;
    const Time now = clock_.SteadyNow();
    if (due > now) clock_.Advance(std::chrono::duration_cast<microseconds>(due - now));
    work = std::move(work_.begin()->second);
    work_.erase(work_.begin());
  }
  work();
  return true;
}

size_t ManualExecutor::RunDue() {
  size_t runs = 0;
  while (RunFirst(clock_.SteadyNow())) ++runs;
  return runs;
}

size_t ManualExecutor::RunAll(size_t runs_max) {
  size_t runs = 0;
  while (runs < runs_max && RunFirst(Time::max())) ++runs;
  return runs;
}

size_t ManualExecutor::pending() const {
  const std::lock_guard lock(mutex_);
  return work_.size();
}

void InlineExecutor::Schedule(microseconds, std::function<void()> work) {
  // A line per thread instead of recursion: a retry loop on this executor would else be a stack.
  thread_local bool running = false;
  thread_local std::deque<std::function<void()>> line;
  line.push_back(std::move(work));
  if (running) return;
  running = true;
  while (!line.empty()) {
    const std::function<void()> next = std::move(line.front());
    line.pop_front();
    next();
  }
  running = false;
}

ThreadExecutor::ThreadExecutor() : thread_([this] { Run(); }) {}

ThreadExecutor::~ThreadExecutor() { Stop(); }

void ThreadExecutor::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

// Notifies under the lock: whoever stops the executor may destroy it at once.
void ThreadExecutor::Schedule(microseconds delay, std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.emplace(std::chrono::steady_clock::now() + std::max(delay, microseconds(0)),
                std::move(work));
  changed_.notify_all();
}

void ThreadExecutor::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (work_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto first = work_.begin();
    if (first->first > std::chrono::steady_clock::now()) {
      const Time due = first->first;
      changed_.wait_until(lock, due);
      continue;
    }
    std::function<void()> work = std::move(first->second);
    work_.erase(first);
    lock.unlock();
    work();
    work = nullptr;  // what it holds must not die under the lock
    lock.lock();
  }
}

}  // namespace strata::test_support
