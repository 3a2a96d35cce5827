#include "service/security/identity.h"

#include <algorithm>

#include "schemas/base/error.h"

namespace strata::security {
namespace {

constexpr std::string_view kSpiffe = "spiffe://";

bool MayStand(char c) { return c > ' ' && c <= '~'; }

absl::StatusOr<std::string> Checked(std::string principal) {
  if (principal.size() > kPrincipalBytesMax) {
    return Error(ErrorReason::kCredentialsInvalid,
                 "the certificate's name has " + std::to_string(principal.size()) +
                     " bytes, at most " + std::to_string(kPrincipalBytesMax) + " are allowed");
  }
  if (!std::all_of(principal.begin(), principal.end(), MayStand)) {
    return Error(ErrorReason::kCredentialsInvalid,
                 "the certificate's name has other bytes than printable ASCII without blanks");
  }
  return principal;
}

}  // namespace

absl::StatusOr<std::string> PrincipalOfCertificate(const Credentials& credentials) {
  const auto is_spiffe = [](std::string_view uri) { return uri.starts_with(kSpiffe); };
  const auto& uris = credentials.uris;
  // Of several none says more than the others, so that none counts.
  if (std::count_if(uris.begin(), uris.end(), is_spiffe) == 1) {
    return Checked(std::string(*std::find_if(uris.begin(), uris.end(), is_spiffe)));
  }
  if (credentials.dns_names.size() == 1 && !credentials.dns_names.front().empty()) {
    return Checked("dns:" + std::string(credentials.dns_names.front()));
  }
  return std::string();
}

}  // namespace strata::security
