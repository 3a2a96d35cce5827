#include "service/server/standby.h"

#include <utility>

namespace strata::server {
namespace {

// Looking every few milliseconds is cheap, but an idle server does nothing at all.
constexpr int kLooksBeforeSleep = 20;

}  // namespace

Standby::Standby(std::function<void()> work) : work_(std::move(work)), thread_([this] { Run(); }) {}

Standby::~Standby() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// Either this sees that nobody watches, or the watcher, going to sleep, sees that somebody left:
// each writes before it reads, in one order for all.
void Standby::Leave() {
  away_since_ = Clock::now().time_since_epoch().count();
  ++leaves_;
  baton_.unlock();
  if (watching_) return;
  {
    const std::lock_guard lock(mutex_);
    watching_ = true;
  }
  changed_.notify_one();
}

void Standby::Return() {
  away_since_ = 0;
  baton_.lock();
}

void Standby::Run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || watching_; });
      if (stopping_) return;
    }
    if (!WatchUntilIdle()) return;
  }
}

// False: it is to stop.
bool Standby::WatchUntilIdle() {
  int64_t seen = leaves_;
  for (int idle = 0;;) {
    const Clock::rep since = away_since_;
    const Clock::duration away =
        since == 0 ? Clock::duration(0) : Clock::now().time_since_epoch() - Clock::duration(since);
    if (away >= kPatience) WorkUntilReturn(since);
    {
      std::unique_lock lock(mutex_);
      const auto pause = away >= kPatience ? kPatience : kPatience - away;
      if (changed_.wait_for(lock, pause, [this] { return stopping_; })) return false;
    }
    const int64_t now = leaves_;
    idle = now == std::exchange(seen, now) && away_since_ == 0 ? idle + 1 : 0;
    if (idle < kLooksBeforeSleep) continue;
    watching_ = false;
    if (leaves_ == seen) return true;
    watching_ = true;
  }
}

// The owner may have come back and left again meanwhile: that is another absence.
void Standby::WorkUntilReturn(Clock::rep since) {
  const std::unique_lock baton(baton_, std::try_to_lock);
  if (!baton) return;
  while (away_since_ == since) work_();
}

}  // namespace strata::server
