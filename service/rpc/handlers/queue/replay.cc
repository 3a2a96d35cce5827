#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

namespace {

// When the messages have ended.
absl::Status FillTimes(const wire::ReplayRequest& request, queue::ReplayRequest& replay) {
  if (request.has_start_time()) {
    ASSIGN_OR_RETURN(replay.start_time, ToMicros("start_time", request.start_time(), Round::kUp));
  }
  if (request.has_end_time()) {
    ASSIGN_OR_RETURN(replay.end_time, ToMicros("end_time", request.end_time(), Round::kUp));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Replay(const Context& context, const wire::ReplayRequest& request,
                    Reply<wire::ReplayResponse> reply) {
  queue::ReplayRequest replay;
  replay.queue = request.queue();
  replay.target_queue = request.target_queue();
  ASSIGN_OR_RETURN(replay.message_ids, ToMessageIds("message_ids", request.message_ids()));
  ASSIGN_OR_RETURN(replay.states, ToStates(request.states()));
  RETURN_IF_ERROR(FillTimes(request, replay));
  replay.deadline = context.call.deadline();
  replay.stopped = OnceClosed(context.call);
  context.services.queues.Replay(std::move(replay), AnswerSwept(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
