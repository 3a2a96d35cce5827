#include "schemas/base/status_macros.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc::lease_service {

absl::Status Renew(const Context& context, const wire::RenewRequest& request,
                   Reply<wire::RenewResponse> reply) {
  RETURN_IF_ERROR(CheckLeaseName("name", request.name()));
  lease::RenewRequest renew;
  renew.name = request.name();
  renew.token = request.token();
  if (request.has_ttl()) {
    ASSIGN_OR_RETURN(renew.ttl, ToDuration("ttl", request.ttl()));
  }
  if (request.position() != 0) renew.position = request.position();
  renew.deadline = context.call.deadline();
  context.services.leases.Renew(std::move(renew), AnswerLease(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::lease_service
