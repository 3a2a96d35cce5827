// Connections that say hello in HTTP/2 and then nothing more.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace strata::bench {

// A gRPC client would cost more for each than the server that is to be measured; these are plain
// sockets.
class IdleConnections {
 public:
  IdleConnections() = default;
  ~IdleConnections();
  IdleConnections(const IdleConnections&) = delete;
  IdleConnections& operator=(const IdleConnections&) = delete;

  // Opens up to `count` to 127.0.0.1:`port` and waits for the server's hello on each, at most
  // `patience` in all. How many are open.
  int64_t Open(int port, int64_t count, std::chrono::seconds patience);

  // How many the server has closed since. Reads what it sent, and does not answer.
  int64_t CountClosed();

 private:
  struct Connection {
    int socket = -1;
    bool greeted = false;
    std::string received;
  };

  bool Connect(int port, size_t index);
  // What the socket of the connection has to say; false: it is closed.
  bool Proceed(Connection& connection);

  int epoll_ = -1;
  std::vector<Connection> connections_;
};

}  // namespace strata::bench
