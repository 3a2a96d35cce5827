#include "schemas/base/status_macros.h"
#include "service/rpc/enrollment_messages.h"

namespace strata::rpc::enrollment_service {
namespace {

absl::Status Fill(const enrollment::Enrollments& enrollments,
                  const wire::GetEnrollmentsRequest& request, const versioning::ReadLimits& limits,
                  wire::GetEnrollmentsResponse& response) {
  ASSIGN_OR_RETURN(
      const enrollment::StudentEnrollments found,
      enrollments.Get({std::string(CollectionOr(request.collection())), request.student_id()},
                      SetOr(request.set()), limits));
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

}  // namespace

absl::Status GetEnrollments(const Context& context, const wire::GetEnrollmentsRequest& request,
                            Reply<wire::GetEnrollmentsResponse> reply) {
  const enrollment::Enrollments& enrollments = context.services.enrollments;
  const absl::Status filled =
      Fill(enrollments, request,
           {.document_bytes_max = versioning::kBriefDocumentBytesMax, .searches = false},
           reply.response());
  if (filled.ok()) {
    reply.Ok();
  } else if (versioning::DoesTakeLong(filled)) {
    reply.Later([&enrollments, &request, &response = reply.response()] {
      return Fill(enrollments, request, {}, response);
    });
  } else {
    return filled;
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
