// Those who follow what is written to a store, Strata or a peer: how many events each has had, and
// when the last one came.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace strata::bench {

// They follow from construction to destruction. Who derives from it counts for them.
class Followers {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Followers() = default;
  Followers(const Followers&) = delete;
  Followers& operator=(const Followers&) = delete;

  // Until each has had so many events since it began. False: not in `patience`. Throws
  // std::runtime_error if one of them ended.
  bool AwaitEvents(int64_t each, std::chrono::milliseconds patience) const;

  // Of all, so far.
  int64_t events() const { return events_; }
  // When the last event of any came.
  Clock::time_point last_arrival() const;
  // Throws std::runtime_error with the reason if one of them has ended, or had more events than
  // `each_max`.
  void Check(int64_t each_max) const;

 protected:
  // `name`: of what they follow, said in errors.
  Followers(std::string name, int64_t count);

  const std::string& name() const { return name_; }
  int64_t count() const { return static_cast<int64_t>(each_.size()); }
  void Count(size_t follower, int64_t events, Clock::time_point at);
  // One of them has ended by itself. The first reason is the one that is told.
  void End(const std::string& why);
  void ThrowIfEnded() const;

 private:
  const std::string name_;
  std::vector<std::atomic<int64_t>> each_;
  std::atomic<int64_t> events_{0};
  std::atomic<int64_t> last_arrival_{0};
  mutable absl::Mutex mutex_;
  std::string ended_;  // guarded by mutex_; empty: none has
};

}  // namespace strata::bench
