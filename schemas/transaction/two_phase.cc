#include "schemas/transaction/two_phase.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/transaction/evaluation.h"
#include "schemas/versioning/read_limits.h"
#include "schemas/versioning/record_codec.h"

namespace strata::transaction {
namespace {

using store::Keyspace;
using versioning::CurrentState;
using versioning::Mutation;
using versioning::Mutator;
using versioning::Participant;
using versioning::StoredVersion;
using versioning::VersionKind;
using versioning::VersionMark;

// Each evaluation that meets an undecided document brings another transaction to its end.
constexpr int kEvaluationsMax = 100;
// How often an engine may refuse to replace a record that is still the same, as it may for a
// conflict that has passed.
constexpr int kRefusalsMax = 10;

bool IsOurs(Slot slot) { return slot == Slot::kOurs || slot == Slot::kPassed; }

Step Become(TransactionStatus status) { return {Action::kBecome, 0, status}; }

Step NextOfPending(std::span<const Slot> slots) {
  for (size_t i = 0; i < slots.size(); ++i) {
    if (IsOurs(slots[i])) continue;
    if (slots[i] == Slot::kUnknown) return {Action::kLook, i};
    if (slots[i] == Slot::kEmpty) return {Action::kApply, i};
    return Become(TransactionStatus::kCancelling);
  }
  return Become(TransactionStatus::kApplied);
}

// Nobody fills a slot behind one that is closed or taken. One that is gone stops nobody: who filled
// it while it was there may be behind it.
Step NextOfCancelling(std::span<const Slot> slots) {
  size_t end = 0;
  for (; end < slots.size(); ++end) {
    if (slots[end] == Slot::kUnknown) return {Action::kLook, end};
    if (slots[end] == Slot::kEmpty) return {Action::kClose, end};
    if (slots[end] == Slot::kTaken) break;
  }
  for (size_t i = end; i-- > 0;) {
    if (slots[i] == Slot::kOurs) return {Action::kUndo, i};
  }
  return Become(TransactionStatus::kCancelled);
}

// A deletion, with the numbers that the one before it kept.
Mutation DeletionAfter(const StoredVersion* base) {
  Mutation deletion{VersionKind::kDeleted, std::nullopt};
  if (base != nullptr) deletion.labels = versioning::NumbersKept(*base);
  return deletion;
}

// The same once more, so that the slot is filled and nothing is changed.
absl::StatusOr<Mutation> KeepAsItIs(const CurrentState& current) {
  if (!current.live()) return DeletionAfter(current.version);
  return Mutation{VersionKind::kUpdated, current.version->content};
}

Mutation ContentOf(const StoredVersion* base) {
  if (base == nullptr || base->deleted()) return DeletionAfter(base);
  return {VersionKind::kRestored, base->content};
}

absl::StatusOr<Mutation> Close(const CurrentState& current) { return ContentOf(current.version); }

Mutator UndoTo(int64_t base) {
  return [base](const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (base == 0) return ContentOf(nullptr);
    ASSIGN_OR_RETURN(const StoredVersion before, current.read(base));
    Mutation mutation = ContentOf(&before);
    mutation.create_time = before.header.create_time;
    return mutation;
  };
}

// As far as it does not take long; nor does what comes of it, which is hashed and planned.
Mutator Briefly(Mutator mutate, size_t document_bytes_max) {
  return [mutate = std::move(mutate),
          document_bytes_max](const CurrentState& current) -> absl::StatusOr<Mutation> {
    const auto takes_long = [&](const std::optional<document::Content>& content) {
      return content && content->size() > document_bytes_max;
    };
    if (current.version != nullptr && takes_long(current.version->content)) {
      return versioning::TakesLong();
    }
    CurrentState brief = current;
    brief.brief = true;
    ASSIGN_OR_RETURN(Mutation mutation, mutate(brief));
    if (takes_long(mutation.content)) return versioning::TakesLong();
    return mutation;
  };
}

// Of a text that may have any length: as much as a reason may have.
std::string AsReason(std::string text) {
  if (text.size() <= kReasonBytesMax) return text;
  size_t end = kReasonBytesMax;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

std::string EmptyDocument() { return document::BsonBuilder().Take(); }

// What the engine may do at another time.
bool MayPass(const absl::Status& status) {
  const std::optional<ErrorReason> reason = ReasonOf(status);
  return !reason || *reason == ErrorReason::kStoreUnavailable ||
         *reason == ErrorReason::kOutcomeUnknown || *reason == ErrorReason::kOverloaded ||
         *reason == ErrorReason::kDiskFull || *reason == ErrorReason::kRecordCorrupt ||
         *reason == ErrorReason::kDeadlineExceeded || *reason == ErrorReason::kCancelled;
}

// What settling a transaction failed with, for those in whose way it stands: what that says of its
// own documents and outcome is nothing about theirs.
absl::Status AsAnothers(const std::string& id, const absl::Status& failure) {
  if (failure.ok()) return failure;
  const bool is_its_own = !MayPass(failure) || ReasonOf(failure) == ErrorReason::kOutcomeUnknown ||
                          MetadataOf(failure, "transaction_id");
  if (!is_its_own) return failure;
  return Error(ErrorReason::kStoreUnavailable,
               "transaction " + id +
                   " has changed a document and could not be brought to its end: " +
                   std::string(failure.message()))
      .ToStatus();
}

}  // namespace

Step NextStep(const TransactionRecord& record, std::span<const Slot> slots) {
  switch (record.status) {
    case TransactionStatus::kNew:
      return {Action::kEvaluate};
    case TransactionStatus::kPending:
      return NextOfPending(slots);
    case TransactionStatus::kApplied:
      return Become(TransactionStatus::kDone);
    case TransactionStatus::kCancelling:
      return NextOfCancelling(slots);
    case TransactionStatus::kDone:
    case TransactionStatus::kCancelled:
      break;
  }
  return {Action::kNothing};
}

absl::Status TransactionNotFound(std::string_view id) {
  return Error(ErrorReason::kTransactionNotFound,
               "no such transaction; they are remembered for 24 hours after their end")
      .With("transaction_id", id);
}

absl::Status Stopping() {
  return Error(ErrorReason::kStoreUnavailable, "the server stops").ToStatus();
}

// Brings one transaction to its end. Used by one thread at a time.
class Driver : public std::enable_shared_from_this<Driver> {
 public:
  Driver(std::shared_ptr<TwoPhase> two_phase, std::string id, Until until,
         std::optional<Cancellation> cancellation, DrivenCallback done, AtLength at_length)
      : two_phase_(std::move(two_phase)),
        id_(std::move(id)),
        until_(until),
        cancellation_(std::move(cancellation)),
        done_(std::move(done)),
        at_length_(std::move(at_length)) {}

  // On this thread, unless it would wait for reads, or others for it.
  void RunOn() {
    if (takes_long_) return RunAtLength();
    if (!two_phase_->capabilities_.blocking_reads) return Run(/*brief=*/true);
    two_phase_->executor_.Schedule([self = shared_from_this()] { self->Run(/*brief=*/true); });
  }

 private:
  // When its turn comes, others may have brought the transaction to its end.
  void RunAtLength() {
    auto work = [self = shared_from_this()] {
      self->record_.reset();
      self->Run(/*brief=*/false);
    };
    if (at_length_) return at_length_(std::move(work));
    two_phase_->AtLengthAnywhere(std::move(work));
  }

  void Run(bool brief) {
    const Doors::Visit visit(two_phase_->doors());
    if (!visit.let_in()) return End(Closed());
    brief_ = brief;
    while (!ended_) {
      if (takes_long_ && brief_) return RunAtLength();
      if (!record_ && !ReadRecord()) return;
      if (IsAnswer()) Answer();
      const Step step = two_phase_->next_step_(*record_, slots_);
      if (step.action == Action::kNothing) return;
      if (IsHeld(step)) return End(Held());
      if (!Do(step)) return;  // what it waits for runs it on
    }
  }

  // False: it has ended.
  bool ReadRecord() {
    absl::StatusOr<std::optional<TransactionRecord>> read = two_phase_->Read(id_);
    if (read.ok() && (!*read || HasEngineForgotten(**read))) read = TransactionNotFound(id_);
    if (!read.ok()) {
      End(read.status());
      return false;
    }
    record_ = **std::move(read);
    slots_.resize(record_->participants.size(), Slot::kUnknown);
    return true;
  }

  // It stands there, and the engine does not let it change: by its clock, which is the one that
  // counts, it has expired.
  bool HasEngineForgotten(const TransactionRecord& record) const {
    return record.status == TransactionStatus::kNew && record.stamp == refused_stamp_ &&
           refusals_ >= kRefusalsMax;
  }

  bool IsAnswer() const {
    return record_->finished() ||
           (until_ == Until::kDecided && record_->status == TransactionStatus::kApplied);
  }

  void Answer() {
    if (!done_) return;
    std::exchange(done_, nullptr)(Driven{*record_, refusal_});
  }

  void End(absl::Status failure) {
    ended_ = true;
    if (done_) std::exchange(done_, nullptr)(std::move(failure));
  }

  bool IsHeld(const Step& step) const {
    const TransactionStatus status = record_->status;
    const bool pending = status == TransactionStatus::kPending;
    switch (two_phase_->hold_after_) {
      case HoldAfter::kNever:
        return false;
      case HoldAfter::kNew:
        return status == TransactionStatus::kNew && !cancellation_;
      case HoldAfter::kPending:
        return pending && !cancellation_;
      case HoldAfter::kFirstSlot:
        return pending && !cancellation_ && IsOurs(slots_[0]) &&
               (step.action != Action::kLook || step.participant > 0);
      case HoldAfter::kApplied:
        return status == TransactionStatus::kApplied;
    }
    return false;
  }

  absl::Status Closed() const {
    return Error(ErrorReason::kStoreUnavailable,
                 "the server stops; transaction " + id_ + " goes on when it is back")
        .With("transaction_id", id_);
  }

  absl::Status Held() const {
    return Error(ErrorReason::kStoreUnavailable,
                 "transaction " + id_ + " is held, as this process was started to do")
        .With("transaction_id", id_);
  }

  // Starts what ends by `end`, which is called with its result. True: it has ended when this
  // returns, and the caller goes on; otherwise its end runs the driver on. (Engines may call back
  // at once, and recursion would be as deep as the transaction has steps.)
  template <typename Result, typename Start, typename End>
  bool Await(Start start, End end) {
    const auto turn = std::make_shared<std::atomic<bool>>(false);
    start([self = shared_from_this(), turn, end = std::move(end)](Result result) {
      end(std::move(result));
      if (turn->exchange(true)) self->RunOn();
    });
    return turn->exchange(true);
  }

  // True: it is done, or has ended the driver. False: it runs the driver on.
  bool Do(const Step& step) {
    if (!unprepared_.ok()) return Refuse(std::exchange(unprepared_, absl::OkStatus()));
    const bool cancels = record_->status == TransactionStatus::kNew ||
                         record_->status == TransactionStatus::kPending;
    if (cancellation_ && cancels) return Cancel(*cancellation_, /*lost=*/false);
    switch (step.action) {
      case Action::kEvaluate:
        return DoEvaluate();
      case Action::kLook:
        return Look(step.participant);
      case Action::kApply:
        return Apply(step.participant);
      case Action::kClose:
        return Fill(step.participant, Close, VersionMark::kClosed, Slot::kTaken);
      case Action::kUndo:
        return Fill(step.participant, UndoTo(record_->participants[step.participant].base),
                    VersionMark::kUndone, Slot::kPassed);
      case Action::kBecome:
        return DoBecome(step.status);
      case Action::kNothing:
        break;
    }
    return true;
  }

  // Decides what the transaction would do, and writes that down.
  bool DoEvaluate() {
    if (DecodingTakesLong()) return true;
    absl::Status decoded = DecodeData();
    if (!decoded.ok()) {
      End(std::move(decoded));
      return true;
    }
    if (++evaluations_ > kEvaluationsMax) {
      return Cancel({"its documents were never decided when it read them"}, /*lost=*/true);
    }
    std::vector<versioning::ReadCheck> reads;
    for (const Participant& participant : record_->participants) {
      if (!operations_.contains(NameKey(participant.name))) {
        reads.push_back({participant.name, participant.base});
      }
    }
    const EvaluationLimits limits{brief_,
                                  [&doors = two_phase_->doors()] { return doors.closed(); }};
    absl::StatusOr<Evaluation> evaluation =
        Evaluate(two_phase_->store_, two_phase_->documents_, two_phase_->clock_, writes_, reads,
                 record_->change, limits);
    if (TakesLong(evaluation.status())) return true;
    if (!evaluation.ok()) return Refuse(evaluation.status());
    if (!evaluation->undecided.empty()) return SettleOther(evaluation->undecided);
    if (!evaluation->unprepared.empty()) return Prepare(std::move(evaluation->unprepared));
    TransactionRecord next = *record_;
    next.status = TransactionStatus::kPending;
    next.participants = std::move(evaluation->participants);
    SortByName(next.participants);
    return Replace(std::move(next));
  }

  // Whether that is more than others may wait for; then it goes on elsewhere.
  bool TakesLong(const absl::Status& status) {
    if (!versioning::DoesTakeLong(status)) return false;
    takes_long_ = true;
    return true;
  }

  static std::pair<std::string, std::string> NameKey(const DocumentName& name) {
    return {name.collection, name.id};
  }

  static void SortByName(std::vector<Participant>& participants) {
    std::sort(participants.begin(), participants.end(),
              [](const Participant& a, const Participant& b) {
                return NameKey(a.name) < NameKey(b.name);
              });
  }

  bool DecodingTakesLong() {
    if (!brief_ || !writes_.empty()) return false;
    size_t bytes = 0;
    for (const std::string& data : record_->data) bytes += data.size();
    takes_long_ = bytes > two_phase_->documents_.write_options().direct_bytes_max;
    return takes_long_;
  }

  absl::Status DecodeData() {
    if (!writes_.empty()) return absl::OkStatus();
    for (const std::string& bytes : record_->data) {
      ASSIGN_OR_RETURN(Operation operation, Decode(bytes));
      operations_.emplace(NameKey(operation.name), writes_.size());
      writes_.push_back(std::move(operation));
    }
    return absl::OkStatus();
  }

  bool SettleOther(const std::string& other) {
    return Await<absl::Status>([&](auto done) { two_phase_->Settle(other, std::move(done)); },
                               [this](absl::Status settled) {
                                 if (!settled.ok()) End(std::move(settled));
                               });
  }

  // There is room for all before the first is made, so that a refusal for want of it leaves none.
  bool Prepare(std::vector<Unprepared> collections) {
    versioning::CollectionCount& count = two_phase_->documents_.collections().count();
    std::set<std::string_view> missing;
    for (const Unprepared& each : collections) {
      if (!each.missing || !each.may_make || !missing.insert(each.collection).second) continue;
      const absl::Status room = count.Check(static_cast<int64_t>(missing.size()));
      if (!room.ok()) return Refuse(OfCollection(each.collection, room));
    }
    return Await<TwoPhase::Prepared>(
        [&](auto done) { two_phase_->Prepare(std::move(collections), std::move(done)); },
        [this](const TwoPhase::Prepared& prepared) {
          unprepared_ = OfCollection(prepared.collection, prepared.status);
        });
  }

  // As that of the first write into it.
  absl::Status OfCollection(std::string_view collection, const absl::Status& refusal) const {
    const auto write = std::find_if(
        writes_.begin(), writes_.end(),
        [&](const Operation& operation) { return operation.name.collection == collection; });
    if (refusal.ok() || write == writes_.end()) return refusal;
    return InElement(refusal, "writes", static_cast<size_t>(write - writes_.begin()));
  }

  // The documents, or what they are stored in, do not have it.
  bool Refuse(absl::Status refusal) {
    if (MayPass(refusal)) {
      End(std::move(refusal));
      return true;
    }
    const std::string cause(refusal.message());
    refusal_ = std::move(refusal);
    return Cancel({cause}, /*lost=*/false);
  }

  bool Cancel(Cancellation cancellation, bool lost) {
    TransactionRecord next = *record_;
    next.status = record_->status == TransactionStatus::kNew ? TransactionStatus::kCancelled
                                                             : TransactionStatus::kCancelling;
    next.cause = std::move(cancellation.cause);
    next.lost = lost;
    store::WriteBatch batch;
    batch.set_deadline(cancellation.deadline);
    return Replace(std::move(next), std::move(batch));
  }

  bool Look(size_t index) {
    const absl::StatusOr<Slot> slot = ReadSlot(record_->participants[index]);
    if (TakesLong(slot.status())) return true;
    if (!slot.ok()) {
      End(slot.status());
    } else {
      slots_[index] = *slot;
    }
    return true;
  }

  absl::StatusOr<Slot> ReadSlot(const Participant& participant) const {
    const auto reader = two_phase_->store_.Snapshot();
    versioning::ReadLimits limits;
    if (brief_) {
      limits.document_bytes_max = two_phase_->documents_.write_options().brief_document_bytes_max;
      limits.rebuilt_bytes_max = versioning::kBriefRebuiltBytesMax;
    }
    const versioning::ReadContext context{*reader, two_phase_->capabilities_, &limits};
    ASSIGN_OR_RETURN(
        const versioning::CollectionPtr collection,
        two_phase_->documents_.collections().Find(*reader, participant.name.collection));
    if (!collection || collection->incarnation != participant.incarnation) return Slot::kGone;
    const store::DocumentKey document{participant.incarnation, participant.name.id};
    ASSIGN_OR_RETURN(const std::optional<versioning::Head> head,
                     collection->strategy->ReadHead(context, document));
    if (head && head->record.size() > limits.document_bytes_max) return versioning::TakesLong();
    const int64_t current = head ? head->version.header.version : 0;
    if (current == participant.base) return Slot::kEmpty;
    const int64_t slot = participant.base + 1;
    if (current == slot) return IsMine(head->version) ? Slot::kOurs : Slot::kTaken;
    ASSIGN_OR_RETURN(const StoredVersion filled,
                     collection->strategy->ReadVersion(context, document, *head, slot,
                                                       versioning::Part::kHeader));
    return IsMine(filled) ? Slot::kPassed : Slot::kTaken;
  }

  bool IsMine(const StoredVersion& version) const {
    return version.header.transaction_id == id_ && version.header.mark == VersionMark::kApplied;
  }

  bool Apply(size_t index) {
    if (DecodingTakesLong()) return true;
    absl::Status decoded = DecodeData();
    if (!decoded.ok()) {
      End(std::move(decoded));
      return true;
    }
    const Participant& participant = record_->participants[index];
    Mutator mutate = KeepAsItIs;
    const auto write = operations_.find(NameKey(participant.name));
    if (write != operations_.end() && participant.changed) {
      mutate = ToChange(writes_[write->second], two_phase_->documents_.limits()).mutate;
    }
    return Fill(index, std::move(mutate), VersionMark::kApplied, Slot::kOurs);
  }

  // Makes the version that follows what the slot is known to be.
  bool Fill(size_t index, Mutator mutate, VersionMark mark, Slot filled) {
    const Participant& participant = record_->participants[index];
    versioning::SlotRequest request;
    request.name = participant.name;
    request.incarnation = participant.incarnation;
    request.version = participant.base + (mark == VersionMark::kUndone ? 2 : 1);
    if (brief_) {
      const size_t most = two_phase_->documents_.write_options().brief_document_bytes_max;
      mutate = Briefly(std::move(mutate), most);
    }
    request.mutate = std::move(mutate);
    request.change = ChangeOf(participant, mark);
    request.transaction_id = id_;
    request.mark = mark;
    request.at_length = !brief_;
    request.brief = brief_;
    return Await<absl::StatusOr<bool>>(
        [&](auto done) { two_phase_->documents_.TakeSlot(std::move(request), std::move(done)); },
        [this, index, mark, filled](const absl::StatusOr<bool>& took) {
          if (took.ok()) {
            slots_[index] = *took ? filled : Slot::kUnknown;
          } else if (TakesLong(took.status())) {
            slots_[index] = Slot::kUnknown;
          } else if (MayPass(took.status()) || mark != VersionMark::kApplied) {
            End(took.status());
          } else {
            // It was fine when it was evaluated: what it is measured by has changed since.
            cancellation_ = Cancellation{std::string(took.status().message())};
          }
        });
  }

  versioning::ChangeInfo ChangeOf(const Participant& participant, VersionMark mark) const {
    if (mark == VersionMark::kApplied) {
      const auto write = operations_.find(NameKey(participant.name));
      return write != operations_.end() ? writes_[write->second].change : record_->change;
    }
    versioning::ChangeInfo change = record_->change;
    change.reason = AsReason((mark == VersionMark::kUndone ? "undoes" : "ends") +
                             (" transaction " + id_ + ", which was cancelled: " + record_->cause));
    return change;
  }

  bool DoBecome(TransactionStatus status) {
    if (record_->status == TransactionStatus::kPending &&
        status == TransactionStatus::kCancelling) {
      return Cancel({CauseOfLoss()}, /*lost=*/true);
    }
    TransactionRecord next = *record_;
    next.status = status;
    store::WriteBatch checks;
    if (status == TransactionStatus::kApplied) {
      for (Participant& participant : next.participants) participant.version = participant.base + 1;
      absl::StatusOr<bool> all_there = CheckCollections(checks);
      if (!all_there.ok()) End(all_there.status());
      if (!all_there.ok() || !*all_there) return true;
    }
    if (status == TransactionStatus::kDone) next.applied_position = record_->position;
    return Replace(std::move(next), std::move(checks));
  }

  // A slot that was filled is gone with its collection. Adds to the batch, where the engine can,
  // that they are there. False: one is not.
  absl::StatusOr<bool> CheckCollections(store::WriteBatch& batch) {
    const auto reader = two_phase_->store_.Snapshot();
    bool all_there = true;
    std::string_view name;  // of the one before, in the order of names
    versioning::CollectionPtr collection;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const Participant& participant = record_->participants[i];
      if (participant.name.collection != name) {
        name = participant.name.collection;
        ASSIGN_OR_RETURN(collection, two_phase_->documents_.collections().Find(*reader, name));
        if (collection && two_phase_->capabilities_.atomic_batches) {
          batch.Check(Keyspace::kCollections, collection->name, collection->stamp);
        }
      }
      if (collection && collection->incarnation == participant.incarnation) continue;
      slots_[i] = Slot::kGone;
      all_there = false;
    }
    return all_there;
  }

  std::string CauseOfLoss() const {
    const auto lost =
        std::find_if(slots_.begin(), slots_.end(), [](Slot slot) { return !IsOurs(slot); });
    const Participant& participant =
        record_->participants[static_cast<size_t>(lost - slots_.begin())];
    const std::string document = participant.name.collection + "/" + participant.name.id;
    if (*lost == Slot::kGone) return "the collection of " + document + " was deleted";
    return "version " + std::to_string(participant.base + 1) + " of " + document +
           " was written by another";
  }

  // Writes the record anew unless somebody else did, or one of the checks does not hold; then reads
  // what it is by now.
  bool Replace(TransactionRecord next, store::WriteBatch batch = {}) {
    next.last_modified = two_phase_->clock_.Now();
    if (next.finished()) next.data.clear();
    const bool checks = !batch.writes().empty();
    if (next.status == TransactionStatus::kPending) {
      batch.Ensure(Keyspace::kTransactions, versioning::TransactionHintKey(id_), EmptyDocument());
    }
    batch
        .Replace(Keyspace::kTransactions, versioning::TransactionKey(id_), next.Encode(),
                 record_->stamp)
        .expire_time = next.finished() ? next.last_modified + versioning::kTransactionLifetime : 0;
    batch.MarkCommitPoint();
    // Once it is begun nobody's deadline ends it.
    batch.MarkAsBackground();
    // What ends it lets go of what it was to do: a full disk takes that.
    if (next.status != TransactionStatus::kPending) batch.MarkAsRemoval();
    if (next.finished()) {
      batch.Delete(Keyspace::kTransactions, versioning::TransactionHintKey(id_));
    }
    const store::Stamp stamp = record_->stamp;
    record_.reset();
    return Await<store::CommitResult>(
        [&](auto done) { two_phase_->store_.Commit(std::move(batch), std::move(done)); },
        [this, checks, stamp](const store::CommitResult& result) {
          if (!result.status.ok()) return End(result.status);
          if (result.committed) return;
          refusals_ = refused_stamp_ == stamp ? refusals_ + 1 : 1;
          refused_stamp_ = stamp;
          if (checks) slots_.assign(slots_.size(), Slot::kUnknown);
        });
  }

  const std::shared_ptr<TwoPhase> two_phase_;
  const std::string id_;
  const Until until_;
  std::optional<Cancellation> cancellation_;
  DrivenCallback done_;
  const AtLength at_length_;
  bool brief_ = true;                          // others wait for this thread
  bool takes_long_ = false;                    // for such a one
  std::optional<TransactionRecord> record_;    // none: to be read
  std::optional<store::Stamp> refused_stamp_;  // of the record that could not be replaced
  int refusals_ = 0;
  std::vector<Slot> slots_;        // of its participants
  std::vector<Operation> writes_;  // of its data, once that is needed
  std::map<std::pair<std::string, std::string>, size_t> operations_;  // indices, by document
  int evaluations_ = 0;
  absl::Status refusal_;
  absl::Status unprepared_;  // what preparing the collections failed with, if that did
  bool ended_ = false;
};

TwoPhase::TwoPhase(store::Store& store, versioning::Documents& documents, const Clock& clock,
                   Executor& executor, Executor& evaluations, HoldAfter hold_after,
                   StepFunction next_step)
    : store_(store),
      capabilities_(store.capabilities()),
      documents_(documents),
      clock_(clock),
      age_clock_(clock),
      executor_(executor),
      evaluations_(evaluations),
      hold_after_(hold_after),
      next_step_(next_step) {}

// The hint comes first: without atomic batches, a crash may leave it alone, which tells of nothing.
void TwoPhase::Begin(const std::string& id, TransactionRecord record, Deadline deadline,
                     std::function<void(absl::StatusOr<bool>)> done) {
  store::WriteBatch batch;
  batch.set_deadline(deadline);
  if (!record.finished()) {
    batch.Ensure(Keyspace::kTransactions, versioning::TransactionHintKey(id), EmptyDocument());
  }
  batch.Insert(Keyspace::kTransactions, versioning::TransactionKey(id), record.Encode())
      .expire_time = record.last_modified + versioning::kTransactionLifetime;
  if (record.finished()) batch.MarkAsRemoval();
  store_.Commit(std::move(batch), [done = std::move(done)](const store::CommitResult& result) {
    if (!result.status.ok()) return done(result.status);
    done(result.committed);
  });
}

void TwoPhase::Drive(const std::string& id, Until until, std::optional<Cancellation> cancellation,
                     DrivenCallback done, AtLength at_length) {
  std::make_shared<Driver>(shared_from_this(), id, until, std::move(cancellation), std::move(done),
                           std::move(at_length))
      ->RunOn();
}

void TwoPhase::Settle(const std::string& id, std::function<void(absl::Status)> done) {
  Drive(id, Until::kDecided, std::nullopt,
        [id, done = std::move(done)](const absl::StatusOr<Driven>& driven) {
          const bool gone = ReasonOf(driven.status()) == ErrorReason::kTransactionNotFound;
          done(gone ? absl::OkStatus() : AsAnothers(id, driven.status()));
        });
}

void TwoPhase::Prepare(std::vector<Unprepared> collections, std::function<void(Prepared)> done) {
  const Doors::Visit visit(doors_);
  if (!visit.let_in()) return done({Stopping(), ""});
  if (collections.empty()) return done({absl::OkStatus(), ""});
  const Unprepared next = std::move(collections.back());
  collections.pop_back();
  const versioning::WriteOptions& options = documents_.write_options();
  documents_.collections().PrepareForWrite(
      next.collection,
      next.may_make && options.create_collections ? options.default_strategy : nullptr,
      /*deadline=*/std::nullopt,
      [self = shared_from_this(), name = next.collection, collections = std::move(collections),
       done = std::move(done)](const absl::StatusOr<versioning::CollectionPtr>& prepared) mutable {
        if (!prepared.ok()) return done({prepared.status(), std::move(name)});
        self->Prepare(std::move(collections), std::move(done));
      });
}

absl::StatusOr<std::optional<TransactionRecord>> TwoPhase::Read(const std::string& id) const {
  ASSIGN_OR_RETURN(std::optional<TransactionRecord> record,
                   versioning::ReadTransaction(store_, id));
  if (record && HasExpired(*record)) record.reset();
  return record;
}

absl::StatusOr<std::optional<Known>> TwoPhase::ReadLast(const std::string& id) const {
  std::optional<Attempt> attempt = Attempt::Of(id);
  ASSIGN_OR_RETURN(std::optional<TransactionRecord> record, Read(id));
  if (!record) {
    ASSIGN_OR_RETURN(attempt, FindLater(*attempt));
    if (!attempt) return std::nullopt;
    ASSIGN_OR_RETURN(record, Read(attempt->id()));
    if (!record) return std::nullopt;
  }
  Known last{*std::move(attempt), *std::move(record)};
  while (last.lost()) {
    Attempt next = last.attempt.Next();
    ASSIGN_OR_RETURN(record, Read(next.id()));
    if (!record) break;
    last = {std::move(next), *std::move(record)};
  }
  return last;
}

absl::StatusOr<std::optional<Attempt>> TwoPhase::FindLater(const Attempt& attempt) const {
  std::vector<Attempt> attempts;
  for (Attempt next = attempt.Next(); next.number <= kAttemptNumberMax; next = next.Next()) {
    attempts.push_back(next);
  }
  // By their names: with the same beginning there may be any number of others.
  std::vector<std::string> names;
  for (const Attempt& later : attempts) names.push_back(versioning::TransactionKey(later.id()));
  std::vector<store::RecordKey> keys;
  for (const std::string& name : names) keys.push_back({Keyspace::kTransactions, name});
  auto records = store_.GetMany(keys);
  for (size_t i = 0; i < attempts.size(); ++i) {
    ASSIGN_OR_RETURN(const std::optional<store::Record> found, std::move(records[i]));
    if (!found) continue;
    ASSIGN_OR_RETURN(const TransactionRecord record,
                     TransactionRecord::DecodeWithoutData(found->value));
    if (!HasExpired(record)) return std::move(attempts[i]);
  }
  return std::nullopt;
}

bool TwoPhase::HasExpired(const TransactionRecord& record) const {
  const bool expires = record.finished() || record.status == TransactionStatus::kNew;
  return expires && record.last_modified + versioning::kTransactionLifetime <= age_clock_.Now();
}

}  // namespace strata::transaction
