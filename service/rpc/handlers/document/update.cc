#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/write_answer.h"

namespace strata::rpc::document_service {
namespace {

// A patch that turns out wrong when it meets the content names its own operation only.
versioning::WriteCallback InPatch(versioning::WriteCallback answer) {
  return [answer = std::move(answer)](absl::StatusOr<versioning::WriteResult> result) {
    const std::optional<ErrorReason> reason = ReasonOf(result.status());
    if (reason == ErrorReason::kInvalidPatch || reason == ErrorReason::kInvalidContent ||
        reason == ErrorReason::kDocumentTooLarge) {
      result = InField(result.status(), "patch");
    }
    answer(std::move(result));
  };
}

}  // namespace

absl::Status Update(const Context& context, const wire::UpdateRequest& request,
                    Reply<wire::UpdateResponse> reply) {
  versioning::Documents& documents = context.services.documents;
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  ASSIGN_OR_RETURN(versioning::WriteRequest write, ToWriteRequest(request, context));
  ASSIGN_OR_RETURN(versioning::Documents::NewContent content,
                   ToNewContent(request, documents.limits()));
  versioning::WriteCallback answer =
      AnswerWriteWithContent(std::move(reply), request.encoding(), request.omit_content());
  if (request.has_patch()) answer = InPatch(std::move(answer));
  documents.Update(std::move(write), std::move(content), request.allow_missing(),
                   std::move(answer));
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
