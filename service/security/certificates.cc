#include "service/security/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::security {
namespace {

using X509Ptr = std::unique_ptr<X509, decltype(&X509_free)>;
using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free)>;
using ContextPtr = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

absl::Status Problem(std::string_view flag, const std::string& problem) {
  return Error(ErrorReason::kInvalidField, "--" + std::string(flag) + ": " + problem)
      .With("field", flag);
}

// Why OpenSSL did not do what it was told last; nothing of it is left in its queue.
std::string WhyNot() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "" : std::string(" (") + reason + ")";
}

BioPtr Reader(const std::string& text) {
  ERR_clear_error();
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

bool HoldsKey(const std::string& text) {
  return text.find("PRIVATE KEY-----") != std::string::npos;
}

bool HoldsCertificate(const std::string& text) {
  return text.find("-----BEGIN CERTIFICATE-----") != std::string::npos;
}

absl::Status CheckText(std::string_view flag, const std::string& text) {
  if (text.empty()) return Problem(flag, "is empty");
  // Whoever takes a text as C does would not see what is behind it.
  if (text.find('\0') != std::string::npos) return Problem(flag, "is no text: it has a zero byte");
  if (text.size() <= kCertificateBytesMax) return absl::OkStatus();
  return Problem(flag, "has more than " + std::to_string(kCertificateBytesMax) + " bytes");
}

// All of them; at least one.
absl::StatusOr<std::vector<X509Ptr>> ReadCertificates(std::string_view flag,
                                                      const std::string& text) {
  RETURN_IF_ERROR(CheckText(flag, text));
  const BioPtr in = Reader(text);
  std::vector<X509Ptr> all;
  while (X509* const one = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(one, &X509_free);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string why = WhyNot();
  if (!at_end) {
    return Problem(flag, "certificate " + std::to_string(all.size() + 1) + " cannot be read" + why);
  }
  if (!all.empty()) return all;
  return Problem(flag, HoldsKey(text) ? "holds a private key instead of a certificate"
                                      : "holds no certificate in PEM");
}

// Nobody is there to type a pass phrase; `asked` is a bool, of whether one would be needed.
int NoPassPhrase(char* /*buffer*/, int /*size*/, int /*for_writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

absl::StatusOr<KeyPtr> ReadKey(const std::string& text) {
  RETURN_IF_ERROR(CheckText(kKeyFlag, text));
  const BioPtr in = Reader(text);
  bool asked = false;
  KeyPtr key(PEM_read_bio_PrivateKey(in.get(), nullptr, &NoPassPhrase, &asked), &EVP_PKEY_free);
  const std::string why = WhyNot();
  if (key != nullptr) return key;
  if (asked) return Problem(kKeyFlag, "needs a pass phrase, and the server has none");
  if (HoldsKey(text)) return Problem(kKeyFlag, "cannot be read" + why);
  return Problem(kKeyFlag, HoldsCertificate(text) ? "holds a certificate instead of a private key"
                                                  : "holds no private key in PEM");
}

UnixMicros TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return absl::ToUnixMicros(absl::FromTM(parts, absl::UTCTimeZone()));
}

std::string Text(UnixMicros time) {
  return absl::FormatTime(absl::RFC3339_sec, absl::FromUnixMicros(time), absl::UTCTimeZone());
}

// When it expires, if it is valid now.
absl::StatusOr<UnixMicros> CheckValid(const X509* certificate, UnixMicros now) {
  const UnixMicros from = TimeOf(X509_get0_notBefore(certificate));
  const UnixMicros until = TimeOf(X509_get0_notAfter(certificate));
  if (now > until) return Problem(kCertificateFlag, "has expired at " + Text(until));
  if (now < from) return Problem(kCertificateFlag, "is not valid before " + Text(from));
  return until;
}

// Takes everything in as the transport does, which is the one to say which keys are too weak.
absl::Status CheckUsable(const std::vector<X509Ptr>& chain, EVP_PKEY* key,
                         const std::vector<X509Ptr>& client_ca) {
  const ContextPtr context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  if (context == nullptr) return Problem(kCertificateFlag, "cannot be looked at" + WhyNot());
  if (SSL_CTX_use_certificate(context.get(), chain.front().get()) != 1) {
    return Problem(kCertificateFlag, "cannot be used" + WhyNot());
  }
  for (size_t i = 1; i < chain.size(); ++i) {
    if (SSL_CTX_add1_chain_cert(context.get(), chain[i].get()) != 1) {
      return Problem(kCertificateFlag,
                     "certificate " + std::to_string(i + 1) + " cannot be used" + WhyNot());
    }
  }
  // Asked first, since a key of another kind would just replace the certificate's place.
  if (X509_check_private_key(chain.front().get(), key) != 1) {
    ERR_clear_error();
    return Problem(kKeyFlag, "does not fit the certificate of --tls-certificate");
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key) != 1) {
    return Problem(kKeyFlag, "cannot be used" + WhyNot());
  }
  for (size_t i = 0; i < client_ca.size(); ++i) {
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), client_ca[i].get()) != 1) {
      return Problem(kClientCaFlag,
                     "certificate " + std::to_string(i + 1) + " cannot be used" + WhyNot());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UnixMicros> CheckCertificates(const CertificateTexts& texts, UnixMicros now) {
  ASSIGN_OR_RETURN(const std::vector<X509Ptr> chain,
                   ReadCertificates(kCertificateFlag, texts.chain));
  ASSIGN_OR_RETURN(const KeyPtr key, ReadKey(texts.key));
  std::vector<X509Ptr> client_ca;
  if (texts.client_ca.has_value()) {
    ASSIGN_OR_RETURN(client_ca, ReadCertificates(kClientCaFlag, *texts.client_ca));
  }
  ASSIGN_OR_RETURN(const UnixMicros expiry, CheckValid(chain.front().get(), now));
  RETURN_IF_ERROR(CheckUsable(chain, key.get(), client_ca));
  return expiry;
}

}  // namespace strata::security
