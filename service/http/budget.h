// Room for what the port's connections hold, all together: bodies on their way in, what they are
// converted into, and answers that wait to be taken. What is being handled between the two, the
// event loop counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace strata::http {

// A caller gets a quarter at most, but room for one request. Thread-safe.
class Budget {
 public:
  static constexpr size_t kShareMin = size_t{24} << 20;

  explicit Budget(size_t bytes_max) : bytes_max_(bytes_max) {}

  // What one connection holds. Of one thread.
  class Share {
   public:
    explicit Share(Budget& budget) : budget_(budget) {}
    ~Share() { SetTo(0); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // The caller that it counts for. REQUIRES: nothing is held.
    void BelongTo(std::string caller) { caller_ = std::move(caller); }
    // Takes room up to `bytes`; false: there is none, and nothing is taken.
    bool TryGrowTo(size_t bytes) {
      if (bytes <= bytes_) return true;
      if (!budget_.Take(caller_, bytes - bytes_)) return false;
      bytes_ = bytes;
      return true;
    }
    // Counts what is there already, without asking for room: later requests are refused.
    void SetTo(size_t bytes) {
      if (bytes == bytes_) return;
      budget_.Move(caller_, bytes_, bytes);
      bytes_ = bytes;
    }

   private:
    Budget& budget_;
    std::string caller_;
    size_t bytes_ = 0;
  };

 private:
  bool Take(const std::string& caller, size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found = callers_.find(caller);
    const size_t of_caller = found == callers_.end() ? 0 : found->second;
    if (held_ + bytes > bytes_max_ || of_caller + bytes > std::max(kShareMin, bytes_max_ / 4))
      return false;
    held_ += bytes;
    callers_[caller] += bytes;
    return true;
  }
  // Unsigned numbers wrap, so that adding a difference may also take away.
  void Move(const std::string& caller, size_t from, size_t to) {
    const std::lock_guard lock(mutex_);
    held_ += to - from;
    const auto found = callers_.try_emplace(caller).first;
    found->second += to - from;
    if (found->second == 0) callers_.erase(found);
  }

  const size_t bytes_max_;
  std::mutex mutex_;  // guards what follows
  size_t held_ = 0;
  std::map<std::string, size_t> callers_;
};

}  // namespace strata::http
