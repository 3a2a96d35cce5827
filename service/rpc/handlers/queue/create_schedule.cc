#include "schemas/base/status_macros.h"
#include "service/rpc/handlers/queue/handing_out.h"
#include "service/rpc/lease_messages.h"

namespace strata::rpc::queue_service {

namespace {

absl::StatusOr<queue::Schedule> ToSchedule(const wire::CreateScheduleRequest& request) {
  RETURN_IF_ERROR(CheckEncoding(request.encoding()));
  queue::Schedule schedule;
  schedule.queue = request.queue();
  schedule.name = request.name();
  switch (request.period_case()) {
    case wire::CreateScheduleRequest::kCron:
      if (request.cron().empty()) return FieldError("cron", "is empty: five fields, in UTC");
      schedule.cron = request.cron();
      break;
    case wire::CreateScheduleRequest::kEvery: {
      ASSIGN_OR_RETURN(schedule.every, ToDuration("every", request.every()));
      break;
    }
    case wire::CreateScheduleRequest::PERIOD_NOT_SET:
      return FieldError("period", "is required: cron or every");
  }
  ASSIGN_OR_RETURN(schedule.message, ToPushedMessage("message", request.message()));
  return schedule;
}

}  // namespace

absl::Status CreateSchedule(const Context& context, const wire::CreateScheduleRequest& request,
                            Reply<wire::CreateScheduleResponse> reply) {
  ASSIGN_OR_RETURN(queue::Schedule schedule, ToSchedule(request));
  schedule.message.pusher = context.call.info().identity->principal;
  context.services.queues.CreateSchedule(
      std::move(schedule), context.call.deadline(),
      [reply = std::move(reply),
       encoding = request.encoding()](const absl::StatusOr<queue::Schedule>& created) {
        if (!created.ok()) return reply.Fail(created.status());
        FillSchedule(*created, encoding, *reply.response().mutable_schedule());
        KeepRoom(reply.call(), reply.response().ByteSizeLong());
        reply.Ok();
      });
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
