#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status UpdateQueue(const Context& context, const wire::UpdateQueueRequest& request,
                         Reply<wire::UpdateQueueResponse> reply) {
  RETURN_IF_ERROR(versioning::ValidateName("name", request.name()));
  ASSIGN_OR_RETURN(SettingsChange change,
                   ToSettingsChange(request.name(), request.settings(), request.update_mask()));
  context.services.queues.Update(request.name(), std::move(change), AnswerQueue(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
