// The files that say how the server proves who it is, and who may do what: read at the start,
// looked at again each second, and used once they have changed and are sound.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "service/security/access.h"
#include "service/security/certificates.h"
#include "service/server/tls_credentials.h"

namespace strata::app {

// As the flags of the same names. Files are paths; empty: none.
struct SecurityOptions {
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;
  std::string tls_client;  // "required" or "optional"; empty: required, where there is an authority
  std::string tokens;
  std::string policy;
  bool open = false;  // everybody may do everything, although traffic is encrypted

  bool encrypted() const { return !tls_certificate.empty(); }
  server::TlsCredentials::ClientCertificates client_certificates() const;
};

class SecurityFiles {
 public:
  static constexpr std::chrono::seconds kInterval{1};  // between two looks

  // Whether all files can be used at `now`; uses none. INVALID_FIELD, naming the flag.
  static absl::Status Check(const SecurityOptions& options, UnixMicros now);

  // `clock` and `access` outlive it.
  SecurityFiles(SecurityOptions options, const Clock& clock, security::Access& access);

  bool any() const { return !parts_.empty(); }

  // Uses all of them. INVALID_FIELD, naming the flag: nothing is to be served. First, and once.
  absl::Status Open();
  // Null without a certificate. Outlives the server that it is given.
  std::shared_ptr<server::TlsCredentials> credentials() const { return credentials_; }

  // In use now; another pointer when they have changed. Null without any. Thread-safe.
  std::shared_ptr<const security::CertificateTexts> certificates() const;

  // Uses what has changed since the last look. What cannot be used changes nothing. Either is
  // logged, once; so is, each day, a certificate that soon expires. Blocks while it reads.
  // Thread-safe.
  void Look();
  // The same, and says of each file what came of it, changed or not.
  void Reload();

 private:
  struct File {
    std::string_view flag;
    std::string path;
    bool secret = false;  // nobody but its owner may read it
  };
  using Texts = std::vector<std::string>;
  enum class Kind { kCertificates, kTokens, kPolicy };
  // Files that are used together.
  struct Part {
    Kind kind;
    std::vector<File> files;
    std::optional<absl::StatusOr<Texts>> seen{};  // at the last look
    absl::Status problem{};                       // with that; OK: it is used
  };
  // What files say.
  struct Said {
    security::CertificateTexts certificates;
    UnixMicros expiry = 0;  // of the first certificate
    security::Rules rules;
  };

  static std::vector<Part> PartsOf(const SecurityOptions& options);
  static absl::StatusOr<std::string> Read(const File& file);
  static absl::StatusOr<Texts> Read(const Part& part);
  // Leaves `said` as it was if they cannot be used.
  static absl::Status Understand(Kind kind, const Texts& texts, UnixMicros now, Said& said);

  // OK as well if there is nothing new, unless it is told again.
  absl::Status LookAt(Part& part, bool again, bool& changed);
  void LookAtAll(bool again);
  void Use(Kind kind);
  void TellOfExpired(const security::Tokens& tokens) const;
  void WarnOfExpiry();

  const SecurityOptions options_;
  const Clock& clock_;
  security::Access& access_;
  std::shared_ptr<server::TlsCredentials> credentials_;
  mutable std::mutex certificates_mutex_;
  std::shared_ptr<const security::CertificateTexts> certificates_;  // guarded by it
  std::mutex mutex_;                                                // guards what follows
  std::vector<Part> parts_;
  Said in_use_;
  std::optional<std::chrono::steady_clock::time_point> warned_;  // of the certificate in use
};

}  // namespace strata::app
