#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/enrollment/messages.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::enrollment_service {
namespace {

constexpr std::string_view kMethod = "ListRoster";

absl::StatusOr<enrollment::RosterQuery> ToQuery(const wire::ListRosterRequest& request) {
  enrollment::RosterQuery query;
  query.collection = CollectionOr(request.collection());
  query.set = SetOr(request.set());
  query.class_name = request.class_name();
  if (request.has_at_time()) {
    ASSIGN_OR_RETURN(query.at_time, ToMicros("at_time", request.at_time(), Round::kDown));
  }
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(query.after_id,
                     ReadPageToken(kMethod, PageScope(request), request.page_token()));
  }
  return query;
}

}  // namespace

absl::Status ListRoster(const Context& context, const wire::ListRosterRequest& request,
                        wire::ListRosterResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  ASSIGN_OR_RETURN(const enrollment::RosterQuery query, ToQuery(request));
  PageMeter meter(page_size);
  const auto take = [&](std::string_view student_id, const enrollment::Enrollment& enrollment,
                        int64_t version) {
    if (context.call.closed() || meter.full()) return false;
    wire::RosterEntry& entry = *response.add_students();
    entry.set_student_id(student_id.data(), student_id.size());
    entry.set_sequence_number(enrollment.sequence_number);
    entry.set_version(version);
    return TakeLast(meter, *response.mutable_students());
  };
  ASSIGN_OR_RETURN(const versioning::ListEnd end, context.services.enrollments.Roster(query, take));
  response.set_examined(end.examined);
  if (end.resume_after) {
    response.set_next_page_token(MakePageToken(kMethod, PageScope(request), *end.resume_after));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
