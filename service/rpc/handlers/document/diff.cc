#include "schemas/base/status_macros.h"
#include "service/rpc/convert.h"

namespace strata::rpc::document_service {

absl::Status Diff(const Context& context, const wire::DiffRequest& request,
                  wire::DiffResponse& response) {
  if (request.from_version() < 1) return FieldError("from_version", "is required, from 1");
  if (request.to_version() < 0)
    return FieldError("to_version", "is negative; leave it out for the current version");
  ASSIGN_OR_RETURN(const versioning::DiffResult result,
                   context.services.documents.Diff({request.collection(), request.id()},
                                                   request.from_version(), request.to_version()));
  response.set_from_version(result.from_version);
  response.set_to_version(result.to_version);
  FillChanges(result.changes, *response.mutable_changes());
  return absl::OkStatus();
}

}  // namespace strata::rpc::document_service
