#include "service/rpc/convert.h"

namespace strata::rpc::collection_service {

absl::Status DeleteCollection(const Context& context, const wire::DeleteCollectionRequest& request,
                              Reply<wire::DeleteCollectionResponse> reply) {
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
