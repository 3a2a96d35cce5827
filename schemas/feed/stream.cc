#include "schemas/feed/stream.h"

#include <algorithm>

namespace strata::feed {

bool Stream::closed() const {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return true;
  }
  return sink_->closed();
}

void Stream::Ready() {
  const std::lock_guard lock(mutex_);
  room_ = true;
  GiveTurn();
}

// With the lock held.
void Stream::GiveTurn() {
  if (busy_ || !room_ || turn_ || waiting_.empty()) return;
  turn_ = waiting_.front().who;
  workshop_->Later(std::move(waiting_.front().resume));
  waiting_.pop_front();
}

void Stream::Tell(std::function<void(ConsumerSink&)> what) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || finished_) return;
    told_.push_back(std::move(what));
    if (std::exchange(busy_, true)) return;
  }
  Drain();
}

void Stream::Finish(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || std::exchange(finished_, true)) return;
    told_.push_back([status](ConsumerSink& sink) { sink.Finish(status); });
    if (std::exchange(busy_, true)) return;
  }
  Drain();
}

void Stream::Close() {
  // These may hold what holds this: they go behind the lock.
  std::deque<std::function<void(ConsumerSink&)>> told;
  std::deque<Waiting> waiting;
  const std::lock_guard lock(mutex_);
  closed_ = true;
  told.swap(told_);
  waiting.swap(waiting_);
}

// REQUIRES: `busy_` is this thread's.
void Stream::Drain() {
  while (true) {
    std::function<void(ConsumerSink&)> what;
    {
      const std::lock_guard lock(mutex_);
      if (told_.empty()) {
        busy_ = false;
        GiveTurn();
        return;
      }
      what = std::move(told_.front());
      told_.pop_front();
    }
    what(*sink_);
  }
}

bool Stream::Begin(int32_t who, std::function<void()> resume) {
  const std::lock_guard lock(mutex_);
  if (closed_ || finished_) return false;
  const bool mine = turn_ == who;
  if (mine) turn_.reset();
  if (!busy_ && room_ && !turn_ && (mine || waiting_.empty())) {
    room_ = false;  // before it is sent: there may be room again at once
    if (sink_->TakeRoom()) {
      busy_ = true;
      return true;
    }
  }
  const bool waits = std::any_of(waiting_.begin(), waiting_.end(),
                                 [&](const Waiting& waiting) { return waiting.who == who; });
  if (mine) {
    waiting_.push_front({who, std::move(resume)});
  } else if (!waits) {
    waiting_.push_back({who, std::move(resume)});
  }
  GiveTurn();
  return false;
}

void Stream::Send(int32_t partition) {
  sink_->SendDeliveries(partition);
  Drain();
}

void Stream::Withdraw(int32_t who) {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.who == who; });
  if (turn_ != who) return;
  turn_.reset();
  GiveTurn();
}

}  // namespace strata::feed
