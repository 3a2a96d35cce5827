#include "schemas/base/status_macros.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc::lease_service {

absl::Status Release(const Context& context, const wire::ReleaseRequest& request,
                     Reply<wire::ReleaseResponse> reply) {
  RETURN_IF_ERROR(CheckLeaseName("name", request.name()));
  context.services.leases.Release({request.name(), request.token(), context.call.deadline()},
                                  AnswerLease(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::lease_service
