#include "schemas/queue/dispatcher.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/queue_errors.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;

// Of one batch; an operation with more steps is one of its own.
constexpr size_t kStepsMax = 256;
constexpr size_t kBytesMax = size_t{4} << 20;
// What is handed to one consumer at once, less the last message: an answer has to fit into 4 MiB,
// in which a payload may take three times what it takes here. What was popped cannot be given back.
constexpr size_t kHandedBytesMax = size_t{2} << 20;
constexpr size_t kPoppedBytesMax = size_t{512} << 10;
// So many where their sizes are not known before.
constexpr int32_t kPoppedUnseenMax = 2;
constexpr int kAttemptsMax = 16;
// Between two looks from the first hint on: while somebody waits in vain, and in any case.
constexpr microseconds kLookWaiting = std::chrono::seconds(1);
constexpr microseconds kLookInterval = std::chrono::minutes(1);
// Keys counted between two batches.
constexpr size_t kCountedAtOnce = 1'024;
// Before those who take messages try again where that failed.
constexpr microseconds kPauseAfterFailure = std::chrono::milliseconds(100);

absl::Status TooLate() {
  return Error(ErrorReason::kDeadlineExceeded, "the deadline passed before the commit began");
}

// In the order in which messages are handed out.
bool ComesBefore(const Hint& left, const Hint& right) {
  return std::make_tuple(-left.priority, left.number, left.id) <
         std::make_tuple(-right.priority, right.number, right.id);
}

absl::Status RetriesExhausted() {
  return Error(ErrorReason::kRetriesExhausted,
               "lost the race " + std::to_string(kAttemptsMax) + " times")
      .With("attempts", int64_t{kAttemptsMax});
}

}  // namespace

// Steps that commit together: all of a round, or one.
struct Dispatcher::Group {
  struct StepRef {
    OperationPtr operation;
    size_t step = 0;
  };
  std::vector<StepRef> steps;
  int attempts = 0;
  QueueRecordPtr queue;
  QueueRecordPtr dead_letter_queue;
  std::unique_ptr<Draft> draft;
  Draft::Planned planned;
  bool failed = false;
  std::atomic<bool> turn = false;  // of who goes on after a commit: set by the first of two to pass
  bool ended = false;              // as the commit's callback left it
};

struct Dispatcher::Round {
  std::vector<OperationPtr> operations;
  std::vector<ConsumerPtr> consumers;  // who may be handed something, in their order
  std::vector<std::shared_ptr<HandOutOperation>> hand_outs;
  std::vector<GroupPtr> groups;
  std::atomic<size_t> open = 0;  // groups that have not ended, and whoever begins them
  UnixMicros now = 0;
};

// What one consumer is handed in a round.
class Dispatcher::HandOutOperation final : public Operation {
 public:
  HandOutOperation(const Dispatcher& dispatcher, ConsumerPtr consumer)
      : dispatcher_(dispatcher), consumer_(std::move(consumer)) {}

  struct Step {
    Hint hint;
    bool suspect = false;
    Meeting meeting = Meeting::kStale;
    Message message;
    absl::Status status;
  };

  size_t AddStep(const Window::Entry& entry) {
    steps_.push_back({entry.hint, entry.suspect, Meeting::kStale, {}, absl::OkStatus()});
    return steps_.size() - 1;
  }
  const ConsumerPtr& consumer() const { return consumer_; }
  const std::vector<Step>& all() const { return steps_; }
  bool handed(size_t step) const { return steps_[step].meeting == Meeting::kHandedOut; }

  size_t steps() const override { return steps_.size(); }
  std::optional<MessageId> Concerns(size_t step) const override { return steps_[step].hint.id; }
  absl::Status Plan(size_t index, Draft& draft, const Place& place) override {
    Step& step = steps_[index];
    step.status = absl::OkStatus();
    step.meeting = Meeting::kStale;
    const HandOut how{consumer_->timeout().value_or(place.queue.settings.reservation_timeout),
                      consumer_->pop()};
    ASSIGN_OR_RETURN(HandedOut handed,
                     PlanHandOut(draft, place, step.hint, how, !dispatcher_.atomic()));
    step.meeting = handed.meeting;
    step.message = std::move(handed.message);
    return absl::OkStatus();
  }
  void Fail(size_t index, const absl::Status& status) override {
    steps_[index].meeting = Meeting::kStale;
    steps_[index].status = status;
  }
  void Count(QueueCounts& counts) const override {
    for (const Step& step : steps_) {
      if (step.meeting == Meeting::kDead) ++counts.died;
      if (step.meeting != Meeting::kHandedOut) continue;
      ++counts.handed_out;
      if (consumer_->pop()) ++counts.acknowledged;
    }
  }
  void End() override {}

  // What the consumer gets.
  Consumer::Handed TakeHanded() {
    Consumer::Handed handed;
    handed.expected = static_cast<int32_t>(steps_.size());
    for (Step& step : steps_) {
      if (step.meeting != Meeting::kHandedOut) continue;
      MessageView view;
      view.queue = dispatcher_.name_;
      view.id = step.hint.id;
      view.state = consumer_->pop() ? State::kFinished : State::kReserved;
      if (!consumer_->pop()) {
        view.token = Token{dispatcher_.name_, step.hint.id, step.message.delivery,
                           dispatcher_.environment_->timeline}
                         .ToText();
      }
      view.message = std::move(step.message);
      handed.messages.push_back(std::move(view));
      handed.suspects.push_back(step.suspect);
    }
    return handed;
  }
  // Why it gets nothing; OK: nothing failed.
  absl::Status failure() const {
    for (const Step& step : steps_) {
      if (!step.status.ok()) return step.status;
    }
    return absl::OkStatus();
  }

 private:
  const Dispatcher& dispatcher_;
  const ConsumerPtr consumer_;
  std::vector<Step> steps_;
};

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
          (steps + next->steps() > kStepsMax || bytes + next->bytes() > kBytesMax)) {
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
    if (round.consumers.size() >= kStepsMax) break;
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

absl::Status Dispatcher::FindQueues(Group& group) {
  {
    const std::lock_guard lock(mutex_);
    group.queue = queue_;
  }
  group.dead_letter_queue = nullptr;
  const std::string& name = group.queue->settings.dead_letter_queue;
  if (name.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(group.dead_letter_queue, environment_->directory.Find(name));
  return absl::OkStatus();
}

Place Dispatcher::PlaceOf(const Group& group) {
  return {*group.queue, group.dead_letter_queue.get(), NextTime()};
}

void Dispatcher::Plan(const GroupPtr& group) {
  group->draft = std::make_unique<Draft>(environment_->store, atomic());
  group->draft->Forget(Now(), group->attempts);
  if (absl::Status planned = PlanAll(*group); !planned.ok()) Fail(*group, planned);
}

absl::Status Dispatcher::PlanAll(Group& group) {
  RETURN_IF_ERROR(FindQueues(group));
  Draft& draft = *group.draft;
  draft.Require(*group.queue);
  {
    const std::lock_guard lock(mutex_);
    for (const Group::StepRef& step : group.steps) {
      const std::optional<MessageId> id = step.operation->Concerns(step.step);
      const KnownMessages::Known* known = id ? known_.Find(*id) : nullptr;
      if (known != nullptr) draft.Know(*id, known->message, known->stamp);
    }
  }
  const Operation* checked = nullptr;
  absl::Status refusal;
  for (const Group::StepRef& step : group.steps) {
    if (atomic() && step.operation.get() != checked) {
      checked = step.operation.get();
      refusal = step.operation->Check(draft, PlaceOf(group));
    }
    absl::Status planned = refusal;
    if (planned.ok()) {
      planned = step.operation->Plan(step.step, draft, PlaceOf(group));
      if (!planned.ok() && IsOutdated(draft, step.operation->Concerns(step.step))) {
        planned = step.operation->Plan(step.step, draft, PlaceOf(group));
      }
    }
    if (!planned.ok()) step.operation->Fail(step.step, planned);
  }
  return absl::OkStatus();
}

// Whether what was known of the message, and so what was decided on it, is no more true. Only where
// nothing is written: else the guard says so.
bool Dispatcher::IsOutdated(Draft& draft, const std::optional<MessageId>& id) {
  if (!id) return false;
  const absl::StatusOr<bool> otherwise = draft.Verify(*id);
  if (!otherwise.ok() || !*otherwise) return false;
  const std::lock_guard lock(mutex_);
  known_.Forget(*id);
  others_ = true;
  return true;
}

// The first message of those that are ready in the store and in the draft. One that the draft makes
// ready must not come before others that were not fetched yet.
std::optional<Window::Entry> Dispatcher::TakeNext(const GroupPtr& group, bool suspects,
                                                  std::deque<Hint>& drafted) {
  const std::lock_guard lock(mutex_);
  std::optional<Window::Entry> entry = window_.First(suspects);
  if (entry && lost_race_) {
    const auto random = static_cast<uint8_t>(environment_->entropy.Bytes(1)[0]);
    entry = window_.Any(suspects, uint64_t{1} + random);
  }
  if (!drafted.empty() && (!entry || ComesBefore(drafted.front(), entry->hint)) &&
      window_.Knows(drafted.front())) {
    entry = Window::Entry{drafted.front(), false};
    drafted.pop_front();
    return entry;
  }
  if (!entry) return std::nullopt;
  window_.Take(entry->hint);
  if (!group->draft) return entry;
  if (const KnownMessages::Known* known = known_.Find(entry->hint.id)) {
    group->draft->Know(entry->hint.id, known->message, known->stamp);
  }
  return entry;
}

// Hands out what is ready to those who wait; with atomic batches into the round's own draft.
void Dispatcher::HandOutReady(const RoundPtr& round, const GroupPtr& group) {
  if (round->consumers.empty()) return;
  std::deque<Hint> drafted;
  if (group->draft) {
    std::vector<Hint> ready = group->draft->Ready(incarnation_, Now());
    std::sort(ready.begin(), ready.end(), ComesBefore);
    drafted.assign(ready.begin(), ready.end());
  }
  size_t handed = 0;
  size_t bytes = 0;
  for (const ConsumerPtr& consumer : round->consumers) {
    const auto hand_out = std::make_shared<HandOutOperation>(*this, consumer);
    const bool takes_suspect = consumer->takes_suspect();
    bool suspect = false;
    const size_t bytes_before = bytes;
    const size_t bytes_most = consumer->pop() ? kPoppedBytesMax : kHandedBytesMax;
    int32_t wanted = consumer->wants();
    if (consumer->pop() && !group->draft) wanted = std::min(wanted, kPoppedUnseenMax);
    while (wanted > 0 && handed < kStepsMax && bytes - bytes_before < bytes_most) {
      const std::optional<Window::Entry> entry =
          TakeNext(group, takes_suspect && !suspect, drafted);
      if (!entry) break;
      const size_t step = hand_out->AddStep(*entry);
      group->steps.push_back({hand_out, step});
      ++handed;
      if (group->draft) {
        absl::Status planned = hand_out->Plan(step, *group->draft, PlaceOf(*group));
        if (!hand_out->handed(step) && IsOutdated(*group->draft, entry->hint.id)) {
          planned = hand_out->Plan(step, *group->draft, PlaceOf(*group));
        }
        if (!planned.ok()) hand_out->Fail(step, planned);
        if (!hand_out->handed(step)) continue;
        const Message& message = hand_out->all()[step].message;
        bytes += message.payload.size() + message.headers.size();
      }
      suspect = suspect || entry->suspect;
      --wanted;
    }
    if (hand_out->steps() > 0) {
      consumer->Expect(static_cast<int32_t>(hand_out->steps()), suspect);
      round->hand_outs.push_back(hand_out);
    }
    if (handed >= kStepsMax || bytes >= kBytesMax) break;
  }
}

// True: the group has ended; else whoever brings the commit's answer goes on.
bool Dispatcher::Commit(const RoundPtr& round, const GroupPtr& group) {
  for (;;) {
    if (group->failed || !group->draft->changes()) return true;
    group->planned = group->draft->Take();
    group->turn = false;
    ++group->attempts;
    environment_->store.Commit(
        std::move(group->planned.batch),
        [self = shared_from_this(), round, group](const store::CommitResult& result) {
          if (!self->environment_->capabilities.blocking_reads) {
            return self->GoOn(round, group, result);
          }
          self->environment_->executor.Schedule(
              [self, round, group, result] { self->GoOn(round, group, result); });
        });
    if (!group->turn.exchange(true)) return false;
    if (group->ended) return true;
  }
}

void Dispatcher::GoOn(const RoundPtr& round, const GroupPtr& group,
                      const store::CommitResult& result) {
  const Doors::Visit visit(environment_->doors);
  if (!visit.let_in()) return;
  group->ended = EndCommit(group, result);
  if (!group->turn.exchange(true)) return;  // whoever called Commit has not returned, and goes on
  if (!group->ended && !Commit(round, group)) return;
  if (--round->open != 0) return;
  EndRound(round);
  while (Step()) {
  }
}

// What became of a group's commit. False: it has been planned anew.
bool Dispatcher::EndCommit(const GroupPtr& group, const store::CommitResult& result) {
  Changes changes{std::move(group->planned.index), std::move(group->planned.written),
                  result.position};
  if (!result.status.ok() || !result.committed) {
    const std::lock_guard lock(mutex_);
    for (const Written& written : changes.written) known_.Forget(written.id);
    for (const Group::StepRef& step : group->steps) {
      if (const std::optional<MessageId> id = step.operation->Concerns(step.step)) {
        known_.Forget(*id);
      }
    }
  }
  if (!result.status.ok()) {
    Fail(*group, result.status);
    return true;
  }
  if (!result.committed) return LoseRace(group);
  std::vector<Release> released;
  {
    const std::lock_guard lock(mutex_);
    ApplyLocked(changes, released);
    ++counts_.batches;
    counts_.operations += static_cast<int64_t>(group->steps.size());
    lost_race_ = false;
  }
  Tell(released);
  const auto elsewhere = [&](const IndexChange& change) {
    return !change.key.starts_with(index_prefix_);
  };
  if (std::any_of(changes.index.begin(), changes.index.end(), elsewhere)) {
    environment_->directory.Tell(changes, incarnation_);
  }
  // Elsewhere the batch's check of the queue's record says so.
  if (!atomic()) {
    if (const absl::Status confirmed = ConfirmQueue(); !confirmed.ok()) Fail(*group, confirmed);
  }
  return true;
}

bool Dispatcher::LoseRace(const GroupPtr& group) {
  absl::StatusOr<QueueRecordPtr> queue = environment_->directory.FindAnew(name_);
  if (queue.ok() && (*queue == nullptr || (*queue)->incarnation != incarnation_)) {
    queue = QueueNotFound(name_);
  }
  if (queue.ok() && group->dead_letter_queue) {
    const auto anew = environment_->directory.FindAnew(group->dead_letter_queue->name);
    if (!anew.ok()) queue = anew.status();
  }
  if (queue.ok() && group->attempts >= kAttemptsMax) queue = RetriesExhausted();
  if (!queue.ok()) {
    Fail(*group, queue.status());
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    ++counts_.races_lost;
    lost_race_ = true;
    queue_ = *std::move(queue);
  }
  Plan(group);
  return group->failed || !group->draft->changes();
}

absl::Status Dispatcher::ConfirmQueue() {
  ASSIGN_OR_RETURN(const QueueRecordPtr queue, environment_->directory.FindAnew(name_));
  if (queue == nullptr || queue->incarnation != incarnation_) return QueueNotFound(name_);
  if (queue->closing) {
    return Error(ErrorReason::kOutcomeUnknown, "the queue may just be being deleted");
  }
  return absl::OkStatus();
}

void Dispatcher::Fail(Group& group, const absl::Status& status) {
  group.failed = true;
  for (const Group::StepRef& step : group.steps) step.operation->Fail(step.step, status);
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

// Where no commit of this process is in flight, so that what is counted stands still.
absl::Status Dispatcher::CountSomeLocked() {
  Tally* const counting = recount_ ? recount_.get() : tally_.get();
  if (counting == nullptr || counting->counted()) return absl::OkStatus();
  RETURN_IF_ERROR(counting->CountOn(environment_->store, kCountedAtOnce).status());
  counted_at_ = environment_->store.LastPosition();
  if (recount_ && recount_->counted()) tally_ = std::move(recount_);
  return absl::OkStatus();
}

void Dispatcher::CountOn() {
  const std::lock_guard lock(mutex_);
  (void)CountSomeLocked();  // whoever asks for the count finds out
}

// In the background, while nobody runs; else the rounds do it.
void Dispatcher::CountLater() {
  constexpr microseconds kPause = std::chrono::milliseconds(1);
  environment_->executor.Schedule(kPause, [weak = weak_from_this()] {
    const std::shared_ptr<Dispatcher> self = weak.lock();
    if (self == nullptr) return;
    const Doors::Visit visit(self->environment_->doors);
    if (!visit.let_in()) return;
    {
      const std::lock_guard lock(self->mutex_);
      const bool failed = !self->running_ && !self->CountSomeLocked().ok();
      const Tally& counting = self->recount_ ? *self->recount_ : *self->tally_;
      if (failed || counting.counted()) {
        self->counting_ = false;
        return;
      }
    }
    self->CountLater();
  });
}

absl::StatusOr<QueueStatistics> Dispatcher::Statistics() {
  QueueStatistics statistics;
  bool count_later = false;
  {
    const std::lock_guard lock(mutex_);
    const UnixMicros now = NowLocked();
    const Steady steady = environment_->clock.SteadyNow();
    if (!tally_) {
      tally_ = std::make_unique<Tally>(incarnation_, now);
      recounted_at_ = steady;
    } else if (tally_->counted() && !recount_) {
      const bool again = others_ && steady - recounted_at_ >= kLookInterval;
      if (again || disturbed_ || tally_->stale(now)) {
        recount_ = std::make_unique<Tally>(incarnation_, now);
        recounted_at_ = steady;
        disturbed_ = false;
      }
    }
    // What is little is counted at once.
    if (!running_) RETURN_IF_ERROR(CountSomeLocked());
    ASSIGN_OR_RETURN(const Tally::Counts counts, tally_->Report(environment_->store, now));
    statistics.ready = counts.ready;
    statistics.scheduled = counts.scheduled;
    statistics.reserved = counts.reserved;
    statistics.waiting = counts.waiting;
    statistics.dead = counts.dead;
    const bool counting = recount_ != nullptr || !tally_->counted();
    statistics.exact = counts.exact && !counting && !others_ && !disturbed_;
    if (!running_) RETURN_IF_ERROR(window_.Fill(environment_->store, now));
    if (const std::optional<UnixMicros> oldest = window_.Oldest(); oldest && *oldest < now) {
      statistics.oldest_ready_age = microseconds(now - *oldest);
    }
    count_later = counting && !std::exchange(counting_, true);
  }
  if (count_later) CountLater();
  return statistics;
}

}  // namespace strata::queue
