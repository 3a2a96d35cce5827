#include "schemas/feed/subscription_requests.h"

#include <algorithm>
#include <string>
#include <variant>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/filter.h"

namespace strata::feed {

absl::Status CheckCreate(const CreateSubscription& request) {
  const Subscription& wanted = request.subscription;
  RETURN_IF_ERROR(ValidateName("name", wanted.name));
  if (wanted.name.starts_with(lease::kServersOwn)) {
    return Error(ErrorReason::kInvalidName, "a name that begins with \"$\" is the server's own")
        .With("field", "name");
  }
  const Selection& selection = wanted.selection;
  for (const std::string& collection : selection.collections) {
    RETURN_IF_ERROR(ValidateName("collections", collection));
  }
  if (!std::is_sorted(selection.collections.begin(), selection.collections.end())) {
    return FieldError("collections", "are not sorted");
  }
  if (!selection.id_prefix.empty() && selection.collections.size() != 1) {
    return FieldError("id_prefix", "needs exactly one collection");
  }
  if (wanted.filter) {
    RETURN_IF_ERROR(CheckBytes("filter", wanted.filter->size(), kSubscriptionFilterBytesMax));
    RETURN_IF_ERROR(document::Filter::Compile(*wanted.filter).status());
  }
  if (std::holds_alternative<FromCopy>(request.start) ||
      std::holds_alternative<FromPlace>(request.start)) {
    return FieldError("start", "is neither a position nor a time");
  }
  RETURN_IF_ERROR(CheckRange("partitions", wanted.partitions, 1, kPartitionsMax));
  RETURN_IF_ERROR(CheckRange("max_attempts", wanted.max_attempts, 1, kMaxAttemptsMax));
  RETURN_IF_ERROR(CheckRange("backoff_first", wanted.backoff_first, kBackoffMin, kBackoffFirstMax));
  RETURN_IF_ERROR(
      CheckRange("backoff_max", wanted.backoff_max, wanted.backoff_first, kBackoffMaxMax));
  RETURN_IF_ERROR(CheckRange("ack_timeout", wanted.ack_timeout, kAckTimeoutMin, kAckTimeoutMax));
  return CheckRange("lease_ttl", wanted.lease_ttl, lease::kTtlMin, lease::kTtlMax);
}

absl::Status CheckConsume(const ConsumeQuery& query) {
  RETURN_IF_ERROR(ValidateName("open.subscription", query.subscription));
  RETURN_IF_ERROR(ValidateName("open.consumer", query.consumer));
  return CheckRange("open.window", query.window, 1, kWindowMax);
}

absl::Status CheckNackReason(std::string_view reason) {
  return CheckBytes("nack.reason", reason.size(), kNackReasonBytesMax);
}

absl::Status SubscriptionNotFound(std::string_view name) {
  return Error(ErrorReason::kSubscriptionNotFound, "no such subscription")
      .With("subscription", name);
}

}  // namespace strata::feed
