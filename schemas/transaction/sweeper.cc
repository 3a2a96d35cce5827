#include "schemas/transaction/sweeper.h"

#include <algorithm>
#include <utility>

#include "schemas/base/doors.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"

namespace strata::transaction {
namespace {

using store::Keyspace;

// How often it comes by at the least and at the most, and how long it leaves one alone that
// somebody has just touched.
constexpr std::chrono::microseconds kIntervalMin = std::chrono::milliseconds(250);
constexpr std::chrono::microseconds kIntervalMax = std::chrono::seconds(10);
constexpr std::chrono::microseconds kUntouched = std::chrono::seconds(10);

}  // namespace

Sweeper::Sweeper(const Environment& environment, std::chrono::milliseconds timeout)
    : environment_(environment),
      capabilities_(environment.store.capabilities()),
      age_clock_(environment.clock),
      timeout_(timeout) {}

// Often enough for the timeout to be kept.
void Sweeper::Schedule() {
  const std::chrono::microseconds interval =
      std::clamp<std::chrono::microseconds>(timeout_ / 2, kIntervalMin, kIntervalMax);
  environment_.executor.Schedule(environment_.Jittered(interval), [sweeper = weak_from_this()] {
    if (const auto self = sweeper.lock()) self->Sweep();
  });
}

void Sweeper::Sweep() {
  const Doors::Visit visit(environment_.two_phase->doors());
  if (!visit.let_in()) return;
  // What this one does not get to read, the next one does.
  SweepHints().IgnoreError();
  Schedule();
}

absl::Status Sweeper::SweepHints() {
  std::map<std::string, Seen> unfinished;
  {
    const auto reader = environment_.store.Snapshot();
    const auto cursor = reader->Scan(Keyspace::kTransactions, versioning::TransactionHintRange());
    for (; cursor->Valid(); cursor->Next()) {
      const std::string id(versioning::TransactionIdOf(cursor->key()));
      const auto seen = seen_.find(id);
      unfinished[id] = seen != seen_.end() ? seen->second : Seen{0, environment_.clock.SteadyNow()};
    }
    RETURN_IF_ERROR(cursor->status());
  }
  seen_ = std::move(unfinished);
  for (auto& [id, seen] : seen_) SweepOne(id, seen);
  return absl::OkStatus();
}

void Sweeper::SweepOne(const std::string& id, Seen& seen) {
  const absl::StatusOr<std::optional<TransactionRecord>> record =
      versioning::ReadTransaction(environment_.store, id);
  if (!record.ok()) return;
  const std::chrono::microseconds age = AgeOf(*record ? &**record : nullptr, seen);
  // Without atomic batches, a crash may leave the hint of one that is over, or never began. The
  // latter may be about to.
  const bool over =
      *record && ((*record)->finished() || environment_.two_phase->HasExpired(**record));
  if (over || (!*record && age >= kUntouched)) return ForgetHint(id, *record);
  if (!*record) return;
  const bool undecided = (*record)->status == TransactionStatus::kNew ||
                         (*record)->status == TransactionStatus::kPending;
  const bool too_old = undecided && age > timeout_;
  if (!too_old && (age < kUntouched || !seen.driving.expired())) return;
  std::optional<Cancellation> cancellation;
  if (too_old) {
    cancellation = Cancellation{"it was not decided for more than " +
                                std::to_string(timeout_.count()) + " ms"};
  }
  const auto driving = std::make_shared<char>();
  seen.driving = driving;
  environment_.two_phase->Drive(id, Until::kFinished, std::move(cancellation),
                                [driving](const absl::StatusOr<Driven>&) {});
}

// How long nobody has touched it: by the wall clock, which may have been set back since, or for as
// long as this process sees it stand still.
std::chrono::microseconds Sweeper::AgeOf(const TransactionRecord* record, Seen& seen) const {
  const auto now = environment_.clock.SteadyNow();
  const store::Stamp stamp = record != nullptr ? record->stamp : 0;
  if (std::exchange(seen.stamp, stamp) != stamp) seen.since = now;
  const auto seen_for = std::chrono::duration_cast<std::chrono::microseconds>(now - seen.since);
  if (record == nullptr) return seen_for;
  return std::max(seen_for, std::chrono::microseconds(age_clock_.Now() - record->last_modified));
}

// Unless a transaction has begun under that id since.
void Sweeper::ForgetHint(const std::string& id, const std::optional<TransactionRecord>& known) {
  store::WriteBatch batch;
  batch.MarkAsBackground();
  std::string key = versioning::TransactionKey(id);
  if (capabilities_.atomic_batches && known && !environment_.two_phase->HasExpired(*known)) {
    batch.Check(Keyspace::kTransactions, std::move(key), known->stamp);
  } else if (capabilities_.atomic_batches) {
    batch.CheckAbsent(Keyspace::kTransactions, std::move(key));
  }
  batch.Delete(Keyspace::kTransactions, versioning::TransactionHintKey(id));
  batch.MarkAsRemoval();
  environment_.store.Commit(std::move(batch),
                            [self = shared_from_this(), id](const store::CommitResult&) {
                              if (!self->capabilities_.atomic_batches) self->KeepHint(id);
                            });
}

// That of one which began while it was forgotten.
void Sweeper::KeepHint(const std::string& id) {
  const Doors::Visit visit(environment_.two_phase->doors());
  if (!visit.let_in()) return;
  const absl::StatusOr<std::optional<TransactionRecord>> record =
      versioning::ReadTransaction(environment_.store, id);
  const bool is_over = record.ok() && (!*record || (*record)->finished() ||
                                       environment_.two_phase->HasExpired(**record));
  if (is_over) return;
  store::WriteBatch batch;
  batch.MarkAsBackground();
  batch.Ensure(Keyspace::kTransactions, versioning::TransactionHintKey(id),
               document::BsonBuilder().Take());
  environment_.store.Commit(std::move(batch), [](const store::CommitResult&) {});
}

}  // namespace strata::transaction
