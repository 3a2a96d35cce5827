#include "tests/support/certificates.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace strata::test_support {
namespace {

// OpenSSL fails here only when memory does, or when a test asks for what cannot be.
void Check(bool done) {
  if (done) return;
  ERR_print_errors_fp(stderr);
  std::abort();
}

std::shared_ptr<EVP_PKEY> MakeKey() {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  Check(key != nullptr);
  return {key, EVP_PKEY_free};
}

template <typename Write>
std::string Pem(Write write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  Check(out != nullptr && write(out.get()) == 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);  // NOLINT: OpenSSL's type
  return {data, static_cast<size_t>(size)};
}

std::string PemOf(X509* certificate) {
  return Pem([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

std::string PemOf(EVP_PKEY* key) {
  return Pem([&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
}

void AddName(GENERAL_NAMES* names, int type, std::string_view text) {
  ASN1_STRING* const value =
      ASN1_STRING_type_new(type == GEN_IPADD ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
  Check(value != nullptr &&
        ASN1_STRING_set(value, text.data(), static_cast<int>(text.size())) == 1);
  GENERAL_NAME* const name = GENERAL_NAME_new();
  Check(name != nullptr);
  GENERAL_NAME_set0_value(name, type, value);
  Check(sk_GENERAL_NAME_push(names, name) > 0);
}

// In network order, as certificates have them.
std::string AddressBytes(const std::string& text) {
  std::array<char, sizeof(in6_addr)> bytes{};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return {bytes.data(), sizeof(in_addr)};
  Check(inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1);
  return {bytes.data(), bytes.size()};
}

void AddAlternativeNames(X509* certificate, const Wanted& wanted) {
  if (wanted.uris.empty() && wanted.dns_names.empty() && wanted.ip_addresses.empty()) return;
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      sk_GENERAL_NAME_new_null(), &GENERAL_NAMES_free);
  Check(names != nullptr);
  for (const std::string& uri : wanted.uris) AddName(names.get(), GEN_URI, uri);
  for (const std::string& dns : wanted.dns_names) AddName(names.get(), GEN_DNS, dns);
  for (const std::string& address : wanted.ip_addresses) {
    AddName(names.get(), GEN_IPADD, AddressBytes(address));
  }
  Check(X509_add1_ext_i2d(certificate, NID_subject_alt_name, names.get(), 0, 0) == 1);
}

void AddExtension(X509* certificate, X509* issuer, int id, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, id, value), &X509_EXTENSION_free);
  Check(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1);
}

void SetSerialNumber(X509* certificate) {
  std::array<unsigned char, 16> bytes{};
  Check(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  bytes[0] = bytes[0] % 0x7F + 1;  // neither negative nor too short
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
      BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr), &BN_free);
  Check(number != nullptr &&
        BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr);
}

// Without an issuer it signs itself.
std::shared_ptr<X509> MakeCertificate(const Wanted& wanted, bool authority, EVP_PKEY* key,
                                      X509* issuer, EVP_PKEY* issuer_key) {
  std::shared_ptr<X509> made(X509_new(), X509_free);
  X509* const certificate = made.get();
  if (issuer == nullptr) issuer = certificate;
  Check(made != nullptr && X509_set_version(certificate, X509_VERSION_3) == 1);
  SetSerialNumber(certificate);
  X509_gmtime_adj(X509_getm_notBefore(certificate), wanted.not_before.count());
  X509_gmtime_adj(X509_getm_notAfter(certificate), wanted.not_after.count());
  const auto* const name = reinterpret_cast<const unsigned char*>(wanted.common_name.c_str());
  Check(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, name,
                                   -1, -1, 0) == 1);
  Check(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1);
  Check(X509_set_pubkey(certificate, key) == 1);
  AddExtension(certificate, issuer, NID_basic_constraints,
               authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  AddExtension(certificate, issuer, NID_key_usage,
               authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
  AddExtension(certificate, issuer, NID_subject_key_identifier, "hash");
  AddExtension(certificate, issuer, NID_authority_key_identifier, "keyid:always");
  AddAlternativeNames(certificate, wanted);
  Check(X509_sign(certificate, issuer_key, EVP_sha256()) > 0);
  return made;
}

Wanted Authority(const std::string& name) {
  return {.common_name = name, .not_after = std::chrono::hours(24 * 3650)};
}

}  // namespace

TestCa::TestCa(const std::string& name)
    : key_(MakeKey()),
      certificate_(MakeCertificate(Authority(name), true, key_.get(), nullptr, key_.get())),
      pem_(PemOf(certificate_.get())) {}

TestCa TestCa::MakeIntermediate(const std::string& name) const {
  TestCa made;
  made.key_ = MakeKey();
  made.certificate_ =
      MakeCertificate(Authority(name), true, made.key_.get(), certificate_.get(), key_.get());
  made.pem_ = PemOf(made.certificate_.get());
  made.pem_above_ = pem_up_to_root();
  made.chain_ = made.pem_ + chain_;
  return made;
}

Certificate TestCa::Issue(const Wanted& wanted) const {
  const std::shared_ptr<EVP_PKEY> key = MakeKey();
  const std::shared_ptr<X509> made =
      MakeCertificate(wanted, false, key.get(), certificate_.get(), key_.get());
  return {PemOf(made.get()) + chain_, PemOf(key.get())};
}

Certificate TestCa::IssueForServer(std::chrono::seconds not_after) const {
  return Issue({.common_name = "server",
                .dns_names = {"localhost"},
                .ip_addresses = {"127.0.0.1", "::1"},
                .not_after = not_after});
}

Certificate TestCa::IssueForUri(const std::string& uri) const { return Issue({.uris = {uri}}); }

Certificate SelfSigned(const Wanted& wanted) {
  const std::shared_ptr<EVP_PKEY> key = MakeKey();
  const std::shared_ptr<X509> made = MakeCertificate(wanted, false, key.get(), nullptr, key.get());
  return {PemOf(made.get()), PemOf(key.get())};
}

std::string WithPassPhrase(const std::string& key_pem, const std::string& pass_phrase) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> in(
      BIO_new_mem_buf(key_pem.data(), static_cast<int>(key_pem.size())), &BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr), &EVP_PKEY_free);
  Check(key != nullptr);
  return Pem([&](BIO* out) {
    return PEM_write_bio_PKCS8PrivateKey(out, key.get(), EVP_aes_256_cbc(), pass_phrase.data(),
                                         static_cast<int>(pass_phrase.size()), nullptr, nullptr);
  });
}

}  // namespace strata::test_support
