// What a server that speaks TLS presents and whom it trusts: checked before it is used, since what
// is wrong with it would else show at each handshake.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"

namespace strata::security {

// The longest that each text may be.
inline constexpr size_t kCertificateBytesMax = size_t{1} << 20;

// The flags whose files they are; errors name these.
inline constexpr std::string_view kCertificateFlag = "tls-certificate";
inline constexpr std::string_view kKeyFlag = "tls-key";
inline constexpr std::string_view kClientCaFlag = "tls-client-ca";

// PEM texts that belong together.
struct CertificateTexts {
  std::string chain;  // the server's certificate, then the authorities between it and its root
  std::string key;    // of the first in the chain
  // Whose certificates clients may present; nothing: none are asked for.
  std::optional<std::string> client_ca;

  friend bool operator==(const CertificateTexts&, const CertificateTexts&) = default;
};

// When the first certificate expires, if everything can be used at `now`. INVALID_FIELD, beginning
// with the flag ("--tls-key: …"), its name in the metadata "field": a text is empty, too long or
// holds something else, the first certificate is not valid now, the key needs a pass phrase or does
// not fit, a key is too weak. Nothing of a key is told.
absl::StatusOr<UnixMicros> CheckCertificates(const CertificateTexts& texts, UnixMicros now);

}  // namespace strata::security
