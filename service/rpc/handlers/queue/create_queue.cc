#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status CreateQueue(const Context& context, const wire::CreateQueueRequest& request,
                         Reply<wire::CreateQueueResponse> reply) {
  ASSIGN_OR_RETURN(queue::QueueSettings settings, ToQueueSettings(request.settings()));
  settings.owner = context.call.info().identity->principal;
  context.services.queues.Create(request.name(), settings, context.call.deadline(),
                                 AnswerQueue(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
