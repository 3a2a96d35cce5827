#include "service/app/executor.h"

#include <algorithm>
#include <utility>

namespace strata::app {

ThreadPool::ThreadPool(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

ThreadPool::~ThreadPool() { Stop(); }

void ThreadPool::Schedule(std::chrono::microseconds delay, std::function<void()> work) {
  // A multimap keeps equal times in the order of insertion, but two readings of the clock seldom
  // are equal: what is due at once goes by the clock, which never goes back.
  const Time due = std::chrono::steady_clock::now() + std::max(delay, std::chrono::microseconds(0));
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    work_.emplace(due, std::move(work));
  }
  changed_.notify_one();
}

void ThreadPool::Stop() {
  std::multimap<Time, std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(work_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  // `dropped` goes here, without the lock: destroying work may schedule more.
}

void ThreadPool::Run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (work_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const Time due = work_.begin()->first;
    if (due > std::chrono::steady_clock::now()) {
      changed_.wait_until(lock, due);
      continue;
    }
    auto taken = work_.extract(work_.begin());
    // The one that was woken for what is left may be this one.
    if (!work_.empty()) changed_.notify_one();
    lock.unlock();
    taken.mapped()();
    taken = {};  // destroys what the work held, without the lock
    lock.lock();
  }
}

}  // namespace strata::app
