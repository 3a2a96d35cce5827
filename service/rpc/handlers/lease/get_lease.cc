#include "schemas/base/status_macros.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc::lease_service {

absl::Status GetLease(const Context& context, const wire::GetLeaseRequest& request,
                      wire::GetLeaseResponse& response) {
  RETURN_IF_ERROR(CheckLeaseName("name", request.name()));
  ASSIGN_OR_RETURN(const lease::Lease lease, context.services.leases.Get(request.name()));
  FillLease(lease, *response.mutable_lease());
  return absl::OkStatus();
}

}  // namespace strata::rpc::lease_service
