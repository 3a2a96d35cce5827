#include "schemas/versioning/write_path.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/versioning/commit_plan.h"
#include "schemas/versioning/decision.h"
#include "schemas/versioning/write_queue.h"

namespace strata::versioning {
namespace {

// In one round; a unit that has more has its own.
constexpr size_t kRoundDocumentsMax = 256;

absl::Status OutcomeUnknown() {
  return Error(ErrorReason::kOutcomeUnknown,
               "the write may or may not be stored; repeat it with the same request_id");
}

absl::Status NoAtomicBatches() {
  return Error(ErrorReason::kUnsupportedByEngine,
               "the engine cannot commit several records at once")
      .With("capability", "atomic_batches");
}

// To whoever is refused because another's turn was.
absl::Status NoTurn() {
  return Error(ErrorReason::kOverloaded,
               "the call takes long, and too many wait already; try again");
}

// Gives the answers that hold already: those decided before the first that is only planned.
void AnswerDecided(Round& round) {
  bool durable = true;
  round.Answer([&](const Waiting& entry) { return durable = durable && !entry.planned(); });
}

// What a unit's parts have from it.
PendingUnitPtr MakePending(UnitRequest request, UnitCallback done) {
  auto unit = std::make_shared<PendingUnit>();
  unit->writes.reserve(request.changes.size());
  for (Change& change : request.changes) {
    PendingWrite& write = unit->writes.emplace_back();
    write.request = std::move(change.request);
    write.request.validate_only = request.validate_only;
    write.request.deadline = request.deadline;
    write.request.waiter = request.waiter;
    write.request.request_id.clear();
    write.request.request_fingerprint.clear();
    write.mutate = std::move(change.mutate);
  }
  request.changes.clear();
  unit->request = std::move(request);
  unit->done = std::move(done);
  return unit;
}

// Tells each entry which of the round's documents are its own.
void PlaceDocuments(Round& round) {
  for (size_t i = 0; i < round.queues.size(); ++i) round.queues[i]->set_place(i);
  for (Waiting& entry : round.group) {
    if (entry.write) {
      entry.write->document = entry.write->queue->place();
      continue;
    }
    PendingUnit& unit = *entry.unit;
    for (PendingWrite& write : unit.writes) write.document = write.queue->place();
    unit.read_documents.clear();
    for (const WriteQueue* const queue : unit.read_queues) {
      unit.read_documents.push_back(queue->place());
    }
  }
}

// Whether the entry has to do with that document of the round.
bool Concerns(const Waiting& entry, size_t document) {
  if (entry.write) return entry.write->document == document;
  const PendingUnit& unit = *entry.unit;
  return std::any_of(unit.writes.begin(), unit.writes.end(),
                     [&](const PendingWrite& write) { return write.document == document; }) ||
         std::count(unit.read_documents.begin(), unit.read_documents.end(), document) > 0;
}

// Of whose writes one was refused: those of an entry, of all who have to do with a document, or,
// where nobody knows, all.
struct Culprit {
  std::optional<size_t> document;
  const void* entry = nullptr;
  bool wrote_document = true;  // another may have written it
  bool of_collections = false;

  bool Is(const Waiting& waiting) const {
    if (entry != nullptr) return waiting.identity() == entry;
    return !document || Concerns(waiting, *document);
  }
};

Culprit FindCulprit(const Round& round, std::optional<size_t> refused) {
  if (!refused) return {};
  for (const Round::Section& section : round.sections) {
    if (*refused >= section.end) continue;
    if (section.document == Round::Section::kNone) {
      return {std::nullopt, section.entry, false, &section == &round.sections.front()};
    }
    return {section.document};
  }
  return {};
}

// A unit hears which of its parts has to do with the document.
void RefuseFor(size_t document, Waiting& entry, const absl::Status& failure) {
  if (!entry.unit) return entry.Refuse(failure);
  const PendingUnit& unit = *entry.unit;
  for (size_t i = 0; i < unit.writes.size(); ++i) {
    if (unit.writes[i].document == document) return entry.Refuse(InElement(failure, "writes", i));
  }
  for (size_t i = 0; i < unit.read_documents.size(); ++i) {
    if (unit.read_documents[i] == document) return entry.Refuse(InElement(failure, "reads", i));
  }
  entry.Refuse(failure);
}

// The document is of no use to those who need it; the others are decided anew.
void RefuseUndecided(Round& round, const absl::Status& refusal) {
  for (Waiting& entry : round.group) {
    if (!Concerns(entry, round.undecided_document)) continue;
    RefuseFor(round.undecided_document, entry, refusal);
  }
  round.Answer([](const Waiting&) { return true; });
}

// Whether its commit makes collections, or marks them as used.
bool WritesCollections(const Round& round) {
  return std::any_of(round.documents.begin(), round.documents.end(), [](const auto& document) {
    return !document.planned.empty() && document.collection && !document.collection->used;
  });
}

// Tells the entry's writes of documents that another has written, or may have, what they lost
// against: whether a document exists may be as it was, but the state that was asked for has passed
// (Decider::CheckPrecondition).
void NoteLoss(const Round& round, const Culprit& culprit, Waiting& entry) {
  if (!culprit.wrote_document) return;
  entry.ForEachWrite([&](PendingWrite& write) {
    if (culprit.document && *culprit.document != write.document) return;
    write.lost_against = round.documents[write.document].head_version();
  });
}

// The commit is done: what it made has its position.
void AnswerAt(const Round& round, PendingWrite& write, int attempts,
              store::CommitPosition position) {
  WriteResult& answer = **write.answer;
  answer.attempts = attempts;
  const bool stored = write.planned || !answer.changed || answer.replayed;
  // A no-op and a repetition too may answer with a version that this commit made.
  if (stored && answer.version.header.version > round.documents[write.document].head_version()) {
    answer.version.position = position;
  }
  if (stored && answer.changed) answer.position = answer.version.position;
  // A commit that made no version did what was joined to it.
  const bool joined = write.planned && !write.request.joined.empty();
  if (joined && !answer.replayed) answer.position = position;
}

void AnswerAt(const Round& round, PendingUnit& unit, store::CommitPosition position) {
  UnitResult& result = **unit.answer;
  result.attempts = unit.attempts;
  if (result.replayed) return;
  if (unit.planned) result.position = position;
  for (PendingWrite& write : unit.writes) AnswerAt(round, write, unit.attempts, position);
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
  if (!request.joined.empty() && !capabilities_.atomic_batches) return done(NoAtomicBatches());
  auto write = std::make_unique<PendingWrite>();
  write->request = std::move(request);
  write->mutate = std::move(mutator);
  write->done = std::move(done);
  const Effort effort = write->request.brief ? Effort::kBrief : Effort::kAtLength;
  Begin(queues_->Add(std::move(write), effort == Effort::kAtLength), effort);
}

void WritePath::Commit(UnitRequest request, UnitCallback done) {
  const bool simple = request.changes.size() == 1 && request.reads.empty() &&
                      request.joined.empty() && request.request_fingerprint.empty();
  if (!capabilities_.atomic_batches && !simple) return done(NoAtomicBatches());
  const Effort effort = request.brief ? Effort::kBrief : Effort::kAtLength;
  const PendingUnitPtr unit = MakePending(std::move(request), std::move(done));
  Begin(queues_->Add(unit, effort == Effort::kAtLength), effort);
}

// Does for what was added what is to be done.
void WritePath::Begin(Added added, Effort effort) {
  if (!added.to_run.empty()) RunOn(std::move(added.to_run), effort);
  if (added.wanted.empty()) return;
  WriteQueuePtrs refused = AskForTurns(added.wanted);
  if (!refused.empty()) RunOn(std::move(refused), Effort::kBrief);
}

// Runs the write queues from here on: on this thread, unless it would wait for reads.
void WritePath::RunOn(WriteQueuePtrs queues, Effort effort) {
  if (!capabilities_.blocking_reads) return Run(std::move(queues), effort);
  executor_.Schedule([self = shared_from_this(), queues = std::move(queues), effort] {
    self->Run(queues, effort);
  });
}

void WritePath::Run(WriteQueuePtrs queues, Effort effort) {
  while (!queues.empty()) {
    const WriteQueuePtr queue = std::move(queues.back());
    queues.pop_back();
    const RoundPtr round = TakeRound(queue, effort, queues);
    if (round == nullptr) continue;
    decider_->Decide(*round);
    // Where each is to find out for itself, nothing was done yet.
    if (!round->is_too_much) effort = Effort::kBrief;
    // Else whoever ends the round runs its write queues on.
    if (EndRound(round)) queues.insert(queues.end(), round->queues.begin(), round->queues.end());
  }
}

// The next round, with all write queues that it holds; null, and the caller runs the write queue no
// more, if there is none. What else it is to run for that comes to the end of `to_run`.
WritePath::RoundPtr WritePath::TakeRound(const WriteQueuePtr& queue, Effort effort,
                                         WriteQueuePtrs& to_run) {
  const bool combining = options_.combining && capabilities_.atomic_batches;
  const std::optional<size_t> take_max = queue->next_take_max();
  WriteQueues::Taken taken = queues_->TakeRound(
      queue,
      {combining ? static_cast<size_t>(options_.group_versions_max) : 1, kRoundDocumentsMax});
  if (!taken.wanted.empty()) {
    const WriteQueuePtrs refused = AskForTurns(taken.wanted);
    to_run.insert(to_run.end(), refused.begin(), refused.end());
  }
  if (taken.entries.empty()) return nullptr;
  auto round = std::make_shared<Round>();
  round->group = std::move(taken.entries);
  round->queues = std::move(taken.queues);
  round->documents.resize(round->queues.size());
  round->take_max = take_max;
  round->brief = effort == Effort::kBrief;
  PlaceDocuments(*round);
  return round;
}

// Ends a round that was decided, as far as it is. True if it is over when this returns, and the
// caller runs its write queues on; false if that is done later.
bool WritePath::EndRound(const RoundPtr& round) {
  if (round->takes_long) {
    DecideElsewhere(*round);
    return true;
  }
  if (round->is_too_much) {
    // Each finds out for itself.
    for (const WriteQueuePtr& queue : round->queues) queue->LimitNextTake(1);
    PutBack(*round);
    return true;
  }
  if (!round->undecided.empty()) return SettleUndecided(round);
  AnswerDecided(*round);
  return CommitPlanned(round);
}

void WritePath::PutBack(Round& round) { queues_->PutBack(round.group); }

// Leaves the round, undecided and without what it read, to where it may take long. What is left of
// its write queues the caller runs on.
void WritePath::DecideElsewhere(Round& round) {
  for (const WriteQueuePtr& queue : round.queues) {
    if (round.take_max) queue->LimitNextTake(*round.take_max);
  }
  PutBack(round);
  round.reader.reset();
  round.queues = AskForTurns(queues_->Park(round.queues));
}

// Has parked write queues go on in any of these turns. Those that get none are answered, for the
// caller to run; an entry of theirs is answered with why, unless that left nothing.
WriteQueuePtrs WritePath::AskForTurns(const WantedTurns& wanted) {
  WriteQueuePtrs to_run;
  for (const WantedTurn& turn : wanted.all()) {
    auto run = [self = shared_from_this(), line = turn.line, queues = turn.queues] {
      self->Run(self->queues_->Resume(line, queues), Effort::kAtLength);
    };
    if (turn.waiter == nullptr) {
      executor_.Schedule(std::move(run));
      continue;
    }
    absl::Status taken = turn.waiter->Defer(std::move(run));
    if (taken.ok()) continue;
    const WriteQueuePtrs alone = queues_->ResumeWithoutTurn(turn.line, turn.queues);
    to_run.insert(to_run.end(), alone.begin(), alone.end());
    for (const WriteQueuePtr& queue : alone) {
      WriteQueues::Withdrawn refused = queues_->Withdraw(queue);
      if (!refused.entry) continue;
      to_run.insert(to_run.end(), refused.to_run.begin(), refused.to_run.end());
      const Waiter* const waiter = refused.entry->waiter();
      const bool its_own = waiter != nullptr && waiter->line() == turn.line;
      refused.entry->Refuse(its_own ? std::move(taken) : NoTurn());
      Waiting::Answer(*std::move(refused.entry));
      break;  // the others may have waited for nothing else
    }
  }
  return to_run;
}

// Has the transaction settled whose undecided version the round met; then it is decided anew. As
// EndRound.
bool WritePath::SettleUndecided(const RoundPtr& round) {
  round->reader.reset();
  if (!settle_) {
    RefuseUndecided(*round,
                    Error(ErrorReason::kStoreUnavailable,
                          "the newest version is of a transaction that is not decided yet"));
    PutBack(*round);
    return true;
  }
  const auto turn = std::make_shared<Turn>(false);
  settle_(round->undecided, [self = shared_from_this(), round, turn](const absl::Status& settled) {
    self->Continue(round, *turn, [self, round, settled] {
      if (!settled.ok()) RefuseUndecided(*round, settled);
      self->PutBack(*round);
    });
  });
  return turn->exchange(true);
}

// Commits what the round planned, if it planned anything. As EndRound.
bool WritePath::CommitPlanned(const RoundPtr& round) {
  if (!round->planned()) {
    PutBack(*round);
    return true;
  }
  const bool makes_its_own =
      capabilities_.atomic_batches &&
      std::any_of(round->group.begin(), round->group.end(),
                  [](const Waiting& e) { return e.unit && e.unit->planned; });
  for (size_t i = 0; i < round->documents.size(); ++i) {
    const RoundDocument& document = round->documents[i];
    if (document.planned.empty() || (document.collection && document.collection->used)) continue;
    if (!makes_its_own) return PrepareCollection(round, i);
    if (!document.collection) return DrawCollections(round);
  }
  return CommitPlan(round);
}

// As EndRound.
bool WritePath::CommitPlan(const RoundPtr& round) {
  absl::StatusOr<store::WriteBatch> batch = PlanCommit(*round, capabilities_);
  if (batch.ok()) return Commit(round, *std::move(batch));
  round->room.reset();
  if (decider_->WasReadTooLate(*round, batch.status())) {
    PutBack(*round);
  } else {
    EndUnfit(*round, batch.status());
  }
  return true;
}

// As EndRound: false if the commit's callback ends it.
bool WritePath::Commit(const RoundPtr& round, store::WriteBatch batch) {
  for (Waiting& entry : round->group) {
    if (entry.planned()) ++entry.attempts();
  }
  // Let go of the snapshot; the commit may take long.
  round->reader.reset();
  const auto turn = std::make_shared<Turn>(false);
  auto decided = [self = shared_from_this(), round, turn](const store::CommitResult& result) {
    EndMaking(result, std::move(round->room));
    if (result.status.ok() && !result.committed) return self->EndLost(*round, result.refused);
    self->Continue(round, *turn, [self, round, result] {
      const std::optional<ErrorReason> reason = ReasonOf(result.status);
      // Damage too is met in the records of one of them.
      if (reason == ErrorReason::kLayoutLimit || reason == ErrorReason::kRecordCorrupt) {
        for (Waiting& entry : round->group) {
          if (entry.planned()) --entry.attempts();
        }
        self->EndUnfit(*round, result.status);
      } else if (!result.status.ok()) {
        self->EndFailed(*round, result.status);
      } else if (!self->capabilities_.atomic_batches &&
                 !self->CollectionUnchanged(*round->documents.front().collection)) {
        self->EndFailed(*round, OutcomeUnknown());
      } else {
        self->EndCommitted(*round, result.position);
      }
    });
  };
  store_.Commit(std::move(batch), std::move(decided));
  return turn->exchange(true);
}

// Makes the collection that the document needs; then the round is decided anew. As EndRound.
bool WritePath::PrepareCollection(const RoundPtr& round, size_t document) {
  round->reader.reset();
  const auto turn = std::make_shared<Turn>(false);
  auto prepared = [self = shared_from_this(), round, turn,
                   document](const absl::StatusOr<CollectionPtr>& collection) {
    self->Continue(round, *turn, [self, round, document, status = collection.status()] {
      if (status.ok()) return self->PutBack(*round);
      round->unfit_document = document;
      if (ReasonOf(status) != ErrorReason::kDeadlineExceeded) {
        return self->EndUnfit(*round, status);
      }
      // As of a commit: those who still have time go on.
      for (Waiting& entry : round->group) {
        if (entry.planned()) ++entry.attempts();
      }
      self->EndFailed(*round, status);
    });
  };
  const StrategyEntry* const made_with =
      options_.create_collections ? options_.default_strategy : nullptr;
  collections_->PrepareForWrite(round->queues[document]->name().collection, made_with,
                                round->deadline, std::move(prepared));
  return turn->exchange(true);
}

// Takes room and numbers for the collections that the round's own commit makes. As EndRound.
bool WritePath::DrawCollections(const RoundPtr& round) {
  round->room = std::make_shared<CollectionRoom>(collections_->count());
  std::set<std::string_view> names;
  for (size_t i = 0; i < round->documents.size(); ++i) {
    const RoundDocument& document = round->documents[i];
    if (document.planned.empty() || document.collection) continue;
    const std::string& name = round->queues[i]->name().collection;
    if (!names.insert(name).second) continue;
    const absl::Status taken = round->room->Take(name);
    if (taken.ok()) continue;
    round->unfit_document = i;
    round->room.reset();
    EndUnfit(*round, taken);
    return true;
  }
  struct Drawing {
    Turn turn = false;
    absl::StatusOr<Collections::Allocated> drawn;
  };
  const auto drawing = std::make_shared<Drawing>();
  collections_->AllocateIncarnations(
      static_cast<int64_t>(names.size()),
      [self = shared_from_this(), round, drawing](absl::StatusOr<Collections::Allocated> drawn) {
        // As Continue does, and where reads block: all other commits wait for this thread.
        if (self->capabilities_.blocking_reads || self->IsMuchWork(*round)) {
          self->executor_.Schedule([self, round, drawn = std::move(drawn)] {
            if (self->EndDrawing(round, drawn)) self->Run(round->queues, Effort::kBrief);
          });
          return;
        }
        drawing->drawn = std::move(drawn);
        if (!drawing->turn.exchange(true)) return;
        if (self->EndDrawing(round, drawing->drawn)) self->RunOn(round->queues, Effort::kBrief);
      });
  return drawing->turn.exchange(true) && EndDrawing(round, drawing->drawn);
}

// Commits what the round planned, with the collections that it makes. As EndRound.
bool WritePath::EndDrawing(const RoundPtr& round,
                           const absl::StatusOr<Collections::Allocated>& drawn) {
  absl::Status failure = drawn.status();
  std::map<std::string_view, CollectionPtr> made;
  for (size_t i = 0; failure.ok() && i < round->documents.size(); ++i) {
    RoundDocument& document = round->documents[i];
    if (document.planned.empty() || document.collection) continue;
    const DocumentName& name = round->queues[i]->name();
    const auto [place, first] = made.try_emplace(name.collection);
    if (first) {
      absl::StatusOr<CollectionPtr> next =
          Collections::Draft(*round->reader, name.collection, *options_.default_strategy,
                             drawn->first + static_cast<int64_t>(made.size()) - 1,
                             document.planned.front().header.commit_time);
      failure = next.status();
      if (!failure.ok()) break;
      place->second = *std::move(next);
    }
    document.collection = place->second;
    document.key = {document.collection->incarnation, name.id};
  }
  if (failure.ok()) return CommitPlan(round);
  round->room.reset();
  EndUnfit(*round, failure);
  return true;
}

// Ends a round whose commit is decided, by `end`, and runs its write queues on: here, or on the
// executor where that is much work, since the commits of all other documents wait for this thread.
// (Here, whichever of Commit's return and its callback comes second goes on: engines may call back
// at once, and recursion would be as deep as the write queue is long.)
template <typename End>
void WritePath::Continue(const RoundPtr& round, Turn& turn, End end) {
  if (IsMuchWork(*round)) {
    executor_.Schedule([self = shared_from_this(), round, end = std::move(end)] {
      end();
      self->Run(round->queues, Effort::kBrief);
    });
    return;  // the caller, seeing itself first, leaves the write queues to the executor
  }
  end();
  if (turn.exchange(true)) RunOn(round->queues, Effort::kBrief);
}

// Whether answering the round and deciding the next one goes through much content.
bool WritePath::IsMuchWork(const Round& round) const {
  const auto writes_max = static_cast<size_t>(options_.group_versions_max);
  size_t bytes = round.planned_bytes;
  for (size_t i = 0; i < round.documents.size(); ++i) {
    const RoundDocument& document = round.documents[i];
    const StoredVersion* const current = document.current();
    const size_t content_bytes = current && current->content ? current->content->size() : 0;
    bytes += document.head ? document.head->record.size() : 0;
    if (bytes + content_bytes * writes_max > options_.direct_bytes_max) {
      bytes += content_bytes * std::min(round.queues[i]->size(), writes_max);
    }
    if (bytes > options_.direct_bytes_max) return true;
  }
  return false;
}

// All answers of the round hold.
void WritePath::EndCommitted(Round& round, store::CommitPosition position) {
  round.Answer([&](Waiting& entry) {
    if (entry.unit) {
      if (entry.unit->answer->ok()) AnswerAt(round, *entry.unit, position);
    } else if (entry.write->answer->ok()) {
      AnswerAt(round, *entry.write, entry.write->attempts, position);
    }
    return true;
  });
  PutBack(round);
}

// One of those who planned asks for what cannot be had; alone, each finds out for itself. Nothing
// was tried.
void WritePath::EndUnfit(Round& round, const absl::Status& failure) {
  const auto planned = std::count_if(round.group.begin(), round.group.end(),
                                     [](const Waiting& entry) { return entry.planned(); });
  if (planned <= 1) return EndFailed(round, failure);
  for (const WriteQueuePtr& queue : round.queues) queue->LimitNextTake(1);
  PutBack(round);
}

// Another was faster: everything is decided anew, on what that left, after a moment.
void WritePath::EndLost(Round& round, std::optional<size_t> refused) {
  const Culprit culprit = FindCulprit(round, refused);
  // Of many that make one collection at once a single one does it, and nobody wrote the documents
  // of the others.
  const bool counts = !culprit.of_collections || !WritesCollections(round);
  int attempts = 0;
  for (Waiting& entry : round.group) {
    if (!entry.planned()) continue;
    if (!culprit.Is(entry) || !counts) {
      --entry.attempts();
      continue;
    }
    NoteLoss(round, culprit, entry);
    attempts = std::max(attempts, entry.attempts());
  }
  // One that loses again and again is not to take the others with it.
  if (attempts >= 2 && round.documents.size() > 1) {
    for (const WriteQueuePtr& queue : round.queues) queue->LimitNextTake(1);
  }
  PutBack(round);
  // The executor runs the write queues on, so the caller of Commit, seeing itself first, does not.
  executor_.Schedule(Backoff(attempts), [self = shared_from_this(), queues = round.queues] {
    self->Run(queues, Effort::kBrief);
  });
}

// What was planned is not stored, or nobody knows: only who planned it hears of it. What else was
// decided, was decided on versions that never were, or after them, and is decided anew.
void WritePath::EndFailed(Round& round, const absl::Status& failure) {
  const bool expired = ReasonOf(failure) == ErrorReason::kDeadlineExceeded;
  // A full disk may still take the removals, without the others.
  const bool parted = ReasonOf(failure) == ErrorReason::kDiskFull &&
                      std::any_of(round.group.begin(), round.group.end(),
                                  [](const Waiting& e) { return e.planned() && !e.removal(); });
  // Or it is that of a plan that joins.
  const bool nobodys =
      expired && std::none_of(round.group.begin(), round.group.end(), [&](const Waiting& entry) {
        return entry.planned() && entry.deadline() <= round.deadline;
      });
  for (Waiting& entry : round.group) {
    const bool planned = entry.planned();
    entry.Forget();
    if (!planned) continue;
    if (!expired && !(parted && entry.removal())) {
      if (round.unfit_document) {
        RefuseFor(*round.unfit_document, entry, failure);
      } else {
        entry.Refuse(failure);
      }
      continue;
    }
    // Nobody took part in a race. Those who still have time go on without those who have not.
    --entry.attempts();
    if (expired && (nobodys || entry.deadline() <= round.deadline)) {
      entry.Refuse(DeadlineExceeded(entry.attempts()));
    }
  }
  round.Answer([](const Waiting&) { return true; });
  // Without newcomers, who might be as short of time, or no removals.
  if ((expired || parted) && !round.group.empty()) {
    for (const WriteQueuePtr& queue : round.queues) queue->LimitNextTake(round.group.size());
  }
  PutBack(round);
}

void WritePath::TakeSlot(SlotRequest request, SlotCallback done) {
  auto slot = std::make_shared<SlotRequest>(std::move(request));
  if (!capabilities_.blocking_reads || std::exchange(slot->at_length, false)) {
    return FillSlot(slot, std::move(done));
  }
  executor_.Schedule([self = shared_from_this(), slot, done = std::move(done)]() mutable {
    self->FillSlot(slot, std::move(done));
  });
}

void WritePath::FillSlot(const std::shared_ptr<SlotRequest>& slot, SlotCallback done) {
  Round round;
  const absl::StatusOr<bool> is_next = decider_->DecideSlot(round, *slot);
  if (!is_next.ok() || !*is_next) return done(is_next);
  const CollectionPtr collection = round.documents.front().collection;
  if (!collection->used) {
    round.reader.reset();
    return collections_->PrepareForWrite(
        slot->name.collection, nullptr, /*deadline=*/std::nullopt,
        [self = shared_from_this(), slot,
         done = std::move(done)](const absl::StatusOr<CollectionPtr>& prepared) mutable {
          if (!prepared.ok()) return done(prepared.status());
          slot->brief = true;  // others may wait for this thread
          self->TakeSlot(std::move(*slot), std::move(done));
        });
  }
  absl::StatusOr<store::WriteBatch> batch = PlanCommit(round, capabilities_);
  if (!batch.ok()) {
    if (decider_->WasReadTooLate(round, batch.status())) return done(false);
    return done(batch.status());
  }
  // A transaction that is begun is ended, whoever asked for it.
  batch->MarkAsBackground();
  // What is taken back lets others go on: a full disk takes that.
  if (slot->mark != VersionMark::kApplied) batch->MarkAsRemoval();
  round.reader.reset();
  store_.Commit(*std::move(batch), [self = shared_from_this(), collection,
                                    done = std::move(done)](const store::CommitResult& result) {
    if (!result.status.ok()) return done(result.status);
    // Into a collection that is gone nothing was written that anybody will find.
    done(result.committed &&
         (self->capabilities_.atomic_batches || self->CollectionUnchanged(*collection)));
  });
}

// Whether the collection that a commit went into is still there. Atomic engines checked it in the
// batch.
bool WritePath::CollectionUnchanged(const Collection& planned) {
  const absl::StatusOr<CollectionPtr> now = collections_->Find(store_, planned.name);
  return now.ok() && *now && (*now)->incarnation == planned.incarnation;
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
