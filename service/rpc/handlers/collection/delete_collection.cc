#include "service/rpc/convert.h"

namespace strata::rpc::collection_service {

void DeleteCollection(const Context& context, const wire::DeleteCollectionRequest& request,
                      Reply<wire::DeleteCollectionResponse> reply) {
  if (absl::Status status = versioning::ValidateName("name", request.name()); !status.ok()) {
    return reply.Fail(status);
  }
  context.services.documents.collections().Delete(request.name(), request.force(),
                                                  [reply](absl::Status status) {
                                                    if (!status.ok()) return reply.Fail(status);
                                                    reply.Ok();
                                                  });
}

}  // namespace strata::rpc::collection_service
