#include "service/rpc/handlers/feed/subscription_messages.h"

namespace strata::rpc::feed_service {

absl::Status DiscardParked(const Context& context, const wire::DiscardParkedRequest& request,
                           Reply<wire::DiscardParkedResponse> reply) {
  return RequestParked(context, request, feed::Subscriptions::ParkedRequest::kDiscard,
                       std::move(reply));
}

}  // namespace strata::rpc::feed_service
