#include "service/rpc/handlers/enrollment/messages.h"

namespace strata::rpc::enrollment_service {

void Unenroll(const Context& context, const wire::UnenrollRequest& request,
              Reply<wire::UnenrollResponse> reply) {
  context.services.enrollments.Apply(
      ToApply(request, enrollment::Operation::kUnenroll, context.call.deadline()),
      AnswerApplied(std::move(reply)));
}

}  // namespace strata::rpc::enrollment_service
