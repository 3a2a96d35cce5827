#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/enrollment/messages.h"

namespace strata::rpc::enrollment_service {

absl::Status GetEnrollments(const Context& context, const wire::GetEnrollmentsRequest& request,
                            wire::GetEnrollmentsResponse& response) {
  ASSIGN_OR_RETURN(
      const enrollment::StudentEnrollments found,
      context.services.enrollments.Get({CollectionOr(request.collection()), request.student_id()},
                                       SetOr(request.set())));
  for (const enrollment::Enrollment& each : found.all) {
    if (!each.enrolled && !request.include_tombstones()) continue;
    wire::Enrollment& item = *response.add_enrollments();
    item.set_class_name(each.class_name);
    item.set_sequence_number(each.sequence_number);
    item.set_enrolled(each.enrolled);
  }
  response.set_version(found.version);
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
