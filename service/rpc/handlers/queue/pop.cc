#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/queue/handing_out.h"

namespace strata::rpc::queue_service {

absl::Status Pop(const Context& context, const wire::PopRequest& request,
                 Reply<wire::PopResponse> reply) {
  ASSIGN_OR_RETURN(queue::ReserveRequest pop, ToReserve(context, request));
  context.services.queues.Reserve(
      std::move(pop), [reply = std::move(reply), encoding = request.encoding()](
                          const absl::StatusOr<std::vector<queue::MessageView>>& popped) {
        if (!popped.ok()) return reply.Fail(popped.status());
        for (const queue::MessageView& message : *popped) {
          const absl::Status filled =
              FillMessage(message, encoding, *reply.response().add_messages());
          if (!filled.ok()) return reply.Fail(filled);
        }
        KeepRoom(reply.call(), reply.response().ByteSizeLong());
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
