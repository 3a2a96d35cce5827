// The certificates that tests work with are what they are said to be.
#include "tests/support/certificates.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <string>
#include <vector>

namespace strata::test_support {
namespace {

using Parsed = std::vector<std::shared_ptr<X509>>;

Parsed Parse(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> in(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free);
  Parsed all;
  while (X509* const one = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(one, X509_free);
  }
  return all;
}

// What OpenSSL has against a chain, under these roots; X509_V_OK for nothing.
int Problem(const std::string& chain, const std::string& roots) {
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                      &X509_STORE_free);
  const Parsed trusted = Parse(roots);
  for (const auto& root : trusted) X509_STORE_add_cert(store.get(), root.get());
  const Parsed all = Parse(chain);
  const std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)> between(
      sk_X509_new_null(), [](STACK_OF(X509) * stack) { sk_X509_free(stack); });
  for (size_t i = 1; i < all.size(); ++i) sk_X509_push(between.get(), all[i].get());
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(
      X509_STORE_CTX_new(), &X509_STORE_CTX_free);
  X509_STORE_CTX_init(context.get(), store.get(), all.at(0).get(), between.get());
  X509_verify_cert(context.get());
  return X509_STORE_CTX_get_error(context.get());
}

TEST(Certificates, VerifyUnderTheirAuthorityAlone) {
  const TestCa one("one");
  const TestCa same_name("one");
  const std::string chain = one.IssueForUri("spiffe://example.org/a").chain_pem;
  EXPECT_EQ(Problem(chain, one.pem()), X509_V_OK);
  EXPECT_EQ(Problem(chain, same_name.pem() + one.pem()), X509_V_OK);
  EXPECT_NE(Problem(chain, same_name.pem()), X509_V_OK);
  EXPECT_NE(Problem(SelfSigned({}).chain_pem, one.pem()), X509_V_OK);
}

TEST(Certificates, AreValidWhenTheyAreSaidToBe) {
  const TestCa ca("ca");
  using std::chrono::hours;
  EXPECT_EQ(Problem(ca.Issue({.not_after = -hours(1)}).chain_pem, ca.pem()),
            X509_V_ERR_CERT_HAS_EXPIRED);
  EXPECT_EQ(Problem(ca.Issue({.not_before = hours(1)}).chain_pem, ca.pem()),
            X509_V_ERR_CERT_NOT_YET_VALID);
}

TEST(Certificates, BringTheAuthoritiesBetweenThemAndTheRoot) {
  const TestCa root("root");
  TestCa ca = root;
  for (int i = 0; i < 9; ++i) ca = ca.MakeIntermediate("ca" + std::to_string(i));
  EXPECT_EQ(Parse(ca.pem_up_to_root()).size(), 10u);
  const std::string chain = ca.Issue({}).chain_pem;
  EXPECT_EQ(Parse(chain).size(), 10u);
  EXPECT_EQ(Problem(chain, root.pem()), X509_V_OK);
}

TEST(Certificates, SayTheirNames) {
  const TestCa ca("ca");
  const Parsed parsed = Parse(ca.IssueForServer().chain_pem);
  EXPECT_EQ(X509_check_host(parsed[0].get(), "localhost", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_ip_asc(parsed[0].get(), "127.0.0.1", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(parsed[0].get(), "::1", 0), 1);
  EXPECT_EQ(X509_check_host(parsed[0].get(), "elsewhere", 0, 0, nullptr), 0);
}

}  // namespace
}  // namespace strata::test_support
