#include "schemas/queue/dispatcher.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/queue/dispatcher_round.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;

// Between two looks from the first hint on: while somebody waits in vain, and in any case.
constexpr microseconds kLookWaiting = std::chrono::seconds(1);
constexpr microseconds kLookInterval = std::chrono::minutes(1);
// Before those who take messages try again where that failed.
constexpr microseconds kPauseAfterFailure = std::chrono::milliseconds(100);

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
      recounted_at_(environment_->clock.SteadyNow()),
      looked_anew_at_(environment_->clock.SteadyNow()) {}

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
  {
    const std::lock_guard lock(mutex_);
    disturbed_ = disturbed_ || changes.position <= counted_at_;
    ApplyLocked(changes, released);
  }
  Tell(released);
  Look();
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

UnixMicros Dispatcher::NowLocked() { return std::max(environment_->clock.Now(), latest_); }

UnixMicros Dispatcher::NextTimeLocked() {
  latest_ = std::max(environment_->clock.Now(), latest_ + 1);
  return latest_;
}

UnixMicros Dispatcher::Now() {
  const std::lock_guard lock(mutex_);
  return NowLocked();
}

UnixMicros Dispatcher::NextTime() {
  const std::lock_guard lock(mutex_);
  return NextTimeLocked();
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

void Dispatcher::TakeRound(Round& round) {
  std::vector<OperationPtr> late;
  {
    const std::lock_guard lock(mutex_);
    const Steady steady = environment_->clock.SteadyNow();
    look_again_ = false;
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
  }
  for (const OperationPtr& operation : late) {
    for (size_t i = 0; i < operation->steps(); ++i) operation->Fail(i, TooLate());
    operation->End();
  }
}

// Who may be handed something in this round, if there is anything, or may be once its operations
// are planned.
void Dispatcher::FindConsumers(Round& round) {
  if (consumers_.empty()) return;
  for (Waiting& waiting : consumers_) waiting.looked = true;
  if (queue_->settings.paused || closed_) return;
  const Steady steady = environment_->clock.SteadyNow();
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
      window_.LookAnew();
      (void)window_.Fill(environment_->store, round.now);
      others_ = others_ || window_.First(true).has_value();
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
void Dispatcher::ApplyLocked(const Changes& changes, std::vector<Release>& released) {
  const UnixMicros now = NowLocked();
  for (const IndexChange& change : changes.index) {
    if (!change.key.starts_with(index_prefix_)) continue;
    if (tally_) tally_->Apply(change);
    if (recount_) recount_->Apply(change);
    const std::optional<Hint> hint = ParseHintKey(change.key);
    if (!hint || hint->kind != HintKind::kDue) continue;
    if (change.added) {
      window_.Add(*hint, change.reserved, now);
    } else {
      window_.Remove(*hint);
    }
  }
  for (const Written& written : changes.written) {
    const std::optional<Message>& message = written.message;
    const bool here = message && message->queue == incarnation_;
    if (here && message->live() && changes.position != 0) {
      known_.Learn(written.id, *message, changes.position);
    } else {
      known_.Forget(written.id);
    }
    const auto holder = holders_.find(written.id);
    if (holder == holders_.end()) continue;
    if (here && message->stage == Stage::kReserved &&
        message->delivery == holder->second.delivery) {
      continue;
    }
    if (ConsumerPtr consumer = holder->second.consumer.lock()) {
      released.push_back({std::move(consumer), written.id, holder->second.delivery});
    }
    holders_.erase(holder);
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
      if (early || !step.status.ok()) window_.Add(step.hint, step.suspect, now);
    }
    hand_out.Count(counts_);
    handed = hand_out.TakeHanded();
    if (consumer->holds()) {
      for (const MessageView& view : handed.messages) {
        holders_[view.id] = {consumer, view.message.delivery};
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
  }
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
