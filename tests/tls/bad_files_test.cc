// What is wrong with a file is said by its flag: at the start nothing is served, and later what was
// in use stays.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/places.h"
#include "tests/tls/tls_world.h"

namespace strata::tls_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class BadFiles : public TlsWorld {
 protected:
  // One thing that is wrong, made in a folder of good files.
  struct Bad {
    std::string flag;
    std::string problem;
    std::function<void(const std::string& folder)> make;
  };
  using Make = std::function<void(const std::string& path)>;

  static Make Writing(const std::string& name, const std::string& text, int mode = 0600) {
    return [=](const std::string& folder) { WriteFile(folder + "/" + name, text, mode); };
  }
  static Make Instead(const std::string& name, const Make& make) {
    return [=](const std::string& folder) {
      std::filesystem::remove(folder + "/" + name);
      make(folder + "/" + name);
    };
  }
  static Make Serving(const Certificate& certificate) {
    return [=](const std::string& folder) {
      WriteFile(folder + "/server.pem", certificate.chain_pem);
      WriteFile(folder + "/server-key.pem", certificate.key_pem);
    };
  }

  std::vector<Bad> BadCertificates() const {
    const Certificate other = ca_.IssueForServer();
    std::string garbage = certificate_.chain_pem;
    garbage[garbage.size() / 2] = '!';
    const auto make_directory = [](const std::string& path) {
      std::filesystem::create_directory(path);
    };
    const auto make_pipe = [](const std::string& path) { mkfifo(path.c_str(), 0600); };
    return {
        {"tls-key", "does not fit", Writing("server-key.pem", other.key_pem)},
        {"tls-certificate", "holds a private key instead of a certificate",
         Serving({certificate_.key_pem, certificate_.chain_pem})},
        {"tls-certificate", "No such file", Instead("server.pem", [](const std::string&) {})},
        {"tls-certificate", "is a directory", Instead("server.pem", make_directory)},
        {"tls-certificate", "is empty", Writing("server.pem", "")},
        {"tls-certificate", "certificate 1 cannot be read", Writing("server.pem", garbage)},
        {"tls-certificate", "has expired",
         Serving(ca_.Issue(
             {.not_before = -std::chrono::hours(2), .not_after = -std::chrono::hours(1)}))},
        {"tls-certificate", "is not valid before",
         Serving(ca_.Issue({.not_before = std::chrono::hours(1)}))},
        {"tls-key", "is empty", Writing("server-key.pem", "")},
        {"tls-key", "is no regular file", Instead("server-key.pem", make_pipe)},
        {"tls-key", "pass phrase",
         Writing("server-key.pem", test_support::WithPassPhrase(certificate_.key_pem, "sesame"))},
        {"tls-client-ca", "is empty", Writing("client-ca.pem", "")},
        {"tls-client-ca", "holds no certificate", Writing("client-ca.pem", "none\r\n")},
        {"tls-client-ca", "No such file", Instead("client-ca.pem", [](const std::string&) {})},
        {"tls-client-ca", "has more than 1048576 bytes",
         Writing("client-ca.pem", std::string((1 << 20) + 1, '\n') + client_ca_.pem())},
    };
  }

  std::vector<Bad> BadTokens() const {
    const std::string line = TokenLine("reader", kReaderToken);
    return {
        {"tokens", "mode 0644", Writing("tokens", line, 0644)},
        {"tokens", "mode 0640", Writing("tokens", line, 0640)},
        {"tokens", "line 2", Writing("tokens", line + TokenLine("reader", "another"))},
        {"tokens", "line 1", Writing("tokens", "reader sha256:xyz\n")},
        {"tokens", "line 1", Writing("tokens", line.substr(0, line.size() - 1) + "\r\n")},
        {"tokens", "No such file", Instead("tokens", [](const std::string&) {})},
    };
  }

  std::vector<Bad> BadPolicies() const {
    return {
        {"policy", "", Writing("policy.json", "{\"grant\": []}")},
        {"policy", "", Writing("policy.json", "")},
        {"policy", "", Writing("policy.json", "not JSON")},
        {"policy", "", Writing("policy.json", kPolicy + std::string(10'000'000, ' '))},
        {"policy", "No such file", Instead("policy.json", [](const std::string&) {})},
    };
  }
};

TEST_F(BadFiles, AtTheStartAreRefusedByTheirFlag) {
  std::vector<Bad> all = BadCertificates();
  for (const auto& more : {BadTokens(), BadPolicies()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string folder = MakeFolder();
    all[i].make(folder);
    Publish(folder);
    std::vector<std::string> command = {test_support::ServerProgram(), "--listen=127.0.0.1:0"};
    for (const std::string& flag : Flags()) command.push_back(flag);
    const std::string errors = Path("errors" + std::to_string(i));
    const fault::Finished refused = fault::RunToEnd(command, errors);
    EXPECT_EQ(refused.status, 2) << i;
    EXPECT_EQ(refused.output, "") << i;
    EXPECT_THAT(fault::ReadFile(errors),
                AllOf(HasSubstr("stratad: --" + all[i].flag + ": "), HasSubstr(all[i].problem)))
        << i;
  }
}

// One line of the log for each, and the old ones go on: for whoever has a token, and as the
// certificate of whoever shakes hands.
TEST_F(BadFiles, AtAReloadLeaveWhatIsInUse) {
  Publish(MakeFolder());
  Start(Flags());
  const Caller reader{.ca = ca_.pem(), .token = kReaderToken};
  ASSERT_TRUE(IsLetIn(Get(Connect(server_->address(), reader), reader)));
  const std::vector<Bad> certificates = BadCertificates();
  const std::vector<Bad> tokens = BadTokens();
  const std::vector<Bad> policies = BadPolicies();
  int lines = 0;
  for (size_t i = 0; i < certificates.size(); ++i) {
    std::vector<Bad> made = {certificates[i]};
    if (i < tokens.size()) made.push_back(tokens[i]);
    if (i < policies.size()) made.push_back(policies[i]);
    const std::string folder = MakeFolder();
    for (const Bad& bad : made) bad.make(folder);
    Publish(folder);
    lines += static_cast<int>(made.size());
    EXPECT_TRUE(ComesTrue([&] { return LinesWith("not reloaded") >= lines; }, kPatience)) << log();
    for (const Bad& bad : made) {
      EXPECT_THAT(log(), AllOf(HasSubstr("--" + bad.flag + ": "), HasSubstr(bad.problem)));
    }
    const grpc::Status status = Get(Connect(server_->address(), reader), reader);
    EXPECT_TRUE(IsLetIn(status)) << status.error_message();
    EXPECT_EQ(TlsClient({.port = port()}).server_certificate(), certificate_.chain_pem);
  }
  // What is made good again is used, and said to be; tokens and policy have been for long.
  Publish(MakeFolder());
  EXPECT_TRUE(ComesTrue(
      [&] {
        return LinesWith("published/server.pem") > 0 && log().ends_with("published/server.pem\n");
      },
      kPatience))
      << log();
  EXPECT_EQ(LinesWith("not reloaded"), lines) << log();
  EXPECT_EQ(server_->Stop(), 0);
}

}  // namespace
}  // namespace strata::tls_test
