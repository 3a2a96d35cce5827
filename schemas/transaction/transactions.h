// Transactions: units as clients ask for them, in one commit or in two phases.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/base/waiter.h"
#include "schemas/transaction/operation.h"
#include "schemas/versioning/documents.h"
#include "schemas/versioning/transaction_record.h"

namespace strata::transaction {

using versioning::TransactionMode;
using versioning::TransactionRecord;
using versioning::TransactionStatus;

inline constexpr size_t kWritesMax = 100;
inline constexpr size_t kReadsMax = 100;
inline constexpr size_t kTwoPhaseDocumentsMax = 20;

struct CommitRequest {
  std::vector<Operation> writes;
  std::vector<versioning::ReadCheck> reads;
  std::vector<store::JoinedPlan> joined;  // in one commit only; without any there are writes
  std::string joined_fingerprint;       // equal iff what is joined is, as far as a request says it
  std::string joined_answer;            // as of a UnitRequest
  std::optional<TransactionMode> mode;  // none: one commit where the engine can, else two phases
  versioning::ChangeInfo change;
  std::string request_id;  // empty: none
  std::string principal;   // whose request id it is; empty: it is not known who calls
  int max_attempts = 16;
  bool validate_only = false;
  // All as of a WriteRequest; the content is that of the write of this index, which it is asked for
  // anew when it is decided anew.
  std::function<absl::Status(size_t write, const document::Content& content)> admit_content;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  const Waiter* waiter = nullptr;
  bool brief = false;  // both as of a WriteRequest
};

struct Committed {
  std::string transaction_id;  // IdOf the request id (attempt.h), or one that the server made
  std::vector<versioning::WriteResult> results;  // in the order of the writes
  std::string joined_answer;                     // as of a UnitResult
  store::CommitPosition position = 0;
  int attempts = 0;
  bool replayed = false;
};
using CommitCallback = std::function<void(absl::StatusOr<Committed>)>;

struct ReadDocuments {
  struct Found {
    DocumentName name;
    versioning::StoredVersion version;
    std::string pending_transaction_id;
  };
  std::vector<Found> documents;                // in the order of the request
  std::vector<versioning::ReadCheck> missing;  // with the version of its deletion, or 0
  store::CommitPosition position = 0;
};

struct Transaction {
  std::string id;
  TransactionRecord record;
};
using TransactionCallback = std::function<void(absl::StatusOr<Transaction>)>;

struct TransactionQuery {
  // Of those that are not finished, which are few: the walk passes no others. None: all.
  std::optional<TransactionStatus> unfinished{};
  std::string after_id{};
  StopCheck stopped = {};
};

// What tests and demonstrations stop a transaction after; nothing else is done for it by this
// process then, until it starts anew.
enum class HoldAfter : uint8_t { kNever, kNew, kPending, kFirstSlot, kApplied };

struct TransactionsOptions {
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  // of one that is not applied
  HoldAfter hold_after = HoldAfter::kNever;
  // For evaluations that take long, where no waiter's turn does; null: the executor of all else.
  Executor* evaluations = nullptr;
};

// Thread-safe. Callbacks come on any thread, once.
class Transactions {
 public:
  // All must outlive it, and the executors the work in flight; of that, whatever comes after it is
  // destroyed leaves the others alone. Becomes the one who settles for `documents`.
  Transactions(store::Store& store, versioning::Documents& documents, const Clock& clock,
               Entropy& entropy, Executor& executor, TransactionsOptions options);
  ~Transactions();

  // All of it or nothing. INVALID_FIELD, INVALID_NAME; UNSUPPORTED_BY_ENGINE for a mode that the
  // engine cannot do; what WritePath::Commit answers; in two phases also TRANSACTION_CANCELLED, and
  // OUTCOME_UNKNOWN with `transaction_id` where the deadline passes first. There each document is
  // held by a version of its own, so COLLECTION_NOT_FOUND also for a read of what is in no
  // collection, unless a write of the same transaction makes that.
  void Commit(CommitRequest request, CommitCallback done);

  // As of one moment; on the caller's thread. RETRIES_EXHAUSTED without snapshots where it never
  // stands still; COLLECTION_NOT_FOUND never: what is in no collection is missing.
  // TakesLong past the limits, which are those of all contents together.
  absl::StatusOr<ReadDocuments> Read(std::vector<DocumentName> names,
                                     const versioning::ReadLimits& limits = {}) const;

  // Of the attempts that a request in two phases makes (ID, ID/2, …) the last one decides: these
  // three are about that, whichever is asked for, and so is the transaction that they answer with.

  // TRANSACTION_NOT_FOUND.
  absl::StatusOr<Transaction> Get(const std::string& id) const;

  // One page of them in the byte order of their ids, up to `most`, without their data; those that
  // have expired are left out.
  absl::StatusOr<std::vector<Transaction>> List(const TransactionQuery& query, size_t most) const;

  // Of a new or a pending one; one that is cancelling is brought to its end, of one that is
  // cancelled that is the answer. There is no further attempt then. TRANSACTION_NOT_FOUND,
  // TRANSACTION_APPLIED.
  // Once the deadline has passed it is not begun with.
  void Cancel(const std::string& id, versioning::ChangeInfo change,
              std::chrono::steady_clock::time_point deadline, TransactionCallback done);

  // Brings it to its end; of one that is finished that is the answer. TRANSACTION_NOT_FOUND.
  void Resume(const std::string& id, TransactionCallback done);

  // Settles unfinished ones that nobody has touched for a while, from now on until it is destroyed.
  void StartSweeping();

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace strata::transaction
