// Goes on with a thread's work while that thread is away for long.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace strata::server {

// The owner does its work holding a baton, which it gives up while it does something that may take
// long, such as waiting for a disk. If it is not back in time, a thread of the stand-by takes the
// baton and works in its place until it is. So what either of them touches needs no lock.
class Standby {
 public:
  // How long the owner may be away: about what a slow disk takes for an fsync.
  static constexpr std::chrono::milliseconds kPatience{5};

  // `work` works for a millisecond or so, on the stand-by's thread.
  explicit Standby(std::function<void()> work);
  // The owner must have put the baton down.
  ~Standby();
  Standby(const Standby&) = delete;
  Standby& operator=(const Standby&) = delete;

  // All on the owner's thread: first and last, and in between.
  void TakeBaton() { baton_.lock(); }
  void PutBatonDown() { baton_.unlock(); }
  template <typename Work>
  void AwayFor(const Work& work) {
    Leave();
    work();
    Return();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void Leave();
  void Return();
  void Run();
  bool WatchUntilIdle();
  void WorkUntilReturn(Clock::rep since);

  const std::function<void()> work_;
  std::mutex baton_;
  std::atomic<Clock::rep> away_since_ = 0;  // 0: is not
  std::atomic<int64_t> leaves_ = 0;
  std::atomic<bool> watching_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // with the lock held
  std::thread thread_;
};

}  // namespace strata::server
