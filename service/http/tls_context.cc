#include "service/http/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::http {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
template <typename Type>
using Owned = std::unique_ptr<Type, Free>;

// As gRPC offers with TLS 1.2; 1.3 has none but good ones.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr unsigned char kHttp11[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

Owned<BIO> Reading(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A client that offers other protocols only is told the truth by the first answer.
int SelectHttp11(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size,
                 const unsigned char* in, unsigned in_size, void* /*argument*/) {
  unsigned char* selected = nullptr;
  if (SSL_select_next_proto(&selected, out_size, kHttp11, sizeof kHttp11, in, in_size) !=
      OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = selected;
  return SSL_TLSEXT_ERR_OK;
}

bool UseChain(SSL_CTX* context, const std::string& chain) {
  const Owned<BIO> bio = Reading(chain);
  const Owned<X509> first(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (first == nullptr || SSL_CTX_use_certificate(context, first.get()) != 1) return false;
  while (Owned<X509> next{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add0_chain_cert(context, next.get()) != 1) return false;
    next.release();  // NOLINT: it is the context's now
  }
  ERR_clear_error();  // of the end of the text
  return true;
}

bool UseKey(SSL_CTX* context, const std::string& text) {
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(Reading(text).get(), nullptr, nullptr, nullptr));
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1 &&
         SSL_CTX_check_private_key(context) == 1;
}

// Clients are told whose certificates are meant, so that browsers offer no others.
bool UseAuthorities(SSL_CTX* context, const std::string& text) {
  const Owned<BIO> bio = Reading(text);
  bool any = false;
  while (const Owned<X509> authority{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1) {
      return false;
    }
    any = true;
  }
  ERR_clear_error();
  return any;
}

int Verification(ClientCertificates clients) {
  switch (clients) {
    case ClientCertificates::kNone:
      return SSL_VERIFY_NONE;
    case ClientCertificates::kOptional:
      return SSL_VERIFY_PEER;
    case ClientCertificates::kRequired:
      break;
  }
  return SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
}

absl::StatusOr<std::shared_ptr<SSL_CTX>> Make(ClientCertificates clients,
                                              const security::CertificateTexts& texts) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  const auto failure = [] {
    ERR_clear_error();
    return Error(ErrorReason::kInternal, "OpenSSL does not take the certificates in use");
  };
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(context.get(), kCiphers) != 1 ||
      !UseChain(context.get(), texts.chain) || !UseKey(context.get(), texts.key)) {
    return failure();
  }
  if (clients != ClientCertificates::kNone &&
      !(texts.client_ca && UseAuthorities(context.get(), *texts.client_ca))) {
    return failure();
  }
  SSL_CTX_set_verify(context.get(), Verification(clients), nullptr);
  // A session that goes on would be vouched for by what was in use when it began.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context.get(),
                      SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_alpn_select_cb(context.get(), &SelectHttp11, nullptr);
  return context;
}

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

}  // namespace

TlsContext::TlsContext(ClientCertificates clients, Current current)
    : clients_(clients), current_(std::move(current)) {}

absl::StatusOr<SslPointer> TlsContext::Accept() {
  std::shared_ptr<const security::CertificateTexts> texts = current_();
  const std::lock_guard lock(mutex_);
  if (texts != texts_) {
    ASSIGN_OR_RETURN(context_, Make(clients_, *texts));
    texts_ = std::move(texts);
  }
  SslPointer ssl(SSL_new(context_.get()));
  if (ssl == nullptr) return Error(ErrorReason::kInternal, "OpenSSL has no room for a connection");
  return ssl;
}

PeerNames PeerNamesOf(SSL* ssl) {
  PeerNames found;
  const Owned<X509> certificate(SSL_get1_peer_certificate(ssl));
  if (certificate == nullptr || SSL_get_verify_result(ssl) != X509_V_OK) return found;
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_URI) found.uris.push_back(TextOf(name->d.uniformResourceIdentifier));
    if (name->type == GEN_DNS) found.dns_names.push_back(TextOf(name->d.dNSName));
  }
  return found;
}

}  // namespace strata::http
