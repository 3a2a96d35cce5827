// The policy: which principals may do what to which resources, for whom, and how much.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "service/security/permission.h"
#include "service/security/quota.h"

namespace strata::security {

class PolicyFile;

// Matches one text exactly or, if it ends in "*", every text that begins with what is before that.
class Pattern {
 public:
  // INVALID_FIELD: it is empty, has "*" elsewhere than at its end, or is too long.
  static absl::StatusOr<Pattern> Parse(std::string_view text);

  bool Matches(std::string_view text) const;
  // Of two that match the same text, the one that says more of it: exact ones, then longer ones.
  bool IsCloserThan(const Pattern& other) const;
  std::string text() const { return prefix_ ? text_ + "*" : text_; }

 private:
  std::string text_;  // without "*"
  bool prefix_ = false;
};

class Policy {
 public:
  static constexpr size_t kBytesMax = size_t{1} << 20;

  // Reads the JSON of service/security/policy.proto. INVALID_FIELD, naming the member
  // ("grants[2].resources[0]"), its problem and what there is.
  static absl::StatusOr<Policy> Parse(std::string_view json);

  bool Permits(std::string_view principal, const Demand& demand) const;
  // Whether one grant lets the principal write the resource for that other name.
  bool PermitsActingFor(std::string_view principal, const Resource& resource,
                        std::string_view name) const;
  // Of the closest pattern that matches; without one, no limits.
  QuotaLimits QuotaOf(std::string_view principal) const;

 private:
  struct Grant {
    std::vector<Pattern> principals;
    unsigned permissions = 0;  // one bit each
    std::vector<Pattern> resources;
    std::vector<Pattern> acts_for;
  };
  struct Limited {
    Pattern principal;
    QuotaLimits limits;
  };

  absl::Status AddGrants(const PolicyFile& file);
  absl::Status AddQuotas(const PolicyFile& file);

  std::vector<Grant> grants_;
  std::vector<Limited> quotas_;
};

}  // namespace strata::security
