#include "schemas/transaction/transactions.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "schemas/base/doors.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/transaction/attempt.h"
#include "schemas/transaction/commit_checks.h"
#include "schemas/transaction/environment.h"
#include "schemas/transaction/moment.h"
#include "schemas/transaction/sweeper.h"
#include "schemas/transaction/transaction_errors.h"
#include "schemas/transaction/two_phase.h"
#include "schemas/transaction/two_phase_commit.h"

namespace strata::transaction {
namespace {

using store::Keyspace;
using versioning::Participant;

absl::Status Applied(const std::string& id) {
  return Error(ErrorReason::kTransactionApplied,
               "the transaction has taken effect; write the reverse as a new change")
      .With("transaction_id", id);
}

}  // namespace

class Transactions::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(store::Store& store, versioning::Documents& documents, const Clock& clock, Entropy& entropy,
       Executor& executor, TransactionsOptions options)
      : store_(store),
        documents_(documents),
        clock_(clock),
        entropy_(entropy),
        executor_(executor),
        two_phase_(std::make_shared<TwoPhase>(
            store, documents, clock, executor,
            options.evaluations != nullptr ? *options.evaluations : executor, options.hold_after)),
        sweeper_(std::make_shared<Sweeper>(environment(), options.timeout)) {}

  // Returns when nothing touches any more what it was made with, but for the executors.
  void Close() { two_phase_->doors().Close(); }

  void Commit(CommitRequest request, CommitCallback done);
  absl::StatusOr<ReadDocuments> Read(std::vector<DocumentName> names,
                                     const versioning::ReadLimits& limits) const {
    return ReadMoment(store_, documents_, std::move(names), limits);
  }
  absl::StatusOr<Transaction> Get(const std::string& id) const;
  absl::StatusOr<std::vector<Transaction>> List(const TransactionQuery& query, size_t most) const;
  void Cancel(const std::string& id, const versioning::ChangeInfo& change, Deadline deadline,
              TransactionCallback done);
  void Resume(const std::string& id, TransactionCallback done);
  void StartSweeping() { sweeper_->Start(); }

  const std::shared_ptr<TwoPhase>& two_phase() const { return two_phase_; }

 private:
  Environment environment() const {
    return {store_, documents_, clock_, entropy_, executor_, two_phase_};
  }
  void CommitAtOnce(CommitRequest request, std::string fingerprint, CommitCallback done);
  void Finish(const std::string& id, const std::optional<Cancellation>& cancellation,
              TransactionCallback done);
  void FinishLater(const std::string& id, const std::optional<Cancellation>& cancellation,
                   TransactionCallback done);
  void TakeNext(const Known& lost, const Cancellation& cancellation, TransactionCallback done);
  std::string MakeId() { return absl::BytesToHexString(entropy_.Bytes(16)); }

  store::Store& store_;
  versioning::Documents& documents_;
  const Clock& clock_;
  Entropy& entropy_;
  Executor& executor_;
  const std::shared_ptr<TwoPhase> two_phase_;
  const std::shared_ptr<Sweeper> sweeper_;
};

void Transactions::Impl::Commit(CommitRequest request, CommitCallback done) {
  const TransactionMode mode =
      request.mode.value_or(store_.capabilities().atomic_batches ? TransactionMode::kOneCommit
                                                                 : TransactionMode::kTwoPhase);
  absl::Status valid = CheckCommit(request, mode);
  if (!valid.ok()) return done(std::move(valid));
  if (!request.request_id.empty()) request.request_id = IdOf(request.request_id, request.principal);
  // A unit without an id is not remembered, so nothing is ever compared with it.
  const bool remembered = mode == TransactionMode::kTwoPhase || !request.request_id.empty();
  std::string fingerprint = remembered ? FingerprintOf(request) : "";
  if (mode == TransactionMode::kOneCommit) {
    return CommitAtOnce(std::move(request), std::move(fingerprint), std::move(done));
  }
  std::string id = request.request_id.empty() ? MakeId() : request.request_id;
  CommitInTwoPhases(environment(), std::move(id), std::move(request), std::move(fingerprint),
                    std::move(done));
}

void Transactions::Impl::CommitAtOnce(CommitRequest request, std::string fingerprint,
                                      CommitCallback done) {
  versioning::UnitRequest unit;
  const bool remembered = !request.request_id.empty();
  unit.transaction_id =
      remembered ? std::move(request.request_id) : versioning::MakeForgottenId(entropy_);
  if (remembered) unit.request_fingerprint = std::move(fingerprint);
  unit.reads = std::move(request.reads);
  unit.joined = std::move(request.joined);
  unit.joined_answer = std::move(request.joined_answer);
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
  // Not in the call itself: which of its arguments is made first nobody says.
  std::string id = unit.transaction_id;
  documents_.Commit(std::move(unit), [id = std::move(id), done = std::move(done)](
                                         absl::StatusOr<versioning::UnitResult> result) {
    if (!result.ok()) return done(result.status());
    done(Committed{id, std::move(result->changes), std::move(result->joined_answer),
                   result->position, result->attempts, result->replayed});
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
  const bool by_hints = query.unfinished.has_value();
  store::Range range =
      by_hints ? versioning::TransactionHintRange() : versioning::TransactionRange();
  if (!query.after_id.empty()) {
    range.begin = by_hints ? versioning::TransactionHintKey(query.after_id)
                           : versioning::TransactionKey(query.after_id);
    range.begin += '\0';
  }
  std::vector<Transaction> page;
  const auto cursor = reader->Scan(Keyspace::kTransactions, range);
  for (; cursor->Valid() && page.size() < most; cursor->Next()) {
    if (Stopped(query.stopped)) return StoppedError();
    Transaction found;
    found.id = versioning::TransactionIdOf(cursor->key());
    store::Record record{std::string(cursor->value()), cursor->stamp(), cursor->position()};
    if (by_hints) {
      ASSIGN_OR_RETURN(std::optional<store::Record> hinted,
                       reader->Get(Keyspace::kTransactions, versioning::TransactionKey(found.id)));
      if (!hinted) continue;
      record = *std::move(hinted);
    }
    ASSIGN_OR_RETURN(found.record, TransactionRecord::DecodeWithoutData(record.value));
    found.record.stamp = record.stamp;
    found.record.position = record.position;
    if (by_hints && found.record.status != *query.unfinished) continue;
    if (two_phase_->HasExpired(found.record)) continue;
    page.push_back(std::move(found));
  }
  RETURN_IF_ERROR(cursor->status());
  return page;
}

void Transactions::Impl::Cancel(const std::string& id, const versioning::ChangeInfo& change,
                                Deadline deadline, TransactionCallback done) {
  if (absl::Status valid = versioning::ValidateChange(change); !valid.ok()) {
    return done(std::move(valid));
  }
  std::string cause = "asked for";
  if (!change.actor.empty()) cause += " by " + change.actor;
  if (!change.reason.empty()) cause += ": " + change.reason;
  Finish(id, Cancellation{cause, deadline},
         [done = std::move(done)](absl::StatusOr<Transaction> finished) {
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
                                const std::optional<Cancellation>& cancellation,
                                TransactionCallback done) {
  absl::StatusOr<std::optional<Known>> last = two_phase_->ReadLast(id);
  if (!last.ok()) return done(last.status());
  if (!*last) return done(TransactionNotFound(id));
  const Attempt& attempt = (*last)->attempt;
  if ((*last)->lost()) {
    if (cancellation) return TakeNext(**last, *cancellation, std::move(done));
    return done(Transaction{attempt.id(), std::move((*last)->record)});
  }
  two_phase_->Drive(attempt.id(), Until::kFinished, cancellation,
                    [self = shared_from_this(), attempt, cancellation,
                     done = std::move(done)](absl::StatusOr<Driven> driven) {
                      if (!driven.ok()) return done(driven.status());
                      Known ended{attempt, std::move(driven->record)};
                      if (ended.lost()) return self->FinishLater(attempt.id(), cancellation, done);
                      done(Transaction{attempt.id(), std::move(ended.record)});
                    });
}

void Transactions::Impl::FinishLater(const std::string& id,
                                     const std::optional<Cancellation>& cancellation,
                                     TransactionCallback done) {
  executor_.Schedule([self = shared_from_this(), id, cancellation, done = std::move(done)] {
    const Doors::Visit visit(self->two_phase_->doors());
    if (!visit.let_in()) return done(Stopping());
    self->Finish(id, cancellation, done);
  });
}

// Whoever asked for a transaction that lost its place may be about to begin again. The next attempt
// is as a slot: what stands there stays, and this one was never to be.
void Transactions::Impl::TakeNext(const Known& lost, const Cancellation& cancellation,
                                  TransactionCallback done) {
  TransactionRecord record = lost.record;
  record.create_time = record.last_modified = clock_.Now();
  record.lost = false;
  record.cause = cancellation.cause;
  for (Participant& participant : record.participants) {
    participant = Participant{.name = std::move(participant.name)};
  }
  const std::string id = lost.attempt.Next().id();
  two_phase_->Begin(id, record, cancellation.deadline,
                    [self = shared_from_this(), id, record, cancellation,
                     done = std::move(done)](const absl::StatusOr<bool>& begun) {
                      if (!begun.ok()) return done(begun.status());
                      if (!*begun) return self->FinishLater(id, cancellation, done);
                      done(Transaction{id, record});
                    });
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

absl::StatusOr<ReadDocuments> Transactions::Read(std::vector<DocumentName> names,
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

void Transactions::Cancel(const std::string& id, versioning::ChangeInfo change, Deadline deadline,
                          TransactionCallback done) {
  impl_->Cancel(id, change, deadline, std::move(done));
}

void Transactions::Resume(const std::string& id, TransactionCallback done) {
  impl_->Resume(id, std::move(done));
}

void Transactions::StartSweeping() { impl_->StartSweeping(); }

}  // namespace strata::transaction
