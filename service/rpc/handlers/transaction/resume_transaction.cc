#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/transaction/answer.h"

namespace strata::rpc::transaction_service {

absl::Status ResumeTransaction(const Context& context,
                               const wire::ResumeTransactionRequest& request,
                               Reply<wire::ResumeTransactionResponse> reply) {
  ASSIGN_OR_RETURN(const transaction::Transaction found,
                   FindPermitted(context, security::Permission::kWrite, request.id()));
  context.services.transactions.Resume(found.id, AnswerTransaction(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::transaction_service
