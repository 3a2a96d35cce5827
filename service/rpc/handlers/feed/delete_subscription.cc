#include <utility>

#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/feed/subscription_messages.h"

namespace strata::rpc::feed_service {

absl::Status DeleteSubscription(const Context& context,
                                const wire::DeleteSubscriptionRequest& request,
                                Reply<wire::DeleteSubscriptionResponse> reply) {
  context.services.subscriptions.Delete(request.name(), context.call.deadline(),
                                        [reply = std::move(reply)](const absl::Status& deleted) {
                                          if (!deleted.ok()) return reply.Fail(deleted);
                                          reply.Ok();
                                        });
  return absl::OkStatus();
}

}  // namespace strata::rpc::feed_service
