// Decides who calls and what they may do, by the tokens and the policy in use.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "service/security/identity.h"
#include "service/security/permission.h"
#include "service/security/policy.h"
#include "service/security/quota.h"
#include "service/security/tokens.h"

namespace strata::security {

class Denials;
class Quotas;
class Verdicts;

// What is in use. Null: there is none. Without a policy everybody may do everything.
struct Rules {
  std::shared_ptr<const Tokens> tokens;
  std::shared_ptr<const Policy> policy;
};

// Thread-safe.
class Access {
 public:
  explicit Access(const Clock& clock = Clock::System());
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  // From now on, for calls under way too. Verdicts are forgotten, quotas keep what is left.
  void Use(Rules rules);
  // Another number after each Use: what was kept of identities is to be asked for again.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // Whether anybody reads `authorization` headers; otherwise they are somebody else's business.
  bool reads_tokens() const { return reads_tokens_.load(std::memory_order_relaxed); }

  // Whom the credentials stand for, perhaps nobody. CREDENTIALS_INVALID: a token that is not known
  // or has expired, even beside a good certificate; several authorization headers; another scheme
  // than "Bearer".
  absl::StatusOr<Identity> Identify(const Credentials& credentials) const;

  // Whether the identity holds still: a token may have expired or been removed since.
  // CREDENTIALS_INVALID.
  absl::Status CheckStillValid(const Identity& identity) const;

  // OK, or CREDENTIALS_MISSING: there is a policy, and nobody is vouched for.
  absl::Status Admit(Permission permission, const Identity& identity) const;

  // OK, or PERMISSION_DENIED (metadata permission, resource) for the first that is not granted.
  // Whoever is denied is told of in the log, with the connection's other end.
  absl::Status Authorize(const Identity& identity, const Demands& demands, std::string_view peer);
  // The same for one, as a question.
  bool Permits(const Identity& identity, Permission permission, const Resource& resource) const;

  // OK, or ACT_FOR_DENIED (metadata field, resource): the identity may not write the resource in
  // the other name that the field says. Told of like any other denial.
  absl::Status AuthorizeActingFor(const Identity& identity, const Resource& resource,
                                  std::string_view name, std::string_view field,
                                  std::string_view peer);

  // What the principal may still ask for; the same one as long as anybody holds it or it is not
  // full again.
  std::shared_ptr<Quota> QuotaOf(const std::string& principal);

  // Refused for what they may not do, or for their credentials, since the start.
  int64_t denied() const { return denied_.load(std::memory_order_relaxed); }

 private:
  Rules rules() const;
  absl::Status Counted(absl::Status refusal) const;

  const Clock& clock_;
  std::atomic<uint64_t> generation_ = 0;
  std::atomic<bool> reads_tokens_ = false;
  mutable std::atomic<int64_t> denied_ = 0;
  std::mutex using_;  // one Use at a time
  mutable std::mutex mutex_;
  Rules rules_;  // guarded by mutex_
  const std::unique_ptr<Verdicts> verdicts_;
  const std::unique_ptr<Denials> denials_;
  const std::unique_ptr<Quotas> quotas_;
};

}  // namespace strata::security
