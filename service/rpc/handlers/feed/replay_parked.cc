#include "service/rpc/handlers/feed/subscription_messages.h"

namespace strata::rpc::feed_service {

absl::Status ReplayParked(const Context& context, const wire::ReplayParkedRequest& request,
                          Reply<wire::ReplayParkedResponse> reply) {
  return RequestParked(context, request, feed::Subscriptions::ParkedRequest::kReplay,
                       std::move(reply));
}

}  // namespace strata::rpc::feed_service
