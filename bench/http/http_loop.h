// The closed loop of bench/load over HTTP/1.1: so many connections that are kept, each with one
// call on its way, in one thread, over bare sockets, because a client built otherwise is what would
// be measured.
#pragma once

#include <string>
#include <string_view>

#include "bench/http/json_gets.h"
#include "bench/load/closed_loop.h"
#include "bench/support/measurement.h"

namespace strata::bench {

// One connection to 127.0.0.1. Where the server breaks off or answers with what is no answer of
// this port, std::runtime_error is thrown. Not thread-safe.
class HttpConnection {
 public:
  explicit HttpConnection(int port);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int socket() const { return socket_; }
  // The one request that is on its way.
  void Send(std::string_view request);
  // Takes what has come, or waits for something; true: the answer is whole.
  bool Take();
  // REQUIRES: the answer is whole. The body is good until the next Send.
  int status() const { return status_; }
  std::string_view body() const;

 private:
  void ParseHead(size_t head_bytes);

  int socket_ = -1;
  std::string arrived_;
  size_t head_bytes_ = 0;  // with the empty line; 0: not whole yet
  size_t body_bytes_ = 0;
  int status_ = 0;
};

// `settings.calls_max` and `settings.authorization` are not for this. Prints the first failure, if
// there are any, on standard error.
Measurement RunHttpLoop(int port, JsonGets& gets, const LoopSettings& settings);

}  // namespace strata::bench
