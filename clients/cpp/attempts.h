// The attempts of one call: whether another one is to be made, when, and what is told in the end.
// The rules are those of clients/README.md, and refusal.h knows them; here is where they are kept.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "clients/cpp/refusal.h"
#include "clients/cpp/repetition.h"

namespace strata::client {

// What it means to make a call twice.
struct CallKind {
  bool writes = false;
  bool harmful_twice = false;
};

// As the option idempotency_level has it of the RPC that takes these requests.
CallKind KindOf(const google::protobuf::Descriptor& request);
template <typename Request>
CallKind KindOf() {
  static const CallKind kind = KindOf(*Request::descriptor());
  return kind;
}

// As an absl::Status that ErrorOf understands.
absl::Status StatusOf(const Refusal& refusal, bool outcome_unknown = false,
                      const std::string& request_id = "");

class Attempts {
 public:
  using Clock = Repetition::Clock;

  // Begins with the first attempt.
  explicit Attempts(CallKind kind) : kind_(kind), first_(Clock::now()) {}

  // The attempt failed. When to make the next one, which begins within `patience_ms` of the first;
  // unset: there is none.
  std::optional<Clock::time_point> Failed(Refusal refusal, int64_t patience_ms);

  // REQUIRES: Failed was called. Why the call failed.
  absl::Status status(const std::string& request_id) const;

  // Something came of it after all: what was counted so far counts no more. For streams.
  void Succeeded() {
    failures_ = 0;
    settled_ = true;
  }

 private:
  const CallKind kind_;
  Clock::time_point first_;
  int failures_ = 0;
  bool settled_ = false;  // the failures before concern nobody any more
  bool unknown_before_ = false;
  Refusal refusal_;
};

}  // namespace strata::client
