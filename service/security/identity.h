// Identity: a caller's credentials, and the principal they map to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace strata::security {

// The longest principal, in bytes; printable ASCII without blanks.
inline constexpr size_t kPrincipalBytesMax = 256;

// The credentials of a call and its connection.
struct Credentials {
  std::vector<std::string_view> authorization;  // each such header's value
  // Of the connection's verified certificate.
  std::vector<std::string_view> uris;
  std::vector<std::string_view> dns_names;

  bool empty() const { return authorization.empty() && uris.empty() && dns_names.empty(); }
};

// The principal of a caller.
struct Identity {
  // "user:NAME", "spiffe://…", "dns:NAME". Empty: none.
  std::string principal;
  // The SHA-256 of the token that said so; empty: none did.
  std::string token_hash;
};

// The principal of a certificate: its URI that begins with "spiffe://", if there is exactly one;
// else its DNS name, if there is exactly one; else none. CREDENTIALS_INVALID: it is too long or has
// other bytes than a principal may have.
absl::StatusOr<std::string> PrincipalOfCertificate(const Credentials& credentials);

}  // namespace strata::security
