#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/transaction/answer.h"

namespace strata::rpc::transaction_service {

absl::Status ResumeTransaction(const Context& context,
                               const wire::ResumeTransactionRequest& request,
                               Reply<wire::ResumeTransactionResponse> reply) {
  RETURN_IF_ERROR(FindPermitted(context, security::Permission::kWrite, request.id()).status());
  context.services.transactions.Resume(request.id(), AnswerTransaction(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::transaction_service
