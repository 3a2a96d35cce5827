#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/queue/handing_out.h"

namespace strata::rpc::queue_service {

namespace {

absl::StatusOr<queue::MoveRequest> ToMove(const wire::MoveRequest& request) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  queue::MoveRequest move;
  move.token = request.token();
  move.queue = request.queue();
  if (request.has_payload()) {
    ASSIGN_OR_RETURN(move.payload, ToPayload("payload", request.payload()));
  }
  if (!request.headers().empty()) {
    move.headers.emplace(request.headers().begin(), request.headers().end());
  }
  if (request.has_delay()) {
    ASSIGN_OR_RETURN(move.delay, ToDuration("delay", request.delay()));
  }
  return move;
}

}  // namespace

absl::Status Move(const Context& context, const wire::MoveRequest& request,
                  Reply<wire::MoveResponse> reply) {
  ASSIGN_OR_RETURN(queue::MoveRequest move, ToMove(request));
  move.mover = context.call.info().identity->principal;
  move.deadline = context.call.deadline();
  context.services.queues.Move(
      std::move(move), [reply = std::move(reply), encoding = request.encoding()](
                           const absl::StatusOr<queue::MessageView>& moved) {
        if (!moved.ok()) return reply.Fail(moved.status());
        const absl::Status filled =
            FillMessage(*moved, encoding, *reply.response().mutable_message());
        if (!filled.ok()) return reply.Fail(filled);
        KeepRoom(reply.call(), reply.response().ByteSizeLong());
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
