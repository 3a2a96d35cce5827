// Updates of which all but the last byte is sent.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace strata::bench {

// What a client that is broken, or means harm, can make a server keep. Speaks HTTP/2 by itself, as
// far as that takes, because a gRPC client sends whole messages.
class StalledCalls {
 public:
  // Opens the connections; `calls` streams in all, a message of `message_bytes` each.
  StalledCalls(int port, int connections, int64_t calls, int64_t message_bytes);
  ~StalledCalls();
  StalledCalls(const StalledCalls&) = delete;
  StalledCalls& operator=(const StalledCalls&) = delete;

  // Sends what the server takes, until all is sent or refused, or nothing has moved for a while;
  // at most `patience`.
  void Send(std::chrono::seconds patience);

  int64_t sent_bytes() const { return sent_; }
  int64_t refused() const { return refused_; }  // streams that the server has reset

 private:
  struct Stream {
    uint32_t id = 0;
    int64_t left = 0;    // bytes still to send
    int64_t credit = 0;  // that the server gave besides the initial one
    bool begun = false;
    bool ended = false;  // by the server
  };
  struct Connection {
    int socket = -1;
    std::string in;
    std::string out;
    int64_t credit = 0;
    int64_t initial_credit = 0;  // of each stream
    int64_t frame_max = 0;
    std::vector<Stream> streams;
  };

  bool Receive(Connection& connection);
  void TakeFrame(Connection& connection, char type, char flags, uint32_t stream,
                 const std::string& payload);
  void Fill(Connection& connection);
  bool Flush(Connection& connection);
  static void Close(Connection& connection);

  const int64_t message_bytes_;
  std::vector<Connection> connections_;
  int64_t sent_ = 0;
  int64_t refused_ = 0;
};

}  // namespace strata::bench
