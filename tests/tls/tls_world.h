// The real server with certificates, tokens and a policy, in files that a test changes.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/fault/server_process.h"
#include "tests/support/certificates.h"
#include "tests/support/temporary_directory.h"
#include "tests/tls/tls_client.h"

namespace strata::tls_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;
using test_support::Certificate;
using test_support::TestCa;

// How long anything may take whose time is not the claim.
inline constexpr seconds kPatience{30};

// In place of whatever is there.
void WriteFile(const std::string& path, const std::string& text, int mode = 0600);

// Looks again and again until it is so, for so long at most; whether it is.
bool ComesTrue(const std::function<bool()>& so, milliseconds patience);

// A line of a tokens file.
std::string TokenLine(const std::string& name, const std::string& token,
                      const std::string& more = "");

// Who calls, and whom it believes to be called.
struct Caller {
  std::string ca;
  std::string token{};
  std::optional<Certificate> certificate{};
};

// A connection of its own, with its own handshake.
std::shared_ptr<grpc::Channel> Connect(const std::string& address, const Caller& caller);
// A Get of a document that is not there (NOT_FOUND is how a server answers whoever may read).
grpc::Status Get(const std::shared_ptr<grpc::Channel>& channel, const Caller& caller);
bool IsLetIn(const grpc::Status& status);

class TlsWorld : public testing::Test {
 protected:
  // Of the test's folder.
  std::string Path(const std::string& name) const { return directory_.Join(name); }
  // Makes a folder with server.pem, server-key.pem, client-ca.pem, tokens and policy.json, as they
  // are served at first.
  std::string MakeFolder();
  // What the server's flags name is in this folder from now on, all at once: as secrets are
  // mounted.
  void Publish(const std::string& folder) const;
  // The flags that name what is published.
  std::vector<std::string> Flags(const std::string& client = "optional") const;

  void Start(const std::vector<std::string>& flags);
  int port() const;
  std::string log() const { return fault::ReadFile(Path("log")); }
  // How many lines of the log hold the text.
  int LinesWith(const std::string& text) const;

  test_support::TemporaryDirectory directory_;
  int folders_ = 0;
  const TestCa ca_{"servers"};
  const TestCa client_ca_{"clients"};
  const Certificate certificate_ = ca_.IssueForServer();
  std::unique_ptr<fault::ServerProcess> server_;
};

// What the fixture's token file and policy say.
inline constexpr char kReaderToken[] = "strata_reader";
inline constexpr char kPolicy[] = R"({"grants": [
  {"principals": ["user:*", "spiffe://example.org/*", "dns:*"],
   "role": "reader", "resources": ["collection/*"]}]})";

}  // namespace strata::tls_test
