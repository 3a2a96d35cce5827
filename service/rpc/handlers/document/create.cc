#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/write_answer.h"

namespace strata::rpc::document_service {

absl::Status Create(const Context& context, const wire::CreateRequest& request,
                    Reply<wire::CreateResponse> reply) {
  versioning::Documents& documents = context.services.documents;
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(versioning::WriteRequest write, ToWriteRequest(request, context));
  ASSIGN_OR_RETURN(document::Content content,
                   ToContent("content", request.content(), documents.limits()));
  documents.Create(
      std::move(write), std::move(content),
      AnswerWriteWithContent(std::move(reply), request.encoding(), request.omit_content()));
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
