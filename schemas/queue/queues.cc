#include "schemas/queue/queues.h"

#include <algorithm>
#include <utility>

#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/queue/message_reads.h"
#include "schemas/queue/plans.h"
#include "schemas/queue/queue_cursor.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_requests.h"
#include "schemas/queue/queues_impl.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;

// How often the background looks for what is left to sweep, and for schedules: those of other
// servers as ScheduleAgenda knows them, which is as of a minute ago at most.
constexpr microseconds kTickMax = std::chrono::seconds(10);
constexpr microseconds kTickMin = std::chrono::milliseconds(20);

}  // namespace

// Time first, so that messages which live together lie together; then what no other process draws.
MessageId Queues::Impl::DrawId() {
  std::string bytes;
  const auto millis = static_cast<uint64_t>(environment_->clock.Now() / 1000);
  for (int shift = 40; shift >= 0; shift -= 8) bytes += static_cast<char>(millis >> shift);
  bytes += id_seed_;
  const uint32_t number = next_id_++;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return *MessageId::FromBytes(bytes);
}

absl::StatusOr<std::optional<int64_t>> Queues::Impl::ReadWatermark(const store::Reader& reader,
                                                                   const QueueRecord& queue) {
  UntrueHints untrue;
  ASSIGN_OR_RETURN(const Watermark low, queue::ReadWatermark(reader, queue, untrue));
  if (low.awaited) {
    // A producer that died mid-push must not hold the watermark back.
    const absl::StatusOr<DispatcherPtr> dispatcher = directory_.RequireDispatcher(queue.name);
    if (dispatcher.ok() && (*dispatcher)->HasWaitedLong(*low.awaited)) {
      untrue.push_back(*low.awaited);
    }
  }
  Clean(queue.name, std::move(untrue));
  return low.least;
}

void Queues::Impl::StopWaiting() {
  draining_ = true;
  for (const DispatcherPtr& dispatcher : directory_.dispatchers()) {
    dispatcher->EndWaiting(Draining());
  }
}

void Queues::Impl::TickSoon() {
  {
    const std::lock_guard lock(tick_mutex_);
    if (tick_ == 0) return;  // there is no background
    tick_again_ = true;
    if (ticking_) return;
  }
  ScheduleTick(microseconds(0));
}

void Queues::Impl::ScheduleTick(microseconds delay) {
  const std::lock_guard lock(tick_mutex_);
  environment_->executor.Schedule(delay, [weak = weak_from_this(), tick = ++tick_] {
    if (const std::shared_ptr<Impl> self = weak.lock()) self->Tick(tick);
  });
}

// By one thread at a time: what sweeps and fires knows of no other.
void Queues::Impl::Tick(uint64_t tick) {
  {
    const std::lock_guard lock(tick_mutex_);
    if (tick != tick_ || std::exchange(ticking_, true)) return;
    tick_again_ = false;
  }
  std::optional<microseconds> wait = RunTick();
  {
    const std::lock_guard lock(tick_mutex_);
    ticking_ = false;
    if (tick_again_ && wait) wait = kTickMin;
  }
  if (wait) ScheduleTick(std::max(kTickMin, *wait));
}

std::optional<microseconds> Queues::Impl::RunTick() {
  const Doors::Visit visit(environment_->doors);
  if (!visit.let_in()) return std::nullopt;
  const UnixMicros now = environment_->clock.Now();
  UnixMicros next = now + kTickMax.count();
  // What fails is tried again at the next turn.
  const absl::StatusOr<UnixMicros> due = schedules_->Fire(next);
  if (due.ok()) next = *due;
  const absl::StatusOr<bool> more = admin_->Sweep();
  if (more.ok() && *more) next = now;
  for (const DispatcherPtr& dispatcher : directory_.dispatchers()) {
    dispatcher->Bury();
    dispatcher->Rest();
  }
  return microseconds(next - now);
}

Queues::Queues(store::Store& store, const Clock& clock, Entropy& entropy, Executor& executor,
               QueuesOptions options)
    : impl_(std::make_shared<Impl>(store, clock, entropy, executor, options)) {}

Queues::~Queues() { impl_->Close(); }

void Queues::Create(const std::string& name, const QueueSettings& settings, Deadline deadline,
                    QueueCallback done) {
  absl::Status checked = ValidateName("name", name);
  if (checked.ok()) checked = Validate(name, settings);
  if (!checked.ok()) return done(checked);
  impl_->admin().Create(name, settings, deadline, std::move(done));
}

absl::StatusOr<Queue> Queues::Get(const std::string& name) const {
  RETURN_IF_ERROR(ValidateName("name", name));
  ASSIGN_OR_RETURN(const QueueRecordPtr queue, impl_->directory().Require(name));
  return ToQueue(*queue);
}

absl::StatusOr<QueueCounts> Queues::Counts(const std::string& name) {
  RETURN_IF_ERROR(impl_->directory().Require(name, "name").status());
  ASSIGN_OR_RETURN(const DispatcherPtr dispatcher,
                   impl_->directory().RequireDispatcher(name, "name"));
  return dispatcher->counts();
}

absl::StatusOr<QueueStatistics> Queues::Statistics(const std::string& name) {
  RETURN_IF_ERROR(impl_->directory().Require(name).status());
  ASSIGN_OR_RETURN(const DispatcherPtr dispatcher, impl_->directory().RequireDispatcher(name));
  ASSIGN_OR_RETURN(QueueStatistics statistics, dispatcher->Statistics());
  ASSIGN_OR_RETURN(statistics.low_watermark, LowWatermark({name}));
  return statistics;
}

absl::StatusOr<std::vector<Queue>> Queues::List(const std::string& after_name, size_t most) const {
  std::vector<Queue> queues;
  QueueCursor cursor = QueueCursor::OfNames(impl_->store(), after_name);
  for (; cursor.Valid() && queues.size() < most; cursor.Next()) {
    ASSIGN_OR_RETURN(const QueueRecord queue, cursor.Decode());
    if (!queue.delete_time) queues.push_back(ToQueue(queue));
  }
  RETURN_IF_ERROR(cursor.status());
  return queues;
}

void Queues::Update(const std::string& name, std::function<absl::Status(QueueSettings&)> change,
                    Deadline deadline, QueueCallback done) {
  if (absl::Status checked = ValidateName("name", name); !checked.ok()) {
    return done(checked);
  }
  impl_->admin().Update(name, std::move(change), deadline, std::move(done));
}

void Queues::Delete(const std::string& name, bool force, Deadline deadline,
                    std::function<void(absl::Status)> done) {
  if (absl::Status checked = ValidateName("name", name); !checked.ok()) {
    return done(checked);
  }
  impl_->admin().Delete(name, force, deadline,
                        [impl = impl_, done = std::move(done)](absl::Status status) {
                          impl->TickSoon();
                          done(std::move(status));
                        });
}

void Queues::Push(PushRequest request, PushCallback done) {
  impl_->Push(std::move(request), std::move(done));
}

void Queues::Reserve(ReserveRequest request, ReserveCallback done) {
  impl_->Reserve(std::move(request), std::move(done));
}

void Queues::Acknowledge(std::vector<std::string> tokens, Deadline deadline, TokensCallback done) {
  impl_->OnTokens(
      tokens, deadline,
      [](Draft& draft, const Place& place, const Token& token) {
        return PlanAcknowledge(draft, place, token, false);
      },
      &QueueCounts::acknowledged, std::move(done));
}

absl::Status Queues::Rollback(RollbackRequest request, TokensCallback done) {
  RETURN_IF_ERROR(CheckRollback("", request));
  impl_->Rollback(std::move(request), std::move(done));
  return absl::OkStatus();
}

absl::Status Queues::Extend(std::vector<std::string> tokens, std::optional<microseconds> timeout,
                            Deadline deadline, TokensCallback done) {
  RETURN_IF_ERROR(CheckTimeout("timeout", timeout));
  impl_->OnTokens(
      tokens, deadline,
      [timeout](Draft& draft, const Place& place, const Token& token) {
        return PlanExtend(draft, place, token,
                          timeout.value_or(place.queue.settings.reservation_timeout));
      },
      nullptr, std::move(done));
  return absl::OkStatus();
}

void Queues::Move(MoveRequest request, std::function<void(absl::StatusOr<MessageView>)> done) {
  impl_->Move(std::move(request), std::move(done));
}

absl::StatusOr<MessageView> Queues::GetMessage(const std::string& queue,
                                               const std::string& id) const {
  RETURN_IF_ERROR(ValidateName("queue", queue));
  ASSIGN_OR_RETURN(const MessageId message, ToMessageId("message_id", id));
  ASSIGN_OR_RETURN(const QueueRecordPtr record, impl_->directory().Require(queue));
  ASSIGN_OR_RETURN(const UnixMicros now, impl_->NowIn(queue));
  return ReadMessage(impl_->store(), *record, message, now);
}

absl::StatusOr<MessagePage> Queues::ListMessages(const MessageQuery& query, size_t most) const {
  RETURN_IF_ERROR(ValidateName("queue", query.queue));
  ASSIGN_OR_RETURN(const QueueRecordPtr record, impl_->directory().Require(query.queue));
  ASSIGN_OR_RETURN(const UnixMicros now, impl_->NowIn(query.queue));
  // As of one moment, or one that goes from one hint to another meanwhile is found by neither.
  const std::unique_ptr<store::Reader> reader = impl_->store().Snapshot();
  UntrueHints untrue;
  auto page = strata::queue::ListMessages(*reader, *record, query, now, most, untrue);
  impl_->Clean(query.queue, std::move(untrue));
  return page;
}

void Queues::Replay(ReplayRequest request, SweptCallback done) {
  impl_->Replay(std::move(request), std::move(done));
}

void Queues::Purge(PurgeRequest request, SweptCallback done) {
  impl_->Purge(std::move(request), std::move(done));
}

void Queues::CreateSchedule(Schedule schedule, Deadline deadline, ScheduleCallback done) {
  impl_->schedules().Create(
      std::move(schedule), deadline,
      [impl = impl_, done = std::move(done)](absl::StatusOr<Schedule> created) {
        impl->TickSoon();
        done(std::move(created));
      });
}

absl::StatusOr<std::vector<Schedule>> Queues::ListSchedules(const std::string& queue,
                                                            const std::string& after_name,
                                                            size_t most) const {
  RETURN_IF_ERROR(ValidateName("queue", queue));
  return impl_->schedules().List(queue, after_name, most);
}

void Queues::DeleteSchedule(const std::string& queue, const std::string& name, Deadline deadline,
                            std::function<void(absl::Status)> done) {
  absl::Status checked = ValidateName("queue", queue);
  if (checked.ok()) checked = ValidateName("name", name);
  if (!checked.ok()) return done(checked);
  impl_->schedules().Delete(queue, name, deadline, std::move(done));
}

absl::StatusOr<std::unique_ptr<Receiver>> Queues::Receive(ReceiveRequest request,
                                                          std::shared_ptr<ReceiverSink> sink) {
  return impl_->Receive(std::move(request), std::move(sink));
}

absl::StatusOr<std::unique_ptr<UnitSteps>> Queues::PlanUnit(std::vector<std::string> acknowledge,
                                                            std::vector<UnitPush> pushes) {
  return impl_->PlanUnit(std::move(acknowledge), std::move(pushes));
}

absl::StatusOr<std::optional<int64_t>> Queues::LowWatermark(
    const std::vector<std::string>& queues) const {
  std::vector<QueueRecordPtr> records;
  for (size_t i = 0; i < queues.size(); ++i) {
    const std::string field = Element("queues", i);
    RETURN_IF_ERROR(ValidateName(field, queues[i]));
    // Another server may have made it anew, and what comes late now has a number of the new one.
    ASSIGN_OR_RETURN(QueueRecordPtr record, impl_->directory().Require(queues[i], field));
    records.push_back(std::move(record));
  }
  // As of one moment; else twice, so that a message that moves from one of them to another that was
  // looked at before is found there.
  const std::unique_ptr<store::Reader> reader = impl_->store().Snapshot();
  const int looks = impl_->environment().capabilities.snapshots ? 1 : 2;
  std::optional<int64_t> least;
  for (int look = 0; look < looks; ++look) {
    for (const QueueRecordPtr& record : records) {
      ASSIGN_OR_RETURN(const std::optional<int64_t> low, impl_->ReadWatermark(*reader, *record));
      if (low && (!least || *low < *least)) least = low;
    }
  }
  return least;
}

void Queues::StopWaiting() { impl_->StopWaiting(); }

void Queues::StartBackground() { impl_->StartBackground(); }

}  // namespace strata::queue
