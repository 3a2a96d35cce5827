#include "schemas/versioning/write_path.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/versioning/commit_plan.h"
#include "schemas/versioning/decision.h"
#include "schemas/versioning/write_queue.h"

namespace strata::versioning {
namespace {

absl::Status OutcomeUnknown() {
  return Error(ErrorReason::kOutcomeUnknown,
               "the write may or may not be stored; repeat it with the same request_id");
}

// Gives the answers that hold already: those decided before the first version that is only planned.
void AnswerDecided(Round& round) {
  bool durable = true;
  round.Answer([&](const PendingWrite& write) { return durable = durable && !write.planned; });
}

}  // namespace

WritePath::WritePath(store::Store& store, std::shared_ptr<Collections> collections,
                     const Clock& clock, Entropy& entropy, Executor& executor, WriteOptions options)
    : store_(store),
      capabilities_(store.capabilities()),
      collections_(std::move(collections)),
      entropy_(entropy),
      executor_(executor),
      options_(options),
      queues_(std::make_unique<WriteQueues>()),
      decider_(std::make_unique<Decider>(store, *collections_, clock, entropy, options_)) {}

WritePath::~WritePath() = default;

void WritePath::Modify(WriteRequest request, Mutator mutator, WriteCallback done) {
  auto write = std::make_unique<PendingWrite>();
  write->request = std::move(request);
  write->mutate = std::move(mutator);
  write->done = std::move(done);
  const Effort effort = write->request.brief ? Effort::kBrief : Effort::kAtLength;
  WriteQueues::Added added = queues_->Add(std::move(write), effort == Effort::kAtLength);
  if (added.to_run) return RunOn(added.queue, effort);
  if (!added.wanted) return;
  std::vector<WantedTurn> wanted;
  wanted.push_back(*std::move(added.wanted));
  if (!AskForTurns(added.queue, std::move(wanted))) RunOn(added.queue, Effort::kBrief);
}

// Runs the write queue from here on: on this thread, unless it would wait for reads.
void WritePath::RunOn(const WriteQueuePtr& queue, Effort effort) {
  if (!capabilities_.blocking_reads) return Run(queue, effort);
  executor_.Schedule([self = shared_from_this(), queue, effort] { self->Run(queue, effort); });
}

void WritePath::Run(const WriteQueuePtr& queue, Effort effort) {
  while (true) {
    const RoundPtr round = TakeRound(*queue, std::exchange(effort, Effort::kBrief));
    if (round == nullptr) return;
    decider_->Decide(*round);
    if (round->takes_long) {
      if (DecideElsewhere(queue, *round)) return;
      continue;
    }
    AnswerDecided(*round);
    if (!CommitPlanned(queue, round)) return;  // whoever ends the round runs the write queue on
  }
}

// The next round, of writes that wait; null, and the write queue is over, if there are none.
WritePath::RoundPtr WritePath::TakeRound(WriteQueue& queue, Effort effort) {
  const bool combining = options_.combining && capabilities_.atomic_batches;
  const std::optional<size_t> take_max = queue.next_take_max();
  PendingWrites group =
      queue.Take(combining ? static_cast<size_t>(options_.group_versions_max) : 1);
  if (group.empty()) return nullptr;
  auto round = std::make_shared<Round>();
  round->group = std::move(group);
  round->take_max = take_max;
  round->brief = effort == Effort::kBrief;
  if (round->brief) {
    round->limits.document_bytes_max = options_.brief_document_bytes_max;
    round->limits.rebuilt_bytes_max = kBriefRebuiltBytesMax;
  }
  return round;
}

// Leaves the round, undecided and without what it read, to where it may take long; false if it is
// not taken there.
bool WritePath::DecideElsewhere(const WriteQueuePtr& queue, Round& round) {
  if (round.take_max) queue->LimitNextTake(*round.take_max);
  queue->PutBack(round.group);
  return AskForTurns(queue, queue->Park());
}

// Has the parked write queue go on in any of these turns. False if there is none, which its first
// write is then answered with: the caller runs the write queue on.
bool WritePath::AskForTurns(const WriteQueuePtr& queue, std::vector<WantedTurn> wanted) {
  for (const WantedTurn& turn : wanted) {
    auto run = [self = shared_from_this(), queue, line = turn.line] {
      if (queue->Resume(line)) self->Run(queue, Effort::kAtLength);
    };
    if (turn.waiter == nullptr) {
      executor_.Schedule(std::move(run));
      continue;
    }
    absl::Status taken = turn.waiter->Defer(std::move(run));
    if (taken.ok() || !queue->ResumeWithoutTurn(turn.line)) continue;
    const PendingWrites refused = queue->Take(1);
    refused.front()->done(std::move(taken));
    return false;
  }
  return true;
}

// Commits what the round planned, if it planned anything. True if the round is over when this
// returns; false if it ends later, and the write queue is then run on.
bool WritePath::CommitPlanned(const WriteQueuePtr& queue, const RoundPtr& round) {
  if (round->planned.empty()) {
    queue->PutBack(round->group);
    return true;
  }
  if (!round->collection || !round->collection->used) return PrepareCollection(queue, round);
  absl::StatusOr<store::WriteBatch> batch = PlanCommit(*round, capabilities_);
  if (batch.ok()) return Commit(queue, round, *std::move(batch));
  if (round->planned.size() > 1) {
    // One of several versions does not fit; alone, each finds out for itself.
    queue->LimitNextTake(1);
    queue->PutBack(round->group);
  } else {
    EndFailed(*queue, *round, batch.status());
  }
  return true;
}

// True if the round is over when this returns; false if the commit's callback ends it.
bool WritePath::Commit(const WriteQueuePtr& queue, const RoundPtr& round, store::WriteBatch batch) {
  for (auto& write : round->group) {
    if (write->planned) ++write->attempts;
  }
  // Let go of the snapshot; the commit may take long.
  round->reader.reset();
  const auto turn = std::make_shared<Turn>(false);
  auto decided = [self = shared_from_this(), queue, round,
                  turn](const store::CommitResult& result) {
    if (result.status.ok() && !result.committed) return self->EndLost(queue, *round);
    self->Continue(queue, round, *turn, [self, queue, round, result] {
      if (!result.status.ok()) {
        self->EndFailed(*queue, *round, result.status);
      } else if (!self->CollectionUnchanged(*round)) {
        self->EndFailed(*queue, *round, OutcomeUnknown());
      } else {
        self->EndCommitted(*queue, *round, result.position);
      }
    });
  };
  store_.Commit(std::move(batch), std::move(decided));
  return turn->exchange(true);
}

// Makes the collection that the round needs; then the round is decided anew. As Commit.
bool WritePath::PrepareCollection(const WriteQueuePtr& queue, const RoundPtr& round) {
  round->reader.reset();
  const auto turn = std::make_shared<Turn>(false);
  auto prepared = [self = shared_from_this(), queue, round,
                   turn](const absl::StatusOr<CollectionPtr>& collection) {
    self->Continue(queue, round, *turn, [self, queue, round, status = collection.status()] {
      if (status.ok()) return queue->PutBack(round->group);
      self->EndFailed(*queue, *round, status);
    });
  };
  const StrategyEntry* const made_with =
      options_.create_collections ? options_.default_strategy : nullptr;
  collections_->PrepareForWrite(queue->name().collection, made_with, std::move(prepared));
  return turn->exchange(true);
}

// Ends a round whose commit is decided, by `end`, and runs the write queue on: here, or on the
// executor where that is much work, since the commits of all other documents wait for this thread.
// (Here, whichever of Commit's return and its callback comes second goes on: engines may call back
// at once, and recursion would be as deep as the write queue is long.)
template <typename End>
void WritePath::Continue(const WriteQueuePtr& queue, const RoundPtr& round, Turn& turn, End end) {
  if (IsMuchWork(*queue, *round)) {
    executor_.Schedule([self = shared_from_this(), queue, end = std::move(end)] {
      end();
      self->Run(queue, Effort::kBrief);
    });
    return;  // the caller, seeing itself first, leaves the write queue to the executor
  }
  end();
  if (turn.exchange(true)) RunOn(queue, Effort::kBrief);
}

// Whether answering the round and deciding the next one goes through much content.
bool WritePath::IsMuchWork(const WriteQueue& queue, const Round& round) const {
  const StoredVersion& current = *round.current();
  const size_t content_bytes = current.content ? current.content->size() : 0;
  const size_t once_bytes = round.planned_bytes + (round.head ? round.head->record.size() : 0);
  const auto writes_max = static_cast<size_t>(options_.group_versions_max);
  if (once_bytes + content_bytes * writes_max <= options_.direct_bytes_max) return false;
  return once_bytes + content_bytes * std::min(queue.size(), writes_max) >
         options_.direct_bytes_max;
}

// All answers of the round hold.
void WritePath::EndCommitted(WriteQueue& queue, Round& round, store::CommitPosition position) {
  round.Answer([&](PendingWrite& write) {
    if (!write.answer->ok()) return true;
    WriteResult& answer = **write.answer;
    answer.attempts = write.attempts;
    const bool stored = write.planned || !answer.changed || answer.replayed;
    // A no-op and a repetition too may answer with a version that this commit made.
    if (stored && answer.version.header.version > round.head_version()) {
      answer.version.position = position;
    }
    if (stored && answer.changed) answer.position = answer.version.position;
    return true;
  });
  queue.PutBack(round.group);
}

// Another was faster: everything is decided anew, on what that left, after a moment.
void WritePath::EndLost(const WriteQueuePtr& queue, Round& round) {
  int attempts = 0;
  for (auto& write : round.group) {
    if (!write->planned) continue;
    write->lost_against = round.head_version();
    attempts = std::max(attempts, write->attempts);
  }
  queue->PutBack(round.group);
  // The executor runs the write queue on, so the caller of Commit, seeing itself first, does not.
  executor_.Schedule(Backoff(attempts),
                     [self = shared_from_this(), queue] { self->Run(queue, Effort::kBrief); });
}

// The planned versions are not stored, or nobody knows: only who would have made them hears of it.
// What else was decided, was decided on versions that never were, or after them, and is decided
// anew.
void WritePath::EndFailed(WriteQueue& queue, Round& round, const absl::Status& failure) {
  const bool expired = ReasonOf(failure) == ErrorReason::kDeadlineExceeded;
  // A full disk may still take the removals, without the others.
  const bool parted = ReasonOf(failure) == ErrorReason::kDiskFull &&
                      std::any_of(round.group.begin(), round.group.end(), [](const auto& write) {
                        return write->planned && !write->request.removal;
                      });
  for (auto& write : round.group) {
    write->answer.reset();
    if (!write->planned) continue;
    if (!expired && !(parted && write->request.removal)) {
      write->answer = failure;
      continue;
    }
    // Nobody took part in a race. Those who still have time go on without those who have not.
    --write->attempts;
    if (expired && write->request.deadline <= round.deadline) {
      write->answer = DeadlineExceeded(write->attempts);
    }
  }
  round.Answer([](const PendingWrite&) { return true; });
  // Without newcomers, who might be as short of time, or no removals.
  if ((expired || parted) && !round.group.empty()) queue.LimitNextTake(round.group.size());
  queue.PutBack(round.group);
}

// Whether the collection that the commit went into is still there. Atomic engines checked it in the
// batch.
bool WritePath::CollectionUnchanged(const Round& round) {
  if (capabilities_.atomic_batches) return true;
  const absl::StatusOr<CollectionPtr> now = collections_->Find(store_, round.collection->name);
  return now.ok() && *now && (*now)->incarnation == round.collection->incarnation;
}

std::chrono::microseconds WritePath::Backoff(int attempts) {
  auto ceiling = options_.backoff_first;
  for (int i = 1; i < attempts && ceiling < options_.backoff_max; ++i) ceiling *= 2;
  ceiling = std::min(ceiling, options_.backoff_max);
  // Full jitter: two writers that collided once do not march in step.
  const std::string bytes = entropy_.Bytes(2);
  const int64_t share = (static_cast<uint8_t>(bytes[0]) << 8) | static_cast<uint8_t>(bytes[1]);
  return std::chrono::microseconds(ceiling.count() * share / 65'536);
}

}  // namespace strata::versioning
