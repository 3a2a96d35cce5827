#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"

namespace strata::rpc::collection_service {

absl::Status DeleteCollection(const Context& context, const wire::DeleteCollectionRequest& request,
                              Reply<wire::DeleteCollectionResponse> reply) {
  RETURN_IF_ERROR(versioning::ValidateName("name", request.name()));
  RETURN_IF_ERROR(versioning::ValidateRequestId(request.request_id()));
  if (request.incarnation() < 0) {
    return FieldError("incarnation",
                      "is " + std::to_string(request.incarnation()) + ", but counts from 1");
  }
  context.services.documents.collections().Delete(
      {request.name(), request.force(), request.incarnation(), request.request_id()},
      [reply = std::move(reply)](const absl::StatusOr<versioning::CollectionDeleted>& deleted) {
        if (!deleted.ok()) return reply.Fail(deleted.status());
        reply.response().set_replayed(deleted->replayed);
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::collection_service
