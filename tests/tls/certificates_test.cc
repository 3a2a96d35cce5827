// Certificates are looked at before they are used, and refused by their flag.
#include "service/security/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <string>

#include "schemas/base/error.h"
#include "tests/support/certificates.h"
#include "tests/support/status_matchers.h"

namespace strata::security {
namespace {

using std::chrono::hours;
using test_support::Certificate;
using test_support::HasReason;
using test_support::IsOk;
using test_support::TestCa;
using testing::HasSubstr;
using testing::Not;

const TestCa& Ca() {
  static const TestCa ca("ca");
  return ca;
}

CertificateTexts Texts(const Certificate& certificate) {
  return {certificate.chain_pem, certificate.key_pem, std::nullopt};
}

absl::StatusOr<UnixMicros> Checked(const CertificateTexts& texts) {
  return CheckCertificates(texts, Clock::System().Now());
}

// What it is refused with, by that flag.
std::string Refusal(const CertificateTexts& texts, std::string_view flag) {
  const absl::Status status = Checked(texts).status();
  EXPECT_THAT(status, HasReason(ErrorReason::kInvalidField));
  EXPECT_EQ(MetadataOf(status, "field"), flag);
  EXPECT_THAT(std::string(status.message()), testing::StartsWith("--" + std::string(flag) + ": "));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("BEGIN")));
  return std::string(status.message());
}

// As what was thought strong enough once.
Certificate WeakCertificate() {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(1024), &EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), &X509_free);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_set_pubkey(made.get(), key.get());
  X509_sign(made.get(), key.get(), EVP_sha256());
  const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_X509(out.get(), made.get());
  const std::unique_ptr<BIO, decltype(&BIO_free)> key_out(BIO_new(BIO_s_mem()), &BIO_free);
  PEM_write_bio_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  const auto text = [](BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);  // NOLINT: OpenSSL's type
    return std::string(data, static_cast<size_t>(size));
  };
  return {text(out.get()), text(key_out.get())};
}

TEST(CertificateChecks, GoodOnesAreTakenAndSayWhenTheyExpire) {
  const auto expiry = Checked(Texts(Ca().IssueForServer(hours(48))));
  ASSERT_THAT(expiry, IsOk());
  const int64_t in_seconds = (*expiry - Clock::System().Now()) / 1'000'000;
  EXPECT_NEAR(static_cast<double>(in_seconds), 48 * 3600, 60);
}

TEST(CertificateChecks, AuthoritiesMayBeManyAndOfAnyLevel) {
  TestCa deep = Ca();
  for (int i = 0; i < 9; ++i) deep = deep.MakeIntermediate("deep" + std::to_string(i));
  CertificateTexts texts = Texts(deep.IssueForServer());
  EXPECT_THAT(Checked(texts), IsOk());
  texts.client_ca = deep.pem_up_to_root();
  EXPECT_THAT(Checked(texts), IsOk());
  texts.client_ca = Ca().pem() + Ca().pem();
  EXPECT_THAT(Checked(texts), IsOk()) << "twice the same";
}

TEST(CertificateChecks, TextAroundCertificatesDoesNotCount) {
  Certificate certificate = Ca().IssueForServer();
  certificate.chain_pem = "subject=CN = server\n\n" + certificate.chain_pem + "\nthe end\n";
  EXPECT_THAT(Checked(Texts(certificate)), IsOk());
}

TEST(CertificateChecks, WhatIsNotValidNowIsRefused) {
  const auto not_after = -hours(2);
  EXPECT_THAT(Refusal(Texts(Ca().Issue({.not_before = -hours(3), .not_after = not_after})),
                      "tls-certificate"),
              HasSubstr("has expired at 20"));
  EXPECT_THAT(Refusal(Texts(Ca().Issue({.not_before = hours(1)})), "tls-certificate"),
              HasSubstr("is not valid before 20"));
}

TEST(CertificateChecks, AKeyHasToFit) {
  Certificate certificate = Ca().IssueForServer();
  certificate.key_pem = Ca().IssueForServer().key_pem;
  EXPECT_EQ(Refusal(Texts(certificate), "tls-key"),
            "--tls-key: does not fit the certificate of --tls-certificate");
  certificate.key_pem = WeakCertificate().key_pem;  // of another kind
  EXPECT_THAT(Refusal(Texts(certificate), "tls-key"), HasSubstr("does not fit"));
}

TEST(CertificateChecks, AKeyThatNeedsAPassPhraseIsRefused) {
  Certificate certificate = Ca().IssueForServer();
  certificate.key_pem = test_support::WithPassPhrase(certificate.key_pem, "open sesame");
  EXPECT_THAT(Refusal(Texts(certificate), "tls-key"), HasSubstr("pass phrase"));
}

TEST(CertificateChecks, AWeakKeyIsRefused) {
  EXPECT_THAT(Refusal(Texts(WeakCertificate()), "tls-certificate"), HasSubstr("too small"));
}

TEST(CertificateChecks, SwappedFilesAreSaidToBe) {
  const Certificate good = Ca().IssueForServer();
  EXPECT_THAT(Refusal({good.key_pem, good.chain_pem, std::nullopt}, "tls-certificate"),
              HasSubstr("holds a private key instead of a certificate"));
  EXPECT_THAT(Refusal({good.chain_pem, good.chain_pem, std::nullopt}, "tls-key"),
              HasSubstr("holds a certificate instead of a private key"));
  EXPECT_THAT(Refusal({good.chain_pem, good.key_pem, good.key_pem}, "tls-client-ca"),
              HasSubstr("holds a private key instead of a certificate"));
}

TEST(CertificateChecks, WhatCannotBeReadIsRefusedByItsPlace) {
  const Certificate good = Ca().IssueForServer();
  std::string broken = good.chain_pem;
  broken[broken.size() / 2] = '!';
  EXPECT_THAT(Refusal({broken, good.key_pem, std::nullopt}, "tls-certificate"),
              HasSubstr("certificate 1 cannot be read"));
  EXPECT_THAT(Refusal({good.chain_pem + broken, good.key_pem, std::nullopt}, "tls-certificate"),
              HasSubstr("certificate 2 cannot be read"));
  EXPECT_THAT(Refusal({good.chain_pem, good.key_pem, Ca().pem() + broken}, "tls-client-ca"),
              HasSubstr("certificate 2 cannot be read"));
  std::string cut = good.key_pem;
  cut.resize(cut.size() / 2);
  EXPECT_THAT(Refusal({good.chain_pem, cut, std::nullopt}, "tls-key"), HasSubstr("cannot be read"));
}

TEST(CertificateChecks, NothingIsNoText) {
  const Certificate good = Ca().IssueForServer();
  const std::string huge(kCertificateBytesMax + 1, '\n');
  const std::string zero = good.chain_pem + std::string(1, '\0') + good.chain_pem;
  for (const auto& [text, problem] : {std::pair<std::string, std::string>("", "is empty"),
                                      {huge, "has more than 1048576 bytes"},
                                      {zero, "zero byte"},
                                      {"just words\n", "holds no"}}) {
    EXPECT_THAT(Refusal({text, good.key_pem, std::nullopt}, "tls-certificate"), HasSubstr(problem));
    EXPECT_THAT(Refusal({good.chain_pem, text, std::nullopt}, "tls-key"), HasSubstr(problem));
    EXPECT_THAT(Refusal({good.chain_pem, good.key_pem, text}, "tls-client-ca"), HasSubstr(problem));
  }
}

}  // namespace
}  // namespace strata::security
