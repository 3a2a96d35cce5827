// How much one principal may ask for at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "absl/status/status.h"

namespace strata::security {

// 0: no limit.
struct QuotaLimits {
  double calls_per_second = 0;
  double bytes_per_second = 0;  // requests and answers together
  int64_t calls_in_flight = 0;  // streams among them

  bool any() const { return calls_per_second > 0 || bytes_per_second > 0 || calls_in_flight > 0; }
  friend bool operator==(const QuotaLimits&, const QuotaLimits&) = default;
};

// Buckets of one second, of calls and of bytes: what was not used in a second is lost, and at least
// one call always fits. Bytes are known only when they are there, so a call may overdraw them, and
// the next ones wait until that is made good. Thread-safe.
class Quota {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // From now on. What is under way goes on.
  void Limit(const QuotaLimits& limits, Time now);

  // One more call of so many bytes; QUOTA_EXCEEDED, with the exact time after which it would have
  // been taken, had nobody else come (RetryAfterOf), and metadata quota, limit.
  absl::Status Take(size_t request_bytes, Time now);
  // What Enter and Take would say now, of a call whose size is not known yet. Takes nothing.
  absl::Status Check(Time now) const;
  // What was answered.
  void Charge(size_t bytes, Time now);

  // A call or a stream is there. QUOTA_EXCEEDED: too many are.
  absl::Status Enter();
  void Leave();

  // As one that was never used: nothing is under way, nothing is missing from its buckets.
  bool IsFull(Time now) const;

 private:
  // What was left in one bucket at a time. It changes only when something is taken, so that however
  // often a caller asks too early, it gets what it was told, when it was told.
  struct Bucket {
    double per_second = 0;  // 0: it is none
    double left = 0;
    Time filled{};
    double capacity() const { return per_second < 1 ? 1 : per_second; }
    double LeftAt(Time now) const;
    // From `now` until there is `needed`.
    std::chrono::microseconds WaitFor(double needed, Time now) const;
    void Limit(double new_per_second, Time now);
    void Take(double count, Time now);
  };

  // With the lock held: why nothing is taken now.
  absl::Status Exhausted(Time now) const;
  absl::Status Crowded() const;

  std::atomic<bool> limited_ = false;  // so that most callers take no lock
  std::atomic<int64_t> in_flight_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  QuotaLimits limits_;
  Bucket calls_;
  Bucket bytes_;
};

}  // namespace strata::security
