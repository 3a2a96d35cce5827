#include "schemas/transaction/two_phase_commit.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "schemas/base/doors.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/store/guarded_commit.h"
#include "schemas/transaction/attempt.h"
#include "schemas/transaction/evaluation.h"
#include "schemas/transaction/transaction_errors.h"
#include "schemas/versioning/read_limits.h"

namespace strata::transaction {
namespace {

using versioning::Participant;
using versioning::WriteResult;

// Before a transaction that lost a slot begins again.
constexpr std::chrono::microseconds kBackoffFirst{500};
constexpr std::chrono::microseconds kBackoffMax{50'000};

absl::Status Cancelled(const std::string& id, const std::string& cause) {
  return Error(ErrorReason::kTransactionCancelled, "the transaction was cancelled: " + cause)
      .With("transaction_id", id)
      .With("cause", cause);
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

// One Commit in two phases: a transaction, and where that lost a slot another one.
//
// What the request has of its caller (admit_content, the waiter) lives until the call is answered,
// which may be at any moment: it is asked under the mutex, while that is not so.
class TwoPhaseCommit : public std::enable_shared_from_this<TwoPhaseCommit> {
 public:
  TwoPhaseCommit(const Environment& environment, std::string id, CommitRequest request,
                 std::string fingerprint, CommitCallback done)
      : environment_(environment),
        two_phase_(environment.two_phase),
        request_(std::move(request)),
        fingerprint_(std::move(fingerprint)),
        attempt_{std::move(id), 1},
        done_(std::move(done)) {}

  void Start() {
    if (request_.deadline != std::chrono::steady_clock::time_point::max()) {
      const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
          request_.deadline - environment_.clock.SteadyNow());
      environment_.executor.Schedule(left, [call = weak_from_this()] {
        if (const auto self = call.lock()) self->Expire();
      });
    }
    RunLater(std::chrono::microseconds(0));
  }

 private:
  // Nothing waits for a call's thread on the executor, and no stack is as deep as a call has steps.
  void RunLater(std::chrono::microseconds delay) {
    environment_.executor.Schedule(delay, [self = shared_from_this()] { self->Run(); });
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
      return versioning::ReadTransaction(environment_.store, attempt_.id());
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
    absl::StatusOr<Evaluation> evaluation = transaction::Evaluate(
        environment_.store, environment_.documents, environment_.clock, request_.writes,
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
    record.create_time = record.last_modified = environment_.clock.Now();
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
    two_phase_->Begin(attempt_.id(), std::move(record), request_.deadline,
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
    return store::RetriesExhausted("the documents of transaction " + attempt_.id(),
                                   request_.max_attempts);
  }

  std::chrono::microseconds Backoff() {
    auto ceiling = kBackoffFirst;
    for (int i = 2; i < attempt_.number && ceiling < kBackoffMax; ++i) ceiling *= 2;
    return environment_.Jittered(std::min(ceiling, kBackoffMax));
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
    const auto reader = environment_.store.Snapshot();
    versioning::ReadLimits limits;
    if (brief) {
      limits.document_bytes_max = environment_.documents.write_options().brief_document_bytes_max;
      limits.rebuilt_bytes_max = versioning::kBriefRebuiltBytesMax;
    }
    const versioning::ReadContext context{*reader, environment_.store.capabilities(), &limits};
    std::vector<WriteResult> results;
    for (const Operation& write : request_.writes) {
      const Participant* const participant = FindParticipant(record, write);
      if (participant == nullptr) continue;
      ASSIGN_OR_RETURN(WriteResult result,
                       ReadResult(context, environment_.documents, *participant));
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

  bool IsTooLate() const { return request_.deadline <= environment_.clock.SteadyNow(); }

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

  const Environment environment_;
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

}  // namespace

void CommitInTwoPhases(const Environment& environment, std::string id, CommitRequest request,
                       std::string fingerprint, CommitCallback done) {
  std::make_shared<TwoPhaseCommit>(environment, std::move(id), std::move(request),
                                   std::move(fingerprint), std::move(done))
      ->Start();
}

}  // namespace strata::transaction
