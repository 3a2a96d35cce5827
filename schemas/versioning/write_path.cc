#include "schemas/versioning/write_path.h"

#include <algorithm>
#include <atomic>
#include <list>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/record_codec.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

absl::Status DeadlineExceeded(int attempts) {
  return Error(ErrorReason::kDeadlineExceeded,
               "deadline exceeded after " + std::to_string(attempts) + " attempts")
      .With("attempts", int64_t{attempts});
}

absl::Status VersionConflict(const DocumentName& name, std::string_view expected, int64_t actual) {
  return Error(ErrorReason::kVersionConflict,
               "version is " + std::to_string(actual) + ", not " + std::string(expected))
      .With("collection", name.collection)
      .With("id", name.id)
      .With("expected", expected)
      .With("actual", actual);
}

absl::Status FilterNotMatched(const DocumentName& name, const StoredVersion* current) {
  std::string message = "there is no document for the filter to match";
  if (current != nullptr) {
    message = "version " + std::to_string(current->header.version) +
              (current->deleted() ? " is a deletion, which no filter matches"
                                  : " does not match the precondition's filter");
  }
  return Error(ErrorReason::kFilterNotMatched, message)
      .With("collection", name.collection)
      .With("id", name.id)
      .With("actual", current != nullptr ? current->header.version : 0);
}

absl::Status OutcomeUnknown() {
  return Error(ErrorReason::kOutcomeUnknown,
               "the write may or may not be stored; repeat it with the same request_id");
}

}  // namespace

// One write that waits for its answer.
struct WritePath::Pending {
  WriteRequest request;
  Mutator mutate;
  WriteCallback done;
  int attempts = 0;  // commits tried
  int64_t lost_against =
      -1;  // head version that the last lost commit was planned on; -1: none lost

  // Of the current round; no answer: left for the next one.
  std::optional<absl::StatusOr<WriteResult>> answer;
  // Index into Round::planned of the version that this request makes, itself or as the repetition
  // of a request before it: the answer holds once that is committed, and fails with it.
  std::optional<size_t> planned;
};

struct WritePath::Line {
  DocumentName name;
  Shard* shard = nullptr;
  // Guarded by the shard's mutex:
  std::list<std::unique_ptr<Pending>> waiting;
  // Of the thread that runs the line; there is one at a time:
  std::optional<size_t> next_round_max;  // the next round takes no more writes than that
};

// The writes of one document that are decided together, on one read of its head.
struct WritePath::Round {
  std::vector<std::unique_ptr<Pending>> group;  // that are not answered yet
  size_t versions_max = 1;

  std::unique_ptr<store::Reader> reader;
  CollectionPtr collection;  // null: there is none
  store::DocumentKey document;
  std::optional<Head> head;
  UnixMicros forgotten = 0;  // what requests did until then is not remembered
  std::vector<StoredVersion> planned;
  size_t planned_bytes = 0;
  // The earliest of those who planned: the versions come together or not at all.
  Deadline deadline = Deadline::max();

  const StoredVersion* current() const {
    if (!planned.empty()) return &planned.back();
    return head ? &head->version : nullptr;
  }
  int64_t head_version() const { return head ? head->version.header.version : 0; }

  // Answers, in their order, those who have an answer that holds; the others stay.
  template <typename Holds>
  void Answer(Holds holds) {
    size_t kept = 0;
    for (auto& pending : group) {
      if (pending->answer && holds(*pending)) {
        const std::unique_ptr<Pending> answered = std::move(pending);
        answered->done(*std::move(answered->answer));
      } else {
        std::swap(group[kept++], pending);
      }
    }
    group.resize(kept);
  }
};

struct WritePath::Shard {
  std::mutex mutex;
  // A line is here while somebody runs it.
  std::unordered_map<std::string, LinePtr> lines;
};

namespace {

std::string LineKey(const DocumentName& name) {
  std::string key;
  key.reserve(name.collection.size() + 1 + name.id.size());
  // Names hold no control characters, so the zero byte parts them.
  key.append(name.collection).append(1, '\0').append(name.id);
  return key;
}

}  // namespace

WritePath::WritePath(store::Store& store, std::shared_ptr<Collections> collections,
                     const Clock& clock, Entropy& entropy, Executor& executor, WriteOptions options)
    : store_(store),
      capabilities_(store.capabilities()),
      collections_(std::move(collections)),
      clock_(clock),
      age_clock_(clock),
      entropy_(entropy),
      executor_(executor),
      options_(options) {
  for (auto& shard : shards_) shard = std::make_unique<Shard>();
}

WritePath::~WritePath() = default;

void WritePath::Modify(WriteRequest request, Mutator mutator, WriteCallback done) {
  auto pending = std::make_unique<Pending>();
  pending->request = std::move(request);
  pending->mutate = std::move(mutator);
  pending->done = std::move(done);
  std::string key = LineKey(pending->request.name);
  Shard& shard = *shards_[std::hash<std::string>{}(key) % kShards];
  LinePtr line;
  {
    const std::lock_guard lock(shard.mutex);
    LinePtr& found = shard.lines[std::move(key)];
    if (found) {
      found->waiting.push_back(std::move(pending));
      return;
    }
    found = std::make_shared<Line>();
    found->name = pending->request.name;
    found->shard = &shard;
    found->waiting.push_back(std::move(pending));
    line = found;
  }
  RunOn(std::move(line));
}

// Runs the line from here on: on this thread, unless it would wait for reads.
void WritePath::RunOn(LinePtr line) {
  if (!capabilities_.blocking_reads) return Run(std::move(line));
  executor_.Schedule([self = shared_from_this(), line = std::move(line)]() mutable {
    self->Run(std::move(line));
  });
}

void WritePath::Run(LinePtr line) {
  while (true) {
    const std::shared_ptr<Round> round = TakeRound(*line);
    if (round == nullptr) return;
    if (const absl::Status prepared = Prepare(*round); !prepared.ok()) {
      for (auto& pending : round->group) pending->answer = prepared;
    } else {
      EvaluateAll(*round);
    }
    AnswerDecided(*round);
    if (!CommitPlanned(line, round)) return;  // whoever ends the round runs the line on
  }
}

// Takes the writes that wait; null, and the line is gone, if there are none.
std::shared_ptr<WritePath::Round> WritePath::TakeRound(Line& line) {
  const bool combining = options_.combining && capabilities_.atomic_batches;
  size_t versions_max = combining ? static_cast<size_t>(options_.group_versions_max) : 1;
  if (line.next_round_max) versions_max = std::min(versions_max, *line.next_round_max);
  line.next_round_max.reset();
  const std::lock_guard lock(line.shard->mutex);
  if (line.waiting.empty()) {
    line.shard->lines.erase(LineKey(line.name));
    return nullptr;
  }
  auto round = std::make_shared<Round>();
  round->versions_max = versions_max;
  const size_t count = std::min(line.waiting.size(), versions_max);
  for (size_t i = 0; i < count; ++i) {
    round->group.push_back(std::move(line.waiting.front()));
    line.waiting.pop_front();
  }
  return round;
}

// Puts what is not answered back to the front of the line, in its order, to be decided anew.
void WritePath::PutBack(Line& line, Round& round) {
  const std::lock_guard lock(line.shard->mutex);
  for (auto pending = round.group.rbegin(); pending != round.group.rend(); ++pending) {
    (*pending)->answer.reset();
    (*pending)->planned.reset();
    line.waiting.push_front(std::move(*pending));
  }
  round.group.clear();
}

absl::Status WritePath::Prepare(Round& round) {
  const DocumentName& name = round.group.front()->request.name;
  round.forgotten = age_clock_.Now() - kRequestIdLifetime;
  round.reader = store_.Snapshot();
  ASSIGN_OR_RETURN(round.collection, collections_->Find(*round.reader, name.collection));
  if (!round.collection) {
    if (!options_.create_collections) return CollectionNotFound(name.collection);
    return absl::OkStatus();
  }
  round.document = {round.collection->incarnation, name.id};
  ASSIGN_OR_RETURN(round.head, round.collection->strategy->ReadHead({*round.reader, capabilities_},
                                                                    round.document));
  return absl::OkStatus();
}

void WritePath::EvaluateAll(Round& round) {
  for (auto& pending : round.group) {
    if (round.planned.size() >= round.versions_max ||
        round.planned_bytes >= options_.group_bytes_max) {
      return;  // the rest is left for the next round
    }
    Evaluate(round, *pending);
  }
}

// Decides one write on the state that the writes before it leave.
void WritePath::Evaluate(Round& round, Pending& pending) {
  const WriteRequest& request = pending.request;
  if (request.deadline <= clock_.SteadyNow()) {
    pending.answer = DeadlineExceeded(pending.attempts);
    return;
  }
  // Before everything else: whatever stands in this request's way may be its own first attempt.
  if (Replay(round, pending)) return;
  if (absl::Status status = CheckPrecondition(round, pending); !status.ok()) {
    pending.answer = std::move(status);
    return;
  }
  if (pending.attempts >= request.max_attempts) {
    pending.answer = Error(ErrorReason::kRetriesExhausted,
                           "lost the race " + std::to_string(pending.attempts) + " times")
                         .With("attempts", int64_t{pending.attempts})
                         .ToStatus();
    return;
  }
  CurrentState current;
  current.version = round.current();
  current.read = [this, &round](int64_t version) -> absl::StatusOr<StoredVersion> {
    const int64_t head = round.head_version();
    if (version > head) return round.planned[static_cast<size_t>(version - head - 1)];
    return round.collection->strategy->ReadVersion({*round.reader, capabilities_}, round.document,
                                                   *round.head, version, Part::kContent);
  };
  absl::StatusOr<Mutation> mutation = pending.mutate(current);
  if (!mutation.ok()) {
    const bool no_collection =
        !round.collection && mutation.status().code() == absl::StatusCode::kNotFound;
    pending.answer =
        no_collection ? CollectionNotFound(request.name.collection) : mutation.status();
    return;
  }
  const bool same = current.live() && mutation->content &&
                    mutation->kind != VersionKind::kCreated && !request.keep_unchanged &&
                    document::SameMeaning(*current.version->content, *mutation->content);
  WriteResult result;
  result.name = request.name;
  result.changed = !same;
  if (same) {
    result.version = *current.version;
  } else {
    result.version = NextVersion(round, request, *std::move(mutation));
    if (!request.validate_only) {
      pending.planned = round.planned.size();
      round.planned_bytes += result.version.content ? result.version.content->size() : 0;
      round.planned.push_back(result.version);
      round.deadline = std::min(round.deadline, request.deadline);
    }
  }
  pending.answer = std::move(result);
}

// Answers a write that took effect before: as a version planned in this round, as the head, or as
// an older version.
bool WritePath::Replay(Round& round, Pending& pending) {
  const WriteRequest& request = pending.request;
  if (request.request_id.empty()) return false;
  // Asked for whether there is something to compare with or not: it is close to the time that the
  // version will carry.
  const auto answer = [&](const StoredVersion& version) {
    if (version.header.request_fingerprint != request.request_fingerprint) {
      pending.answer =
          Error(ErrorReason::kRequestIdReused,
                "request_id was used for another request, which wrote version " +
                    std::to_string(version.header.version) + "; give every change an id of its own")
              .With("field", "request_id")
              .With("version", version.header.version)
              .ToStatus();
      return true;
    }
    WriteResult result;
    result.name = request.name;
    result.version = version;
    result.attempts = pending.attempts;
    result.changed = true;
    result.replayed = true;
    result.position = version.position;
    pending.answer = std::move(result);
    return true;
  };
  for (size_t i = 0; i < round.planned.size(); ++i) {
    const VersionHeader& header = round.planned[i].header;
    if (header.request_id != request.request_id) continue;
    const bool repeated = header.request_fingerprint == request.request_fingerprint;
    if (repeated && !request.validate_only) pending.planned = i;
    return answer(round.planned[i]);
  }
  if (!round.head) return false;
  const VersionHeader& head = round.head->version.header;
  if (head.request_id == request.request_id && head.commit_time > round.forgotten) {
    return answer(round.head->version);
  }
  const auto fail = [&](absl::Status status) {
    pending.answer = std::move(status);
    return true;
  };
  const auto record =
      round.reader->Get(Keyspace::kRequests, store::RequestKey(round.document, request.request_id));
  if (!record.ok()) return fail(record.status());
  if (!*record) return false;
  const absl::StatusOr<int64_t> made = DecodeRequest((*record)->value);
  if (!made.ok()) return fail(made.status());
  const auto read = [&](Part part) {
    return round.collection->strategy->ReadVersion({*round.reader, capabilities_}, round.document,
                                                   *round.head, *made, part);
  };
  // The header alone first: what became of a content a day ago stands in nobody's way.
  const absl::StatusOr<StoredVersion> described = read(Part::kHeader);
  if (!described.ok()) return fail(described.status());
  if (described->header.request_id != request.request_id) {
    return fail(CorruptVersion(*made, "is named by the record of a request that did not make it"));
  }
  if (described->header.commit_time <= round.forgotten) return false;
  const absl::StatusOr<StoredVersion> version = read(Part::kContent);
  if (!version.ok()) return fail(version.status());
  return answer(*version);
}

absl::Status WritePath::CheckPrecondition(const Round& round, const Pending& pending) const {
  const WriteRequest& request = pending.request;
  const StoredVersion* const current = round.current();
  const int64_t actual = current != nullptr ? current->header.version : 0;
  const bool exists = current != nullptr && !current->deleted();
  if (request.precondition.version && *request.precondition.version != actual) {
    return VersionConflict(request.name, std::to_string(*request.precondition.version), actual);
  }
  if (request.precondition.exists && *request.precondition.exists != exists) {
    return VersionConflict(
        request.name, *request.precondition.exists ? "an existing one" : "a missing one", actual);
  }
  if (request.precondition.filter &&
      !(exists && request.precondition.filter->Matches(*current->content))) {
    return FilterNotMatched(request.name, current);
  }
  // A caller that named a state gets one try: it lost against whoever moved the head since.
  if (request.precondition.names_a_state() && pending.lost_against >= 0 &&
      pending.lost_against != actual) {
    return VersionConflict(request.name, std::to_string(pending.lost_against), actual);
  }
  return absl::OkStatus();
}

StoredVersion WritePath::NextVersion(const Round& round, const WriteRequest& request,
                                     Mutation mutation) {
  const StoredVersion* const current = round.current();
  StoredVersion next;
  next.content = std::move(mutation.content);
  VersionHeader& header = next.header;
  header.kind = mutation.kind;
  header.version = current != nullptr ? current->header.version + 1 : 1;
  header.commit_time = clock_.Now();
  // The wall clock may have been set back; the order of versions is the truth.
  if (current != nullptr)
    header.commit_time = std::max(header.commit_time, current->header.commit_time);
  const bool born = current == nullptr || current->deleted();
  header.create_time = born && mutation.kind != VersionKind::kDeleted ? header.commit_time
                                                                      : current->header.create_time;
  header.change = request.change;
  header.request_id = request.request_id;
  header.request_fingerprint = request.request_fingerprint;
  header.fingerprint_chained = !request.request_id.empty();
  header.salt = entropy_.Bytes(kSaltSize);
  header.content_hash = ContentHashOf(header.salt, next.content);
  header.chain_hash =
      ChainHash(current != nullptr ? current->header.chain_hash
                                   : ChainStart(request.name.collection, request.name.id),
                header);
  return next;
}

absl::StatusOr<store::WriteBatch> WritePath::PlanBatch(Round& round) {
  const Collection& collection = *round.collection;
  const Strategy& strategy = *collection.strategy;
  store::WriteBatch batch;
  batch.set_deadline(round.deadline);
  if (capabilities_.atomic_batches) {
    batch.Check(Keyspace::kCollections, collection.name, collection.stamp);
  }
  const auto remember = [&](const VersionHeader& header) {
    // A forgotten id may be used anew in this very batch, and a key is written once in it.
    if (header.request_id.empty() || header.commit_time <= round.forgotten) return;
    batch
        .Ensure(Keyspace::kRequests, store::RequestKey(round.document, header.request_id),
                EncodeRequest(header.version))
        .expire_time = header.commit_time + kRequestIdLifetime;
  };
  if (round.head) {
    RETURN_IF_ERROR(
        strategy.PrepareToPlan({*round.reader, capabilities_}, round.document, *round.head));
    remember(round.head->version.header);
  }
  for (size_t i = 0; i + 1 < round.planned.size(); ++i) remember(round.planned[i].header);
  RETURN_IF_ERROR(
      strategy.Plan(round.document, round.head ? &*round.head : nullptr, round.planned, batch));
  if (capabilities_.commit_positions) {
    for (const StoredVersion& version : round.planned) {
      batch.AppendToLedger(MakeLedgerEntry(collection.name, collection.incarnation,
                                           round.document.id, version.header));
    }
  }
  return batch;
}

// Gives the answers that hold already: those decided before the first version that is only planned.
void WritePath::AnswerDecided(Round& round) {
  bool durable = true;
  round.Answer([&](const Pending& pending) { return durable = durable && !pending.planned; });
}

// Commits what the round planned, if it planned anything. True if the round is over when this
// returns; false if it ends later, and the line is then run on.
bool WritePath::CommitPlanned(const LinePtr& line, const std::shared_ptr<Round>& round) {
  if (round->planned.empty()) {
    PutBack(*line, *round);
    return true;
  }
  if (!round->collection || !round->collection->used) return PrepareCollection(line, round);
  absl::StatusOr<store::WriteBatch> batch = PlanBatch(*round);
  if (batch.ok()) return Commit(line, round, *std::move(batch));
  if (round->planned.size() > 1) {
    // One of several versions does not fit; alone, each finds out for itself.
    line->next_round_max = 1;
    PutBack(*line, *round);
  } else {
    EndFailed(*line, *round, batch.status());
  }
  return true;
}

// True if the round is over when this returns; false if the commit's callback ends it.
bool WritePath::Commit(const LinePtr& line, const std::shared_ptr<Round>& round,
                       store::WriteBatch batch) {
  for (auto& pending : round->group) {
    if (pending->planned) ++pending->attempts;
  }
  // Let go of the snapshot; the commit may take long.
  round->reader.reset();
  const auto turn = std::make_shared<Turn>(false);
  auto decided = [self = shared_from_this(), line, round, turn](const store::CommitResult& result) {
    if (result.status.ok() && !result.committed) return self->EndLost(line, *round);
    self->Continue(line, round, *turn, [self, line, round, result] {
      if (!result.status.ok()) {
        self->EndFailed(*line, *round, result.status);
      } else if (!self->CollectionUnchanged(*round)) {
        self->EndFailed(*line, *round, OutcomeUnknown());
      } else {
        self->EndCommitted(*line, *round, result.position);
      }
    });
  };
  store_.Commit(std::move(batch), std::move(decided));
  return turn->exchange(true);
}

// Makes the collection that the round needs; then the round is decided anew. As Commit.
bool WritePath::PrepareCollection(const LinePtr& line, const std::shared_ptr<Round>& round) {
  round->reader.reset();
  const auto turn = std::make_shared<Turn>(false);
  auto prepared = [self = shared_from_this(), line, round,
                   turn](const absl::StatusOr<CollectionPtr>& collection) {
    self->Continue(line, round, *turn, [self, line, round, status = collection.status()] {
      if (status.ok()) return self->PutBack(*line, *round);
      self->EndFailed(*line, *round, status);
    });
  };
  const StrategyEntry* const made_with =
      options_.create_collections ? options_.default_strategy : nullptr;
  collections_->PrepareForWrite(line->name.collection, made_with, std::move(prepared));
  return turn->exchange(true);
}

// Ends a round whose commit is decided, by `end`, and runs the line on: here, or on the executor
// where that is much work, since the commits of all other documents wait for this thread. (Here,
// whichever of Commit's return and its callback comes second goes on: engines may call back at
// once, and recursion would be as deep as the line is long.)
template <typename End>
void WritePath::Continue(const LinePtr& line, const std::shared_ptr<Round>& round, Turn& turn,
                         End end) {
  if (IsMuchWork(*line, *round)) {
    executor_.Schedule([self = shared_from_this(), line, end = std::move(end)] {
      end();
      self->Run(line);
    });
    return;  // the caller, seeing itself first, leaves the line to the executor
  }
  end();
  if (turn.exchange(true)) RunOn(line);
}

// Whether answering the round and deciding the next one goes through much content.
bool WritePath::IsMuchWork(Line& line, const Round& round) const {
  const StoredVersion& current = *round.current();
  const size_t content_bytes = current.content ? current.content->size() : 0;
  const size_t once_bytes = round.planned_bytes + (round.head ? round.head->record.size() : 0);
  const auto writes_max = static_cast<size_t>(options_.group_versions_max);
  if (once_bytes + content_bytes * writes_max <= options_.direct_bytes_max) return false;
  size_t waiting = 0;
  {
    const std::lock_guard lock(line.shard->mutex);
    waiting = line.waiting.size();
  }
  return once_bytes + content_bytes * std::min(waiting, writes_max) > options_.direct_bytes_max;
}

// All answers of the round hold.
void WritePath::EndCommitted(Line& line, Round& round, store::CommitPosition position) {
  round.Answer([&](Pending& pending) {
    if (!pending.answer->ok()) return true;
    WriteResult& answer = **pending.answer;
    answer.attempts = pending.attempts;
    const bool stored = pending.planned || !answer.changed || answer.replayed;
    // A no-op and a repetition too may answer with a version that this commit made.
    if (stored && answer.version.header.version > round.head_version()) {
      answer.version.position = position;
    }
    if (stored && answer.changed) answer.position = answer.version.position;
    return true;
  });
  PutBack(line, round);
}

// Another was faster: everything is decided anew, on what that left, after a moment.
void WritePath::EndLost(const LinePtr& line, Round& round) {
  int attempts = 0;
  for (auto& pending : round.group) {
    if (!pending->planned) continue;
    pending->lost_against = round.head_version();
    attempts = std::max(attempts, pending->attempts);
  }
  PutBack(*line, round);
  // The executor runs the line on, so the caller of Commit, seeing itself first, does not.
  executor_.Schedule(Backoff(attempts), [self = shared_from_this(), line] { self->Run(line); });
}

// The planned versions are not stored, or nobody knows: only who would have made them hears of it.
// What else was decided, was decided on versions that never were, or after them, and is decided
// anew.
void WritePath::EndFailed(Line& line, Round& round, const absl::Status& failure) {
  const bool expired = ReasonOf(failure) == ErrorReason::kDeadlineExceeded;
  for (auto& pending : round.group) {
    pending->answer.reset();
    if (!pending->planned) continue;
    if (!expired) {
      pending->answer = failure;
      continue;
    }
    // Nobody took part in a race. Those who still have time go on without those who have not.
    --pending->attempts;
    if (pending->request.deadline <= round.deadline) {
      pending->answer = DeadlineExceeded(pending->attempts);
    }
  }
  round.Answer([](const Pending&) { return true; });
  // Without newcomers, who might be as short of time.
  if (expired && !round.group.empty()) line.next_round_max = round.group.size();
  PutBack(line, round);
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
