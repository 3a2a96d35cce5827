#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

namespace {

absl::StatusOr<queue::PushRequest> ToPush(const wire::PushRequest& request,
                                          const std::string& principal) {
  if (request.messages().empty()) {
    return FieldError("messages", "is required: 1 to 100 messages");
  }
  RETURN_IF_ERROR(CheckLength("messages", request.messages(), queue::kBatchMax));
  queue::PushRequest push;
  push.queue = request.queue();
  push.messages.reserve(static_cast<size_t>(request.messages_size()));
  for (int i = 0; i < request.messages_size(); ++i) {
    ASSIGN_OR_RETURN(
        queue::PushedMessage message,
        ToPushedMessage(Element("messages", static_cast<size_t>(i)), request.messages(i)));
    message.pusher = principal;
    push.messages.push_back(std::move(message));
  }
  return push;
}

}  // namespace

absl::Status Push(const Context& context, const wire::PushRequest& request,
                  Reply<wire::PushResponse> reply) {
  ASSIGN_OR_RETURN(queue::PushRequest push,
                   ToPush(request, context.call.info().identity->principal));
  push.deadline = context.call.deadline();
  context.services.queues.Push(
      std::move(push),
      [reply = std::move(reply)](
          const absl::StatusOr<std::vector<absl::StatusOr<queue::PushResult>>>& pushed) {
        if (!pushed.ok()) return reply.Fail(pushed.status());
        for (const absl::StatusOr<queue::PushResult>& each : *pushed) {
          wire::PushResult& result = *reply.response().add_results();
          if (each.ok()) {
            result.set_message_id(each->id.ToText());
            result.set_replayed(each->replayed);
          } else {
            FillApplyError(each.status(), *result.mutable_error());
          }
        }
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
