// Why a call failed, as the server said it (error_reason.proto) or, where no server answered, as
// gRPC did; and what a caller does next.
#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace strata::client {

struct Refusal {
  grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
  // google.rpc.ErrorInfo.reason, such as "VERSION_CONFLICT". Empty: no Strata server said it.
  std::string reason;
  std::string message;
  std::map<std::string, std::string> metadata;
  // google.rpc.RetryInfo: not before so long. Unset: the server does not invite another try.
  std::optional<int64_t> retry_delay_ms;
  // There was no connection over which the call could have been sent.
  bool unsent = false;

  // "VERSION_CONFLICT: version is 4, not 3 (actual=4 expected=3)"; the canonical code stands where
  // there is no reason. Control characters are shown, never sent to the terminal.
  std::string ToString() const;

  // What a person does about it, in one sentence. Empty: nothing can be advised.
  std::string Advice() const;

  // Whether the same call, with the same request id, may succeed if simply made again: UNAVAILABLE,
  // DEADLINE_EXCEEDED, CANCELLED that no Strata server explained, and what carries RetryInfo
  // (ABORTED after lost races, RESOURCE_EXHAUSTED under overload). A conflict with a version that
  // the caller named is none of these, nor is a lease that somebody else holds.
  bool IsRetryable() const;

  // The same for a call that would do harm if it were done twice: only where the server said that
  // it did nothing.
  bool IsRetryableOnce() const;

  // The same as IsRetryable for a part of an answer (ApplyError), which carries no RetryInfo: its
  // reason says whether one like it comes with that.
  bool IsRetryablePart() const;

  // Whether a write that ended so may have been done: no answer of a Strata server came, or it said
  // that it does not know.
  bool LeavesOutcomeUnknown() const;

  // Whether an attempt before may have brought about what the call was refused for, as far as there
  // is no request id by which the server would know it again.
  bool MayBeOfOwnDoing() const;
};

// `status` is not OK.
Refusal RefusalOf(const grpc::Status& status);
// The same for what was refused on this side.
Refusal RefusalOf(const absl::Status& status);

// "NOT_FOUND"; "CODE_77" for a number that gRPC does not define.
std::string CodeName(grpc::StatusCode code);

// How long to wait before try `attempt` (1 is the first repetition): doubling from 100 ms to 5 s,
// multiplied by 0.5 to 1 as `random` goes from 0 to 1, and never less than the server asks.
int64_t RetryDelayMs(const Refusal& refusal, int attempt, double random);

}  // namespace strata::client
