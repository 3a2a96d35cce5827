#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status DeleteSchedule(const Context& context, const wire::DeleteScheduleRequest& request,
                            Reply<wire::DeleteScheduleResponse> reply) {
  context.services.queues.DeleteSchedule(request.queue(), request.name(), context.call.deadline(),
                                         [reply = std::move(reply)](const absl::Status& deleted) {
                                           deleted.ok() ? reply.Ok() : reply.Fail(deleted);
                                         });
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
