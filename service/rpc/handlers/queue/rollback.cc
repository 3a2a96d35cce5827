#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status Rollback(const Context& context, const wire::RollbackRequest& request,
                      Reply<wire::RollbackResponse> reply) {
  ASSIGN_OR_RETURN(queue::RollbackRequest rollback, ToRollback("", request));
  rollback.deadline = context.call.deadline();
  return context.services.queues.Rollback(std::move(rollback), AnswerTokens(std::move(reply)));
}

}  // namespace strata::rpc::queue_service
