#include "service/server/room_line.h"

#include <algorithm>

namespace strata::server {

void RoomLine::Enter(Waiter& waiter, const Caller& caller, size_t bytes) {
  const std::lock_guard lock(mutex_);
  waiter.bytes_ = bytes;
  if (waiter.place_ != Waiter::Place::kOutside) return;
  waiter.place_ = Waiter::Place::kWaits;
  lines_[&caller].push_back(&waiter);
  ++waiting_;
}

bool RoomLine::Leave(Waiter& waiter, const Caller& caller) {
  const std::lock_guard lock(mutex_);
  if (waiter.place_ == Waiter::Place::kWaits) {
    const auto line = lines_.find(&caller);
    std::erase(line->second, &waiter);
    if (line->second.empty()) lines_.erase(line);
    waiter.place_ = Waiter::Place::kOutside;
    --waiting_;
  }
  return waiter.place_ == Waiter::Place::kOutside;
}

void RoomLine::Woken(Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  waiter.place_ = Waiter::Place::kOutside;
}

void RoomLine::Offer(const Caller& caller) {
  if (waiting_ == 0) return;
  const std::lock_guard lock(mutex_);
  if (const auto own = lines_.find(&caller); own != lines_.end()) WakeFirst(own);
  const size_t most = std::min(lines_.size(), kOthersMax);
  for (size_t looked = 0; looked < most; ++looked) {
    auto other = lines_.upper_bound(last_);
    if (other == lines_.end()) other = lines_.begin();
    last_ = other->first;
    if (last_ != &caller && WakeFirst(other)) return;
  }
}

void RoomLine::OfferAll() {
  if (waiting_ == 0) return;
  const std::lock_guard lock(mutex_);
  for (auto line = lines_.begin(); line != lines_.end();) WakeFirst(line++);
}

bool RoomLine::WakeFirst(Lines::iterator line) {
  Waiter& waiter = *line->second.front();
  if (!fits_(*line->first, waiter.bytes_)) return false;
  line->second.pop_front();
  if (line->second.empty()) lines_.erase(line);
  --waiting_;
  waiter.place_ = Waiter::Place::kWoken;
  waiter.Wake();
  return true;
}

}  // namespace strata::server
