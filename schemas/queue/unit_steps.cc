#include "schemas/queue/unit_steps.h"

#include <string>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/queue_errors.h"

namespace strata::queue {
namespace {

std::string FieldOf(std::string_view list, size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

}  // namespace

struct QueueUnitSteps::Shared {
  const QueueEnvironmentPtr environment;
  QueueDirectory& directory;
  const std::vector<Acknowledgement> acknowledge;
  const std::vector<Push> pushes;

  std::mutex mutex;  // guards what follows
  Changes changes;   // of the plan made last
  int attempts = 0;

  absl::Status Plan(const versioning::ReadContext& context, store::WriteBatch& batch);
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

absl::Status QueueUnitSteps::Shared::Plan(const versioning::ReadContext& context,
                                          store::WriteBatch& batch) {
  Draft draft(context.reader, true);
  {
    const std::lock_guard lock(mutex);
    draft.Forget(environment->clock.Now(), attempts++);
  }
  const auto steps = [&]() -> absl::Status {
    for (size_t i = 0; i < acknowledge.size(); ++i) {
      const auto& [dispatcher, token] = acknowledge[i];
      const std::string field = FieldOf("acknowledge", i);
      if (token.timeline != environment->timeline) {
        return InField(TimelineLost(token, environment->timeline), field);
      }
      absl::StatusOr<QueueRecordPtr> queue = QueueOf(context.reader, *dispatcher);
      if (!queue.ok()) return InField(queue.status(), field);
      draft.Require(**queue);
      const Place place{**queue, nullptr, dispatcher->NextTime()};
      const absl::Status planned = PlanAcknowledge(draft, place, token, true).status();
      if (!planned.ok()) return InField(planned, field);
    }
    for (size_t i = 0; i < pushes.size(); ++i) {
      const auto& [dispatcher, push] = pushes[i];
      const std::string field = FieldOf("pushes", i);
      absl::StatusOr<QueueRecordPtr> queue = QueueOf(context.reader, *dispatcher);
      if (!queue.ok()) return InField(queue.status(), field + ".queue");
      draft.Require(**queue);
      const Place place{**queue, nullptr, dispatcher->NextTime()};
      const absl::Status planned = PlanPush(draft, place, AtTime(push, place)).status();
      if (!planned.ok()) return InField(planned, field + ".message");
    }
    return absl::OkStatus();
  };
  const absl::Status planned = steps();
  Draft::Planned taken = draft.Take();
  batch.Append(std::move(taken.batch));
  RETURN_IF_ERROR(planned);
  const std::lock_guard lock(mutex);
  changes = {std::move(taken.index), std::move(taken.written), 0};
  return absl::OkStatus();
}

QueueUnitSteps::QueueUnitSteps(QueueEnvironmentPtr environment, QueueDirectory& directory,
                               std::vector<Acknowledgement> acknowledge, std::vector<Push> pushes)
    : shared_(new Shared{std::move(environment),
                         directory,
                         std::move(acknowledge),
                         std::move(pushes),
                         {},
                         {},
                         0}) {}

versioning::JoinedPlan QueueUnitSteps::plan() {
  return [shared = shared_](const versioning::ReadContext& context, store::WriteBatch& batch) {
    return shared->Plan(context, batch);
  };
}

void QueueUnitSteps::Committed(store::CommitPosition position) {
  const Doors::Visit visit(shared_->environment->doors);
  if (!visit.let_in()) return;
  Changes changes;
  {
    const std::lock_guard lock(shared_->mutex);
    changes = std::move(shared_->changes);
  }
  changes.position = position;
  constexpr int64_t kNobody = 0;
  shared_->directory.Tell(changes, kNobody);
}

std::vector<MessageId> QueueUnitSteps::pushed() const {
  std::vector<MessageId> ids;
  for (const Push& push : shared_->pushes) ids.push_back(push.push.message.id);
  return ids;
}

}  // namespace strata::queue
