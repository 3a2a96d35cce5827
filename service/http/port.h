// The HTTP port, for people and their browsers: HTTP/1.1, with the explorer's pages and all methods
// by Connect's protocol in JSON.
//
// It decides nothing of its own about calls: each goes through the same admission, quotas and
// handlers as one over gRPC, as the same principal (calls.h).
// What it does decide is what comes before a call: whether a request is one that everybody reads
// alike, is meant for this host, comes from no other site's page, and arrives in time.
//
// A thread serves a connection, as a browser has few and a Watch keeps one to itself. A connection
// without a slot (slots.h) is answered 503, a few at a time, and reset beyond that.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "service/http/tls_context.h"
#include "service/server/loop_state.h"

namespace strata::http {

struct Limits {
  int connections_max = 128;  // served at once; a Watch counts as one
  // From a request's first byte to its last; and for a handshake, and for the first request's first
  // byte after it.
  std::chrono::milliseconds request{10'000};
  std::chrono::milliseconds answer{60'000};  // until one is taken, or a message of a stream
  std::chrono::milliseconds idle{60'000};    // from one request to the next
  size_t head_bytes_max = size_t{64} << 10;
  size_t body_bytes_max = size_t{4} << 20;
  // Bodies on their way in and answers on their way out, of all connections together.
  size_t bytes_held_max = size_t{128} << 20;
};

struct PortOptions {
  std::string listen;                // HOST:PORT; port 0 picks one
  bool loopback = true;              // nobody on another machine can connect
  bool reads_only = true;            // whatever callers may do elsewhere
  bool principals = false;           // callers may show credentials
  std::vector<std::string> hosts{};  // other names that it is called by, without ports
  Limits limits{};
};

// What it works with.
struct PortParts {
  std::shared_ptr<server::LoopState> calls;  // the loop's (server_loop.h)
  // What anybody may know of the program.
  std::string version;
  std::string commit;
  std::unique_ptr<TlsContext> tls{};  // null: in the clear
};

class Port {
 public:
  // Serves until it is stopped. STORE_UNAVAILABLE, naming the address, if it cannot be listened on.
  static absl::StatusOr<std::unique_ptr<Port>> Start(const PortOptions& options, PortParts parts);
  // As Stop.
  virtual ~Port() = default;

  virtual int port() const = 0;

  // From now on a connection ends with the answer that it waits for.
  virtual void Drain() = 0;
  // Until no answer is under way, at most so long.
  virtual void AwaitAnswers(std::chrono::milliseconds at_most) = 0;
  // Ends all connections, however far they are, and waits for their threads. May be called again.
  virtual void Stop() = 0;

 protected:
  Port() = default;
};

}  // namespace strata::http
