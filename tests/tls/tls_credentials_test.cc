// What the server's port says and takes in a handshake, and how that is replaced while it serves.
#include "service/server/tls_credentials.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/served.h"
#include "tests/support/certificates.h"
#include "tests/tls/tls_client.h"

namespace strata::tls_test {
namespace {

using server::TlsCredentials;
using test_support::Certificate;
using test_support::TestCa;
using Clients = TlsCredentials::ClientCertificates;

// How gRPC refuses a handshake: it says no more. What the client itself refused reads otherwise.
constexpr char kHungUp[] = "unexpected eof while reading";

security::CertificateTexts Texts(const Certificate& certificate) {
  return {certificate.chain_pem, certificate.key_pem, std::nullopt};
}

class Tls : public testing::Test {
 protected:
  void Serve(Clients clients = Clients::kNone) {
    security::CertificateTexts texts = Texts(certificate_);
    if (clients != Clients::kNone) texts.client_ca = client_ca_.pem();
    credentials_ = std::make_shared<TlsCredentials>(clients, std::move(texts));
    server::LoopOptions options;
    options.credentials = credentials_;
    served_ = std::make_unique<server::Served>(
        std::vector<server::Method>{server::Answering()}, options,
        grpc::SslCredentials(
            {.pem_root_certs = ca_.pem(), .pem_private_key = "", .pem_cert_chain = ""}));
  }
  ClientSettings Settings() const { return {.port = served_->loop().port(), .ca = ca_.pem()}; }
  ClientSettings SettingsWith(const Certificate& certificate) const {
    ClientSettings settings = Settings();
    settings.certificate = certificate;
    return settings;
  }

  const TestCa ca_{"servers"};
  const TestCa client_ca_{"clients"};
  const Certificate certificate_ = ca_.IssueForServer();
  std::shared_ptr<TlsCredentials> credentials_;
  std::unique_ptr<server::Served> served_;
};

TEST_F(Tls, ServesCallsByVersions12And13Alone) {
  Serve();
  EXPECT_TRUE(served_->Call().ok());
  for (const auto& [version, name] :
       {std::pair(TLS1_2_VERSION, "TLSv1.2"), std::pair(TLS1_3_VERSION, "TLSv1.3")}) {
    ClientSettings settings = Settings();
    settings.version_min = settings.version_max = version;
    TlsClient client(settings);
    EXPECT_TRUE(client.IsServed()) << client.problem();
    EXPECT_EQ(client.version(), name);
  }
  for (const int version : {TLS1_1_VERSION, TLS1_VERSION}) {
    ClientSettings settings = Settings();
    settings.version_min = settings.version_max = version;
    TlsClient client(settings);
    EXPECT_FALSE(client.shook_hands());
    EXPECT_EQ(client.problem(), kHungUp);
  }
}

TEST_F(Tls, AsksForCertificatesWhereThatIsWanted) {
  Serve();
  TlsClient client(SettingsWith(client_ca_.IssueForUri("spiffe://example.org/a")));
  EXPECT_TRUE(client.IsServed()) << client.problem();
  EXPECT_FALSE(client.was_asked_for_certificate());
  for (const Clients clients : {Clients::kOptional, Clients::kRequired}) {
    Serve(clients);
    TlsClient asked(SettingsWith(client_ca_.IssueForUri("spiffe://example.org/a")));
    EXPECT_TRUE(asked.IsServed()) << asked.problem();
    EXPECT_TRUE(asked.was_asked_for_certificate());
  }
}

TEST_F(Tls, OnlyAnOptionalCertificateMayBeMissing) {
  Serve(Clients::kOptional);
  EXPECT_TRUE(TlsClient(Settings()).IsServed());
  Serve(Clients::kRequired);
  TlsClient client(Settings());
  EXPECT_FALSE(client.IsServed());
  EXPECT_EQ(client.problem(), kHungUp);
}

TEST_F(Tls, AWrongCertificateIsRefusedEvenWhereNoneIsAskedToBe) {
  const TestCa other("clients");
  const Certificate wrong[] = {other.IssueForUri("spiffe://example.org/a"),
                               ca_.IssueForUri("spiffe://example.org/a"),
                               client_ca_.Issue({.not_after = -std::chrono::hours(1)}),
                               client_ca_.Issue({.not_before = std::chrono::hours(1)}),
                               test_support::SelfSigned({.uris = {"spiffe://example.org/a"}})};
  for (const Clients clients : {Clients::kOptional, Clients::kRequired}) {
    Serve(clients);
    for (const Certificate& certificate : wrong) {
      for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        ClientSettings settings = SettingsWith(certificate);
        settings.version_min = settings.version_max = version;
        EXPECT_FALSE(TlsClient(settings).IsServed());
      }
    }
  }
}

TEST_F(Tls, TheNextHandshakeIsServedByWhatWasReplaced) {
  Serve(Clients::kOptional);
  EXPECT_TRUE(served_->Call().ok());
  const Certificate old_client = client_ca_.IssueForUri("spiffe://example.org/a");
  EXPECT_TRUE(TlsClient(SettingsWith(old_client)).IsServed());

  const TestCa new_ca("new");
  const Certificate replacement = new_ca.IssueForServer();
  security::CertificateTexts texts = Texts(replacement);
  texts.client_ca = new_ca.pem();
  credentials_->Use(texts);

  ClientSettings settings = SettingsWith(new_ca.IssueForUri("spiffe://example.org/a"));
  settings.ca = new_ca.pem();
  TlsClient after(settings);
  EXPECT_TRUE(after.IsServed());
  EXPECT_EQ(after.server_certificate(), FirstCertificate(replacement.chain_pem));
  settings.certificate = old_client;
  EXPECT_FALSE(TlsClient(settings).IsServed());
  // It would not take the new certificate: a connection goes on as it began.
  EXPECT_TRUE(served_->Call().ok());
}

// Key and certificate change together, whoever is in a handshake meanwhile.
TEST_F(Tls, NoHandshakeFailsWhileCertificatesAreReplaced) {
  Serve();
  const Certificate certificates[] = {ca_.IssueForServer(), ca_.IssueForServer(),
                                      ca_.IssueForServer()};
  std::atomic<bool> over = false;
  std::atomic<int> served = 0;
  std::atomic<int> failed = 0;
  std::vector<std::jthread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      while (!over) ++(TlsClient(Settings()).IsServed() ? served : failed);
    });
  }
  int replaced = 0;
  for (; served < 300 && failed == 0; ++replaced) {
    credentials_->Use(Texts(certificates[replaced % 3]));
    std::this_thread::yield();
  }
  over = true;
  clients.clear();
  EXPECT_EQ(failed, 0);
  EXPECT_GT(replaced, 100);
}

// Whoever speaks no TLS hears nothing of what is served, and leaves nothing behind.
TEST_F(Tls, PlainTextIsHungUpOn) {
  Serve();
  for (int i = 0; i < 50; ++i) {
    const int plain = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(served_->loop().port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(plain, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const std::string hello = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    ASSERT_EQ(send(plain, hello.data(), hello.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(hello.size()));
    std::string heard;
    char buffer[256];
    for (ssize_t count = 0; (count = recv(plain, buffer, sizeof buffer, 0)) > 0;) {
      heard.append(buffer, static_cast<size_t>(count));
    }
    EXPECT_LE(heard.size(), 7u) << "more than a TLS alert";
    close(plain);
  }
  EXPECT_TRUE(served_->Call().ok());
}

}  // namespace
}  // namespace strata::tls_test
