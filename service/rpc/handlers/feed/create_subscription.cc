#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/feed/selection.h"
#include "service/rpc/handlers/feed/subscription_messages.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc::feed_service {
namespace {

absl::StatusOr<std::chrono::microseconds> TimeOr(std::chrono::microseconds unset,
                                                 std::string_view field, bool set,
                                                 const google::protobuf::Duration& time) {
  return set ? ToDuration(field, time) : unset;
}

absl::Status FillTimes(const wire::CreateSubscriptionRequest& request,
                       feed::Subscription& subscription) {
  ASSIGN_OR_RETURN(subscription.backoff_first,
                   TimeOr(feed::kBackoffFirstDefault, "backoff_first", request.has_backoff_first(),
                          request.backoff_first()));
  ASSIGN_OR_RETURN(subscription.backoff_max,
                   TimeOr(std::max(feed::kBackoffMaxDefault, subscription.backoff_first),
                          "backoff_max", request.has_backoff_max(), request.backoff_max()));
  ASSIGN_OR_RETURN(subscription.ack_timeout,
                   TimeOr(feed::kAckTimeoutDefault, "ack_timeout", request.has_ack_timeout(),
                          request.ack_timeout()));
  ASSIGN_OR_RETURN(subscription.lease_ttl, TimeOr(lease::kTtlDefault, "lease_ttl",
                                                  request.has_lease_ttl(), request.lease_ttl()));
  return absl::OkStatus();
}

absl::StatusOr<feed::CreateSubscription> ToCreate(const wire::CreateSubscriptionRequest& request) {
  feed::CreateSubscription create;
  feed::Subscription& subscription = create.subscription;
  subscription.name = request.name();
  ASSIGN_OR_RETURN(subscription.selection,
                   ToSelection(request.collections(), request.id_prefix(), request.kinds()));
  ASSIGN_OR_RETURN(subscription.filter, ToFilterContent("filter", request.filter()));
  ASSIGN_OR_RETURN(create.start, ToStart(request));
  if (request.partitions() != 0) subscription.partitions = request.partitions();
  if (request.max_attempts() != 0) subscription.max_attempts = request.max_attempts();
  RETURN_IF_ERROR(FillTimes(request, subscription));
  return create;
}

}  // namespace

absl::Status CreateSubscription(const Context& context,
                                const wire::CreateSubscriptionRequest& request,
                                Reply<wire::CreateSubscriptionResponse> reply) {
  ASSIGN_OR_RETURN(feed::CreateSubscription create, ToCreate(request));
  create.deadline = context.call.deadline();
  context.services.subscriptions.Create(
      std::move(create),
      [reply = std::move(reply)](const absl::StatusOr<feed::Subscription>& made) {
        if (!made.ok()) return reply.Fail(made.status());
        FillSubscription(*made, *reply.response().mutable_subscription());
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::feed_service
