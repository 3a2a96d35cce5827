// How a round is planned and committed, and what becomes of it.
#include "schemas/queue/dispatcher_round.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "schemas/base/error.h"
#include "schemas/queue/queue_errors.h"

namespace strata::queue {
namespace {

// So many where their sizes are not known before.
constexpr int32_t kPoppedUnseenMax = 2;
// Behind each other, looked at for a ring; in a longer one messages go round.
constexpr int kDeadLetterQueuesMax = 16;

// In the order in which messages are handed out.
bool ComesBefore(const Hint& left, const Hint& right) {
  return std::make_tuple(-left.priority, left.number, left.id) <
         std::make_tuple(-right.priority, right.number, right.id);
}

// The writes of `first`, then those of `batch`, whose commit point stays.
store::WriteBatch InFrontOf(store::WriteBatch batch, const store::WriteBatch& first) {
  store::WriteBatch all;
  const auto add = [&all](const store::Write& write) { all.Put(write.keyspace, "", "") = write; };
  for (const store::Write& write : first.writes()) add(write);
  for (size_t i = 0; i < batch.writes().size(); ++i) {
    add(batch.writes()[i]);
    if (i == batch.commit_point()) all.MarkCommitPoint();
  }
  if (batch.removal()) all.MarkAsRemoval();
  if (batch.background()) all.MarkAsBackground();
  all.set_deadline(batch.deadline());
  return all;
}

}  // namespace

absl::Status Dispatcher::FindQueues(Group& group) {
  {
    const std::lock_guard lock(mutex_);
    group.queue = queue_;
  }
  group.dead_letter_queue = nullptr;
  group.dead_letters_return = false;
  const std::string& name = group.queue->settings.dead_letter_queue;
  if (name.empty()) return absl::OkStatus();
  const StandingGrants* const grants = environment_->grants;
  const std::string& owner = group.queue->settings.owner;
  if (grants != nullptr && !grants->MayWriteQueue(owner, name)) return absl::OkStatus();
  // With atomic batches a check of its record says if another server has changed it.
  Directory& directory = environment_->directory;
  ASSIGN_OR_RETURN(group.dead_letter_queue,
                   atomic() ? directory.Find(name) : directory.FindAnew(name));
  QueueRecordPtr next = group.dead_letter_queue;
  for (int i = 0; i < kDeadLetterQueuesMax && next != nullptr; ++i) {
    const std::string& behind = next->settings.dead_letter_queue;
    group.dead_letters_return = behind == name_;
    if (behind.empty() || group.dead_letters_return) break;
    ASSIGN_OR_RETURN(next, directory.Find(behind));
  }
  return absl::OkStatus();
}

Place Dispatcher::PlaceOf(const Group& group) {
  return {*group.queue, group.dead_letter_queue.get(), StepTime(), group.dead_letters_return};
}

int64_t Dispatcher::DrawStep() {
  int64_t step = 0;
  const std::string bytes = environment_->entropy.Bytes(sizeof(step));
  std::memcpy(&step, bytes.data(), sizeof(step));
  return step;
}

void Dispatcher::Plan(const GroupPtr& group) {
  group->draft = std::make_unique<Draft>(environment_->store, atomic(), atomic() ? 0 : DrawStep());
  group->draft->Forget(Now(), group->attempts);
  if (absl::Status planned = PlanAll(*group); !planned.ok()) Fail(*group, planned);
}

absl::Status Dispatcher::PlanAll(Group& group) {
  RETURN_IF_ERROR(FindQueues(group));
  Draft& draft = *group.draft;
  draft.Reserve(group.steps.size());
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
  for (size_t i = 0; i < group.steps.size(); ++i) {
    const Group::StepRef& step = group.steps[i];
    // What it takes is only known now. The rest is put back.
    const bool next = i > 0 && step.operation != group.steps[i - 1].operation;
    if (next && group.attempts == 0 && draft.payload_bytes() >= kRoundBytesMax) {
      group.steps.resize(i);
      break;
    }
    if (atomic() && step.operation.get() != checked) {
      checked = step.operation.get();
      refusal = step.operation->Check(draft, PlaceOf(group));
    }
    absl::Status planned = refusal;
    if (planned.ok()) {
      planned = step.operation->Plan(step.step, draft, PlaceOf(group));
      // Whether it was refused, or there was nothing to do.
      if (IsOutdated(draft, step.operation->Concerns(step.step))) {
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
    const size_t bytes_most = consumer->TakeRoom();
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
        bytes += consumer->SizeOf(message);
      }
      suspect = suspect || entry->suspect;
      --wanted;
    }
    if (group->draft || hand_out->steps() == 0) consumer->KeepRoom(bytes - bytes_before);
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
    if (!group->announced) {
      if (group->failed || !group->draft->changes()) return true;
      group->planned = group->draft->Take();
      group->changes = {std::move(group->planned.index), std::move(group->planned.written), 0};
      group->announcing = !group->planned.announcement.writes().empty();
      group->makes_room = std::all_of(
          group->steps.begin(), group->steps.end(),
          [&](const Group::StepRef& step) { return step.operation->makes_room(*group->queue); });
      group->deadline = kNoDeadline;
      bool background = true;
      for (const Group::StepRef& step : group->steps) {
        group->deadline = std::min(group->deadline, step.operation->deadline());
        background = background && step.operation->background();
      }
      for (store::WriteBatch* const batch : {&group->planned.announcement, &group->planned.batch}) {
        batch->set_deadline(group->deadline);
        if (background) batch->MarkAsBackground();
        if (group->makes_room) batch->MarkAsRemoval();
      }
      ++group->attempts;
    }
    group->turn = false;
    if (!group->announced) {
      const std::lock_guard lock(mutex_);
      in_flight_.push_back(group);
    }
    environment_->store.Commit(
        std::move(group->announcing ? group->planned.announcement : group->planned.batch),
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

// What is announced may come, if the queues that it comes into are still there now. False: there is
// more to commit.
bool Dispatcher::EndAnnouncement(const GroupPtr& group, const store::CommitResult& result) {
  group->announcing = false;
  const auto land = [&] {
    const std::lock_guard lock(mutex_);
    LandLocked(group);
  };
  // Nothing but hints may have been written, which say nothing true.
  if (!result.status.ok()) {
    land();
    if (ReasonOf(result.status) == ErrorReason::kDeadlineExceeded && Keep(group, result.status)) {
      Plan(group);
      return group->failed || !group->draft->changes();
    }
    Fail(*group, result.status);
    return true;
  }
  Draft::Planned& planned = group->planned;
  store::WriteBatch marks;
  for (const auto& [name, incarnation] : planned.entered) {
    const absl::StatusOr<QueueRecordPtr> found = environment_->directory.FindAnew(name);
    if (!found.ok()) {
      land();
      Fail(*group, found.status());
      return true;
    }
    if (*found == nullptr || (*found)->incarnation != incarnation) {
      land();
      planned.payloads.clear();
      return LoseRace(group);
    }
    if (!(*found)->closing) continue;
    // Whoever is about to delete it has perhaps not met the hint, and finds out that it is used.
    QueueRecord used = **found;
    used.closing = false;
    marks.Replace(store::Keyspace::kQueues, name, used.Encode(), used.stamp);
  }
  if (!marks.writes().empty()) planned.batch = InFrontOf(std::move(planned.batch), marks);
  group->announced = true;
  return false;
}

// What became of a group's commit. False: there is more to commit.
bool Dispatcher::EndCommit(const GroupPtr& group, const store::CommitResult& result) {
  if (group->announcing) return EndAnnouncement(group, result);
  group->announced = false;
  Changes& changes = group->changes;
  changes.position = result.position;
  if (!result.status.ok() || !result.committed) {
    const std::lock_guard lock(mutex_);
    LandLocked(group);
    for (const Written& written : changes.written) known_.Forget(written.id);
    for (const Group::StepRef& step : group->steps) {
      if (const std::optional<MessageId> id = step.operation->Concerns(step.step)) {
        known_.Forget(*id);
      }
    }
  }
  const std::optional<ErrorReason> refused = ReasonOf(result.status);
  const bool late = refused == ErrorReason::kDeadlineExceeded;
  if (late) RemovePayloads(group);
  if ((late || refused == ErrorReason::kDiskFull) && Keep(group, result.status)) {
    Plan(group);
    return group->failed || !group->draft->changes();
  }
  if (!result.status.ok()) {
    // It may have been done all the same.
    {
      const std::lock_guard lock(mutex_);
      disturbed_ = true;
      window_.LookAnew();
    }
    Fail(*group, result.status);
    return true;
  }
  if (!result.committed) return LoseRace(group);
  const auto elsewhere = [&](const IndexChange& change) {
    return !change.key.starts_with(index_prefix_);
  };
  if (std::any_of(changes.index.begin(), changes.index.end(), elsewhere)) {
    environment_->directory.Tell(changes, incarnation_);
  }
  std::vector<Release> released;
  {
    const std::lock_guard lock(mutex_);
    LandLocked(group);
    ApplyLocked(std::move(changes), released);
    committed_at_ = result.position;
    ++counts_.commits;
    counts_.operations += static_cast<int64_t>(group->steps.size());
    lost_race_ = false;
  }
  Tell(released);
  // Elsewhere the batch's check of the queue's record says so, and where messages came into a queue
  // it was there when they were announced.
  if (!atomic()) {
    const auto& entered = group->planned.entered;
    for (const auto& queue : group->planned.queues) {
      if (std::find(entered.begin(), entered.end(), queue) != entered.end()) continue;
      const absl::Status confirmed = Confirm(queue.first, queue.second);
      if (!confirmed.ok()) Fail(*group, confirmed);
    }
  }
  return true;
}

// The steps that a full disk or the deadline of another refused only for the company they were in
// are left. False: there are none.
bool Dispatcher::Keep(const GroupPtr& group, const absl::Status& refusal) {
  const bool late = ReasonOf(refusal) == ErrorReason::kDeadlineExceeded;
  if (!late && group->makes_room) return false;
  const auto keeps = [&](const Operation& operation) {
    return late ? operation.deadline() > group->deadline : operation.makes_room(*group->queue);
  };
  std::vector<Group::StepRef> kept;
  for (Group::StepRef& step : group->steps) {
    if (keeps(*step.operation)) {
      kept.push_back(std::move(step));
    } else {
      step.operation->Fail(step.step, refusal);
    }
  }
  if (kept.empty()) return false;
  group->steps = std::move(kept);
  return true;
}

// From now on its changes are applied, or there are none.
void Dispatcher::LandLocked(const GroupPtr& group) {
  std::erase_if(in_flight_, [&](const std::weak_ptr<Group>& other) {
    const GroupPtr flying = other.lock();
    return flying == nullptr || flying == group;
  });
}

// Which were announced for a batch that was not committed.
void Dispatcher::RemovePayloads(const GroupPtr& group) {
  if (group->planned.payloads.empty()) return;
  store::WriteBatch left;
  left.MarkAsBackground();
  for (std::string& key : group->planned.payloads) {
    left.Delete(store::Keyspace::kMessages, std::move(key));
  }
  environment_->store.Commit(std::move(left), [](const store::CommitResult&) {});
}

bool Dispatcher::LoseRace(const GroupPtr& group) {
  RemovePayloads(group);
  absl::StatusOr<QueueRecordPtr> queue = environment_->directory.FindAnew(name_);
  if (queue.ok() && (*queue == nullptr || (*queue)->incarnation != incarnation_)) {
    queue = QueueNotFound(name_);
  }
  if (queue.ok() && group->dead_letter_queue) {
    const auto anew = environment_->directory.FindAnew(group->dead_letter_queue->name);
    if (!anew.ok()) queue = anew.status();
  }
  if (queue.ok() && group->attempts >= store::kAttemptsMax) {
    queue = store::RetriesExhausted("messages of queue " + name_, group->attempts);
  }
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

// That the queue is still there.
absl::Status Dispatcher::Confirm(const std::string& queue, int64_t incarnation) {
  ASSIGN_OR_RETURN(const QueueRecordPtr found, environment_->directory.FindAnew(queue));
  const bool there = found != nullptr && found->incarnation == incarnation;
  return there ? absl::OkStatus() : QueueNotFound(queue);
}

void Dispatcher::Fail(Group& group, const absl::Status& status) {
  group.failed = true;
  for (const Group::StepRef& step : group.steps) step.operation->Fail(step.step, status);
}

}  // namespace strata::queue
