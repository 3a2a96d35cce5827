// What a caller who means harm, or a broken one, can send. Each attack goes on until it is stopped,
// on the thread that calls it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/withstand/raw_connection.h"

namespace strata::withstand {

// What an attack has done so far; read when its thread has ended.
struct AttackCounts {
  int64_t sent = 0;   // calls, headers or frames, as the attack has it
  int64_t ended = 0;  // calls that the server has ended
  int64_t connections = 0;
};

// Calls that are cancelled as soon as they have begun, on one connection: so many a second, or (0)
// as many as the server reads.
void RapidReset(int port, int64_t per_second, std::stop_token stop, AttackCounts& counts);

// The same request over and over, so many at a time, each caller from an address of its own.
struct RepeatedCall {
  std::string method;
  std::string message;
  Metadata metadata{};
  int callers = 1;
  int at_once = 1;  // of each caller
};
void Repeat(int port, const RepeatedCall& call, std::stop_token stop, AttackCounts& counts);

// So many calls on one connection, with metadata of 6.5 KB each and no message, beyond the number
// of streams that the server has announced: that binds only who has acknowledged it. They are kept
// open.
void TooManyStreams(int port, int64_t streams, std::stop_token stop, AttackCounts& counts);

// One header of so many bytes, again and again.
void HugeHeaders(int port, size_t bytes, std::stop_token stop, AttackCounts& counts);

// SETTINGS, each of which is to be acknowledged.
void SettingsFlood(int port, std::stop_token stop, AttackCounts& counts);

// Connections that say hello and nothing more.
class IdleConnections {
 public:
  explicit IdleConnections(int port) : port_(port) {}

  // Opens so many more, 1,000 from each address at most. Waits until each is either greeted or
  // closed by the server, at most `patience` in all; whether that came true.
  bool Open(int64_t count, std::chrono::milliseconds patience);
  // Takes note of those that the server has closed since.
  void Look();
  int64_t greeted() const;  // and not closed
  int64_t refused() const;  // closed

 private:
  const int port_;
  std::vector<std::unique_ptr<RawConnection>> connections_;
};

}  // namespace strata::withstand
