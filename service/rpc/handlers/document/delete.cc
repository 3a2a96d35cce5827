#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/write_answer.h"

namespace strata::rpc::document_service {

absl::Status Delete(const Context& context, const wire::DeleteRequest& request,
                    Reply<wire::DeleteResponse> reply) {
  ASSIGN_OR_RETURN(versioning::WriteRequest write, ToWriteRequest(request, context));
  context.services.documents.Delete(std::move(write), AnswerWrite(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
