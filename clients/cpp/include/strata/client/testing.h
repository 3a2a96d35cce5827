// A server for a test: in memory, on a port of its own, gone afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace strata::client::testing {

struct ServerOptions {
  // The program. Empty: the one that the environment's STRATAD names, else `stratad` on PATH.
  std::string program = {};
  // Its flags, in addition to `--engine memory --listen 127.0.0.1:0`.
  std::vector<std::string> arguments = {};
};

class Server {
 public:
  // Returns when it serves. UNAVAILABLE, with its output, if it does not within a minute; NOT_FOUND
  // if there is no such program.
  static absl::StatusOr<Server> Start(const ServerOptions& options = {});

  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  // Ends it. It also ends with the thread that started it.
  ~Server();

  // For ClientOptions::target.
  const std::string& target() const;

 private:
  class Body;
  explicit Server(std::unique_ptr<Body> body);
  std::unique_ptr<Body> body_;
};

}  // namespace strata::client::testing
