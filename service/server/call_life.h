// The life of a call of any port, unary or stream: its caller is recognised, it is admitted, the
// caller's quota and share of memory are asked, each message is admitted and authorised, and its
// end is reported. Private to the ports.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "service/server/admission.h"
#include "service/server/loop_state.h"

namespace strata::server {

// What a port knows of a call before its message.
struct Arrival {
  std::string peer;                                 // CallInfo::peer
  CallInfo::Time deadline = CallInfo::Time::max();  // the caller's
  bool reads_only = false;                          // CallInfo::reads_only
  Recognized recognized{};
};

// Before the message of a call has come: OK, or the refusal that the call would have for any
// message, which is reported. Takes nothing; the call is asked again when it comes.
absl::Status CheckAhead(const LoopState& state, const Endpoint& endpoint, const Arrival& arrival);

// The owner serialises its calls; `info` is the owner's and outlives it.
class CallLife {
 public:
  CallLife(std::shared_ptr<LoopState> state, const Endpoint& endpoint, CallInfo& info)
      : state_(std::move(state)), endpoint_(endpoint), info_(info), held_(state_->admission) {}

  LoopState& state() const { return *state_; }
  const Endpoint& endpoint() const { return endpoint_; }
  const Method& method() const { return endpoint_.method; }

  // First of all: fills the call's info.
  void Begin(Arrival arrival);
  // OK, or why the call is not handled: INVALID_MESSAGE by the size of its request, what
  // Admission::Admit and QuotaUse::Begin say, and OVERLOADED: no room for the request and
  // `own_bytes` of the call itself.
  absl::Status Admit(size_t own_bytes, size_t request_bytes);
  // The same for one more message of a stream, of at most `most` bytes.
  absl::Status AdmitMessage(size_t bytes, size_t most);
  // OK, or why the request, or one message of a stream, is not handled (Admission::Authorize).
  absl::Status Authorize(const google::protobuf::MessageLite& request) const {
    return state_->admission.Authorize(method(), info_, request);
  }

  // Counts bytes of an answer.
  void Charge(size_t bytes);
  // The call leaves its caller's quota: before its caller has the answer, and may call again.
  void LeaveQuota() { quota_.End(); }
  // How the call ended. Once, before its answer is sent or when its caller has given up.
  void Report(const absl::Status& status) const;

  // What the call holds of the bytes in flight.
  InFlight& held() { return held_; }
  CallInfo::Time arrival() const { return arrival_; }
  size_t request_bytes() const { return request_bytes_; }
  size_t response_bytes() const { return response_bytes_; }

 private:
  const std::shared_ptr<LoopState> state_;
  const Endpoint& endpoint_;
  CallInfo& info_;
  Recognized recognized_;
  InFlight held_;
  QuotaUse quota_;
  CallInfo::Time arrival_;
  size_t request_bytes_ = 0;
  size_t response_bytes_ = 0;
};

}  // namespace strata::server
