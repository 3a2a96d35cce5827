// Decides on every call, unary or stream, before it is handled.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "service/security/access.h"
#include "service/server/call_info.h"
#include "service/server/method.h"
#include "service/server/room_line.h"

namespace strata::server {

// Thread-safe.
class Admission {
 public:
  Admission(size_t message_bytes_max, size_t bytes_in_flight_max, security::Access& access)
      : message_bytes_max_(message_bytes_max),
        bytes_in_flight_max_(bytes_in_flight_max),
        access_(access),
        room_line_([this](const Caller& caller, size_t bytes) { return MayFit(caller, bytes); }) {}

  // OK, or how the call is answered instead of being handled: DRAINING, but for operational
  // methods; CREDENTIALS_MISSING or INVALID, but for open ones; PERMISSION_DENIED: it came through
  // a port that only reads, and the method writes or asks for more than that.
  absl::Status Admit(const Method& method, const Recognized& recognized,
                     bool reads_only = false) const;

  // OK, or why a request, or one message of a stream, is not even decoded: INVALID_MESSAGE if it is
  // larger than any may be, or than `most`.
  absl::Status AdmitMessage(size_t bytes, size_t most = std::numeric_limits<size_t>::max()) const;

  // OK, or why a request, or one message of a stream, is not handled: PERMISSION_DENIED, also for
  // what a port that only reads does not let through. The caller's credentials may have ended since
  // the call began: CREDENTIALS_INVALID.
  absl::Status Authorize(const Method& method, const CallInfo& info,
                         const google::protobuf::MessageLite& request) const;

  // From now on nothing new is admitted.
  void Drain() { draining_ = true; }
  bool draining() const { return draining_; }

  // What all calls hold now.
  size_t bytes_in_flight() const { return bytes_in_flight_.load(std::memory_order_relaxed); }
  // The streams that wait until their caller's share or the total has room for a message of theirs.
  RoomLine& room_line() { return room_line_; }

 private:
  friend class InFlight;

  // As InFlight::Take, as far as that can be said beforehand.
  bool MayFit(const Caller& caller, size_t bytes) const;

  const size_t message_bytes_max_;
  const size_t bytes_in_flight_max_;
  security::Access& access_;
  std::atomic<bool> draining_ = false;
  std::atomic<size_t> bytes_in_flight_ = 0;
  std::atomic<size_t> bytes_within_shares_ = 0;  // of them, at most its share of each caller
  RoomLine room_line_;
};

// What one call holds of the bytes in flight: its request, what was decoded of it, room reserved
// for its answer, then the answer until it has left. Thread-safe.
class InFlight {
 public:
  explicit InFlight(Admission& admission) : admission_(admission) {}
  ~InFlight() { SetTo(0); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

  // Whose they are; before anything else.
  void BelongTo(std::shared_ptr<Caller> caller, const Method& method) {
    caller_ = std::move(caller);
    operational_ = method.operational;
  }

  // Takes `bytes` more, or nothing and OVERLOADED. While all calls together hold more than half of
  // what they may, one of a caller that would hold more than a quarter is refused (metadata:
  // share). Any other is refused once all hold what they may, where of each caller no more than its
  // share is counted: what one holds beyond it is not taken from the others. A call that is alone
  // is never refused, an operational one only for its caller's share of such calls.
  absl::Status Take(size_t bytes);
  // Also beyond what all may hold. What is given back is offered to the streams that wait for room.
  void SetTo(size_t bytes);

  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // What is held with it.
  struct Totals {
    size_t of_all = 0;
    size_t within_shares = 0;
    size_t of_caller = 0;
  };
  Totals Move(size_t from, size_t to);
  std::atomic<size_t>& OfCaller() const {
    return operational_ ? caller_->operational_bytes_in_flight : caller_->bytes_in_flight;
  }

  Admission& admission_;
  std::shared_ptr<Caller> caller_;
  bool operational_ = false;
  std::atomic<size_t> bytes_ = 0;
};

// What one call takes of its caller's quota, from its beginning to its end. Where there is none,
// and for operational methods: nothing. Not thread-safe.
class QuotaUse {
 public:
  QuotaUse() = default;
  ~QuotaUse() { End(); }
  QuotaUse(const QuotaUse&) = delete;
  QuotaUse& operator=(const QuotaUse&) = delete;

  // QUOTA_EXCEEDED: neither the call nor its request, of so many bytes, fits.
  absl::Status Begin(std::shared_ptr<Caller> caller, const Method& method, size_t request_bytes);
  // One more message of a stream. QUOTA_EXCEEDED.
  absl::Status Take(size_t bytes) const;
  // What was answered.
  void Charge(size_t bytes) const;
  void End();

 private:
  std::shared_ptr<Caller> caller_;  // null: nothing was taken
};

// INVALID_MESSAGE: bytes that are no request of the method.
absl::Status NotARequest(const Method& method);

}  // namespace strata::server
