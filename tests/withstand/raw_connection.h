// One connection of a client that speaks HTTP/2 by itself, and as badly as it likes.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/withstand/http2.h"

namespace strata::withstand {

struct ConnectionSettings {
  int port = 0;
  // From which of this machine's addresses, so that callers can be told apart.
  std::string source = "127.0.0.2";
  // Bytes that the server may send on each stream. 0: shut, an answer never leaves the server. What
  // arrives makes room for as much on the connection.
  uint32_t window = 0x7fffffff;
  // SETTINGS and PING are acknowledged. Until they are, no limit in them binds.
  bool acknowledges = true;
};

// What came of a call. No header is decoded: gRPC puts a refusal into the only headers of a stream,
// which end it, and sends headers that end nothing before a message.
enum class Outcome {
  kNone,      // nothing has come
  kAnswered,  // a message is there or on its way: OK
  kRefused,   // any other status
  kReset,     // or the connection is closed
};

// Never blocks; not thread-safe.
class RawConnection {
 public:
  // Begins to connect to 127.0.0.1.
  explicit RawConnection(const ConnectionSettings& settings);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // The server has sent its settings.
  bool greeted() const { return greeted_; }
  // By the server, or it was never made.
  bool closed() const { return socket_ < 0; }
  // A number for a stream that nothing is known of.
  uint32_t NextStream();

  // What follows is queued; Advance sends it.
  void Send(std::string_view frames) { out_ += frames; }
  // Begins a call, and its stream.
  uint32_t Begin(std::string_view headers, std::string_view message);
  void Cancel(uint32_t stream);

  Outcome outcome(uint32_t stream) const;
  // Of all calls that were begun and not cancelled.
  int64_t Count(Outcome outcome) const;
  // Calls that have not ended: those that are answered but whose answer is not taken, too.
  int64_t open() const;
  bool over(uint32_t stream) const;
  // Queued and not yet taken by the kernel.
  size_t unsent() const { return out_.size() - sent_; }

  // Sends what can be sent and takes what has come.
  void Advance();
  // What it waits for.
  pollfd Wanted() const;

 private:
  struct Stream {
    Outcome outcome = Outcome::kNone;
    bool over = false;
  };

  void Close();
  void Flush();
  bool Receive();
  void TakeFrames();
  void TakeFrame(FrameType type, uint8_t flags, uint32_t stream, std::string_view payload);
  void End(Stream& stream, Outcome outcome);

  const ConnectionSettings settings_;
  int socket_ = -1;
  bool greeted_ = false;
  uint32_t next_stream_ = 1;
  std::map<uint32_t, Stream> streams_;
  std::string in_;
  std::string out_;
  size_t sent_ = 0;  // of out_
};

// Waits until something can be sent or taken on any of them, at most so long, and advances them
// all.
void Advance(const std::vector<RawConnection*>& connections, std::chrono::milliseconds patience);

// The same until `done` or until the patience is over; whether it is done.
bool AdvanceUntil(const std::vector<RawConnection*>& connections,
                  std::chrono::milliseconds patience, const std::function<bool()>& done);

}  // namespace strata::withstand
