#include "service/security/access.h"

#include <utility>

#include "absl/strings/match.h"
#include "schemas/base/error.h"
#include "schemas/base/sha256.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/base/utf8.h"
#include "service/security/denials.h"
#include "service/security/quotas.h"
#include "service/security/verdicts.h"

namespace strata::security {
namespace {

constexpr size_t kAuthorizationBytesMax = 256;
constexpr std::string_view kScheme = "Bearer";
constexpr std::string_view kUser = "user:";
// What errors and the log tell of a name that may be as long as a request.
constexpr size_t kResourceBytesMax = 300;

absl::Status Invalid(std::string_view problem) {
  return Error(ErrorReason::kCredentialsInvalid, problem);
}

// The secret after the scheme, as RFC 9110 (11.4) writes it: letters of the scheme in either case,
// one blank or more after it. Nothing of a header is quoted: it may hold a secret all the same.
absl::StatusOr<std::string_view> SecretOf(const std::vector<std::string_view>& authorization) {
  if (authorization.size() > 1) {
    return Invalid("there are " + std::to_string(authorization.size()) +
                   " authorization headers; send one");
  }
  const std::string_view value = authorization.front();
  if (value.empty()) return Invalid("the authorization header is empty");
  if (value.size() > kAuthorizationBytesMax) {
    return Invalid("the authorization header has " + std::to_string(value.size()) +
                   " bytes, at most " + std::to_string(kAuthorizationBytesMax) + " are allowed");
  }
  const std::string_view scheme = value.substr(0, value.find(' '));
  if (!absl::EqualsIgnoreCase(ToAbsl(scheme), ToAbsl(kScheme))) {
    return Invalid("the authorization header does not begin with \"Bearer \"");
  }
  const size_t secret = value.find_first_not_of(' ', scheme.size());
  if (secret == std::string_view::npos) {
    return Invalid("the authorization header has no token after \"Bearer \"");
  }
  return value.substr(secret, value.find_last_not_of(' ') + 1 - secret);
}

// The token's name, if the tokens have it and its time has not come.
absl::StatusOr<std::string> PrincipalOfToken(const Tokens* tokens, std::string_view hash,
                                             UnixMicros now) {
  const Token* const token = tokens == nullptr ? nullptr : tokens->Find(hash);
  if (token == nullptr) return Invalid("the token is unknown here, or no longer valid");
  if (token->expires && *token->expires <= now) return Invalid("the token has expired");
  return std::string(kUser) + token->name;
}

absl::StatusOr<Identity> IdentityOf(const Tokens* tokens, const Credentials& credentials,
                                    bool reads_tokens, UnixMicros now) {
  Identity identity;
  if (reads_tokens && !credentials.authorization.empty()) {
    ASSIGN_OR_RETURN(const std::string_view secret, SecretOf(credentials.authorization));
    identity.token_hash = HashBytes(Sha256().Update(secret).Finish());
    ASSIGN_OR_RETURN(identity.principal, PrincipalOfToken(tokens, identity.token_hash, now));
    return identity;
  }
  ASSIGN_OR_RETURN(identity.principal, PrincipalOfCertificate(credentials));
  return identity;
}

std::string ShownResource(const Resource& resource) {
  const std::string text = resource.text();
  if (text.size() <= kResourceBytesMax) return text;
  return std::string(CutUtf8(text, kResourceBytesMax)) + "…";
}

absl::Status Denied(std::string_view principal, std::string_view permission,
                    std::string_view resource) {
  return Error(ErrorReason::kPermissionDenied,
               std::string(principal.empty() ? "a caller without a name" : principal) + " has no " +
                   std::string(permission) + " on " + std::string(resource))
      .With("permission", permission)
      .With("resource", resource);
}

}  // namespace

Access::Access(const Clock& clock)
    : clock_(clock),
      verdicts_(std::make_unique<Verdicts>()),
      denials_(std::make_unique<Denials>()),
      quotas_(std::make_unique<Quotas>()) {}

Access::~Access() = default;

void Access::Use(Rules rules) {
  const std::lock_guard one_at_a_time(using_);
  verdicts_->Use(rules.policy);
  quotas_->Use(rules.policy, clock_.SteadyNow());
  {
    const std::lock_guard lock(mutex_);
    reads_tokens_.store(rules.tokens != nullptr || rules.policy != nullptr,
                        std::memory_order_relaxed);
    rules_ = std::move(rules);
  }
  // Last: whoever sees it asks what is in use by then.
  generation_.fetch_add(1, std::memory_order_release);
}

Rules Access::rules() const {
  const std::lock_guard lock(mutex_);
  return rules_;
}

absl::Status Access::Counted(absl::Status refusal) const {
  denied_.fetch_add(1, std::memory_order_relaxed);
  return refusal;
}

absl::StatusOr<Identity> Access::Identify(const Credentials& credentials) const {
  const Rules in_use = rules();
  const bool reads = in_use.tokens != nullptr || in_use.policy != nullptr;
  auto identity = IdentityOf(in_use.tokens.get(), credentials, reads, clock_.Now());
  if (!identity.ok()) return Counted(identity.status());
  return identity;
}

absl::Status Access::CheckStillValid(const Identity& identity) const {
  if (identity.token_hash.empty()) return absl::OkStatus();
  const Rules in_use = rules();
  if (in_use.tokens == nullptr && in_use.policy == nullptr) return absl::OkStatus();
  const auto principal = PrincipalOfToken(in_use.tokens.get(), identity.token_hash, clock_.Now());
  if (!principal.ok()) return Counted(principal.status());
  if (*principal != identity.principal) {
    return Counted(Invalid("the token now belongs to another caller"));
  }
  return absl::OkStatus();
}

absl::Status Access::Admit(Permission permission, const Identity& identity) const {
  if (permission == Permission::kOpen || !identity.principal.empty() || !verdicts_->has_policy()) {
    return absl::OkStatus();
  }
  return Counted(
      Error(ErrorReason::kCredentialsMissing,
            "the caller is unknown: send \"authorization: Bearer TOKEN\", or connect with a "
            "certificate that has one SPIFFE id or one DNS name"));
}

absl::Status Access::Authorize(const Identity& identity, const Demands& demands,
                               std::string_view peer) {
  for (const Demand& demand : demands) {
    if (verdicts_->Permits(identity.principal, demand)) continue;
    const std::string_view permission = PermissionName(demand.permission);
    const std::string resource = ShownResource(demand.resource);
    denials_->Tell({.principal = identity.principal,
                    .permission = permission,
                    .resource = resource,
                    .peer = peer,
                    .reason = ReasonName(ErrorReason::kPermissionDenied)},
                   clock_.SteadyNow());
    return Counted(Denied(identity.principal, permission, resource));
  }
  return absl::OkStatus();
}

bool Access::Permits(const Identity& identity, Permission permission,
                     const Resource& resource) const {
  return verdicts_->Permits(identity.principal, {permission, resource});
}

absl::Status Access::AuthorizeActingFor(const Identity& identity, const Resource& resource,
                                        std::string_view name, std::string_view field,
                                        std::string_view peer) {
  const Rules in_use = rules();
  if (in_use.policy == nullptr ||
      in_use.policy->PermitsActingFor(identity.principal, resource, name)) {
    return absl::OkStatus();
  }
  const std::string shown = ShownResource(resource);
  denials_->Tell({.principal = identity.principal,
                  .permission = PermissionName(Permission::kWrite),
                  .resource = shown,
                  .peer = peer,
                  .reason = ReasonName(ErrorReason::kActForDenied)},
                 clock_.SteadyNow());
  return Counted(Error(ErrorReason::kActForDenied,
                       identity.principal + " may not act for " +
                           std::string(CutUtf8(name, kPrincipalBytesMax)) + " on " + shown +
                           "; leave " + std::string(field) + " out")
                     .With("field", field)
                     .With("resource", std::string_view(shown)));
}

std::shared_ptr<Quota> Access::QuotaOf(const std::string& principal) {
  return quotas_->Of(principal, clock_.SteadyNow());
}

}  // namespace strata::security
