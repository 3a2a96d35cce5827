#include "schemas/queue/schedules.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/queue/queue_requests.h"
#include "schemas/queue/schedule.h"

namespace strata::queue {
namespace {

using store::CommitResult;
using store::Keyspace;
using store::WriteBatch;

absl::Status ScheduleNotFound(std::string_view queue, std::string_view schedule) {
  return Error(ErrorReason::kScheduleNotFound,
               "queue " + std::string(queue) + " has no schedule " + std::string(schedule))
      .With("queue", queue)
      .With("schedule", schedule);
}

absl::StatusOr<std::optional<ScheduleRecord>> ReadSchedule(const store::Reader& reader,
                                                           const std::string& key) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record, reader.Get(Keyspace::kQueues, key));
  if (!record) return std::nullopt;
  return ScheduleRecord::Decode(key, *record);
}

// One schedule fires, unless another server was first.
class FireOperation final : public Operation {
 public:
  FireOperation(const QueueEnvironment& environment, std::string key, int64_t incarnation)
      : store_(environment.store),
        grants_(environment.grants),
        key_(std::move(key)),
        incarnation_(incarnation) {}

  size_t steps() const override { return 1; }
  bool background() const override { return true; }
  absl::Status Plan(size_t /*step*/, Draft& draft, const Place& place) override {
    fired_ = false;
    ASSIGN_OR_RETURN(const std::optional<ScheduleRecord> stored, ReadSchedule(store_, key_));
    if (!stored || stored->incarnation != incarnation_) return absl::OkStatus();
    const Schedule& schedule = stored->schedule;
    const std::optional<Firing> firing = FiringAt(schedule, place.now);
    if (!firing) return absl::OkStatus();
    ScheduleRecord fired = *stored;
    fired.schedule.next_time = firing->next_time;
    if (grants_ != nullptr && !grants_->MayWriteQueue(schedule.message.pusher, schedule.queue)) {
      // It passes, as it would with nobody there.
      draft.Join(Keyspace::kQueues, key_, fired.Encode(), stored->stamp);
      return absl::OkStatus();
    }
    PreparedPush push;
    NewMessage& message = push.message;
    const std::string request = schedule.name + '\0' + std::to_string(firing->time);
    message.id = RequestMessageId(incarnation_, std::string("\0schedule ", 10) + request);
    message.request = std::string(message.id.bytes().substr(0, kRequestBytes));
    message.payload = schedule.message.payload;
    message.headers = ToContent(schedule.message.headers);
    message.priority = schedule.message.priority;
    message.ordering_key = schedule.message.ordering_key;
    message.sequence_number = schedule.message.sequence_number;
    message.pusher = schedule.message.pusher;
    ASSIGN_OR_RETURN(const Pushed pushed, PlanPush(draft, place, AtTime(push, place)));
    // False where it stands twice in a batch: then it is the same time, and the same message.
    const bool joined = draft.Join(Keyspace::kQueues, key_, fired.Encode(), stored->stamp);
    fired_ = joined && !pushed.replayed;
    return absl::OkStatus();
  }
  // It is looked at again soon.
  void Fail(size_t /*step*/, const absl::Status& /*status*/) override { fired_ = false; }
  void Count(QueueCounts& counts) const override { counts.pushed += fired_ ? 1 : 0; }
  void End() override {}

 private:
  static constexpr size_t kRequestBytes = 8;

  const store::Store& store_;
  const StandingGrants* const grants_;
  const std::string key_;
  const int64_t incarnation_;
  bool fired_ = false;
};

}  // namespace

absl::StatusOr<QueueRecordPtr> Schedules::Check(const Schedule& schedule) const {
  RETURN_IF_ERROR(ValidateName("queue", schedule.queue));
  RETURN_IF_ERROR(ValidateName("name", schedule.name));
  const PushedMessage& message = schedule.message;
  const auto unset = [](bool set, std::string_view name) {
    return set ? FieldError(Inside("message", name),
                            "is of one push, and a schedule pushes many times")
               : absl::OkStatus();
  };
  RETURN_IF_ERROR(unset(message.delay.has_value(), "delay"));
  RETURN_IF_ERROR(unset(message.deliver_time.has_value(), "deliver_time"));
  RETURN_IF_ERROR(unset(message.expire_time.has_value(), "expire_time"));
  RETURN_IF_ERROR(unset(!message.request_id.empty(), "request_id"));
  RETURN_IF_ERROR(CheckMessage("message", message));
  RETURN_IF_ERROR(ValidateTimes(schedule));
  ASSIGN_OR_RETURN(const QueueRecordPtr queue, directory_.Require(schedule.queue));
  RETURN_IF_ERROR(Prepare("message", *queue, message, environment_->capabilities,
                          environment_->clock.Now(), MessageId())
                      .status());
  return queue;
}

absl::Status Schedules::CheckCount(const QueueRecord& queue) {
  const auto has_room = [&] {
    return agenda_.CountOf(queue.name, queue.incarnation) < kSchedulesMax;
  };
  RETURN_IF_ERROR(agenda_.Load(/*anyway=*/false));
  if (has_room()) return absl::OkStatus();
  // Other servers, and the sweeper, delete schedules too.
  RETURN_IF_ERROR(agenda_.Load(/*anyway=*/true));
  if (has_room()) return absl::OkStatus();
  return Error(ErrorReason::kQueueLimit,
               "the queue has " + std::to_string(kSchedulesMax) + " schedules already")
      .With("limit", static_cast<int64_t>(kSchedulesMax));
}

// Whatever became of a commit, the schedule is looked at.
template <typename Plan, typename Done>
void Schedules::Write(const std::string& queue, const std::string& name, Deadline deadline,
                      Plan plan, Done done) {
  const auto incarnation = std::make_shared<int64_t>(0);  // of the queue; 0: nothing was committed
  store::CommitGuarded(
      environment_->GroundOf(shared_from_this()),
      {"schedule " + name + " of queue " + queue, deadline},
      [plan, incarnation](WriteBatch& batch) { return plan(batch, *incarnation); },
      [this, key = ScheduleKey(queue, name), incarnation, done](auto answer) {
        const Doors::Visit visit(environment_->doors);
        if (!visit.let_in()) return;
        if (*incarnation != 0) agenda_.Mark(key, *incarnation);
        done(std::move(answer));
      });
}

void Schedules::Create(Schedule schedule, Deadline deadline, ScheduleCallback done) {
  const auto plan = [this, schedule](WriteBatch& batch, int64_t& incarnation) {
    return PlanCreate(schedule, batch, incarnation);
  };
  Write(schedule.queue, schedule.name, deadline, plan, std::move(done));
}

absl::StatusOr<Schedule> Schedules::PlanCreate(Schedule schedule, WriteBatch& batch,
                                               int64_t& incarnation) {
  ASSIGN_OR_RETURN(const QueueRecordPtr queue, Check(schedule));
  const std::string key = ScheduleKey(schedule.queue, schedule.name);
  // What is replaced may be damaged.
  ASSIGN_OR_RETURN(const std::optional<store::Record> stored,
                   environment_->store.Get(Keyspace::kQueues, key));
  if (!stored) RETURN_IF_ERROR(CheckCount(*queue));
  incarnation = queue->incarnation;
  schedule.next_time = FirstTime(schedule, environment_->clock.Now());
  const ScheduleRecord record{schedule, incarnation, 0};
  if (environment_->capabilities.atomic_batches) {
    batch.Check(Keyspace::kQueues, queue->name, queue->stamp);
  }
  if (stored) {
    batch.Replace(Keyspace::kQueues, key, record.Encode(), stored->stamp);
  } else {
    batch.Insert(Keyspace::kQueues, key, record.Encode());
  }
  return schedule;
}

absl::StatusOr<std::vector<Schedule>> Schedules::List(const std::string& queue,
                                                      const std::string& after_name,
                                                      size_t most) const {
  ASSIGN_OR_RETURN(const QueueRecordPtr found, directory_.Require(queue));
  std::vector<Schedule> schedules;
  const auto cursor = environment_->store.Scan(Keyspace::kQueues, ScheduleRange(queue, after_name));
  for (; cursor->Valid() && schedules.size() < most; cursor->Next()) {
    ASSIGN_OR_RETURN(ScheduleRecord record,
                     ScheduleRecord::Decode(cursor->key(), {Bytes(cursor->value()), cursor->stamp(),
                                                            cursor->position()}));
    // Those of a queue of this name that was deleted are still to be swept.
    if (record.incarnation == found->incarnation) {
      schedules.push_back(std::move(record.schedule));
    }
  }
  RETURN_IF_ERROR(cursor->status());
  return schedules;
}

void Schedules::Delete(const std::string& queue, const std::string& name, Deadline deadline,
                       std::function<void(absl::Status)> done) {
  const auto plan = [this, queue, name](WriteBatch& batch, int64_t& incarnation) {
    return PlanDelete(queue, name, batch, incarnation);
  };
  Write(queue, name, deadline, plan, std::move(done));
}

absl::Status Schedules::PlanDelete(const std::string& queue, const std::string& name,
                                   WriteBatch& batch, int64_t& incarnation) {
  ASSIGN_OR_RETURN(const QueueRecordPtr found, directory_.Require(queue));
  const std::string key = ScheduleKey(queue, name);
  ASSIGN_OR_RETURN(const std::optional<store::Record> stored,
                   environment_->store.Get(Keyspace::kQueues, key));
  if (!stored) return ScheduleNotFound(queue, name);
  // Whose a damaged one is nobody can tell; it goes.
  const absl::StatusOr<ScheduleHead> head = ScheduleHead::Decode(stored->value);
  if (head.ok() && head->incarnation != found->incarnation) return ScheduleNotFound(queue, name);
  incarnation = found->incarnation;
  batch.MarkAsRemoval();
  batch.DeleteIf(Keyspace::kQueues, key, stored->stamp);
  return absl::OkStatus();
}

// Unless it has changed since it was read. Until then it is looked at by each turn.
void Schedules::SetNextTime(const std::string& key, ScheduleRecord record, UnixMicros next_time) {
  agenda_.Mark(key, record.incarnation);
  record.schedule.next_time = next_time;
  WriteBatch batch;
  batch.MarkAsBackground();
  batch.Replace(Keyspace::kQueues, key, record.Encode(), record.stamp);
  environment_->store.Commit(std::move(batch), [](const CommitResult&) {});
}

absl::StatusOr<UnixMicros> Schedules::Fire(UnixMicros look_again) {
  const UnixMicros now = environment_->clock.Now();
  // What was stored meanwhile may wait for a time of the clock as it was.
  const bool went_back = std::exchange(fired_at_, now) - now > kClockTolerance.count();
  RETURN_IF_ERROR(agenda_.Load(/*anyway=*/went_back));
  UnixMicros next = look_again;
  // What is fired here is looked at until it is stored that it was.
  for (const std::string& key : agenda_.ToLookAt(now)) {
    ASSIGN_OR_RETURN(const std::optional<ScheduleRecord> record, agenda_.Read(key));
    if (!record) continue;
    if (IsAhead(record->schedule, now)) {
      const UnixMicros first = FirstTime(record->schedule, now);
      next = std::min(next, first);
      SetNextTime(key, *record, first);
      continue;
    }
    if (record->schedule.next_time > now) continue;
    const Schedule& schedule = record->schedule;
    const absl::StatusOr<DispatcherPtr> dispatcher = directory_.RequireDispatcher(schedule.queue);
    if (!dispatcher.ok() || (*dispatcher)->incarnation() != record->incarnation) continue;
    if (const std::optional<Firing> firing = FiringAt(schedule, now)) {
      next = std::min(next, firing->next_time);
    }
    (*dispatcher)->Do(std::make_shared<FireOperation>(*environment_, key, record->incarnation));
  }
  if (const std::optional<UnixMicros> first = agenda_.NextTime(now)) {
    next = std::min(next, *first);
  }
  return next;
}

}  // namespace strata::queue
