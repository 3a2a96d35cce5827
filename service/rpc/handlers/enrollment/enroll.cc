#include "service/rpc/handlers/enrollment/messages.h"

namespace strata::rpc::enrollment_service {

absl::Status Enroll(const Context& context, const wire::EnrollRequest& request,
                    Reply<wire::EnrollResponse> reply) {
  context.services.enrollments.Apply(
      ToApply(request, enrollment::Operation::kEnroll, context.call.deadline(), &context.call),
      AnswerApplied(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
