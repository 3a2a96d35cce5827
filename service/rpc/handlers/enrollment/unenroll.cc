#include "service/rpc/handlers/enrollment/messages.h"

namespace strata::rpc::enrollment_service {

absl::Status Unenroll(const Context& context, const wire::UnenrollRequest& request,
                      Reply<wire::UnenrollResponse> reply) {
  context.services.enrollments.Apply(
      ToApply(request, enrollment::Operation::kUnenroll, context.call.deadline(), &context.call),
      AnswerApplied(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
