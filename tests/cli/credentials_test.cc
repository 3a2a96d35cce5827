// What callers present: tokens, certificates, whom they trust, and what is told of a refusal.
#include "clients/cpp/credentials.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "clients/cpp/refusal.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/cli/command_line.h"
#include "tests/cli/status_of.h"
#include "tests/support/certificates.h"
#include "tests/support/environment_variable.h"
#include "tests/support/temporary_directory.h"

namespace strata::cli {
namespace {

using test_support::TestCa;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kToken[] = "strata_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
constexpr char kLine[] =
    R"({"collection":"books","id":"emma","time":"t","content":{"title":"Emma"}})"
    "\n";

class CredentialsTest : public CommandLine {
 protected:
  std::string Write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.Join(name);
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  std::string TokenFile() { return Write("token", std::string(kToken) + "\n"); }

  test_support::TemporaryDirectory folder_;
};

// Whatever kind of call it is: unary, from the server, both ways, and by a completion queue.
TEST_F(CredentialsTest, ATokenGoesWithEveryCall) {
  const std::string token = TokenFile();
  server_.verify_steps.emplace_back().set_complete(true);
  const std::string message =
      R"({"operation":"insert","student_id":1,"class":"a","sequence_number":1})"
      "\n";
  using Arguments = std::vector<std::string>;
  for (const auto& [arguments, in] :
       std::vector<std::pair<Arguments, std::string>>{{{"create", "books", "moby", "{}"}, ""},
                                                      {{"get", "books", "moby"}, ""},
                                                      {{"import", "-"}, kLine},
                                                      {{"export", "books"}, ""},
                                                      {{"apply", "-"}, message},
                                                      {{"verify", "books"}, ""}}) {
    Arguments with_token = arguments;
    with_token.insert(with_token.end(), {"--token-file", token});
    const Outcome outcome = Run(with_token, in);
    EXPECT_EQ(outcome.status, kExitOk) << arguments[0] << ": " << outcome.err;
  }
  std::set<std::string> methods;
  for (const ReceivedCall& call : server_.received_calls()) {
    methods.insert(call.method);
    EXPECT_THAT(call.authorization, ElementsAre(std::string("Bearer ") + kToken)) << call.method;
  }
  for (const char* method :
       {"DocumentService/Create", "DocumentService/Get", "DocumentService/Update",
        "DocumentService/History", "EnrollmentService/Apply", "CollectionService/Verify"}) {
    EXPECT_TRUE(methods.contains(std::string("/strata.v1.") + method)) << method;
  }
}

TEST_F(CredentialsTest, WithoutATokenNothingIsPresented) {
  EXPECT_EQ(Run({"create", "books", "moby", "{}"}).status, kExitOk);
  ASSERT_EQ(server_.received_calls().size(), 1);
  EXPECT_THAT(server_.received_calls()[0].authorization, IsEmpty());
}

TEST_F(CredentialsTest, ATokenIsTheFirstLineWithoutBlanks) {
  const std::string file =
      Write("token", std::string(" \t") + kToken + " \r\nstrata_another\n", 0400);
  EXPECT_EQ(Run({"create", "books", "moby", "{}", "--token-file", file}).status, kExitOk);
  ASSERT_EQ(server_.received_calls().size(), 1);
  EXPECT_THAT(server_.received_calls()[0].authorization,
              ElementsAre(std::string("Bearer ") + kToken));
}

TEST_F(CredentialsTest, ABadTokenFileIsRefusedByName) {
  struct Row {
    std::string text;
    mode_t mode;
    const char* problem;
  };
  for (const Row& row :
       std::vector<Row>{{kToken, 0644, "others can read"},
                        {kToken, 0620, "others can read or change it"},
                        {kToken, 0604, "0600 or 0400"},
                        {"", 0600, "first line is empty"},
                        {"\n" + std::string(kToken), 0600, "first line is empty"},
                        {" \t \n", 0600, "first line is empty"},
                        {"strata_one strata_two", 0600, "blanks or other bytes"},
                        {std::string("strata_\0x", 9), 0600, "blanks or other bytes"},
                        {"strata_\xC3\xA4", 0600, "blanks or other bytes"},
                        {"strata_\x1B[2J", 0600, "blanks or other bytes"},
                        {std::string(5000, 'x'), 0600, "more than 4096 bytes"},
                        {std::string(2 << 20, 'x'), 0600, "more than 1 MiB"}}) {
    const std::string file = Write("bad-token", row.text, row.mode);
    const Outcome outcome = Run({"get", "books", "moby", "--token-file", file});
    EXPECT_EQ(outcome.status, kExitUsage) << row.problem;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("strata: --token-file " + file + ": "),
                                   HasSubstr(row.problem), testing::Not(HasSubstr(kToken))));
    std::filesystem::remove(file);
  }
  const std::string missing = folder_.Join("missing");
  const Outcome outcome = Run({"get", "books", "moby", "--token-file", missing});
  EXPECT_EQ(outcome.status, kExitUsage);
  EXPECT_EQ(outcome.err, "strata: --token-file " + missing + ": No such file or directory\n");
  EXPECT_EQ(Run({"get", "books", "moby", "--token-file", folder_.path()}).status, kExitUsage);
  EXPECT_THAT(server_.received_calls(), IsEmpty());
}

// strata … --tls-ca "$CA", where nobody set CA, must not go without TLS.
TEST_F(CredentialsTest, AnEmptyNameIsRefused) {
  for (const char* flag : {"--tls-ca", "--tls-certificate", "--tls-key", "--token-file"}) {
    const Outcome outcome = Run({"get", "books", "moby", flag, ""});
    EXPECT_EQ(outcome.status, kExitUsage) << flag;
    EXPECT_THAT(outcome.err, HasSubstr(flag));
  }
  EXPECT_THAT(server_.received_calls(), IsEmpty());
}

TEST_F(CredentialsTest, ATokenNeverTravelsInTheClear) {
  const std::string token = TokenFile();
  for (const char* server :
       {"10.0.0.1:50051", "strata.example.org:50051", "strata.example.org", "[2001:db8::1]:50051",
        "localhost.example.org:1", "dns:10.0.0.1:1", "0.0.0.0:1", "128.0.0.1:1"}) {
    const Outcome outcome =
        RunBare({"get", "books", "moby", "--server", server, "--token-file", token});
    EXPECT_EQ(outcome.status, kExitUsage) << server;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("strata: --token-file " + token),
                                   HasSubstr("in the clear"), HasSubstr("--tls-ca")));
  }
}

TEST_F(CredentialsTest, ThisMachineIsKnownByItsNames) {
  for (const char* server :
       {"127.0.0.1:50051", "127.0.0.1", "127.1.2.3:1", "localhost:50051", "localhost", "[::1]:1",
        "[::1]", "dns:///localhost:1", "dns:127.0.0.1:1", "ipv4:127.0.0.1:1", "ipv6:[::1]:1",
        "unix:/run/strata.sock", "unix-abstract:strata"}) {
    EXPECT_TRUE(client::IsLoopback(server)) << server;
  }
  for (const char* server :
       {"", ":50051", "10.0.0.1:1", "localhost.:1", "Localhost:1", "127.0.0.1.example.org:1",
        "127.0.0.1:1,10.0.0.1:1", "ipv4:127.0.0.1:1,10.0.0.1:1", "localhost:x", "[::1]x",
        "dns://8.8.8.8/localhost:1", "127.0.0.1@example.org:1", "127.1:1", "[::2]:1"}) {
    EXPECT_FALSE(client::IsLoopback(server)) << server;
  }
}

// A proxy takes what it is given to another machine.
TEST_F(CredentialsTest, ATokenInTheClearGoesThroughNoProxy) {
  const test_support::EnvironmentVariable proxy("http_proxy", "http://127.0.0.1:1");
  const Outcome outcome = Run({"create", "books", "moby", "{}", "--token-file", TokenFile()});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
}

TEST_F(CredentialsTest, ThatAServerRefusesIsToldWithWhatToDo) {
  using grpc::StatusCode;
  struct Row {
    StatusCode code;
    const char* reason;
    const char* advice;
  };
  for (const Row& row :
       {Row{StatusCode::UNAUTHENTICATED, "CREDENTIALS_MISSING", "--token-file"},
        Row{StatusCode::UNAUTHENTICATED, "CREDENTIALS_INVALID", "expired"},
        Row{StatusCode::PERMISSION_DENIED, "PERMISSION_DENIED", "policy"},
        Row{StatusCode::PERMISSION_DENIED, "ACT_FOR_DENIED", "--actor"},
        Row{StatusCode::RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", "again in a moment"}}) {
    server_.failures = {StatusOf(row.code, row.reason, "no", {{"resource", "collection/books"}})};
    const Outcome outcome = Run({"create", "books", "moby", "{}"});
    EXPECT_EQ(outcome.status, kExitRefused);
    EXPECT_THAT(outcome.err,
                AllOf(StartsWith(std::string(row.reason) + ": no (resource=collection/books)\n"),
                      HasSubstr(row.advice)));
  }
}

TEST_F(CredentialsTest, AnImportDoesNotTryAgainWhatIsDenied) {
  server_.failures = {
      StatusOf(grpc::StatusCode::PERMISSION_DENIED, "ACT_FOR_DENIED", "may not act for ann")};
  const Outcome outcome = Run({"import", "-"}, kLine);
  EXPECT_EQ(outcome.status, kExitRefused);
  EXPECT_THAT(outcome.err, StartsWith("stdin:1: ACT_FOR_DENIED: may not act for ann\n"));
  EXPECT_EQ(server_.received_calls().size(), 1);
}

// Beside the microsecond before, the same call would be refused again.
TEST_F(CredentialsTest, NoCallComesEarlierThanTheServerSaid) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_nanos(1'500'000);
  google::rpc::Status status;
  status.add_details()->PackFrom(retry);
  EXPECT_EQ(
      client::RefusalOf({grpc::StatusCode::RESOURCE_EXHAUSTED, "", status.SerializeAsString()})
          .retry_delay_ms,
      2);
}

// A server with a certificate of `ca`, which may ask its callers for theirs.
class TlsTest : public CredentialsTest {
 protected:
  std::shared_ptr<grpc::ServerCredentials> ServerCredentials(bool asks_for_certificates) {
    const test_support::Certificate certificate = ca_.IssueForServer();
    grpc::SslServerCredentialsOptions options(
        asks_for_certificates ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                              : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.pem_root_certs = asks_for_certificates ? ca_.pem() : "";
    options.pem_key_cert_pairs.push_back({certificate.key_pem, certificate.chain_pem});
    return grpc::SslServerCredentials(options);
  }

  static Outcome Create(const FakeServer& server, std::vector<std::string> flags) {
    flags.insert(flags.begin(),
                 {"create", "books", "{}", "--server", server.address(), "--timeout", "5s"});
    return RunBare(flags);
  }

  const TestCa ca_{"Strata Test CA"};
  const std::string ca_file_ = Write("ca.pem", ca_.pem(), 0644);
};

TEST_F(TlsTest, AServerIsTrustedByItsAuthorityAlone) {
  const FakeServer server(ServerCredentials(false));
  const std::string other = Write("other.pem", TestCa("Another").pem(), 0644);
  EXPECT_EQ(Create(server, {"--tls-ca", ca_file_}).status, kExitOk);
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{}, {"--tls-ca", other}, {"--tls-ca", "system"}}) {
    const Outcome outcome = Create(server, flags);
    EXPECT_EQ(outcome.status, kExitRefused) << testing::PrintToString(flags);
    EXPECT_THAT(outcome.err, AllOf(StartsWith("UNAVAILABLE: "), HasSubstr("--tls-ca")));
  }
}

TEST_F(TlsTest, ATokenGoesOverTls) {
  FakeServer server(ServerCredentials(false));
  const Outcome outcome = Create(server, {"--tls-ca", ca_file_, "--token-file", TokenFile()});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  ASSERT_EQ(server.received_calls().size(), 1);
  EXPECT_THAT(server.received_calls()[0].authorization,
              ElementsAre(std::string("Bearer ") + kToken));
}

// To a name of another machine, too: what is wrong then is only that it cannot be reached.
TEST_F(TlsTest, ATokenMayTravelOverTls) {
  const Outcome outcome =
      RunBare({"get", "books", "moby", "--server", "strata.invalid:1", "--timeout", "5s",
               "--tls-ca", ca_file_, "--token-file", TokenFile()});
  EXPECT_EQ(outcome.status, kExitRefused) << outcome.err;
}

TEST_F(TlsTest, AServerThatAsksForACertificateGetsIt) {
  const FakeServer server(ServerCredentials(true));
  const test_support::Certificate own = ca_.IssueForUri("spiffe://example.org/shop");
  const std::string certificate = Write("own.pem", own.chain_pem, 0644);
  const std::string key = Write("own.key", own.key_pem);
  const Outcome outcome =
      Create(server, {"--tls-ca", ca_file_, "--tls-certificate", certificate, "--tls-key", key});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  const Outcome without = Create(server, {"--tls-ca", ca_file_});
  EXPECT_EQ(without.status, kExitRefused);
  EXPECT_THAT(without.err, HasSubstr("--tls-certificate"));
}

TEST_F(TlsTest, TheEnvironmentSaysTheSame) {
  FakeServer server(ServerCredentials(true));
  const test_support::Certificate own = ca_.IssueForUri("spiffe://example.org/shop");
  const test_support::EnvironmentVariable ca("STRATA_TLS_CA", ca_file_);
  const test_support::EnvironmentVariable certificate("STRATA_TLS_CERTIFICATE",
                                                      Write("own.pem", own.chain_pem));
  const test_support::EnvironmentVariable key("STRATA_TLS_KEY", Write("own.key", own.key_pem));
  const test_support::EnvironmentVariable token("STRATA_TOKEN_FILE", TokenFile());
  const Outcome outcome = Create(server, {});
  EXPECT_EQ(outcome.status, kExitOk) << outcome.err;
  ASSERT_EQ(server.received_calls().size(), 1);
  EXPECT_EQ(server.received_calls()[0].authorization.size(), 1);
}

TEST_F(TlsTest, BadFilesAreRefusedByName) {
  const test_support::Certificate own = ca_.IssueForUri("spiffe://example.org/shop");
  const std::string certificate = Write("own.pem", own.chain_pem, 0644);
  const std::string key = Write("own.key", own.key_pem);
  const std::string other_key = Write("other.key", ca_.IssueForServer().key_pem);
  const std::string locked = Write("locked.key", test_support::WithPassPhrase(own.key_pem, "x"));
  const std::string text = Write("text", "-----BEGIN CERTIFICATE-----\nno\n");
  struct Row {
    std::vector<std::string> flags;
    std::string problem;
  };
  for (const Row& row : std::vector<Row>{
           {{"--tls-ca", text}, "--tls-ca " + text + ": no certificate"},
           {{"--tls-ca", key}, "--tls-ca " + key + ": no certificate"},
           {{"--tls-ca", "/nonexistent"}, "--tls-ca /nonexistent: No such file"},
           {{"--tls-ca", ca_file_, "--tls-certificate", certificate}, "without --tls-key"},
           {{"--tls-ca", ca_file_, "--tls-key", key}, "without --tls-certificate"},
           {{"--tls-certificate", certificate, "--tls-key", key}, "give --tls-ca too"},
           {{"--tls-ca", ca_file_, "--tls-certificate", text, "--tls-key", key},
            "--tls-certificate " + text + ": no certificate"},
           {{"--tls-ca", ca_file_, "--tls-certificate", certificate, "--tls-key", text},
            "--tls-key " + text + ": no private key"},
           {{"--tls-ca", ca_file_, "--tls-certificate", certificate, "--tls-key", locked},
            "--tls-key " + locked + ": no private key (PEM, without passphrase)"},
           {{"--tls-ca", ca_file_, "--tls-certificate", certificate, "--tls-key", other_key},
            "--tls-key " + other_key + ": it is not the key of the certificate in " +
                certificate}}) {
    const Outcome outcome = Create(server_, row.flags);
    EXPECT_EQ(outcome.status, kExitUsage) << row.problem;
    EXPECT_THAT(outcome.err, AllOf(StartsWith("strata: --tls-"), HasSubstr(row.problem)));
  }
  EXPECT_THAT(server_.received_calls(), IsEmpty());
}

}  // namespace
}  // namespace strata::cli
