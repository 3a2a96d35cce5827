#include "schemas/base/status_macros.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc::lease_service {

absl::Status Acquire(const Context& context, const wire::AcquireRequest& request,
                     Reply<wire::AcquireResponse> reply) {
  RETURN_IF_ERROR(CheckLeaseName("name", request.name()));
  lease::AcquireRequest acquire;
  acquire.name = request.name();
  acquire.holder = request.holder();
  if (request.has_ttl()) {
    ASSIGN_OR_RETURN(acquire.ttl, ToDuration("ttl", request.ttl()));
  }
  if (request.has_wait()) {
    ASSIGN_OR_RETURN(acquire.wait, ToDuration("wait", request.wait()));
  }
  acquire.metadata.insert(request.metadata().begin(), request.metadata().end());
  acquire.deadline = context.call.deadline();
  acquire.waiter = &context.call;
  context.services.leases.Acquire(std::move(acquire), AnswerLease(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::lease_service
