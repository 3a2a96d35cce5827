#include <string>

#include "schemas/base/status_macros.h"
#include "service/rpc/batched_cursor.h"
#include "service/rpc/page.h"
#include "service/rpc/page_token.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {
namespace {

constexpr std::string_view kListSchedulesMethod = "ListSchedules";
// Each has a payload.
constexpr size_t kSchedulesReadAtOnce = 8;

}  // namespace

absl::Status ListSchedules(const Context& context, const wire::ListSchedulesRequest& request,
                           wire::ListSchedulesResponse& response) {
  ASSIGN_OR_RETURN(const int page_size, ToPageSize(request.page_size()));
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  std::string after_name;
  if (!request.page_token().empty()) {
    ASSIGN_OR_RETURN(after_name,
                     ReadPageToken(kListSchedulesMethod, PageScope(request), request.page_token()));
  }
  BatchedCursor<queue::Schedule> schedules(
      [&](const queue::Schedule* last, size_t most) {
        if (last != nullptr) after_name = last->name;
        return context.services.queues.ListSchedules(request.queue(), after_name, most);
      },
      kSchedulesReadAtOnce);
  const auto fill = [&](wire::Schedule& filled) {
    FillSchedule(schedules.item(), request.encoding(), filled);
  };
  RETURN_IF_ERROR(
      FillPage(schedules, context.call, page_size, *response.mutable_schedules(), fill));
  if (!schedules.done() && response.schedules_size() > 0) {
    const wire::Schedule& last = response.schedules(response.schedules_size() - 1);
    response.set_next_page_token(
        MakePageToken(kListSchedulesMethod, PageScope(request), last.name()));
  }
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
