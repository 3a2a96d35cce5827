// A client that speaks TLS by OpenSSL alone: a test sees and says what gRPC keeps to itself.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tests/support/certificates.h"

namespace strata::tls_test {

struct ClientSettings {
  int port = 0;
  int version_min = TLS1_2_VERSION;
  int version_max = TLS1_3_VERSION;
  std::string ca{};  // whose server it takes; empty: any
  std::optional<test_support::Certificate> certificate{};
};

// One connection to 127.0.0.1. Blocks, but never for long. Not thread-safe.
class TlsClient {
 public:
  // Connects and shakes hands.
  explicit TlsClient(const ClientSettings& settings);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // Its own side has shaken hands. Under TLS 1.3 the server has not yet looked at its certificate.
  bool shook_hands() const { return shook_hands_; }
  // The server has said something after the handshake, so it took the connection; waits for it.
  bool IsServed();

  // Whether the server's side still takes bytes.
  bool Write(std::string_view bytes);

  // Why there was no handshake, or nothing was said after it.
  const std::string& problem() const { return problem_; }
  std::string version() const { return SSL_get_version(ssl_.get()); }
  // PEM; empty without a handshake.
  std::string server_certificate() const;
  bool was_asked_for_certificate() const { return asked_; }

 private:
  void Configure(const ClientSettings& settings);
  void Fail(int result);
  static int OnAsked(SSL* ssl, X509** certificate, EVP_PKEY** key);

  int socket_ = -1;
  bool asked_ = false;
  bool shook_hands_ = false;
  std::string problem_;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, &SSL_free};
  std::shared_ptr<X509> certificate_;
  std::shared_ptr<EVP_PKEY> key_;
};

// The first certificate of a text, as PEM.
std::string FirstCertificate(const std::string& pem);

}  // namespace strata::tls_test
