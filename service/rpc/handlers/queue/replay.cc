#include "schemas/base/status_macros.h"
#include "service/rpc/page.h"
#include "service/rpc/queue_messages.h"

namespace strata::rpc::queue_service {

namespace {

absl::Status CheckEnded(const std::vector<queue::State>& states) {
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i] == queue::State::kFinished || states[i] == queue::State::kDead) continue;
    return FieldError("states[" + std::to_string(i) + "]",
                      "is neither MESSAGE_STATE_FINISHED nor MESSAGE_STATE_DEAD, and no other "
                      "message can be replayed");
  }
  return absl::OkStatus();
}

// When the messages have ended.
absl::Status FillTimes(const wire::ReplayRequest& request, queue::ReplayRequest& replay) {
  const auto check = [&](std::string_view field) {
    return replay.states.empty() ? FieldError(field, "needs states") : absl::OkStatus();
  };
  if (request.has_start_time()) {
    RETURN_IF_ERROR(check("start_time"));
    ASSIGN_OR_RETURN(replay.start_time, ToMicros("start_time", request.start_time(), Round::kUp));
  }
  if (request.has_end_time()) {
    RETURN_IF_ERROR(check("end_time"));
    ASSIGN_OR_RETURN(replay.end_time, ToMicros("end_time", request.end_time(), Round::kUp));
  }
  if (!replay.start_time || !replay.end_time || *replay.start_time < *replay.end_time) {
    return absl::OkStatus();
  }
  return FieldError("end_time", "is not after start_time");
}

}  // namespace

absl::Status Replay(const Context& context, const wire::ReplayRequest& request,
                    Reply<wire::ReplayResponse> reply) {
  RETURN_IF_ERROR(ValidateName("queue", request.queue()));
  if (!request.target_queue().empty()) {
    RETURN_IF_ERROR(ValidateName("target_queue", request.target_queue()));
  }
  queue::ReplayRequest replay;
  replay.queue = request.queue();
  replay.target_queue = request.target_queue();
  ASSIGN_OR_RETURN(replay.message_ids, ToMessageIds("message_ids", request.message_ids()));
  ASSIGN_OR_RETURN(replay.states, ToStates(request.states()));
  RETURN_IF_ERROR(CheckEither(replay.message_ids, replay.states));
  RETURN_IF_ERROR(CheckEnded(replay.states));
  RETURN_IF_ERROR(FillTimes(request, replay));
  replay.deadline = context.call.deadline();
  replay.stopped = OnceClosed(context.call);
  context.services.queues.Replay(std::move(replay), AnswerSwept(std::move(reply)));
  return absl::OkStatus();
}

}  // namespace strata::rpc::queue_service
