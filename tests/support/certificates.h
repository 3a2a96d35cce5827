// Authorities, and the certificates that they issue, made in memory.
#pragma once

#include <openssl/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace strata::test_support {

// PEM texts: the certificate, then the authorities between it and its root; and its key.
struct Certificate {
  std::string chain_pem;
  std::string key_pem;
};

// What a certificate says. Times are from now on.
struct Wanted {
  std::string common_name = "someone";
  std::vector<std::string> uris{};
  std::vector<std::string> dns_names{};
  std::vector<std::string> ip_addresses{};
  std::chrono::seconds not_before = -std::chrono::hours(1);
  std::chrono::seconds not_after = std::chrono::hours(24 * 90);
};

// A certificate authority with a key on P-256, as all that it issues have.
class TestCa {
 public:
  // A root.
  explicit TestCa(const std::string& name);

  // Of another name, vouched for by this one.
  TestCa MakeIntermediate(const std::string& name) const;

  Certificate Issue(const Wanted& wanted) const;
  // For a server at "localhost", 127.0.0.1 and ::1.
  Certificate IssueForServer(std::chrono::seconds not_after = std::chrono::hours(24 * 90)) const;
  // For a client known by this URI ("spiffe://…").
  Certificate IssueForUri(const std::string& uri) const;

  // Its own certificate.
  const std::string& pem() const { return pem_; }
  // The same, and those of all above it up to the root.
  std::string pem_up_to_root() const { return pem_ + pem_above_; }

 private:
  TestCa() = default;

  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
  std::string pem_;
  std::string pem_above_;
  std::string chain_;  // of intermediates: what is served behind what it issues
};

// Vouched for by nobody but itself.
Certificate SelfSigned(const Wanted& wanted);

// The key, readable only by whoever knows the pass phrase.
std::string WithPassPhrase(const std::string& key_pem, const std::string& pass_phrase);

}  // namespace strata::test_support
