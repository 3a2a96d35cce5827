// What one partition has delivered, passed over and got acknowledged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "schemas/base/clock.h"
#include "schemas/feed/event.h"
#include "schemas/lease/place.h"

namespace strata::feed {

// So much of a partition at most is delivered and not acknowledged, unless one event is more.
inline constexpr size_t kWindowBytesMax = size_t{1} << 20;

// What it takes to know an event again.
struct OpenEvent {
  lease::Place place;
  EventType type = EventType::kOther;
  std::string collection;
  int64_t incarnation = 0;
  std::string id;
  int64_t version = 0;
  UnixMicros commit_time = 0;

  static OpenEvent Of(const Event& event);
};

// Pure state. Not thread-safe.
//
// done() is the end of the acknowledged prefix: every event up to it is acknowledged, parked, or of
// no concern. Events are open from Deliver until they are acknowledged; what is passed over counts
// as acknowledged when all in front of it is.
class Window {
 public:
  // All up to `done` is acknowledged; that an event at `acknowledged` is, or at none yet (position
  // 0), is stored.
  Window(const lease::Place& done, const lease::Place& acknowledged)
      : done_(done), acknowledged_(acknowledged), last_delivered_(acknowledged) {}

  const lease::Place& done() const { return done_; }
  size_t open() const { return open_.size(); }
  size_t bytes() const { return bytes_; }
  // The first event that is open. REQUIRES: one is.
  const OpenEvent& first() const { return open_.front().event; }
  // What has to be acknowledged before the next event to be delivered.
  const lease::Place& last_delivered() const { return last_delivered_; }
  bool HasRoom(size_t events_max) const {
    return open_.size() < events_max && (open_.empty() || bytes_ < kWindowBytesMax);
  }

  // In the order of places, after all before.
  void Deliver(OpenEvent event, size_t bytes);
  // Takes back what was delivered last. REQUIRES: nothing came after it.
  void TakeBack();
  // Nothing up to `place` is left to be delivered.
  void Pass(const lease::Place& place);

  enum class Acknowledged : uint8_t {
    kNow,
    kBefore,   // up to there all is done already
    kUnknown,  // no such event is open
  };
  struct Acknowledgement {
    Acknowledged what = Acknowledged::kUnknown;
    size_t events = 0;  // that are not open any more
  };
  // All up to the event at `place` is done.
  Acknowledgement Acknowledge(const lease::Place& place);
  // The same up to any place.
  size_t AcknowledgeUpTo(const lease::Place& place);

  bool IsOpen(const lease::Place& place) const;
  // Forgets every open delivery, and the events passed over after them.
  void Void();
  // All events that are still to come lie after it.
  const lease::Place& end() const { return open_.empty() ? done_ : open_.back().end(); }

 private:
  struct Open {
    OpenEvent event;
    size_t bytes = 0;
    std::optional<lease::Place> passed;  // after it, up to here, nothing is left to be delivered

    const lease::Place& end() const { return passed ? *passed : event.place; }
  };
  void PopFirst();

  lease::Place done_;
  lease::Place acknowledged_;  // the last event
  lease::Place last_delivered_;
  std::deque<Open> open_;
  size_t bytes_ = 0;
};

}  // namespace strata::feed
