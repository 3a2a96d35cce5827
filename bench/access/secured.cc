#include "bench/access/secured.h"

#include <sys/stat.h>

#include <fstream>
#include <stdexcept>

#include "bench/load/closed_loop.h"
#include "schemas/base/clock.h"
#include "service/security/tokens.h"

namespace strata::bench {
namespace {

constexpr char kClientUri[] = "spiffe://strata.test/owner";

std::string PolicyText() {
  return R"({"grants": [
    {"principals": ["user:owner", ")" +
         std::string(kClientUri) + R"("], "role": "admin", "resources": ["collection/*"]},
    {"principals": ["user:stranger"], "role": "reader", "resources": ["collection/another"]},
    {"principals": ["user:steady", "user:hasty", "user:slow"], "role": "reader",
     "resources": ["collection/*"]}],
  "quotas": [{"principals": ["user:hasty"], "calls_per_second": )" +
         std::to_string(kHastyCallsPerSecond) +
         R"(}, {"principals": ["user:slow"], "calls_per_second": )" +
         std::to_string(kSlowCallsPerSecond) + "}]}\n";
}

std::string LineOf(const std::string& name, const std::string& token) {
  const absl::StatusOr<std::string> line = security::TokenLine(name, token, std::nullopt);
  if (!line.ok()) throw std::runtime_error(std::string(line.status().message()));
  return *line + "\n";
}

}  // namespace

Secrets::Secrets(const std::string& folder)
    : folder_(folder), client_(ca_.IssueForUri(kClientUri)) {
  const test_support::Certificate server = ca_.IssueForServer();
  ca_file_ = Write("ca.pem", ca_.pem());
  certificate_file_ = Write("server.pem", server.chain_pem);
  key_file_ = Write("server.key", server.key_pem);
  std::string lines;
  for (const char* name : {kOwner, kStranger, kSteady, kHasty, kSlow}) {
    tokens_[name] = security::MakeToken(Entropy::System());
    lines += LineOf(name, tokens_[name]);
  }
  tokens_file_ = Write("tokens", lines);
  policy_file_ = Write("policy.json", PolicyText());
}

std::string Secrets::Write(const std::string& name, const std::string& text) const {
  const std::string path = folder_ + "/" + name;
  std::ofstream file(path);
  if (chmod(path.c_str(), 0600) != 0 || !(file << text).flush()) {
    throw std::runtime_error("cannot write " + path);
  }
  return path;
}

std::vector<std::string> Secrets::ServerFlags(const Asked& asked) const {
  std::vector<std::string> flags;
  if (asked.tls) {
    flags.insert(flags.end(), {"--tls-certificate=" + certificate_file_, "--tls-key=" + key_file_});
  }
  if (asked.client_certificates) flags.push_back("--tls-client-ca=" + ca_file_);
  if (asked.tokens) flags.push_back("--tokens=" + tokens_file_);
  if (asked.policy) flags.push_back("--policy=" + policy_file_);
  if (asked.tls && !asked.policy) flags.emplace_back("--open");
  return flags;
}

client::Credentials Secrets::CredentialsFor(const Asked& asked, const std::string& name) const {
  client::Credentials credentials;
  credentials.tls = asked.tls;
  if (asked.tls) credentials.authorities = ca_.pem();
  if (asked.client_certificates) {
    credentials.certificate = client_.chain_pem;
    credentials.key = client_.key_pem;
  }
  if (asked.tokens) credentials.token = tokens_.at(name);
  return credentials;
}

SecuredServer::SecuredServer(const Secrets& secrets, const Asked& asked, const std::string& folder)
    : secrets_(secrets),
      asked_(asked),
      process_(
          {.data = folder + "/data", .log = folder + "-log", .flags = secrets.ServerFlags(asked)}) {
}

std::shared_ptr<grpc::Channel> SecuredServer::Connect() const {
  return bench::Connect(process_.address(), secrets_.CredentialsFor(asked_));
}

std::string SecuredServer::AuthorizationOf(const std::string& name) const {
  return secrets_.CredentialsFor(asked_, name).authorization();
}

void Present(const std::string& authorization, grpc::ClientContext& context) {
  if (!authorization.empty()) context.AddMetadata("authorization", authorization);
}

}  // namespace strata::bench
