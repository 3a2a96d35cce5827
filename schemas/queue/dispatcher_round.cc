// How a round is planned and committed, and what becomes of it.
#include "schemas/queue/dispatcher_round.h"

#include <algorithm>
#include <tuple>

#include "schemas/base/error.h"
#include "schemas/queue/queue_errors.h"

namespace strata::queue {
namespace {

// What is handed to one consumer at once, less the last message: an answer has to fit into 4 MiB,
// in which a payload may take three times what it takes here. What was popped cannot be given back.
constexpr size_t kHandedBytesMax = size_t{2} << 20;
constexpr size_t kPoppedBytesMax = size_t{512} << 10;
// So many where their sizes are not known before.
constexpr int32_t kPoppedUnseenMax = 2;
constexpr int kAttemptsMax = 16;

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
    while (wanted > 0 && handed < kRoundStepsMax && bytes - bytes_before < bytes_most) {
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
    if (handed >= kRoundStepsMax || bytes >= kRoundBytesMax) break;
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

}  // namespace strata::queue
