#include "service/rpc/enrollment_messages.h"

namespace strata::rpc::enrollment_service {

absl::Status Enroll(const Context& context, const wire::EnrollRequest& request,
                    Reply<wire::EnrollResponse> reply) {
  ASSIGN_OR_RETURN(enrollment::ApplyRequest apply,
                   ToApply(request, enrollment::Operation::kEnroll, context));
  context.services.enrollments.Apply(std::move(apply), AnswerApplied(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
