#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status DeleteQueue(const Context& context, const wire::DeleteQueueRequest& request,
                         Reply<wire::DeleteQueueResponse> reply) {
  context.services.queues.Delete(request.name(), request.force(), context.call.deadline(),
                                 [reply = std::move(reply)](const absl::Status& deleted) {
                                   deleted.ok() ? reply.Ok() : reply.Fail(deleted);
                                 });
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
