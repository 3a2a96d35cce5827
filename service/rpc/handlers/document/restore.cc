#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/write_answer.h"

namespace strata::rpc::document_service {

absl::Status Restore(const Context& context, const wire::RestoreRequest& request,
                     Reply<wire::RestoreResponse> reply) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  if (request.version() < 1) return FieldError("version", "is required, from 1");
  ASSIGN_OR_RETURN(versioning::WriteRequest write, ToWriteRequest(request, context));
  context.services.documents.Restore(
      std::move(write), request.version(),
      AnswerWriteWithContent(std::move(reply), request.encoding(), request.omit_content()));
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
