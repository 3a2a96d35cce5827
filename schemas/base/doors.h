// Who is inside something that ends.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace strata {

// Lets visitors in until it is closed. What somebody else calls back at any time (a store that ends
// its last commits, say) enters first, and leaves alone what may be gone where it is not let in.
// Thread-safe.
class Doors {
 public:
  // Whoever is inside may enter again, and is not let in again once the doors are being closed.
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

  // Lets nobody in from now on, and returns when the last visitor has left. Not by a visitor.
  void Close() {
    closed_.store(true, std::memory_order_relaxed);
    std::unique_lock lock(mutex_);
    locked_ = true;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

  // For visitors who would stay for long.
  bool closed() const { return closed_.load(std::memory_order_relaxed); }

 private:
  bool Enter() {
    const std::lock_guard lock(mutex_);
    if (locked_) return false;
    ++inside_;
    return true;
  }
  // Tells of it under the lock: whoever waits may let the doors go at once.
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

}  // namespace strata
