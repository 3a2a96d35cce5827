#include "schemas/queue/unit_steps.h"

#include <string>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/queue_errors.h"

namespace strata::queue {
struct QueueUnitSteps::Shared {
  const QueueEnvironmentPtr environment;
  QueueDirectory& directory;
  const std::vector<Acknowledgement> acknowledge;
  const std::vector<Push> pushes;
  const absl::Status refusal;

  std::mutex mutex;            // guards what follows
  Changes changes;             // of the plan made last
  std::vector<bool> replayed;  // in that plan, of the pushes
  int attempts = 0;

  absl::Status Plan(const store::Reader& reader, store::WriteBatch& batch);
  // The queue of that dispatcher, as the unit sees it. QUEUE_NOT_FOUND.
  absl::StatusOr<QueueRecordPtr> QueueOf(const store::Reader& reader, const Dispatcher& dispatcher);
};

absl::StatusOr<QueueRecordPtr> QueueUnitSteps::Shared::QueueOf(const store::Reader& reader,
                                                               const Dispatcher& dispatcher) {
  ASSIGN_OR_RETURN(QueueRecordPtr queue, directory.FindIn(reader, dispatcher.name()));
  if (queue == nullptr || queue->incarnation != dispatcher.incarnation()) {
    return QueueNotFound(dispatcher.name());
  }
  return queue;
}

absl::Status QueueUnitSteps::Shared::Plan(const store::Reader& reader, store::WriteBatch& batch) {
  // Whoever writes documents may go on for longer than the queues are there.
  const Doors::Visit visit(environment->doors);
  if (!visit.let_in()) return Draining();
  RETURN_IF_ERROR(refusal);
  Draft draft(reader, true);
  std::vector<bool> pushed_before;
  bool first = false;
  {
    const std::lock_guard lock(mutex);
    first = attempts == 0;
    draft.Forget(environment->clock.Now(), attempts++);
  }
  const auto steps = [&]() -> absl::Status {
    for (size_t i = 0; i < acknowledge.size(); ++i) {
      const auto& [dispatcher, token] = acknowledge[i];
      const std::string field = Element("acknowledge", i);
      if (token.timeline != environment->timeline) {
        return InField(TimelineLost(token, environment->timeline), field);
      }
      absl::StatusOr<QueueRecordPtr> queue = QueueOf(reader, *dispatcher);
      if (!queue.ok()) return InField(queue.status(), field);
      draft.Require(**queue);
      const Place place{**queue, nullptr, dispatcher->NextTime()};
      // What has changed since is found out by the guard, and then read.
      if (first) dispatcher->TellKnown(token.message, draft);
      absl::Status planned = PlanAcknowledge(draft, place, token, true).status();
      if (!planned.ok()) {
        ASSIGN_OR_RETURN(const bool otherwise, draft.Verify(token.message));
        if (otherwise) planned = PlanAcknowledge(draft, place, token, true).status();
      }
      if (!planned.ok()) return InField(planned, field);
    }
    for (size_t i = 0; i < pushes.size(); ++i) {
      const auto& [dispatcher, push] = pushes[i];
      const std::string field = Element("pushes", i);
      absl::StatusOr<QueueRecordPtr> queue = QueueOf(reader, *dispatcher);
      if (!queue.ok()) return InField(queue.status(), field + ".queue");
      draft.Require(**queue);
      const Place place{**queue, nullptr, dispatcher->NextTime()};
      NewMessage message = AtTime(push, place);
      const absl::Status planned = CheckExpiry(draft, place, message);
      if (!planned.ok()) return InField(planned, field + ".message");
      const absl::StatusOr<Pushed> pushed = PlanPush(draft, place, std::move(message));
      if (!pushed.ok()) return InField(pushed.status(), field + ".message");
      pushed_before.push_back(pushed->replayed);
    }
    return absl::OkStatus();
  };
  const absl::Status planned = steps();
  Draft::Planned taken = draft.Take();
  batch.Append(std::move(taken.batch));
  RETURN_IF_ERROR(planned);
  const std::lock_guard lock(mutex);
  changes = {std::move(taken.index), std::move(taken.written), 0};
  replayed = std::move(pushed_before);
  return absl::OkStatus();
}

QueueUnitSteps::QueueUnitSteps(QueueEnvironmentPtr environment, QueueDirectory& directory,
                               std::vector<Acknowledgement> acknowledge, std::vector<Push> pushes,
                               absl::Status refusal)
    : shared_(new Shared{std::move(environment),
                         directory,
                         std::move(acknowledge),
                         std::move(pushes),
                         std::move(refusal),
                         {},
                         {},
                         {},
                         0}) {}

store::JoinedPlan QueueUnitSteps::plan() {
  return [shared = shared_](const store::Reader& reader, store::WriteBatch& batch) {
    return shared->Plan(reader, batch);
  };
}

void QueueUnitSteps::Committed(store::CommitPosition position) {
  const Doors::Visit visit(shared_->environment->doors);
  if (!visit.let_in()) return;
  Changes changes;
  std::vector<bool> replayed;
  {
    const std::lock_guard lock(shared_->mutex);
    changes = std::move(shared_->changes);
    replayed = std::move(shared_->replayed);
  }
  changes.position = position;
  constexpr int64_t kNobody = 0;
  shared_->directory.Tell(changes, kNobody);
  for (const Acknowledgement& acknowledged : shared_->acknowledge) {
    acknowledged.dispatcher->Count(0, 1);
  }
  for (size_t i = 0; i < replayed.size(); ++i) {
    if (!replayed[i]) shared_->pushes[i].dispatcher->Count(1, 0);
  }
}

std::vector<MessageId> QueueUnitSteps::pushed() const {
  std::vector<MessageId> ids;
  for (const Push& push : shared_->pushes) ids.push_back(push.push.message.id);
  return ids;
}

}  // namespace strata::queue
