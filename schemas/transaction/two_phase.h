// Transactions in two phases: many documents by writes of single records, each step of which may be
// done by anybody, any number of times, however late.
//
// A document's versions are dense and never reused, so version base + 1 is a slot that is filled
// once, for ever. A transaction writes down the version of each of its documents that it read, the
// base, and fills the slots after them in one order. When all are its own it is applied, and with
// that its versions count; before, they are undecided. One that cancels closes the first slot that
// is still empty, so that no slow worker gets past it, and undoes its own backwards. As nobody
// builds on an undecided version, the one after it is free for that. So nothing is done twice,
// nothing is left half done, and a transaction never waits for a slot.
//
//   new        -> pending      all documents were evaluated; their bases are written down
//   new        -> cancelled    it was refused, or asked for
//   pending    -> applied      all slots are its own: the commit point
//   pending    -> cancelling   a slot was lost, or asked for, or it is too old
//   applied    -> done         nothing is left to do
//   cancelling -> cancelled    all slots are closed, undone or another's
//
// The article's life cycle ("Mongodb two phase lock example"), with slots for its marks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/age_clock.h"
#include "schemas/base/clock.h"
#include "schemas/base/doors.h"
#include "schemas/base/executor.h"
#include "schemas/base/stop.h"
#include "schemas/transaction/attempt.h"
#include "schemas/transaction/evaluation.h"
#include "schemas/transaction/operation.h"
#include "schemas/transaction/transaction_errors.h"
#include "schemas/transaction/transactions.h"
#include "schemas/versioning/documents.h"
#include "schemas/versioning/transaction_record.h"

namespace strata::transaction {

// What a worker knows of the slot of a participant, version base + 1 of its document. Only kEmpty
// and kOurs may be out of date; then the write that they lead to comes to nothing.
//
// Without atomic batches one thing is left: whether the collections are still there is read just
// before a transaction becomes applied, and one that is deleted in between takes along what the
// transaction wrote into it, as if it were deleted right after.
enum class Slot : uint8_t {
  kUnknown,  // to be looked at
  kEmpty,    // the document's current version is the base
  kOurs,     // the transaction's change is in it and is current
  kPassed,   // the transaction's change is in it, and others stand on that
  kTaken,    // what is in it is another's, or closes it
  kGone,     // the collection is gone, and nobody can fill it
};

enum class Action : uint8_t {
  kEvaluate,  // read all documents and decide: pending or cancelled
  kLook,      // at the participant's slot
  kApply,     // fill it with the transaction's change
  kClose,     // fill it with the base's content
  kUndo,      // make version base + 2 with the base's content
  kBecome,    // that status
  kNothing,   // it is finished
};

struct Step {
  Action action = Action::kNothing;
  size_t participant = 0;
  TransactionStatus status = TransactionStatus::kNew;

  friend bool operator==(const Step&, const Step&) = default;
};

// What is to be done next for a transaction, by what is known of its slots. Pure. REQUIRES: one
// slot for each participant.
Step NextStep(const TransactionRecord& record, std::span<const Slot> slots);
using StepFunction = Step (*)(const TransactionRecord& record, std::span<const Slot> slots);

// Until when whoever had a transaction driven waits; it is driven to its end all the same.
enum class Until : uint8_t {
  kDecided,   // applied or cancelled
  kFinished,  // done or cancelled
};

struct Driven {
  TransactionRecord record;
  // What the documents refused it with, if this driver found that; otherwise the record's cause
  // tells.
  absl::Status refusal;
};
// TRANSACTION_NOT_FOUND; what the store answers, and then the transaction goes on when somebody
// drives it again.
using DrivenCallback = std::function<void(absl::StatusOr<Driven>)>;

// Runs work later, where it may take long; or lets go of it, and the transaction goes on when
// somebody drives it again.
using AtLength = std::function<void(std::function<void()>)>;

using Deadline = std::chrono::steady_clock::time_point;

// What a transaction is to be cancelled for, and when it is too late to begin with that.
struct Cancellation {
  std::string cause;
  Deadline deadline = Deadline::max();
};

// A transaction as it was read.
struct Known {
  Attempt attempt;
  TransactionRecord record;

  // Whether it is over, and the next attempt decides in its place, if there is one.
  bool lost() const { return record.status == TransactionStatus::kCancelled && record.lost; }
};

// Drives transactions in two phases. Thread-safe; keep it in a shared_ptr: work in flight holds it.
class TwoPhase : public std::enable_shared_from_this<TwoPhase> {
 public:
  // All must outlive it until it is closed, and the executors the work in flight. `evaluations`
  // does what takes long. Tests plant other step functions.
  TwoPhase(store::Store& store, versioning::Documents& documents, const Clock& clock,
           Executor& executor, Executor& evaluations, HoldAfter hold_after,
           StepFunction next_step = NextStep);

  // Writes down a transaction that is new, or one that never is to be, and answers whether this
  // call did: under its id there was none that counts. OUTCOME_UNKNOWN; any other error says that
  // it is not written down.
  void Begin(const std::string& id, TransactionRecord record, Deadline deadline,
             std::function<void(absl::StatusOr<bool>)> done);

  // Brings it to its end. With `cancellation` one that is new or pending is cancelled.
  // What takes long is done by `at_length`, or else by the executor for that.
  void Drive(const std::string& id, Until until, std::optional<Cancellation> cancellation,
             DrivenCallback done, AtLength at_length = nullptr);

  // Settles one whose undecided version somebody met; one that is not there is settled. What fails
  // because of its own documents, or with its own outcome unknown, is STORE_UNAVAILABLE.
  void Settle(const std::string& id, std::function<void(absl::Status)> done);

  // Marks the collections as used, and makes those that are not there and may be made.
  struct Prepared {
    absl::Status status;
    std::string collection;  // that it is about, unless OK
  };
  void Prepare(std::vector<Unprepared> collections, std::function<void(Prepared)> done);

  // As stored, unless that has expired.
  absl::StatusOr<std::optional<TransactionRecord>> Read(const std::string& id) const;

  // The attempt that decides about what was asked for under that id: the last one, from it on.
  absl::StatusOr<std::optional<Known>> ReadLast(const std::string& id) const;

  // The first one after `attempt` that is remembered. (What lost first is forgotten first.)
  absl::StatusOr<std::optional<Attempt>> FindLater(const Attempt& attempt) const;

  bool HasExpired(const TransactionRecord& record) const;

  void AtLengthAnywhere(std::function<void()> work) { evaluations_.Schedule(std::move(work)); }

  // What is called back at any time enters first.
  Doors& doors() { return doors_; }

 private:
  friend class Driver;

  store::Store& store_;
  const store::Capabilities capabilities_;
  versioning::Documents& documents_;
  const Clock& clock_;
  const AgeClock age_clock_;
  Executor& executor_;
  Executor& evaluations_;
  const HoldAfter hold_after_;
  const StepFunction next_step_;
  Doors doors_;
};

}  // namespace strata::transaction
