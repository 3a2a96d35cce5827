// TLS for connections that are not gRPC's, by the certificates that gRPC's are served by.
#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "service/security/certificates.h"
#include "service/server/tls_credentials.h"

namespace strata::http {

struct SslDeleter {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslPointer = std::unique_ptr<SSL, SslDeleter>;

using ClientCertificates = server::TlsCredentials::ClientCertificates;

// Thread-safe.
class TlsContext {
 public:
  // What is in use now; another pointer when that has changed. CheckCertificates takes the texts.
  using Current = std::function<std::shared_ptr<const security::CertificateTexts>()>;

  TlsContext(ClientCertificates clients, Current current);

  // For one connection, by what is in use now. INTERNAL: OpenSSL does not take what was checked.
  absl::StatusOr<SslPointer> Accept();

 private:
  const ClientCertificates clients_;
  const Current current_;
  std::mutex mutex_;  // guards the next two
  std::shared_ptr<const security::CertificateTexts> texts_;
  std::shared_ptr<SSL_CTX> context_;
};

// What the verified certificate of the other end says; empty without one.
struct PeerNames {
  std::vector<std::string> uris;
  std::vector<std::string> dns_names;
};
PeerNames PeerNamesOf(SSL* ssl);

}  // namespace strata::http
