#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"

namespace strata::rpc::collection_service {

void DeleteCollection(const Context& context, const wire::DeleteCollectionRequest& request,
                      Reply<wire::DeleteCollectionResponse> reply) {
  const auto begin = [&]() -> absl::Status {
    RETURN_IF_ERROR(versioning::ValidateName("name", request.name()));
    RETURN_IF_ERROR(versioning::ValidateRequestId(request.request_id()));
    if (request.incarnation() < 0) {
      return FieldError("incarnation",
                        "is " + std::to_string(request.incarnation()) + ", but counts from 1");
    }
    context.services.documents.collections().Delete(
        {request.name(), request.force(), request.incarnation(), request.request_id()},
        [reply](const absl::StatusOr<versioning::CollectionDeleted>& deleted) {
          if (!deleted.ok()) return reply.Fail(deleted.status());
          reply.response().set_replayed(deleted->replayed);
          reply.Ok();
        });
    return absl::OkStatus();
  };
  if (absl::Status status = begin(); !status.ok()) reply.Fail(status);
}

}  // namespace strata::rpc::collection_service
