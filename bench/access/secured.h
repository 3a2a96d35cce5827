// A server that knows who calls, and what its callers present.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clients/cpp/credentials.h"
#include "tests/fault/server_process.h"
#include "tests/support/certificates.h"

namespace strata::bench {

// Who calls, by the policy of this program: the owner may do everything, the stranger nothing with
// the documents of others. The hasty and the slow one have quotas, and are readers as is the steady
// one.
inline constexpr char kOwner[] = "owner";
inline constexpr char kStranger[] = "stranger";
inline constexpr char kSteady[] = "steady";
inline constexpr char kHasty[] = "hasty";
inline constexpr char kSlow[] = "slow";
inline constexpr int kHastyCallsPerSecond = 500;
inline constexpr int kSlowCallsPerSecond = 2;

// What a server asks for.
struct Asked {
  std::string name;  // in the figures
  bool tls = false;
  bool client_certificates = false;
  bool tokens = false;
  bool policy = false;
};

// An authority, its certificates, tokens and the policy, as files in a folder.
class Secrets {
 public:
  explicit Secrets(const std::string& folder);

  std::vector<std::string> ServerFlags(const Asked& asked) const;
  // As the owner, or as whoever else has a token.
  client::Credentials CredentialsFor(const Asked& asked, const std::string& name = kOwner) const;

 private:
  std::string Write(const std::string& name, const std::string& text) const;

  const std::string folder_;
  const test_support::TestCa ca_{"strata_access"};
  std::map<std::string, std::string> tokens_;  // by name
  test_support::Certificate client_;
  std::string ca_file_;
  std::string certificate_file_;
  std::string key_file_;
  std::string tokens_file_;
  std::string policy_file_;
};

// Serves from construction to destruction.
class SecuredServer {
 public:
  SecuredServer(const Secrets& secrets, const Asked& asked, const std::string& folder);

  const Asked& asked() const { return asked_; }
  pid_t pid() const { return process_.pid(); }
  // Connections of their own, and the header that goes with each call over them.
  std::shared_ptr<grpc::Channel> Connect() const;
  std::string AuthorizationOf(const std::string& name) const;

 private:
  const Secrets& secrets_;
  const Asked asked_;
  const fault::ServerProcess process_;
};

// Presents it with one call; nothing if it is empty.
void Present(const std::string& authorization, grpc::ClientContext& context);

}  // namespace strata::bench
