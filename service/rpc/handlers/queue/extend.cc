#include "schemas/base/status_macros.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

absl::Status Extend(const Context& context, const wire::ExtendRequest& request,
                    Reply<wire::ExtendResponse> reply) {
  ASSIGN_OR_RETURN(std::vector<std::string> tokens, ToTokens("tokens", request.tokens()));
  std::optional<std::chrono::microseconds> timeout;
  if (request.has_timeout()) {
    ASSIGN_OR_RETURN(timeout, ToDuration("timeout", request.timeout()));
  }
  return context.services.queues.Extend(std::move(tokens), timeout, context.call.deadline(),
                                        AnswerTokens(std::move(reply)));
}

}  // namespace strata::rpc::queue_service
