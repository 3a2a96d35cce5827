// Sends a queue's messages to the server over streams of EnrollmentService.Apply.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "clients/cli/line_stream.h"
#include "clients/cli/message_source.h"
#include "clients/cli/session.h"
#include "clients/cpp/refusal.h"

namespace strata::cli {

struct ApplySettings {
  // What lines do not say themselves.
  v1::ApplyRequest defaults;
  // Streams side by side; all messages of a student go over the same one.
  int streams = 1;
  // Messages of one stream that are sent and not answered.
  int in_flight = 256;
  // How long one message is tried again.
  int64_t retry_ms = 60'000;
};

struct ApplyCounts {
  int64_t messages = 0;  // Read so far; when all is done the sum of the others but `repeated`.
  int64_t applied = 0;
  int64_t superseded = 0;
  int64_t duplicate = 0;
  int64_t conflict = 0;
  int64_t below_floor = 0;
  int64_t refused = 0;    // With an error, or left without an answer.
  int64_t malformed = 0;  // Not sent.
  int64_t repeated = 0;   // Sent again.
  int64_t bytes_read = 0;

  int64_t rejected() const { return below_floor + refused + malformed; }
  int64_t done() const { return applied + superseded + duplicate + conflict + rejected(); }
};

// Why not all messages were applied.
struct ApplyFailure {
  int64_t line = 0;  // The first one that is left.
  client::Refusal refusal;
};

// What is told while it goes on, by the calling thread.
struct ApplyListener {
  std::function<void()> progress;  // Often.
  // A message that did not take effect. `stopped`: only because everything stopped.
  std::function<void(const Message&, const client::Refusal&, bool stopped)> rejected;
  std::function<bool()> stop;  // Whether to stop everything; asked often.
};

// Applies all messages. A malformed or refused one is told to the listener, the others go on.
//
// When a stream breaks, or answers that the outcome of a message is not known, a new stream takes
// its place after a delay, and what has no definite answer is sent again, in the order of the
// lines: messages may be repeated at will. A message that gets no definite answer within retry_ms
// is refused. All of it stops when nothing else got one meanwhile, when a new stream gets no answer
// for that long, or at an error of a stream that no repetition cures.
std::optional<ApplyFailure> Apply(Session& session, const ApplySettings& settings,
                                  LineReader& lines, ApplyCounts& counts,
                                  const ApplyListener& listener);

}  // namespace strata::cli
