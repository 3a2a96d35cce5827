#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/queue/handing_out.h"

namespace strata::rpc::queue_service {

namespace {

// Those from `first` on, which no answer holds: others may have them at once.
void GiveBack(const std::vector<queue::MessageView>& messages, size_t first,
              queue::Queues& queues) {
  queue::RollbackRequest rollback;
  for (size_t i = first; i < messages.size(); ++i) rollback.tokens.push_back(messages[i].token);
  if (rollback.tokens.empty()) return;
  rollback.delay = std::chrono::microseconds(0);
  rollback.not_counted = true;
  queues.Rollback(std::move(rollback), [](const std::vector<absl::StatusOr<bool>>&) {})
      .IgnoreError();
}

}  // namespace

absl::Status Reserve(const Context& context, const wire::ReserveRequest& request,
                     Reply<wire::ReserveResponse> reply) {
  ASSIGN_OR_RETURN(queue::ReserveRequest reserve, ToReserve(context, request));
  queue::Queues& queues = context.services.queues;
  queues.Reserve(
      std::move(reserve), [reply = std::move(reply), encoding = request.encoding(), &queues](
                              const absl::StatusOr<std::vector<queue::MessageView>>& reserved) {
        if (!reserved.ok()) return reply.Fail(reserved.status());
        const absl::StatusOr<size_t> filled = FillHandedOut(*reserved, encoding, reply.response());
        GiveBack(*reserved, filled.value_or(0), queues);
        if (!filled.ok()) return reply.Fail(filled.status());
        KeepRoom(reply.call(), reply.response().ByteSizeLong());
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
