// A server that knows its callers: TLS, client certificates, tokens, a policy; and calls of any RPC
// by whoever a test likes to be.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/base/clock.h"
#include "schemas/store/store.h"
#include "service/app/server.h"
#include "tests/support/certificates.h"
#include "tests/support/moved_clock.h"
#include "tests/support/temporary_directory.h"

namespace strata::rpc_test {

// What a caller shows.
struct Presented {
  std::optional<test_support::Certificate> certificate{};
  std::string authorization{};  // the header's value; empty: none
};

// How a call ended, and what was answered before.
struct Answered {
  grpc::Status status;
  std::vector<std::string> messages;  // bytes
};

// Calls any RPC among the linked services ("strata.v1.DocumentService/Get"), a stream or not, with
// one message in JSON. A stream that does not end by itself is left after its first message.
Answered CallAnything(const std::shared_ptr<grpc::Channel>& channel, std::string_view method,
                      std::string_view json, const std::string& authorization = "");

// Over the memory engine, on a free port. Client certificates are optional.
// "spiffe://test/owner" may do everything with all collections, subscriptions and queues.
class SecuredServer {
 public:
  // `grants` and `quotas` are the policy's others, as JSON without the brackets around; each user
  // gets a token ("user:NAME"). `single_record`: over an engine without atomic batches.
  // `change` sees the options last.
  explicit SecuredServer(std::string_view grants, const std::vector<std::string>& users = {},
                         std::string_view quotas = "", int loops = 1, bool single_record = false,
                         const std::function<void(app::ServerOptions&)>& change = nullptr);

  app::Server& server() { return *server_; }
  const test_support::TestCa& ca() const { return ca_; }

  // A certificate of this URI.
  Presented Uri(const std::string& uri) const { return {.certificate = ca_.IssueForUri(uri)}; }
  // Of a user.
  const std::string& token(const std::string& user) const { return tokens_.at(user); }
  Presented User(const std::string& user) const {
    return {.authorization = "Bearer " + token(user)};
  }
  // From now on, to the server, the token of the user "late" has expired; those of others last.
  void LetTokensEnd();

  std::shared_ptr<grpc::Channel> Connect(const Presented& presented) const;
  // A connection, and the header to send with each call.
  struct Dialled {
    std::shared_ptr<grpc::Channel> channel;
    std::string authorization;
  };
  Dialled Dial(const Presented& presented) const {
    return {Connect(presented), presented.authorization};
  }

  // A file of what it is served by: "server.pem", "server.key", "tokens", "policy.json".
  std::string Path(const std::string& name) const { return directory_.Join(name); }

  // All records, keys and values.
  std::vector<std::string> StoredBytes() const;

 private:
  test_support::MovedClock clock_;
  test_support::TemporaryDirectory directory_;
  test_support::TestCa ca_{"test"};
  std::map<std::string, std::string> tokens_;
  store::Store* store_ = nullptr;  // the server's
  std::unique_ptr<app::Server> server_;
};

}  // namespace strata::rpc_test
