// A gate that lets callers in until shutdown, then waits for them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "schemas/base/executor.h"

namespace strata {

// Lets visitors in until it is closed. A callback that may come at any time (from a store that ends
// its last commits, say) enters first; if it is not let in, it touches nothing that may be
// destroyed. Thread-safe.
class Doors {
 public:
  // A visitor may enter again; once the doors are closing, it is not let in again.
  class Visit {
   public:
    explicit Visit(Doors& doors) : doors_(doors), let_in_(doors.Enter()) {}
    ~Visit() {
      if (let_in_) doors_.Leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;

    bool let_in() const { return let_in_; }

   private:
    Doors& doors_;
    const bool let_in_;
  };

  // Lets no visitor in from now on, and returns when the last one has left. A visitor must not call
  // it.
  void Close() {
    closed_.store(true, std::memory_order_relaxed);
    std::unique_lock lock(mutex_);
    locked_ = true;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

  // For visitors that would stay for long.
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  bool Enter() {
    const std::lock_guard lock(mutex_);
    if (locked_) return false;
    ++inside_;
    return true;
  }
  // Notifies under the lock: the waiting thread may destroy the doors at once.
  void Leave() {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) left_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable left_;
  int inside_ = 0;
  bool locked_ = false;
  std::atomic<bool> closed_ = false;
};

// Runs `work` on the executor as a visitor, or `otherwise` once the doors are closed, at once if
// they are closed already: then the executor may be gone.
template <typename Work, typename Otherwise>
void ScheduleInside(std::shared_ptr<Doors> doors, Executor& executor,
                    std::chrono::microseconds delay, Work work, Otherwise otherwise) {
  const Doors::Visit visit(*doors);
  if (!visit.let_in()) return otherwise();
  executor.Schedule(delay, [doors = std::move(doors), work = std::move(work),
                            otherwise = std::move(otherwise)]() mutable {
    const Doors::Visit later(*doors);
    later.let_in() ? work() : otherwise();
  });
}

}  // namespace strata
