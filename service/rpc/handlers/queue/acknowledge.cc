#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status Acknowledge(const Context& context, const wire::AcknowledgeRequest& request,
                         Reply<wire::AcknowledgeResponse> reply) {
  ASSIGN_OR_RETURN(std::vector<std::string> tokens, ToTokens("tokens", request.tokens()));
  context.services.queues.Acknowledge(std::move(tokens), context.call.deadline(),
                                      AnswerTokens(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
