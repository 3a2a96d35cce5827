// Takes requests from a connection, with an eye on bytes and time.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "service/http/access_checks.h"
#include "service/http/budget.h"
#include "service/http/port.h"
#include "service/http/request_head.h"
#include "service/http/socket.h"

namespace strata::http {

class RequestReader {
 public:
  RequestReader(Socket& socket, const Limits& limits) : socket_(socket), limits_(limits) {}

  // There is no request: the other end has closed, or has said nothing for as long as it may.
  struct Nothing {};

  // The next one, whose body is still to come.
  std::variant<RequestHead, Refusal, Nothing> ReadHead();

  // The body of the head that was read last, which takes room from `share`; or why there is none:
  // too large, too slow, broken off, or no room for it. Sends "100 Continue" if that is waited for.
  std::variant<std::string, Refusal> ReadBody(const RequestHead& head, Budget::Share& share);

  // Whether what comes next is another request. If not, the connection has to end.
  bool at_request_end() const { return at_request_end_; }

 private:
  // At least so many bytes are there; or why not.
  std::optional<Refusal> Await(size_t size);
  std::optional<Refusal> TakeBytes(size_t size, Budget::Share& share, std::string& body);
  std::optional<Refusal> TakeChunks(Budget::Share& share, std::string& body);
  // A line of at most so many bytes, without its end.
  std::variant<std::string, Refusal> TakeLine(size_t bytes_max);

  Socket& socket_;
  const Limits& limits_;
  std::string arrived_;  // and not taken yet
  Clock::time_point deadline_;
  bool first_ = true;
  bool at_request_end_ = true;
};

}  // namespace strata::http
