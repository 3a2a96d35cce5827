#include "schemas/transaction/transactions.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/escaping.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/transaction/attempt.h"
#include "schemas/transaction/commit_checks.h"
#include "schemas/transaction/doors.h"
#include "schemas/transaction/evaluation.h"
#include "schemas/transaction/moment.h"
#include "schemas/transaction/two_phase.h"
#include "schemas/versioning/read_limits.h"
#include "schemas/versioning/record_codec.h"

namespace strata::transaction {
namespace {

using store::Keyspace;
using versioning::Participant;
using versioning::WriteResult;

// How often the sweeper comes by at the least and at the most, and how long it leaves one alone
// that somebody has just touched.
constexpr std::chrono::microseconds kSweepIntervalMin = std::chrono::milliseconds(250);
constexpr std::chrono::microseconds kSweepIntervalMax = std::chrono::seconds(10);
constexpr std::chrono::microseconds kUntouched = std::chrono::seconds(10);
// Before a transaction that lost a slot begins again.
constexpr std::chrono::microseconds kBackoffFirst{500};
constexpr std::chrono::microseconds kBackoffMax{50'000};

absl::Status Cancelled(const std::string& id, const std::string& cause) {
  return Error(ErrorReason::kTransactionCancelled, "the transaction was cancelled: " + cause)
      .With("transaction_id", id)
      .With("cause", cause);
}

absl::Status Applied(const std::string& id) {
  return Error(ErrorReason::kTransactionApplied,
               "the transaction has taken effect; write the reverse anew")
      .With("transaction_id", id);
}

absl::Status Stopping() {
  return Error(ErrorReason::kStoreUnavailable, "the server stops").ToStatus();
}

absl::Status IdReused() {
  return Error(ErrorReason::kRequestIdReused,
               "request_id was used for another transaction; give every one an id of its own")
      .With("field", "request_id");
}

// The version that a participant was left with, as far as that is still there. REQUIRES: the
// context has limits.
absl::StatusOr<WriteResult> ReadResult(const versioning::ReadContext& context,
                                       versioning::Documents& documents,
                                       const Participant& participant) {
  WriteResult result;
  result.name = participant.name;
  result.changed = participant.changed;
  result.stale = participant.stale;
  result.note = participant.note;
  result.version.header.version = participant.version;
  ASSIGN_OR_RETURN(const versioning::CollectionPtr collection,
                   documents.collections().Find(context.reader, participant.name.collection));
  if (!collection || collection->incarnation != participant.incarnation) return result;
  const store::DocumentKey document{participant.incarnation, participant.name.id};
  ASSIGN_OR_RETURN(const std::optional<versioning::Head> head,
                   collection->strategy->ReadHead(context, document));
  if (!head || head->version.header.version < participant.version) return result;
  if (head->record.size() > context.limits->document_bytes_max) return versioning::TakesLong();
  if (head->version.header.version == participant.version) {
    result.version = head->version;
    return result;
  }
  ASSIGN_OR_RETURN(result.version,
                   collection->strategy->ReadVersion(context, document, *head, participant.version,
                                                     versioning::Part::kContent));
  return result;
}

}  // namespace

class Transactions::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(store::Store& store, versioning::Documents& documents, const Clock& clock, Entropy& entropy,
       Executor& executor, TransactionsOptions options)
      : store_(store),
        capabilities_(store.capabilities()),
        documents_(documents),
        clock_(clock),
        age_clock_(clock),
        entropy_(entropy),
        executor_(executor),
        options_(options),
        two_phase_(std::make_shared<TwoPhase>(
            store, documents, clock, executor,
            options.evaluations != nullptr ? *options.evaluations : executor, options.hold_after)) {
  }

  // Returns when nothing touches any more what it was made with, but for the executors.
  void Close() { two_phase_->doors().Close(); }

  void Commit(CommitRequest request, CommitCallback done);
  absl::StatusOr<ReadDocuments> Read(std::vector<versioning::DocumentName> names,
                                     const versioning::ReadLimits& limits) const {
    return ReadMoment(store_, documents_, std::move(names), limits);
  }
  absl::StatusOr<Transaction> Get(const std::string& id) const;
  absl::StatusOr<std::vector<Transaction>> List(const TransactionQuery& query, size_t most) const;
  void Cancel(const std::string& id, const versioning::ChangeInfo& change,
              TransactionCallback done);
  void Resume(const std::string& id, TransactionCallback done);
  void ScheduleSweep();

  const std::shared_ptr<TwoPhase>& two_phase() const { return two_phase_; }

 private:
  class TwoPhaseCall;

  // What the sweeper saw of an unfinished transaction: its record's stamp, and since when.
  struct Seen {
    store::Stamp stamp = 0;  // 0: there was no record
    std::chrono::steady_clock::time_point since;
    std::weak_ptr<void> driving = {};  // lives while the sweeper has it driven
  };

  void CommitAtOnce(CommitRequest request, std::string fingerprint, CommitCallback done);
  void Finish(const std::string& id, const std::optional<std::string>& cancel_cause,
              TransactionCallback done);
  void FinishLater(const std::string& id, const std::optional<std::string>& cancel_cause,
                   TransactionCallback done);
  void TakeNext(const Known& lost, const std::string& cancel_cause, TransactionCallback done);
  std::string MakeId() { return absl::BytesToHexString(entropy_.Bytes(16)); }
  std::chrono::microseconds Jittered(std::chrono::microseconds about);
  void Sweep();
  absl::Status SweepHints();
  void SweepOne(const std::string& id, Seen& seen);
  std::chrono::microseconds AgeOf(const TransactionRecord* record, Seen& seen) const;
  void ForgetHint(const std::string& id, const std::optional<TransactionRecord>& known);
  void KeepHint(const std::string& id);

  store::Store& store_;
  const store::Capabilities capabilities_;
  versioning::Documents& documents_;
  const Clock& clock_;
  const AgeClock age_clock_;
  Entropy& entropy_;
  Executor& executor_;
  const TransactionsOptions options_;
  const std::shared_ptr<TwoPhase> two_phase_;
  std::map<std::string, Seen> seen_;  // by id; the sweeper's own
};

// One Commit in two phases: a transaction, and where that lost a slot another one.
//
// What the request has of its caller (admit_content, the waiter) lives until the call is answered,
// which may be at any moment: it is asked under the mutex, while that is not so.
class Transactions::Impl::TwoPhaseCall : public std::enable_shared_from_this<TwoPhaseCall> {
 public:
  TwoPhaseCall(std::shared_ptr<Impl> impl, CommitRequest request, std::string fingerprint,
               CommitCallback done)
      : impl_(std::move(impl)),
        two_phase_(impl_->two_phase_),
        request_(std::move(request)),
        fingerprint_(std::move(fingerprint)),
        attempt_{request_.request_id.empty() ? impl_->MakeId() : request_.request_id, 1},
        done_(std::move(done)) {}

  void Start() {
    if (request_.deadline != std::chrono::steady_clock::time_point::max()) {
      const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
          request_.deadline - impl_->clock_.SteadyNow());
      impl_->executor_.Schedule(left, [call = weak_from_this()] {
        if (const auto self = call.lock()) self->Expire();
      });
    }
    RunLater(std::chrono::microseconds(0));
  }

 private:
  // Nothing waits for a call's thread on the executor, and no stack is as deep as a call has steps.
  void RunLater(std::chrono::microseconds delay) {
    impl_->executor_.Schedule(delay, [self = shared_from_this()] { self->Run(); });
  }

  // Does what takes long in the caller's turn, as long as there is a caller. OVERLOADED.
  absl::Status DoAtLength(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      if (done_ && request_.waiter != nullptr) return request_.waiter->Defer(std::move(work));
    }
    two_phase_->AtLengthAnywhere(std::move(work));
    return absl::OkStatus();
  }

  // The attempt that it is at, from what is known of it.
  void Run() {
    const Doors::Visit visit(two_phase_->doors());
    if (!visit.let_in()) return Fail(Stopping());
    if (answered()) return;
    if (IsTooLate()) return Expire();
    const absl::StatusOr<std::optional<TransactionRecord>> known = ReadKnown();
    if (!known.ok()) return Fail(known.status());
    if (*known) return Follow(**known);
    Evaluate(/*brief=*/true);
  }

  absl::StatusOr<std::optional<TransactionRecord>> ReadKnown() {
    // The engine counts it as there, and its clock is the one that counts.
    if (std::exchange(is_there_, false)) {
      return versioning::ReadTransaction(impl_->store_, attempt_.id());
    }
    if (request_.request_id.empty() && attempt_.number == 1) return std::nullopt;
    ASSIGN_OR_RETURN(std::optional<TransactionRecord> known, two_phase_->Read(attempt_.id()));
    if (known || attempt_.number > 1) return known;
    // The first attempt is forgotten before the last.
    ASSIGN_OR_RETURN(const std::optional<Attempt> later, two_phase_->FindLater(attempt_));
    if (!later) return std::nullopt;
    SetAttempt(*later);
    return two_phase_->Read(later->id());
  }

  // An earlier call with this id has begun it.
  void Follow(const TransactionRecord& known) {
    if (known.fingerprint != fingerprint_) return Answer(IdReused());
    replayed_ = true;
    SetBegun(attempt_.number);
    if (known.finished() || known.status == TransactionStatus::kApplied) {
      return End(Driven{known, absl::OkStatus()});
    }
    if (request_.validate_only) return AnswerUnknown();
    Drive();
  }

  void Evaluate(bool brief) {
    replayed_ = false;
    SetBegun(0);
    absl::StatusOr<Evaluation> evaluation =
        transaction::Evaluate(impl_->store_, impl_->documents_, impl_->clock_, request_.writes,
                              request_.reads, request_.change, {brief, StopsWhenOver()});
    if (versioning::DoesTakeLong(evaluation.status())) return EvaluateAtLength();
    if (!evaluation.ok() && IsOver()) return EndOver();
    if (!evaluation.ok()) return Answer(evaluation.status());
    if (!evaluation->undecided.empty()) return Settle(evaluation->undecided);
    absl::Status admitted = Admit(evaluation->results);
    if (!admitted.ok()) return Answer(std::move(admitted));
    if (request_.validate_only) return AnswerWith(std::move(evaluation->results), 0);
    if (attempt_.number > request_.max_attempts) return Answer(RetriesExhausted());
    Begin(std::move(evaluation->participants));
  }

  void EvaluateAtLength() {
    absl::Status taken = DoAtLength([self = shared_from_this()] {
      const Doors::Visit visit(self->two_phase_->doors());
      if (!visit.let_in()) return self->Fail(Stopping());
      if (self->IsOver()) return self->EndOver();
      self->Evaluate(/*brief=*/false);
    });
    if (!taken.ok()) Answer(std::move(taken));
  }

  void Settle(const std::string& other) {
    two_phase_->Settle(other, [self = shared_from_this()](const absl::Status& settled) {
      if (!settled.ok()) return self->Answer(settled);
      self->RunLater(std::chrono::microseconds(0));
    });
  }

  StopCheck StopsWhenOver() const {
    return [this] { return IsOver(); };
  }
  // Nobody waits for it, or nobody may go on with it.
  bool IsOver() const {
    return answered() || IsTooLate() || two_phase_->doors().closed() || IsGone();
  }
  bool IsGone() const {
    const std::lock_guard lock(mutex_);
    return done_ && request_.waiter != nullptr && request_.waiter->gone();
  }
  void EndOver() {
    if (two_phase_->doors().closed()) return Fail(Stopping());
    Expire();
  }

  absl::Status Admit(const std::vector<WriteResult>& results) {
    const std::lock_guard lock(mutex_);
    if (!done_) return StoppedError();
    if (!request_.admit_content) return absl::OkStatus();
    for (size_t i = 0; i < results.size(); ++i) {
      const std::optional<document::Content>& content = results[i].version.content;
      if (content) RETURN_IF_ERROR(request_.admit_content(i, *content));
    }
    return absl::OkStatus();
  }

  void Begin(std::vector<Participant> participants) {
    TransactionRecord record;
    record.mode = TransactionMode::kTwoPhase;
    record.create_time = record.last_modified = impl_->clock_.Now();
    record.change = request_.change;
    record.fingerprint = fingerprint_;
    for (Participant& participant : participants) {
      const bool only_read =
          std::any_of(request_.reads.begin(), request_.reads.end(), [&](const auto& read) {
            return read.name.collection == participant.name.collection &&
                   read.name.id == participant.name.id;
          });
      // What a read is to find; of a write nothing is known before it is pending.
      if (!only_read) participant = Participant{.name = std::move(participant.name)};
    }
    record.participants = std::move(participants);
    for (const Operation& operation : request_.writes) record.data.push_back(Encode(operation));
    {
      const std::lock_guard lock(mutex_);
      if (!done_) return;
      begun_ = attempt_.number;
    }
    two_phase_->Begin(attempt_.id(), std::move(record),
                      [self = shared_from_this()](const absl::StatusOr<bool>& begun) {
                        if (!begun.ok()) return self->EndUnbegun(begun.status());
                        if (*begun) return self->Drive();
                        self->SetBegun(0);
                        self->is_there_ = true;
                        const Doors::Visit visit(self->two_phase_->doors());
                        if (!visit.let_in()) return self->Fail(Stopping());
                        self->RunLater(self->Backoff());
                      });
  }

  // What is not written down never takes effect.
  void EndUnbegun(const absl::Status& refusal) {
    if (ReasonOf(refusal) == ErrorReason::kOutcomeUnknown) return AnswerUnknown();
    SetBegun(0);
    Answer(refusal);
  }

  void Drive() {
    two_phase_->Drive(
        attempt_.id(), Until::kDecided, std::nullopt,
        [self = shared_from_this()](const absl::StatusOr<Driven>& driven) {
          if (!driven.ok()) return self->AnswerUnknown();
          self->End(*driven);
        },
        // Without room for it the sweeper, or whoever meets it first, goes on with it.
        [self = shared_from_this()](const std::function<void()>& work) {
          if (!self->DoAtLength(work).ok()) self->AnswerUnknown();
        });
  }

  // The transaction is decided.
  void End(const Driven& driven) {
    const TransactionRecord& record = driven.record;
    if (record.status != TransactionStatus::kCancelled) return AnswerFrom(record, /*brief=*/true);
    if (!driven.refusal.ok()) return Answer(driven.refusal);
    if (!record.lost) return Answer(Cancelled(attempt_.id(), record.cause));
    if (ForbidsRetry()) return Answer(Lost(record));
    if (attempt_.number >= request_.max_attempts && !replayed_) return Answer(RetriesExhausted());
    // Of an earlier call's attempts there may be more.
    if (!replayed_) SetBegun(0);
    SetAttempt(attempt_.Next());
    RunLater(replayed_ ? std::chrono::microseconds(0) : Backoff());
  }

  // Whoever named a state of a document has it checked once: it has passed.
  bool ForbidsRetry() const {
    return !request_.reads.empty() ||
           std::any_of(request_.writes.begin(), request_.writes.end(),
                       [](const Operation& write) { return write.precondition.forbids_retry(); });
  }

  absl::Status Lost(const TransactionRecord& record) const {
    return Error(ErrorReason::kVersionConflict, "the transaction was cancelled: " + record.cause)
        .With("transaction_id", attempt_.id());
  }

  absl::Status RetriesExhausted() const {
    return Error(ErrorReason::kRetriesExhausted,
                 "lost the race " + std::to_string(request_.max_attempts) + " times")
        .With("attempts", int64_t{request_.max_attempts});
  }

  std::chrono::microseconds Backoff() {
    auto ceiling = kBackoffFirst;
    for (int i = 2; i < attempt_.number && ceiling < kBackoffMax; ++i) ceiling *= 2;
    return impl_->Jittered(std::min(ceiling, kBackoffMax));
  }

  // In the order of the writes, from what its documents were left with.
  void AnswerFrom(const TransactionRecord& record, bool brief) {
    absl::StatusOr<std::vector<WriteResult>> results = ReadResults(record, brief);
    if (versioning::DoesTakeLong(results.status())) return AnswerAtLength(record);
    if (!results.ok()) return AnswerUnknown();
    absl::Status admitted = Admit(*results);
    if (!admitted.ok() && replayed_) return Answer(std::move(admitted));
    if (!admitted.ok()) {
      // Others changed the documents since it was admitted, and it has taken effect.
      for (WriteResult& result : *results) result.version.content.reset();
    }
    AnswerWith(*std::move(results), record.effect_position());
  }

  // It has taken effect: without room for reading the contents, they are left out.
  void AnswerAtLength(const TransactionRecord& record) {
    const absl::Status taken = DoAtLength([self = shared_from_this(), record] {
      const Doors::Visit visit(self->two_phase_->doors());
      if (!visit.let_in()) return self->AnswerUnknown();
      self->AnswerFrom(record, /*brief=*/false);
    });
    if (taken.ok()) return;
    if (replayed_) return Answer(taken);
    std::vector<WriteResult> results;
    for (const Operation& write : request_.writes) {
      const Participant* const participant = FindParticipant(record, write);
      if (participant == nullptr) continue;
      WriteResult& result = results.emplace_back();
      result.name = participant->name;
      result.changed = participant->changed;
      result.stale = participant->stale;
      result.note = participant->note;
      result.version.header.version = participant->version;
      Complete(record, result);
    }
    AnswerWith(std::move(results), record.effect_position());
  }

  static const Participant* FindParticipant(const TransactionRecord& record,
                                            const Operation& write) {
    const auto found = std::find_if(record.participants.begin(), record.participants.end(),
                                    [&](const auto& candidate) {
                                      return candidate.name.collection == write.name.collection &&
                                             candidate.name.id == write.name.id;
                                    });
    return found != record.participants.end() ? &*found : nullptr;
  }

  void Complete(const TransactionRecord& record, WriteResult& result) const {
    result.attempts = attempt_.number;
    result.replayed = replayed_;
    result.position = record.effect_position();
  }

  absl::StatusOr<std::vector<WriteResult>> ReadResults(const TransactionRecord& record,
                                                       bool brief) const {
    const auto reader = impl_->store_.Snapshot();
    versioning::ReadLimits limits;
    if (brief) {
      limits.document_bytes_max = impl_->documents_.write_options().brief_document_bytes_max;
      limits.rebuilt_bytes_max = versioning::kBriefRebuiltBytesMax;
    }
    const versioning::ReadContext context{*reader, impl_->capabilities_, &limits};
    std::vector<WriteResult> results;
    for (const Operation& write : request_.writes) {
      const Participant* const participant = FindParticipant(record, write);
      if (participant == nullptr) continue;
      ASSIGN_OR_RETURN(WriteResult result, ReadResult(context, impl_->documents_, *participant));
      Complete(record, result);
      results.push_back(std::move(result));
    }
    return results;
  }

  void AnswerWith(std::vector<WriteResult> results, store::CommitPosition position) {
    Committed committed;
    committed.transaction_id = attempt_.id();
    committed.results = std::move(results);
    committed.position = position;
    committed.attempts = request_.validate_only ? 0 : attempt_.number;
    committed.replayed = replayed_;
    Answer(std::move(committed));
  }

  bool IsTooLate() const { return request_.deadline <= impl_->clock_.SteadyNow(); }

  // Nobody waits any longer.
  void Expire() {
    int attempts = 0;
    {
      const std::lock_guard lock(mutex_);
      attempts = attempt_.number - 1;
    }
    Fail(Error(ErrorReason::kDeadlineExceeded,
               "deadline exceeded after " + std::to_string(attempts) + " attempts")
             .With("attempts", int64_t{attempts}));
  }

  void AnswerUnknown() { Fail(absl::OkStatus()); }

  // What has begun goes on; else the failure is the answer.
  void Fail(absl::Status failure) {
    CommitCallback done;
    {
      const std::lock_guard lock(mutex_);
      if (failure.ok() || begun_ > 0) failure = OutcomeUnknown();
      done = TakeDone();
    }
    if (done) done(std::move(failure));
  }

  // REQUIRES: the mutex is held.
  absl::Status OutcomeUnknown() const {
    const Attempt begun{attempt_.first_id, begun_ > 0 ? begun_ : attempt_.number};
    return Error(ErrorReason::kOutcomeUnknown,
                 "the transaction goes on and may take effect; ask for it, or repeat the call "
                 "with the same request_id")
        .With("transaction_id", begun.id());
  }

  void Answer(absl::StatusOr<Committed> answer) {
    CommitCallback done;
    {
      const std::lock_guard lock(mutex_);
      done = TakeDone();
    }
    if (done) done(std::move(answer));
  }

  // REQUIRES: the mutex is held.
  CommitCallback TakeDone() {
    is_answered_ = true;
    return std::exchange(done_, nullptr);
  }

  bool answered() const { return is_answered_.load(std::memory_order_relaxed); }

  void SetBegun(int number) {
    const std::lock_guard lock(mutex_);
    begun_ = number;
  }
  void SetAttempt(Attempt attempt) {
    const std::lock_guard lock(mutex_);
    attempt_ = std::move(attempt);
  }

  const std::shared_ptr<Impl> impl_;
  const std::shared_ptr<TwoPhase> two_phase_;
  const CommitRequest request_;
  const std::string fingerprint_;
  bool replayed_ = false;
  bool is_there_ = false;  // another has begun this attempt

  mutable std::mutex mutex_;  // guards what follows; only the call's own steps change the attempt
  Attempt attempt_;
  int begun_ = 0;        // the number of the attempt that may take effect; 0: none may
  CommitCallback done_;  // null: answered
  std::atomic<bool> is_answered_ = false;
};

void Transactions::Impl::Commit(CommitRequest request, CommitCallback done) {
  const TransactionMode mode = request.mode.value_or(
      capabilities_.atomic_batches ? TransactionMode::kOneCommit : TransactionMode::kTwoPhase);
  absl::Status valid = CheckCommit(request, mode);
  if (!valid.ok()) return done(std::move(valid));
  // A unit without an id is not remembered, so nothing is ever compared with it.
  const bool remembered = mode == TransactionMode::kTwoPhase || !request.request_id.empty();
  std::string fingerprint = remembered ? FingerprintOf(request) : "";
  if (mode == TransactionMode::kOneCommit) {
    return CommitAtOnce(std::move(request), std::move(fingerprint), std::move(done));
  }
  std::make_shared<TwoPhaseCall>(shared_from_this(), std::move(request), std::move(fingerprint),
                                 std::move(done))
      ->Start();
}

void Transactions::Impl::CommitAtOnce(CommitRequest request, std::string fingerprint,
                                      CommitCallback done) {
  versioning::UnitRequest unit;
  const bool remembered = !request.request_id.empty();
  unit.transaction_id = remembered ? std::move(request.request_id) : MakeId();
  if (remembered) unit.request_fingerprint = std::move(fingerprint);
  unit.reads = std::move(request.reads);
  unit.change = std::move(request.change);
  unit.max_attempts = request.max_attempts;
  unit.validate_only = request.validate_only;
  unit.deadline = request.deadline;
  unit.waiter = request.waiter;
  unit.brief = request.brief;
  unit.changes.reserve(request.writes.size());
  for (size_t i = 0; i < request.writes.size(); ++i) {
    versioning::Change change = ToChange(request.writes[i], documents_.limits());
    if (request.admit_content) {
      change.request.admit_content = [admit = request.admit_content,
                                      i](const document::Content& content) {
        return admit(i, content);
      };
    }
    unit.changes.push_back(std::move(change));
  }
  documents_.Commit(std::move(unit), [id = unit.transaction_id, done = std::move(done)](
                                         absl::StatusOr<versioning::UnitResult> result) {
    if (!result.ok()) return done(result.status());
    done(Committed{id, std::move(result->changes), result->position, result->attempts,
                   result->replayed});
  });
}

absl::StatusOr<Transaction> Transactions::Impl::Get(const std::string& id) const {
  ASSIGN_OR_RETURN(std::optional<Known> last, two_phase_->ReadLast(id));
  if (!last) return TransactionNotFound(id);
  return Transaction{last->attempt.id(), std::move(last->record)};
}

absl::StatusOr<std::vector<Transaction>> Transactions::Impl::List(const TransactionQuery& query,
                                                                  size_t most) const {
  const auto reader = store_.Snapshot();
  store::Range range = versioning::TransactionRange();
  if (!query.after_id.empty()) range.begin = versioning::TransactionKey(query.after_id) + '\0';
  std::vector<Transaction> page;
  const auto cursor = reader->Scan(Keyspace::kTransactions, range);
  for (; cursor->Valid() && page.size() < most; cursor->Next()) {
    if (Stopped(query.stopped)) return StoppedError();
    Transaction found;
    found.id = versioning::TransactionIdOf(cursor->key());
    ASSIGN_OR_RETURN(found.record, TransactionRecord::DecodeWithoutData(cursor->value()));
    found.record.stamp = cursor->stamp();
    found.record.position = cursor->position();
    if (query.status && found.record.status != *query.status) continue;
    if (two_phase_->HasExpired(found.record)) continue;
    page.push_back(std::move(found));
  }
  RETURN_IF_ERROR(cursor->status());
  return page;
}

void Transactions::Impl::Cancel(const std::string& id, const versioning::ChangeInfo& change,
                                TransactionCallback done) {
  if (absl::Status valid = versioning::ValidateChange(change); !valid.ok()) {
    return done(std::move(valid));
  }
  std::string cause = "asked for";
  if (!change.actor.empty()) cause += " by " + change.actor;
  if (!change.reason.empty()) cause += ": " + change.reason;
  Finish(id, cause, [done = std::move(done)](absl::StatusOr<Transaction> finished) {
    if (!finished.ok() || finished->record.status != TransactionStatus::kDone) {
      return done(std::move(finished));
    }
    done(Applied(finished->id));
  });
}

void Transactions::Impl::Resume(const std::string& id, TransactionCallback done) {
  Finish(id, std::nullopt, std::move(done));
}

// Brings the attempt to its end that decides. With a cause there is none after it.
void Transactions::Impl::Finish(const std::string& id,
                                const std::optional<std::string>& cancel_cause,
                                TransactionCallback done) {
  absl::StatusOr<std::optional<Known>> last = two_phase_->ReadLast(id);
  if (!last.ok()) return done(last.status());
  if (!*last) return done(TransactionNotFound(id));
  const Attempt& attempt = (*last)->attempt;
  if ((*last)->lost()) {
    if (cancel_cause) return TakeNext(**last, *cancel_cause, std::move(done));
    return done(Transaction{attempt.id(), std::move((*last)->record)});
  }
  two_phase_->Drive(attempt.id(), Until::kFinished, cancel_cause,
                    [self = shared_from_this(), attempt, cancel_cause,
                     done = std::move(done)](absl::StatusOr<Driven> driven) {
                      if (!driven.ok()) return done(driven.status());
                      Known ended{attempt, std::move(driven->record)};
                      if (ended.lost()) return self->FinishLater(attempt.id(), cancel_cause, done);
                      done(Transaction{attempt.id(), std::move(ended.record)});
                    });
}

void Transactions::Impl::FinishLater(const std::string& id,
                                     const std::optional<std::string>& cancel_cause,
                                     TransactionCallback done) {
  executor_.Schedule([self = shared_from_this(), id, cancel_cause, done = std::move(done)] {
    const Doors::Visit visit(self->two_phase_->doors());
    if (!visit.let_in()) return done(Stopping());
    self->Finish(id, cancel_cause, done);
  });
}

// Whoever asked for a transaction that lost its place may be about to begin again. The next attempt
// is as a slot: what stands there stays, and this one was never to be.
void Transactions::Impl::TakeNext(const Known& lost, const std::string& cancel_cause,
                                  TransactionCallback done) {
  TransactionRecord record = lost.record;
  record.create_time = record.last_modified = clock_.Now();
  record.lost = false;
  record.cause = cancel_cause;
  for (Participant& participant : record.participants) {
    participant = Participant{.name = std::move(participant.name)};
  }
  const std::string id = lost.attempt.Next().id();
  two_phase_->Begin(id, record,
                    [self = shared_from_this(), id, record, cancel_cause,
                     done = std::move(done)](const absl::StatusOr<bool>& begun) {
                      if (!begun.ok()) return done(begun.status());
                      if (!*begun) return self->FinishLater(id, cancel_cause, done);
                      done(Transaction{id, record});
                    });
}

// From nine tenths of that to eleven.
std::chrono::microseconds Transactions::Impl::Jittered(std::chrono::microseconds about) {
  const int64_t byte = static_cast<uint8_t>(entropy_.Bytes(1)[0]);
  return std::chrono::microseconds(about.count() * 9 / 10 + about.count() * byte / (5 * 255));
}

// Often enough for the timeout to be kept.
void Transactions::Impl::ScheduleSweep() {
  const std::chrono::microseconds interval = std::clamp<std::chrono::microseconds>(
      options_.timeout / 2, kSweepIntervalMin, kSweepIntervalMax);
  executor_.Schedule(Jittered(interval), [impl = weak_from_this()] {
    if (const auto self = impl.lock()) self->Sweep();
  });
}

void Transactions::Impl::Sweep() {
  const Doors::Visit visit(two_phase_->doors());
  if (!visit.let_in()) return;
  // What this one does not get to read, the next one does.
  SweepHints().IgnoreError();
  ScheduleSweep();
}

absl::Status Transactions::Impl::SweepHints() {
  std::map<std::string, Seen> unfinished;
  {
    const auto reader = store_.Snapshot();
    const auto cursor = reader->Scan(Keyspace::kTransactions, versioning::TransactionHintRange());
    for (; cursor->Valid(); cursor->Next()) {
      const std::string id(versioning::TransactionIdOf(cursor->key()));
      const auto seen = seen_.find(id);
      unfinished[id] = seen != seen_.end() ? seen->second : Seen{0, clock_.SteadyNow()};
    }
    RETURN_IF_ERROR(cursor->status());
  }
  seen_ = std::move(unfinished);
  for (auto& [id, seen] : seen_) SweepOne(id, seen);
  return absl::OkStatus();
}

void Transactions::Impl::SweepOne(const std::string& id, Seen& seen) {
  const absl::StatusOr<std::optional<TransactionRecord>> record =
      versioning::ReadTransaction(store_, id);
  if (!record.ok()) return;
  const std::chrono::microseconds age = AgeOf(*record ? &**record : nullptr, seen);
  // Without atomic batches, a crash may leave the hint of one that is over, or never began. The
  // latter may be about to.
  const bool over = *record && ((*record)->finished() || two_phase_->HasExpired(**record));
  if (over || (!*record && age >= kUntouched)) return ForgetHint(id, *record);
  if (!*record) return;
  const bool undecided = (*record)->status == TransactionStatus::kNew ||
                         (*record)->status == TransactionStatus::kPending;
  const bool too_old = undecided && age > options_.timeout;
  if (!too_old && (age < kUntouched || !seen.driving.expired())) return;
  std::optional<std::string> cause;
  if (too_old) {
    cause = "it was not decided for more than " + std::to_string(options_.timeout.count()) + " ms";
  }
  const auto driving = std::make_shared<char>();
  seen.driving = driving;
  two_phase_->Drive(id, Until::kFinished, std::move(cause),
                    [driving](const absl::StatusOr<Driven>&) {});
}

// How long nobody has touched it: by the wall clock, which may have been set back since, or for as
// long as this process sees it stand still.
std::chrono::microseconds Transactions::Impl::AgeOf(const TransactionRecord* record,
                                                    Seen& seen) const {
  const auto now = clock_.SteadyNow();
  const store::Stamp stamp = record != nullptr ? record->stamp : 0;
  if (std::exchange(seen.stamp, stamp) != stamp) seen.since = now;
  const auto seen_for = std::chrono::duration_cast<std::chrono::microseconds>(now - seen.since);
  if (record == nullptr) return seen_for;
  return std::max(seen_for, std::chrono::microseconds(age_clock_.Now() - record->last_modified));
}

// Unless a transaction has begun under that id since.
void Transactions::Impl::ForgetHint(const std::string& id,
                                    const std::optional<TransactionRecord>& known) {
  store::WriteBatch batch;
  std::string key = versioning::TransactionKey(id);
  if (capabilities_.atomic_batches && known && !two_phase_->HasExpired(*known)) {
    batch.Check(Keyspace::kTransactions, std::move(key), known->stamp);
  } else if (capabilities_.atomic_batches) {
    batch.CheckAbsent(Keyspace::kTransactions, std::move(key));
  }
  batch.Delete(Keyspace::kTransactions, versioning::TransactionHintKey(id));
  batch.MarkAsRemoval();
  store_.Commit(std::move(batch), [self = shared_from_this(), id](const store::CommitResult&) {
    if (!self->capabilities_.atomic_batches) self->KeepHint(id);
  });
}

// That of one which began while it was forgotten.
void Transactions::Impl::KeepHint(const std::string& id) {
  const Doors::Visit visit(two_phase_->doors());
  if (!visit.let_in()) return;
  const absl::StatusOr<std::optional<TransactionRecord>> record =
      versioning::ReadTransaction(store_, id);
  const bool is_over =
      record.ok() && (!*record || (*record)->finished() || two_phase_->HasExpired(**record));
  if (is_over) return;
  store::WriteBatch batch;
  batch.Ensure(Keyspace::kTransactions, versioning::TransactionHintKey(id),
               versioning::BsonBuilder().Take());
  store_.Commit(std::move(batch), [](const store::CommitResult&) {});
}

Transactions::Transactions(store::Store& store, versioning::Documents& documents,
                           const Clock& clock, Entropy& entropy, Executor& executor,
                           TransactionsOptions options)
    : impl_(std::make_shared<Impl>(store, documents, clock, entropy, executor, options)) {
  documents.SettleWith([two_phase = impl_->two_phase()](const std::string& id,
                                                        std::function<void(absl::Status)> done) {
    two_phase->Settle(id, std::move(done));
  });
}

Transactions::~Transactions() { impl_->Close(); }

void Transactions::Commit(CommitRequest request, CommitCallback done) {
  impl_->Commit(std::move(request), std::move(done));
}

absl::StatusOr<ReadDocuments> Transactions::Read(std::vector<versioning::DocumentName> names,
                                                 const versioning::ReadLimits& limits) const {
  return impl_->Read(std::move(names), limits);
}

absl::StatusOr<Transaction> Transactions::Get(const std::string& id) const {
  return impl_->Get(id);
}

absl::StatusOr<std::vector<Transaction>> Transactions::List(const TransactionQuery& query,
                                                            size_t most) const {
  return impl_->List(query, most);
}

void Transactions::Cancel(const std::string& id, versioning::ChangeInfo change,
                          TransactionCallback done) {
  impl_->Cancel(id, change, std::move(done));
}

void Transactions::Resume(const std::string& id, TransactionCallback done) {
  impl_->Resume(id, std::move(done));
}

void Transactions::StartSweeping() { impl_->ScheduleSweep(); }

}  // namespace strata::transaction
