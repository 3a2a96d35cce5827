// Pushes the lines of a file, many at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "clients/cli/line_stream.h"
#include "clients/cli/session.h"
#include "clients/cpp/refusal.h"
#include "strata/v1/queue_service.pb.h"

namespace strata::cli {

struct PushSettings {
  std::string queue;
  // What a message is besides its payload and its numbers. Its request_id: line N is pushed with
  // this, "/" and N, so that it may be repeated.
  v1::PushedMessage defaults;
  // Calls side by side. With more than one, messages may be pushed in another order than they have
  // in the file.
  int in_flight = 4;
  // How long a call is tried again.
  int64_t retry_ms = 60'000;
};

struct PushCounts {
  int64_t messages = 0;  // Read so far; when all is done the sum of those that follow it.
  int64_t pushed = 0;
  int64_t replayed = 0;   // An earlier push did it.
  int64_t refused = 0;    // With an error, or left without an answer.
  int64_t malformed = 0;  // Not sent.
  int64_t bytes_read = 0;

  int64_t rejected() const { return refused + malformed; }
  int64_t done() const { return pushed + replayed + rejected(); }
};

// One line that is not empty.
struct PushLine {
  int64_t line = 0;
  std::string text;
  v1::PushedMessage message;
  absl::Status parsed;  // Not OK: the line is malformed, why.
};

// Why not all lines were pushed.
struct PushFailure {
  int64_t line = 0;  // The first one that is left.
  client::Refusal refusal;
};

// What is told while it goes on, by one thread at a time.
struct PushListener {
  std::function<void(const PushCounts&)> progress;  // Often.
  // A line that was not pushed. `stopped`: only because everything stopped.
  std::function<void(const PushLine&, const client::Refusal&, bool stopped)> rejected;
  std::function<bool()> stop;  // Whether to stop everything; asked often.
};

// Reads a line into `message`: a JSON object. A member sequence_number that is a whole number from
// 1 on is the message's too, unless that has one.
absl::Status ParsePushLine(std::string_view text, v1::PushedMessage& message);

// Pushes all lines, up to a hundred a call: as many as have been read when a call may be made, so
// that nothing waits for a pipe that is silent. A line that is malformed or refused is told to the
// listener, the others go on. All of it stops where no line would fare better (there is no such
// queue), or when a call gets no definite answer within retry_ms.
std::optional<PushFailure> Push(Session& session, const PushSettings& settings, LineReader& lines,
                                PushCounts& counts, const PushListener& listener);

}  // namespace strata::cli
