#include "service/security/quotas.h"

#include <algorithm>
#include <utility>

namespace strata::security {

QuotaLimits Quotas::LimitsOf(const std::string& principal) const {
  return policy_ == nullptr ? QuotaLimits() : policy_->QuotaOf(principal);
}

void Quotas::Use(std::shared_ptr<const Policy> policy, Quota::Time now) {
  const std::lock_guard lock(mutex_);
  policy_ = std::move(policy);
  for (auto& [principal, quota] : quotas_) quota->Limit(LimitsOf(principal), now);
}

std::shared_ptr<Quota> Quotas::Of(const std::string& principal, Quota::Time now) {
  const std::lock_guard lock(mutex_);
  const auto found = quotas_.find(principal);
  if (found != quotas_.end()) return found->second;
  if (quotas_.size() >= forget_at_) {
    // Whoever else holds one got it here, under the lock; and held by nobody, nobody uses it.
    absl::erase_if(quotas_, [now](const auto& each) {
      return each.second.use_count() == 1 && each.second->IsFull(now);
    });
    forget_at_ = std::max<size_t>(1024, 2 * quotas_.size());
  }
  auto quota = std::make_shared<Quota>();
  quota->Limit(LimitsOf(principal), now);
  quotas_.emplace(principal, quota);
  return quota;
}

size_t Quotas::size() {
  const std::lock_guard lock(mutex_);
  return quotas_.size();
}

}  // namespace strata::security
