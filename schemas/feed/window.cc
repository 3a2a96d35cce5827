#include "schemas/feed/window.h"

#include <algorithm>
#include <utility>

namespace strata::feed {

OpenEvent OpenEvent::Of(const Event& event) {
  OpenEvent open;
  open.place = {event.position, static_cast<int32_t>(event.index)};
  open.type = event.type;
  open.collection = event.collection;
  open.incarnation = event.incarnation;
  open.id = event.id;
  open.version = event.version.header.version;
  open.commit_time = event.version.header.commit_time;
  return open;
}

void Window::Deliver(OpenEvent event, size_t bytes) {
  last_delivered_ = event.place;
  bytes_ += bytes;
  open_.push_back({std::move(event), bytes, std::nullopt});
}

void Window::TakeBack() {
  bytes_ -= open_.back().bytes;
  open_.pop_back();
  last_delivered_ = open_.empty() ? acknowledged_ : open_.back().event.place;
}

void Window::Pass(const lease::Place& place) {
  if (open_.empty()) {
    done_ = std::max(done_, place);
    return;
  }
  Open& last = open_.back();
  if (place > last.event.place) last.passed = std::max(last.passed.value_or(place), place);
}

bool Window::IsOpen(const lease::Place& place) const {
  const auto found = std::lower_bound(
      open_.begin(), open_.end(), place,
      [](const Open& open, const lease::Place& wanted) { return open.event.place < wanted; });
  return found != open_.end() && found->event.place == place;
}

Window::Acknowledgement Window::Acknowledge(const lease::Place& place) {
  if (IsOpen(place)) return {Acknowledged::kNow, AcknowledgeUpTo(place)};
  return {place <= done_ ? Acknowledged::kBefore : Acknowledged::kUnknown, 0};
}

size_t Window::AcknowledgeUpTo(const lease::Place& place) {
  size_t events = 0;
  for (; !open_.empty() && open_.front().event.place <= place; ++events) PopFirst();
  if (open_.empty() || place < open_.front().event.place) done_ = std::max(done_, place);
  return events;
}

void Window::PopFirst() {
  Open& first = open_.front();
  done_ = std::max(done_, first.end());
  acknowledged_ = first.event.place;
  bytes_ -= first.bytes;
  open_.pop_front();
}

void Window::Void() {
  open_.clear();
  bytes_ = 0;
  last_delivered_ = acknowledged_;
}

}  // namespace strata::feed
