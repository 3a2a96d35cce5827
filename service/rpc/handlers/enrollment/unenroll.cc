#include "service/rpc/enrollment_messages.h"

namespace strata::rpc::enrollment_service {

absl::Status Unenroll(const Context& context, const wire::UnenrollRequest& request,
                      Reply<wire::UnenrollResponse> reply) {
  ASSIGN_OR_RETURN(enrollment::ApplyRequest apply,
                   ToApply(request, enrollment::Operation::kUnenroll, context));
  context.services.enrollments.Apply(std::move(apply), AnswerApplied(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
