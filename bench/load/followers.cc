#include "bench/load/followers.h"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

namespace strata::bench {
namespace {

constexpr std::chrono::milliseconds kLook{20};

}  // namespace

Followers::Followers(std::string name, int64_t count)
    : name_(std::move(name)), each_(static_cast<size_t>(count)) {}

void Followers::Count(size_t follower, int64_t events, Clock::time_point at) {
  // Before the counts, by which others know that it is there.
  last_arrival_ = at.time_since_epoch().count();
  each_[follower] += events;
  events_ += events;
}

void Followers::End(const std::string& why) {
  const absl::MutexLock lock(&mutex_);
  if (ended_.empty()) ended_ = why;
}

void Followers::ThrowIfEnded() const {
  const absl::MutexLock lock(&mutex_);
  if (!ended_.empty()) throw std::runtime_error(name_ + ": " + ended_);
}

bool Followers::AwaitEvents(int64_t each, std::chrono::milliseconds patience) const {
  const Clock::time_point end = Clock::now() + patience;
  const auto has_all = [&](const std::atomic<int64_t>& events) { return events >= each; };
  while (!std::all_of(each_.begin(), each_.end(), has_all)) {
    ThrowIfEnded();
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

Followers::Clock::time_point Followers::last_arrival() const {
  return Clock::time_point(Clock::duration(last_arrival_));
}

void Followers::Check(int64_t each_max) const {
  ThrowIfEnded();
  for (const std::atomic<int64_t>& events : each_) {
    if (events <= each_max) continue;
    throw std::runtime_error(name_ + ": " + std::to_string(events) + " events where " +
                             std::to_string(each_max) + " happened");
  }
}

}  // namespace strata::bench
