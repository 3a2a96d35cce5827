#include "schemas/base/status_macros.h"
#include "service/rpc/enrollment_messages.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"

namespace strata::rpc::enrollment_service {
namespace {

constexpr std::string_view kListRosterMethod = "ListRoster";

absl::StatusOr<enrollment::RosterQuery> ToQuery(const wire::ListRosterRequest& request) {
  enrollment::RosterQuery query;
  query.collection = CollectionOr(request.collection());
  query.set = SetOr(request.set());
  query.class_name = request.class_name();
  if (request.has_at_time()) {
    ASSIGN_OR_RETURN(query.at_time, ToMicros("at_time", request.at_time(), Round::kDown));
  }
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(IdPlace place,
                     ReadIdPlace(kListRosterMethod, PageScope(request), request.page_token()));
    query.incarnation = place.incarnation;
    query.after_id = std::move(place.after_id);
  }
  return query;
}

}  // namespace

absl::Status ListRoster(const Context& context, const wire::ListRosterRequest& request,
                        wire::ListRosterResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  ASSIGN_OR_RETURN(enrollment::RosterQuery query, ToQuery(request));
  query.stopped = OnceClosed(context.call);
  enrollment::RosterCursor students = context.services.enrollments.Roster(query);
  const auto fill = [&](wire::RosterEntry& entry) {
    entry.set_student_id(students.student_id());
    entry.set_sequence_number(students.enrollment().sequence_number);
    entry.set_version(students.version());
  };
  RETURN_IF_ERROR(FillPage(students, context.call, page_size, *response.mutable_students(), fill));
  response.set_examined(students.examined());
  if (const std::optional<std::string> next = students.resume_after()) {
    response.set_next_page_token(MakePageToken(kListRosterMethod, PageScope(request),
                                               IdPlace{students.incarnation(), *next}));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::enrollment_service
