#include "service/server/tls_credentials.h"

#include <grpc/grpc.h>

#include <cstdlib>
#include <utility>

namespace strata::server {
namespace {

grpc_ssl_client_certificate_request_type Requested(TlsCredentials::ClientCertificates clients) {
  switch (clients) {
    case TlsCredentials::ClientCertificates::kNone:
      return GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    case TlsCredentials::ClientCertificates::kOptional:
      return GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    case TlsCredentials::ClientCertificates::kRequired:
      break;
  }
  return GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
}

}  // namespace

// gRPC's watcher of files would take certificate and key one after the other. What is asked at each
// handshake, there is only in its C API.
TlsCredentials::TlsCredentials(ClientCertificates clients, security::CertificateTexts texts)
    : texts_(std::move(texts)),
      credentials_(grpc_ssl_server_credentials_create_with_options(
          grpc_ssl_server_credentials_create_options_using_config_fetcher(Requested(clients),
                                                                          &Fetch, this))) {}

TlsCredentials::~TlsCredentials() { grpc_server_credentials_release(credentials_); }

void TlsCredentials::Use(security::CertificateTexts texts) {
  const std::lock_guard lock(mutex_);
  texts_ = std::move(texts);
  fetched_ = false;
}

void TlsCredentials::SetAuthMetadataProcessor(
    const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) {
  std::abort();
}

int TlsCredentials::AddPortToServer(const std::string& address, grpc_server* server) {
  return grpc_server_add_http2_port(server, address.c_str(), credentials_);
}

grpc_ssl_certificate_config_reload_status TlsCredentials::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  auto& credentials = *static_cast<TlsCredentials*>(self);
  const std::lock_guard lock(credentials.mutex_);
  if (std::exchange(credentials.fetched_, true))
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const security::CertificateTexts& texts = credentials.texts_;
  const grpc_ssl_pem_key_cert_pair pair = {texts.key.c_str(), texts.chain.c_str()};
  // gRPC insists on some authority, also where it asks for no certificate and so needs none.
  const std::string& authorities = texts.client_ca.has_value() ? *texts.client_ca : texts.chain;
  *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace strata::server
