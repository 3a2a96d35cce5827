#include <utility>

#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"

namespace strata::rpc::collection_service {

absl::Status DeleteCollection(const Context& context, const wire::DeleteCollectionRequest& request,
                              Reply<wire::DeleteCollectionResponse> reply) {
  ASSIGN_OR_RETURN(versioning::ChangeInfo change,
                   ToChangeInfo(wire::ChangeInfo(), request.name(), context.services.access,
                                context.call.info()));
  context.services.documents.collections().Delete(
      {request.name(), request.force(), request.incarnation(), request.request_id(),
       std::move(change), context.call.deadline()},
      [reply = std::move(reply)](const absl::StatusOr<versioning::CollectionDeleted>& deleted) {
        if (!deleted.ok()) return reply.Fail(deleted.status());
        reply.response().set_replayed(deleted->replayed);
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::collection_service
