#include "schemas/queue/dispatcher.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/queue/dispatcher_round.h"
#include "schemas/queue/operations.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;

// Between two looks from the first hint on: while somebody waits in vain, and in any case.
constexpr microseconds kLookWaiting = std::chrono::seconds(1);
constexpr microseconds kLookInterval = std::chrono::minutes(1);
// Unused for so long, a queue is remembered by its records alone.
constexpr microseconds kRestAfter = std::chrono::minutes(1);
// Before those who take messages try again where that failed.
constexpr microseconds kPauseAfterFailure = std::chrono::milliseconds(100);
// What commits of this process have done is told here within that time.
constexpr microseconds kToldWithin = std::chrono::seconds(1);
// Reservations that have run out, looked at by one round.
constexpr size_t kRunOutAtOnce = 256;

absl::Status TooLate() {
  return Error(ErrorReason::kDeadlineExceeded, "the deadline passed before the commit began");
}

}  // namespace

Dispatcher::Dispatcher(QueueEnvironmentPtr environment, QueueRecordPtr queue)
    : environment_(std::move(environment)),
      incarnation_(queue->incarnation),
      name_(queue->name),
      index_prefix_(QueueRange(incarnation_).begin),
      queue_(std::move(queue)),
      window_(incarnation_),
      known_(environment_->known_bytes),
      recounted_at_(environment_->clock.SteadyNow()),
      used_at_(environment_->clock.SteadyNow()),
      looked_anew_at_(used_at_) {}

void Dispatcher::Do(OperationPtr operation) {
  std::optional<absl::Status> closed;
  {
    const std::lock_guard lock(mutex_);
    closed = closed_;
    if (!closed) {
      operations_.push_back(std::move(operation));
      if (std::exchange(running_, true)) return;
    }
  }
  if (!closed) return Run();
  for (size_t i = 0; i < operation->steps(); ++i) operation->Fail(i, *closed);
  operation->End();
}

void Dispatcher::Add(ConsumerPtr consumer) {
  std::optional<absl::Status> closed;
  {
    const std::lock_guard lock(mutex_);
    closed = closed_;
    if (!closed) {
      consumers_end_at_ = std::min(consumers_end_at_, consumer->until());
      consumers_.push_back({std::move(consumer)});
      look_again_ = true;
      if (std::exchange(running_, true)) return;
    }
  }
  if (!closed) return Run();
  consumer->End(*closed);
}

void Dispatcher::Remove(const Consumer& consumer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(consumers_,
                [&](const Waiting& waiting) { return waiting.consumer.get() == &consumer; });
}

void Dispatcher::Rest() {
  const std::lock_guard lock(mutex_);
  if (running_ || !consumers_.empty() || !operations_.empty()) return;
  if (environment_->clock.SteadyNow() - used_at_ < kRestAfter) return;
  known_.Clear();
  look_through_ = look_through_ || window_.HasOverdue();
  window_.Clear();
}

void Dispatcher::Bury() {
  std::vector<MessageId> ids;
  {
    const std::lock_guard lock(mutex_);
    const Steady now = environment_->clock.SteadyNow();
    while (!last_tries_.empty() && last_tries_.begin()->first <= now &&
           ids.size() < kRoundStepsMax) {
      ids.push_back(last_tries_.begin()->second);
      last_tries_.erase(last_tries_.begin());
    }
  }
  if (!ids.empty()) Do(std::make_shared<BuryOperation>(std::move(ids)));
}

void Dispatcher::Look() {
  {
    const std::lock_guard lock(mutex_);
    look_again_ = true;
    if (std::exchange(running_, true)) return;
  }
  Run();
}

void Dispatcher::Know(QueueRecordPtr queue) {
  {
    const std::lock_guard lock(mutex_);
    queue_ = std::move(queue);
  }
  Look();
}

void Dispatcher::Apply(const Changes& changes) {
  std::vector<Release> released;
  bool waited_for = false;
  {
    const std::lock_guard lock(mutex_);
    disturbed_ = disturbed_ || changes.position <= counted_at_;
    ApplyLocked(changes, released);
    waited_for = !consumers_.empty();
  }
  Tell(released);
  if (waited_for) Look();
}

void Dispatcher::Close(const absl::Status& status) {
  std::deque<OperationPtr> operations;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = status;
    operations.swap(operations_);
  }
  for (const OperationPtr& operation : operations) {
    for (size_t i = 0; i < operation->steps(); ++i) operation->Fail(i, status);
    operation->End();
  }
  EndConsumers(status);
}

void Dispatcher::EndConsumers(const absl::Status& status) {
  std::deque<Waiting> consumers;
  {
    const std::lock_guard lock(mutex_);
    consumers.swap(consumers_);
  }
  for (const Waiting& waiting : consumers) waiting.consumer->End(status);
}

void Dispatcher::EndWaiting(const absl::Status& status) {
  std::vector<ConsumerPtr> ending;
  {
    const std::lock_guard lock(mutex_);
    const Steady now = environment_->clock.SteadyNow();
    std::erase_if(consumers_, [&](const Waiting& waiting) {
      if (waiting.consumer->until() <= now) return false;
      ending.push_back(waiting.consumer);
      return true;
    });
  }
  for (const ConsumerPtr& consumer : ending) consumer->End(status);
}

// Where the clock is adjusted backwards, time stands until the clock has come up.
UnixMicros Dispatcher::NowLocked() {
  const UnixMicros now = environment_->clock.Now();
  if (now + kClockTolerance.count() < latest_) {
    set_back_ = true;
    latest_ = now;
  }
  latest_ = std::max(now, latest_);
  return latest_;
}

UnixMicros Dispatcher::NextTimeLocked() {
  (void)NowLocked();
  return ++latest_;
}

// Of the next step of a plan, which has looked at the clock when it began.
UnixMicros Dispatcher::StepTime() {
  const std::lock_guard lock(mutex_);
  return ++latest_;
}

UnixMicros Dispatcher::Now() {
  const std::lock_guard lock(mutex_);
  return NowLocked();
}

UnixMicros Dispatcher::NextTime() {
  const std::lock_guard lock(mutex_);
  return NextTimeLocked();
}

void Dispatcher::TellKnown(const MessageId& id, Draft& draft) const {
  const std::lock_guard lock(mutex_);
  if (const KnownMessages::Known* known = known_.Find(id)) {
    draft.Know(id, known->message, known->stamp);
  }
}

bool Dispatcher::HasWaitedLong(const Hint& hint) {
  const std::lock_guard lock(mutex_);
  const Steady now = environment_->clock.SteadyNow();
  if (awaited_ != hint) {
    awaited_ = hint;
    awaited_since_ = now;
  }
  return now - awaited_since_ >= microseconds(kPushTakesMax);
}

void Dispatcher::Count(int64_t pushed, int64_t acknowledged) {
  const std::lock_guard lock(mutex_);
  counts_.pushed += pushed;
  counts_.acknowledged += acknowledged;
}

QueueCounts Dispatcher::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

// REQUIRES: running_ was set for this call. Where reads block, nobody's thread is to wait for them.
void Dispatcher::Run() {
  const auto run = [self = shared_from_this()] {
    while (self->Step()) {
    }
  };
  if (!environment_->capabilities.blocking_reads) return run();
  environment_->executor.Schedule([self = shared_from_this(), run] {
    const Doors::Visit visit(self->environment_->doors);
    if (visit.let_in()) run();
  });
}

// One round. False: somebody else goes on, or nobody has to.
bool Dispatcher::Step() {
  const auto round = std::make_shared<Round>();
  TakeRound(*round);
  EndThoseInTime(*round);
  if (round->operations.empty() && round->consumers.empty()) {
    const std::lock_guard lock(mutex_);
    if (look_again_ || !operations_.empty()) return true;
    running_ = false;
    ArmTimer();
    return false;
  }
  const auto all = std::make_shared<Group>();
  for (const OperationPtr& operation : round->operations) {
    for (size_t i = 0; i < operation->steps(); ++i) all->steps.push_back({operation, i});
  }
  if (atomic()) {
    round->groups.push_back(all);
    Plan(all);
    PutBack(*round, *all);
    if (!all->failed) HandOutReady(round, all);
  } else {
    HandOutReady(round, all);
    for (Group::StepRef& step : all->steps) {
      const auto single = std::make_shared<Group>();
      single->steps.push_back(std::move(step));
      round->groups.push_back(single);
    }
  }
  round->open = round->groups.size() + 1;
  for (const GroupPtr& group : round->groups) {
    if (!atomic()) Plan(group);
    if (Commit(round, group)) --round->open;
  }
  if (--round->open != 0) return false;
  EndRound(round);
  return true;
}

// Operations that were too much for the round are for the next one.
void Dispatcher::PutBack(Round& round, const Group& group) {
  if (group.steps.empty()) return;
  const OperationPtr& last = group.steps.back().operation;
  const std::lock_guard lock(mutex_);
  for (; round.operations.back() != last; round.operations.pop_back()) {
    operations_.push_front(std::move(round.operations.back()));
  }
}

void Dispatcher::TakeRound(Round& round) {
  std::vector<OperationPtr> late;
  std::vector<Release> released;
  {
    const std::lock_guard lock(mutex_);
    const Steady steady = environment_->clock.SteadyNow();
    look_again_ = false;
    FindRunOut(released);
    size_t steps = 0;
    size_t bytes = 0;
    while (!operations_.empty()) {
      OperationPtr& next = operations_.front();
      const bool too_late = next->deadline() <= steady;
      if (!too_late && !round.operations.empty() &&
          (steps + next->steps() > kRoundStepsMax || bytes + next->bytes() > kRoundBytesMax)) {
        break;
      }
      if (!too_late) {
        steps += next->steps();
        bytes += next->bytes();
      }
      (too_late ? late : round.operations).push_back(std::move(next));
      operations_.pop_front();
    }
    round.now = NowLocked();
    FindConsumers(round);
    if (!round.operations.empty() || !round.consumers.empty()) used_at_ = steady;
  }
  if (!released.empty()) {
    Tell(released);
    Look();  // now that they have room
  }
  for (const OperationPtr& operation : late) {
    for (size_t i = 0; i < operation->steps(); ++i) operation->Fail(i, TooLate());
    operation->End();
  }
}

// A reservation that has run out without a word gives its credit back: the message is READY, for
// the stream that had it too. Its token stays good until somebody has the message. Another server
// may have extended the reservation, or ended it.
void Dispatcher::FindRunOut(std::vector<Release>& released) {
  const UnixMicros now = NowLocked();
  const Steady steady = environment_->clock.SteadyNow();
  const std::vector<MessageId> ids = holders_.ToLookAt(steady, kRunOutAtOnce);
  if (ids.empty()) return;
  std::vector<store::RecordKey> keys;
  for (const MessageId& id : ids) keys.push_back({store::Keyspace::kMessages, id.bytes()});
  const auto records = environment_->store.GetMany(keys);
  for (size_t i = 0; i < ids.size(); ++i) {
    const Holder holder = *holders_.Find(ids[i]);
    if (!records[i].ok()) {
      holders_.LookAt(ids[i], steady + kToldWithin);
      continue;
    }
    std::optional<Message> message;
    if (const std::optional<store::Record>& record = *records[i]) {
      absl::StatusOr<Message> decoded = Message::Decode(record->value);
      if (decoded.ok()) message = *std::move(decoded);
    }
    const bool same = message && message->queue == incarnation_ &&
                      message->stage == Stage::kReserved && message->delivery == holder.delivery;
    if (same && message->time > now && !message->made_ahead(now)) {
      others_ = true;
      holders_.Extend(ids[i], EndOf(*message));
      continue;
    }
    if (!same) {
      // By a commit of this process, perhaps, of which this dispatcher is about to hear.
      if (steady < holder.until + kToldWithin) {
        holders_.LookAt(ids[i], holder.until + kToldWithin);
        continue;
      }
      others_ = true;
    }
    if (ConsumerPtr consumer = holder.consumer.lock()) {
      released.push_back({std::move(consumer), ids[i], holder.delivery});
    }
    holders_.Erase(ids[i]);
  }
  look_again_ = look_again_ || ids.size() == kRunOutAtOnce;
}

void Dispatcher::RememberTry(Steady end, const MessageId& id) {
  if (last_tries_.size() < kReservationsKept) last_tries_.emplace(end, id);
}

void Dispatcher::JudgeUntoldLocked(Steady now) {
  if (!untold_ || now - untold_since_ < kToldWithin) return;
  untold_.reset();
  others_ = true;
}

// Who may be handed something in this round, if there is anything, or may be once its operations
// are planned.
void Dispatcher::FindConsumers(Round& round) {
  if (consumers_.empty()) return;
  for (Waiting& waiting : consumers_) waiting.looked = true;
  if (queue_->settings.paused || closed_) return;
  const Steady steady = environment_->clock.SteadyNow();
  if (std::exchange(set_back_, false)) {
    window_.Clear();
    look_through_ = true;
  }
  TakeOverdue();
  if (std::exchange(look_through_, false)) StartCount();
  JudgeUntoldLocked(steady);
  if (steady - looked_anew_at_ >= kLookInterval) {
    looked_anew_at_ = steady;
    window_.LookAnew();
  }
  // A failure is met again by whoever reads what there is to hand out.
  (void)window_.Fill(environment_->store, round.now);
  if (!window_.First(true) && steady - looked_anew_at_ >= kLookWaiting) {
    looked_anew_at_ = steady;
    // Where commits are numbered nobody else can have written if there was none.
    const store::CommitPosition last = environment_->store.LastPosition();
    if (last == 0 || last != looked_anew_position_) {
      looked_anew_position_ = last;
      const bool left = window_.left_suspects();
      window_.LookAnew();
      (void)window_.Fill(environment_->store, round.now);
      const std::optional<Window::Entry> met = window_.First(true);
      if (met && !left && !untold_) {
        untold_ = met->hint;
        untold_since_ = steady;
      }
    }
  }
  const bool drafted = atomic() && !round.operations.empty();
  if (!drafted && !window_.First(true)) return;
  const bool fresh = drafted || window_.First(false).has_value();
  for (const Waiting& waiting : consumers_) {
    const ConsumerPtr& consumer = waiting.consumer;
    if (consumer->gone() || consumer->wants() <= 0) continue;
    if (!fresh && !consumer->takes_suspect()) continue;
    round.consumers.push_back(consumer);
    if (round.consumers.size() >= kRoundStepsMax) break;
  }
}

// When the reservation is over on the steady clock, which nobody sets.
Steady Dispatcher::EndOf(const Message& message) {
  microseconds left(message.time - NowLocked());
  if (message.timeout.count() != 0) left = std::min(left, message.timeout);
  return environment_->clock.SteadyNow() + left;
}

// Those for whom there was nothing in time, or who are gone.
void Dispatcher::EndThoseInTime(const Round& round) {
  std::vector<ConsumerPtr> ending;
  {
    const std::lock_guard lock(mutex_);
    const Steady now = environment_->clock.SteadyNow();
    if (consumers_end_at_ > now) return;
    consumers_end_at_ = Steady::max();
    std::erase_if(consumers_, [&](const Waiting& waiting) {
      const bool over =
          waiting.consumer->gone() || (waiting.looked && waiting.consumer->until() <= now);
      const bool served = std::find(round.consumers.begin(), round.consumers.end(),
                                    waiting.consumer) != round.consumers.end();
      if (over && !served) {
        ending.push_back(waiting.consumer);
        return true;
      }
      consumers_end_at_ = std::min(consumers_end_at_, waiting.consumer->until());
      return false;
    });
  }
  for (const ConsumerPtr& consumer : ending) consumer->End(absl::OkStatus());
}

// The index, what is known and who holds what, as a commit left them.
void Dispatcher::ApplyLocked(Changes changes, std::vector<Release>& released) {
  const UnixMicros now = NowLocked();
  applied_at_ = std::max(applied_at_, changes.position);
  for (const IndexChange& change : changes.index) {
    if (!change.key.starts_with(index_prefix_)) continue;
    if (tally_) tally_->Apply(change);
    if (recount_) recount_->Apply(change);
    const std::optional<Hint> hint = ParseHintKey(change.key);
    if (!hint || hint->kind != HintKind::kDue) continue;
    if (change.added && untold_ == hint) untold_.reset();
    if (change.added) {
      window_.Add(*hint, change.state == HintState::kReserved, now);
    } else {
      window_.Remove(*hint);
    }
  }
  for (Written& written : changes.written) {
    std::optional<Message>& message = written.message;
    const bool here = message && message->queue == incarnation_;
    const Holder* const holder = holders_.Find(written.id);
    // News of a unit may come after those of what this dispatcher did with its messages.
    const KnownMessages::Known* known = known_.Find(written.id);
    const bool late =
        changes.position != 0 && ((known != nullptr && known->stamp > changes.position) ||
                                  (holder != nullptr && holder->position > changes.position));
    if (late) continue;
    const bool held = holder != nullptr && here && message->stage == Stage::kReserved &&
                      message->delivery == holder->delivery;
    if (held) holders_.Extend(written.id, EndOf(*message));
    const int32_t tries_max = queue_->settings.max_tries;
    if (here && message->stage == Stage::kReserved && tries_max != 0 &&
        message->tries >= tries_max) {
      RememberTry(EndOf(*message), written.id);
    }
    if (here && message->live() && changes.position != 0) {
      known_.Learn(written.id, *std::move(message), changes.position);
    } else {
      known_.Forget(written.id);
    }
    if (held || holder == nullptr) continue;
    if (ConsumerPtr consumer = holder->consumer.lock()) {
      released.push_back({std::move(consumer), written.id, holder->delivery});
    }
    holders_.Erase(written.id);
  }
}

void Dispatcher::Tell(const std::vector<Release>& released) {
  for (const Release& release : released) {
    release.consumer->Released(release.message, release.delivery);
  }
}

void Dispatcher::EndRound(const RoundPtr& round) {
  for (const std::shared_ptr<HandOutOperation>& hand_out : round->hand_outs) {
    EndHandOut(*hand_out);
  }
  for (const OperationPtr& operation : round->operations) {
    {
      const std::lock_guard lock(mutex_);
      operation->Count(counts_);
    }
    operation->End();
  }
  std::optional<absl::Status> closed;
  {
    const std::lock_guard lock(mutex_);
    closed = closed_;
  }
  if (closed) EndConsumers(*closed);
  CountOn();
}

void Dispatcher::EndHandOut(HandOutOperation& hand_out) {
  const ConsumerPtr& consumer = hand_out.consumer();
  const absl::Status failure = hand_out.failure();
  Consumer::Handed handed;
  {
    const std::lock_guard lock(mutex_);
    const UnixMicros now = NowLocked();
    for (const HandOutOperation::Step& step : hand_out.all()) {
      // What could not be handed out stays for the next one; what was stale is not there.
      const bool early = step.meeting == Meeting::kEarly;
      if (!early && step.status.ok()) continue;
      if (step.overdue) {
        window_.AddOverdue(step.hint, step.suspect);
      } else {
        window_.Add(step.hint, step.suspect, now);
      }
    }
    hand_out.Count(counts_);
    handed = hand_out.TakeHanded();
    if (consumer->holds()) {
      for (const MessageView& view : handed.messages) {
        holders_.Set(view.id,
                     {consumer, view.message.delivery, EndOf(view.message), committed_at_});
      }
    }
  }
  const bool fails = handed.messages.empty() && !failure.ok() &&
                     ReasonOf(failure) != ErrorReason::kRetriesExhausted;
  bool stays = consumer->Deliver(std::move(handed));
  bool ends = false;
  {
    const std::lock_guard lock(mutex_);
    const auto place =
        std::find_if(consumers_.begin(), consumers_.end(),
                     [&](const Waiting& waiting) { return waiting.consumer == consumer; });
    if (place == consumers_.end()) return;
    ends = fails && stays;
    stays = stays && !fails;
    Waiting waiting = std::move(*place);
    consumers_.erase(place);
    if (stays) consumers_.push_back(std::move(waiting));  // behind those who have waited longer
  }
  if (ends) consumer->End(failure);
}

// With the lock held, when nobody runs.
void Dispatcher::ArmTimer() {
  if (consumers_.empty() || closed_) return;
  const Steady steady = environment_->clock.SteadyNow();
  Steady at = consumers_end_at_;
  const auto wants = [](const Waiting& waiting) { return waiting.consumer->wants() > 0; };
  if (!queue_->settings.paused && std::any_of(consumers_.begin(), consumers_.end(), wants)) {
    at = std::min(at, steady + kLookWaiting);
    const UnixMicros now = NowLocked();
    const UnixMicros next = window_.NextDue();
    if (next <= now) {
      at = std::min(at, steady + kPauseAfterFailure);
    } else if (next - now < kLookWaiting.count()) {
      at = std::min(at, steady + microseconds(next - now));
    }
    if (!made_ahead_.empty()) at = std::min(at, made_ahead_.begin()->first);
  }
  if (const std::optional<Steady> next = holders_.NextLook()) at = std::min(at, *next);
  if (at >= timer_at_) return;
  timer_at_ = at;
  const uint64_t timer = ++timer_;
  const auto delay = std::chrono::ceil<microseconds>(at - steady);
  environment_->executor.Schedule(std::max(delay, microseconds(0)),
                                  [weak = weak_from_this(), timer] {
                                    const std::shared_ptr<Dispatcher> self = weak.lock();
                                    if (self == nullptr) return;
                                    const Doors::Visit visit(self->environment_->doors);
                                    if (!visit.let_in()) return;
                                    {
                                      const std::lock_guard lock(self->mutex_);
                                      if (timer != self->timer_) return;
                                      self->timer_at_ = Steady::max();
                                    }
                                    self->Look();
                                  });
}

}  // namespace strata::queue
