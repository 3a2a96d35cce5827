#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status PurgeMessages(const Context& context, const wire::PurgeMessagesRequest& request,
                           Reply<wire::PurgeMessagesResponse> reply) {
  queue::PurgeRequest purge;
  purge.queue = request.queue();
  ASSIGN_OR_RETURN(purge.message_ids, ToMessageIds("message_ids", request.message_ids()));
  ASSIGN_OR_RETURN(purge.states, ToStates(request.states()));
  purge.deadline = context.call.deadline();
  purge.stopped = OnceClosed(context.call);
  context.services.queues.Purge(std::move(purge), AnswerSwept(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
