#include "tests/tls/tls_client.h"

#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace strata::tls_test {
namespace {

using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free)>;

BioPtr Reader(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free};
}

void Check(bool done) {
  if (done) return;
  ERR_print_errors_fp(stderr);
  std::abort();
}

int Connect(int port) {
  signal(SIGPIPE, SIG_IGN);  // what is written to a closed connection just fails
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  constexpr timeval kPatience{.tv_sec = 20, .tv_usec = 0};
  setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Check(connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  return made;
}

std::string PemOf(X509* certificate) {
  const BioPtr out(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_X509(out.get(), certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);  // NOLINT: OpenSSL's type
  return {data, static_cast<size_t>(size)};
}

}  // namespace

TlsClient::TlsClient(const ClientSettings& settings)
    : socket_(Connect(settings.port)), context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free) {
  Configure(settings);
  ssl_.reset(SSL_new(context_.get()));
  SSL_set_fd(ssl_.get(), socket_);
  ERR_clear_error();
  const int result = SSL_connect(ssl_.get());
  shook_hands_ = result == 1;
  if (!shook_hands_) Fail(result);
}

TlsClient::~TlsClient() {
  ERR_clear_error();
  close(socket_);
}

void TlsClient::Configure(const ClientSettings& settings) {
  SSL_CTX* const context = context_.get();
  // What OpenSSL would refuse by itself is for the server to refuse.
  SSL_CTX_set_security_level(context, 0);
  SSL_CTX_set_min_proto_version(context, settings.version_min);
  SSL_CTX_set_max_proto_version(context, settings.version_max);
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context, kHttp2, sizeof kHttp2);
  SSL_CTX_set_app_data(context, this);
  SSL_CTX_set_client_cert_cb(context, &OnAsked);
  if (!settings.ca.empty()) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    const BioPtr in = Reader(settings.ca);
    while (X509* const ca = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
      X509_free(ca);
    }
  }
  if (!settings.certificate.has_value()) return;
  const BioPtr certificate = Reader(settings.certificate->chain_pem);
  certificate_.reset(PEM_read_bio_X509(certificate.get(), nullptr, nullptr, nullptr), X509_free);
  const BioPtr key = Reader(settings.certificate->key_pem);
  key_.reset(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  Check(certificate_ != nullptr && key_ != nullptr);
}

int TlsClient::OnAsked(SSL* ssl, X509** certificate, EVP_PKEY** key) {
  auto& self = *static_cast<TlsClient*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  self.asked_ = true;
  if (self.certificate_ == nullptr) return 0;
  X509_up_ref(self.certificate_.get());
  EVP_PKEY_up_ref(self.key_.get());
  *certificate = self.certificate_.get();
  *key = self.key_.get();
  return 1;
}

void TlsClient::Fail(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  problem_ = reason != nullptr ? reason : "closed (" + std::to_string(error) + ")";
  ERR_clear_error();
}

bool TlsClient::IsServed() {
  if (!shook_hands_) return false;
  std::array<char, 64> bytes{};
  ERR_clear_error();
  const int result = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  if (result <= 0) Fail(result);
  return result > 0;
}

bool TlsClient::Write(std::string_view bytes) {
  ERR_clear_error();
  return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
}

std::string TlsClient::server_certificate() const {
  X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
  return certificate == nullptr ? "" : PemOf(certificate);
}

std::string FirstCertificate(const std::string& pem) {
  const BioPtr in = Reader(pem);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr), &X509_free);
  return certificate == nullptr ? "" : PemOf(certificate.get());
}

}  // namespace strata::tls_test
