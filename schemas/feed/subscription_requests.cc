#include "schemas/feed/subscription_requests.h"

#include <algorithm>
#include <string>
#include <variant>

#include "absl/time/time.h"
#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/filter.h"

namespace strata::feed {
namespace {

using std::chrono::microseconds;

absl::Status Invalid(std::string_view field, const std::string& problem) {
  return Error(ErrorReason::kInvalidField, std::string(field) + " " + problem).With("field", field);
}

std::string TextOf(microseconds time) { return absl::FormatDuration(absl::FromChrono(time)); }
std::string TextOf(int64_t number) { return std::to_string(number); }

template <typename Value>
absl::Status CheckRange(std::string_view field, Value value, Value least, Value most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField, std::string(field) + " is " + TextOf(value) +
                                               ", but has to be " + TextOf(least) + " to " +
                                               TextOf(most))
      .With("field", field)
      .With("limit", TextOf(value < least ? least : most));
}

}  // namespace

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
    return Invalid("collections", "are not sorted");
  }
  if (!selection.id_prefix.empty() && selection.collections.size() != 1) {
    return Invalid("id_prefix", "needs exactly one collection");
  }
  if (wanted.filter) {
    if (wanted.filter->size() > kSubscriptionFilterBytesMax) {
      return Error(ErrorReason::kInvalidField,
                   "filter has " + std::to_string(wanted.filter->size()) + " bytes, at most " +
                       std::to_string(kSubscriptionFilterBytesMax) + " are allowed")
          .With("field", "filter")
          .With("limit", static_cast<int64_t>(kSubscriptionFilterBytesMax));
    }
    RETURN_IF_ERROR(document::Filter::Compile(*wanted.filter).status());
  }
  if (std::holds_alternative<FromCopy>(request.start) ||
      std::holds_alternative<FromPlace>(request.start)) {
    return Invalid("start", "is neither a position nor a time");
  }
  RETURN_IF_ERROR(CheckRange<int64_t>("partitions", wanted.partitions, 1, kPartitionsMax));
  RETURN_IF_ERROR(CheckRange<int64_t>("max_attempts", wanted.max_attempts, 1, kMaxAttemptsMax));
  RETURN_IF_ERROR(CheckRange("backoff_first", wanted.backoff_first, kBackoffMin, kBackoffFirstMax));
  RETURN_IF_ERROR(
      CheckRange("backoff_max", wanted.backoff_max, wanted.backoff_first, kBackoffMaxMax));
  RETURN_IF_ERROR(CheckRange("ack_timeout", wanted.ack_timeout, kAckTimeoutMin, kAckTimeoutMax));
  return CheckRange("lease_ttl", wanted.lease_ttl, lease::kTtlMin, lease::kTtlMax);
}

absl::Status CheckConsume(const ConsumeQuery& query) {
  RETURN_IF_ERROR(ValidateName("open.subscription", query.subscription));
  RETURN_IF_ERROR(ValidateName("open.consumer", query.consumer));
  return CheckRange<int64_t>("open.window", query.window, 1, kWindowMax);
}

absl::Status CheckNackReason(std::string_view reason) {
  if (reason.size() <= kNackReasonBytesMax) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField, "nack.reason has " + std::to_string(reason.size()) +
                                               " bytes, at most " +
                                               std::to_string(kNackReasonBytesMax) + " are allowed")
      .With("field", "nack.reason")
      .With("limit", static_cast<int64_t>(kNackReasonBytesMax));
}

absl::Status SubscriptionNotFound(std::string_view name) {
  return Error(ErrorReason::kSubscriptionNotFound, "no such subscription")
      .With("subscription", name);
}

}  // namespace strata::feed
