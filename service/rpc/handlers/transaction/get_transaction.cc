#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/transaction/permitted.h"

namespace strata::rpc::transaction_service {

absl::Status GetTransaction(const Context& context, const wire::GetTransactionRequest& request,
                            wire::GetTransactionResponse& response) {
  ASSIGN_OR_RETURN(const transaction::Transaction found,
                   FindPermitted(context, security::Permission::kRead, request.id()));
  FillTransaction(found, *response.mutable_transaction());
  return absl::OkStatus();
}

}  // namespace strata::rpc::transaction_service
