// Each principal's quota, as the policy in use has it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "service/security/policy.h"
#include "service/security/quota.h"

namespace strata::security {

// Thread-safe.
class Quotas {
 public:
  void Use(std::shared_ptr<const Policy> policy, Quota::Time now);
  // A quota that nobody holds and of which nothing is missing is as good as a new one, so it may be
  // forgotten.
  std::shared_ptr<Quota> Of(const std::string& principal, Quota::Time now);

  // How many are remembered.
  size_t size();

 private:
  QuotaLimits LimitsOf(const std::string& principal) const;

  std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Policy> policy_;
  absl::flat_hash_map<std::string, std::shared_ptr<Quota>> quotas_;
  size_t forget_at_ = 1024;  // those that may be, when there are so many
};

}  // namespace strata::security
