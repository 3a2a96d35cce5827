// A server in this process with its port for people, and the same calls by HTTP and by gRPC.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/http/http_client.h"
#include "tests/rpc/secured_server.h"
#include "tests/rpc/test_server.h"

namespace strata::http_test {

// As rpc_test::TestOptions, with the port on.
inline app::ServerOptions HttpOptions(const std::string& access = "all") {
  app::ServerOptions options = rpc_test::TestOptions();
  options.http.listen = "127.0.0.1:0";
  options.http.access = access;
  return options;
}

inline std::string PathOf(std::string_view method) { return "/strata.v1." + std::string(method); }

class HttpWorld {
 public:
  explicit HttpWorld(const app::ServerOptions& options = HttpOptions()) : grpc_(options) {}

  rpc_test::TestServer& grpc() { return grpc_; }
  app::Server& server() { return grpc_.server(); }
  int port() { return server().http_port(); }

  // Of "DocumentService/Get".
  Response Call(std::string_view method, std::string_view json, const RequestHeaders& more = {}) {
    return CallOnce(port(), Post(PathOf(method), json, more));
  }

  // How many commits there were.
  int64_t commits() {
    const auto head = grpc_.GetLedgerHead("{}");
    EXPECT_TRUE(head.ok()) << head.status.error_message();
    return head.response.head().position();
  }

 private:
  rpc_test::TestServer grpc_;
};

// One message of a stream, in its envelope.
inline std::string Enveloped(std::string_view message, int flags = 0) {
  std::string envelope(1, static_cast<char>(flags));
  for (int shift = 24; shift >= 0; shift -= 8) {
    envelope += static_cast<char>(message.size() >> shift);
  }
  return envelope + std::string(message);
}

inline std::string PostStream(std::string_view method, std::string_view json,
                              RequestHeaders more = {}) {
  more.insert(more.begin(), {"Content-Type", "application/connect+json"});
  return Post(PathOf(method), Enveloped(json), std::move(more));
}

// Looks again and again until it is so, for so long at most; whether it is.
inline bool ComesTrue(const std::function<bool()>& so,
                      std::chrono::milliseconds patience = kPatience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace strata::http_test
