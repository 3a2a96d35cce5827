#include "service/server/admission.h"

#include <string>

#include "schemas/base/error.h"

namespace strata::server {
namespace {

absl::Status TooMuchInFlight(size_t limit) {
  return Error(ErrorReason::kOverloaded, "requests and answers in memory would be more than " +
                                             std::to_string(limit) +
                                             " bytes; repeat it a little later")
      .With("limit", static_cast<int64_t>(limit));
}

absl::Status ShareUsedUp(const Caller& caller, size_t share) {
  return Error(ErrorReason::kOverloaded,
               "the calls of " + caller.name() + " hold more than their share of " +
                   std::to_string(share) +
                   " bytes of a server under load; take answers in, or call less at a time")
      .With("share", static_cast<int64_t>(share));
}

}  // namespace

absl::Status Admission::Admit(const Method& method) const {
  if (method.operational || !draining_.load(std::memory_order_relaxed)) return absl::OkStatus();
  return Error(ErrorReason::kDraining, "server is draining");
}

absl::Status Admission::AdmitMessage(size_t bytes) const {
  if (bytes <= message_bytes_max_) return absl::OkStatus();
  return Error(ErrorReason::kInvalidMessage,
               "the message has " + std::to_string(bytes) + " bytes, at most " +
                   std::to_string(message_bytes_max_) + " are allowed")
      .With("size", static_cast<int64_t>(bytes))
      .With("limit", static_cast<int64_t>(message_bytes_max_));
}

// Counts first and asks then, so that of several at once not all find the last room.
absl::Status InFlight::Take(size_t bytes) {
  const size_t limit = admission_.bytes_in_flight_max_;
  const size_t share = limit / 4;
  const size_t held = bytes_.fetch_add(bytes, std::memory_order_relaxed);
  const size_t of_all =
      admission_.bytes_in_flight_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const size_t of_caller = OfCaller().fetch_add(bytes, std::memory_order_relaxed) + bytes;
  const bool alone = of_all == held + bytes;
  if (alone || of_all <= limit / 2) return absl::OkStatus();
  if ((operational_ || of_all <= limit) && of_caller <= share) return absl::OkStatus();
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  Move(bytes, 0);
  return of_caller > share ? ShareUsedUp(*caller_, share) : TooMuchInFlight(limit);
}

void InFlight::SetTo(size_t bytes) {
  Move(bytes_.exchange(bytes, std::memory_order_relaxed), bytes);
}

// Unsigned numbers wrap, so that adding a difference may also take away.
void InFlight::Move(size_t from, size_t to) {
  if (from == to) return;
  admission_.bytes_in_flight_.fetch_add(to - from, std::memory_order_relaxed);
  OfCaller().fetch_add(to - from, std::memory_order_relaxed);
}

}  // namespace strata::server
