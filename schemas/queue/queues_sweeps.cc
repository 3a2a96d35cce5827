// Calls about many messages: replay and purge.
#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/queue/message_reads.h"
#include "schemas/queue/plans.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_requests.h"
#include "schemas/queue/queues_impl.h"

namespace strata::queue {

absl::StatusOr<FoundMessages> Queues::Impl::ToSweep(const std::string& queue,
                                                    const std::vector<std::string>& ids,
                                                    const std::vector<State>& states,
                                                    const HintTimes& ended,
                                                    const StopCheck& stopped) {
  if (!ids.empty()) {
    ASSIGN_OR_RETURN(std::vector<MessageId> named, ToMessageIds(ids));
    return FoundMessages{std::move(named)};
  }
  ASSIGN_OR_RETURN(const QueueRecordPtr record, directory_.Require(queue));
  ASSIGN_OR_RETURN(const UnixMicros now, NowIn(queue));
  UntrueHints untrue;
  auto found =
      FindMessages(environment_->store, *record, states, ended, stopped, now, kSweptMax, untrue);
  Clean(queue, std::move(untrue));
  return found;
}

void Queues::Impl::Replay(ReplayRequest request, SweptCallback done) {
  const std::string target = request.target_queue.empty() ? request.queue : request.target_queue;
  const auto check = [&]() -> absl::StatusOr<FoundMessages> {
    RETURN_IF_ERROR(CheckReplay(request));
    RETURN_IF_ERROR(directory_.Require(request.queue).status());
    // Before any message is looked for.
    RETURN_IF_ERROR(directory_.Require(target, "target_queue").status());
    return ToSweep(request.queue, request.message_ids, request.states,
                   {request.start_time, request.end_time}, request.stopped);
  };
  absl::StatusOr<FoundMessages> found = check();
  if (!found.ok()) return done(found.status());
  if (found->ids.empty()) return done(Swept{});
  const absl::StatusOr<DispatcherPtr> dispatcher = directory_.RequireDispatcher(request.queue);
  if (!dispatcher.ok()) return done(dispatcher.status());
  auto step = [target, &directory = directory_](Draft& draft, const Place& place, size_t /*index*/,
                                                const MessageId& id) -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const QueueRecordPtr queue, directory.FindAnew(target));
    if (queue == nullptr) return QueueNotFound(target, "target_queue");
    return PlanReplay(draft, place, id, *queue);
  };
  (*dispatcher)
      ->Do(std::make_shared<SweepOperation>(
          std::move(found->ids), request.deadline, /*makes_room=*/false, std::move(step),
          [more = found->more,
           done = std::move(done)](absl::StatusOr<SweepOperation::Result> swept) {
            if (!swept.ok()) return done(swept.status());
            done(Swept{swept->messages, more || swept->some_failed});
          }));
}

void Queues::Impl::Purge(PurgeRequest request, SweptCallback done) {
  const auto check = [&]() -> absl::StatusOr<FoundMessages> {
    RETURN_IF_ERROR(ValidateName("queue", request.queue));
    RETURN_IF_ERROR(CheckEither(request.message_ids, request.states));
    RETURN_IF_ERROR(directory_.Require(request.queue).status());
    return ToSweep(request.queue, request.message_ids, request.states, {}, request.stopped);
  };
  absl::StatusOr<FoundMessages> found = check();
  if (!found.ok()) return done(found.status());
  if (found->ids.empty()) return done(Swept{});
  const absl::StatusOr<DispatcherPtr> dispatcher = directory_.RequireDispatcher(request.queue);
  if (!dispatcher.ok()) return done(dispatcher.status());
  // What has left the states meanwhile stays.
  auto step = [states = request.states](Draft& draft, const Place& place, size_t /*index*/,
                                        const MessageId& id) -> absl::StatusOr<bool> {
    if (states.empty()) return PlanPurge(draft, place, id, std::nullopt);
    for (const State state : states) {
      ASSIGN_OR_RETURN(const bool purged, PlanPurge(draft, place, id, state));
      if (purged) return true;
    }
    return false;
  };
  (*dispatcher)
      ->Do(std::make_shared<SweepOperation>(
          std::move(found->ids), request.deadline, /*makes_room=*/true, std::move(step),
          [more = found->more,
           done = std::move(done)](absl::StatusOr<SweepOperation::Result> swept) {
            if (!swept.ok()) return done(swept.status());
            done(Swept{swept->messages, more || swept->some_failed});
          }));
}

}  // namespace strata::queue
