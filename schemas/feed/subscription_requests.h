// What requests about subscriptions may say. Internal to this folder.
#pragma once

#include "absl/status/status.h"
#include "schemas/feed/consumer.h"
#include "schemas/feed/subscriptions.h"

namespace strata::feed {

// INVALID_NAME or INVALID_FIELD, whose metadata "field" says which part of the request is wrong.
absl::Status CheckCreate(const CreateSubscription& request);
absl::Status CheckConsume(const ConsumeQuery& query);
absl::Status CheckNackReason(std::string_view reason);

// SUBSCRIPTION_NOT_FOUND.
absl::Status SubscriptionNotFound(std::string_view name);

}  // namespace strata::feed
