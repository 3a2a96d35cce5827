// TLS for the server's port, with certificates that are replaced while it serves.
#pragma once

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <mutex>
#include <string>

#include "service/security/certificates.h"

namespace strata::server {

// TLS 1.2 and 1.3. Whoever shakes hands is served by what was in use last, whole: never by the key
// of one certificate and the text of another. For one port of one server, which it outlives.
// Thread-safe.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  enum class ClientCertificates {
    kNone,      // are not asked for
    kOptional,  // may be presented; one that is wrong ends the connection
    kRequired,
  };

  // REQUIRES, here and below: CheckCertificates takes the texts; with client certificates, they
  // have an authority.
  TlsCredentials(ClientCertificates clients, security::CertificateTexts texts);
  ~TlsCredentials() override;

  // From the next handshake on. Connections that there are go on as they are.
  void Use(security::CertificateTexts texts);

  // REQUIRES: it is not called; handlers look at metadata themselves.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) override;

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override;
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);

  std::mutex mutex_;  // guards the next two
  security::CertificateTexts texts_;
  bool fetched_ = false;  // since they are in use
  grpc_server_credentials* const credentials_;
};

}  // namespace strata::server
