#include "schemas/transaction/evaluation.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/read_limits.h"
#include "schemas/versioning/undecided.h"

namespace strata::transaction {
namespace {

using versioning::CollectionPtr;
using versioning::Head;
using versioning::Participant;
using versioning::StoredVersion;

// A version as large as one that a transaction writes.
StoredVersion LikeIn(const versioning::ChangeInfo& change, int64_t number,
                     std::optional<document::Content> content) {
  StoredVersion version;
  version.header.version = number;
  // Of whatever may be left out, all is there.
  version.header.create_time = 1;
  version.position = std::numeric_limits<store::CommitPosition>::max();
  version.header.kind =
      content ? versioning::VersionKind::kUpdated : versioning::VersionKind::kDeleted;
  version.header.change = change;
  version.header.transaction_id.assign(kTransactionIdBytesMax, '0');
  version.header.mark = versioning::VersionMark::kApplied;
  version.header.salt.assign(versioning::kSaltSize, '0');
  version.content = std::move(content);
  return version;
}

absl::Status NothingToHold(std::string_view collection) {
  return Error(ErrorReason::kCollectionNotFound,
               "no such collection, and a read in two phases needs one")
      .With("collection", collection);
}

class Evaluator {
 public:
  Evaluator(store::Store& store, versioning::Documents& documents, const Clock& clock,
            const versioning::ChangeInfo& change, const EvaluationLimits& limits)
      : documents_(documents),
        clock_(clock),
        change_(change),
        undoing_(change),
        brief_(limits.brief),
        limits_(ToReadLimits(limits, documents)),
        reader_(store.Snapshot()),
        context_{*reader_, documents.capabilities(), &limits_} {
    undoing_.reason.assign(kReasonBytesMax, '0');
  }

  // `made_by_write`: a write of the same transaction makes the collection, if it is not there.
  absl::Status Read(const versioning::ReadCheck& read, bool made_by_write) {
    RETURN_IF_ERROR(Open(read.name));
    if (!evaluation_.undecided.empty()) return absl::OkStatus();
    const int64_t actual = version();
    if (actual != read.version) {
      return InField(versioning::VersionConflict(read.name, std::to_string(read.version), actual),
                     "version");
    }
    // What a version cannot hold, somebody may change before the transaction takes effect.
    if (!collection_ && !made_by_write) return NothingToHold(read.name.collection);
    RETURN_IF_ERROR(CheckCollection(read.name, made_by_write));
    RETURN_IF_ERROR(CheckRoom(change_, AsItIs()));
    Add(read.name);
    return absl::OkStatus();
  }

  absl::Status Write(const Operation& operation) {
    RETURN_IF_ERROR(Open(operation.name));
    if (!evaluation_.undecided.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(CheckCollection(operation.name, /*may_make=*/true));
    absl::Status refusal = CheckPrecondition(operation);
    if (!refusal.ok()) return InField(refusal, "precondition");
    const versioning::Change change = ToChange(operation, documents_.limits());
    absl::StatusOr<versioning::Mutation> mutation = change.mutate(State());
    if (!mutation.ok()) {
      const bool no_collection =
          !collection_ && mutation.status().code() == absl::StatusCode::kNotFound;
      return no_collection ? versioning::CollectionNotFound(operation.name.collection)
                           : mutation.status();
    }
    if (mutation->content && mutation->content->size() > limits_.document_bytes_max) {
      return versioning::TakesLong();
    }
    if (mutation->content) RETURN_IF_ERROR(Hold(mutation->content->size()));
    const bool changed = !mutation->stale && (operation.keep_unchanged || !IsSame(*mutation));
    versioning::ChangeInfo change_made = operation.change;
    change_made.labels.insert(mutation->labels.begin(), mutation->labels.end());
    RETURN_IF_ERROR(CheckRoom(change_made, changed ? mutation->content : AsItIs()));
    Participant& participant = Add(operation.name);
    participant.changed = changed;
    participant.stale = mutation->stale;
    participant.note = mutation->note;
    AddResult(operation, *std::move(mutation), participant);
    return absl::OkStatus();
  }

  const Evaluation& evaluation() const { return evaluation_; }
  Evaluation Take() { return std::move(evaluation_); }

 private:
  const StoredVersion* current() const { return head_ ? &head_->version : nullptr; }
  int64_t version() const { return head_ ? head_->version.header.version : 0; }

  static versioning::ReadLimits ToReadLimits(const EvaluationLimits& limits,
                                             const versioning::Documents& documents) {
    versioning::ReadLimits made;
    made.stopped = limits.stopped;
    if (limits.brief) {
      made.document_bytes_max = documents.write_options().brief_document_bytes_max;
      made.rebuilt_bytes_max = versioning::kBriefRebuiltBytesMax;
    }
    return made;
  }

  absl::Status Open(const DocumentName& name) {
    if (Stopped(limits_.stopped)) return StoppedError();
    head_.reset();
    ASSIGN_OR_RETURN(collection_, documents_.collections().Find(*reader_, name.collection));
    if (!collection_) return absl::OkStatus();
    document_ = {collection_->incarnation, name.id};
    ASSIGN_OR_RETURN(head_, collection_->strategy->ReadHead(context_, document_));
    ASSIGN_OR_RETURN(evaluation_.undecided,
                     versioning::FindUndecided(context_, *collection_->strategy, document_, head_));
    if (!head_) return absl::OkStatus();
    if (head_->record.size() > limits_.document_bytes_max) return versioning::TakesLong();
    return Hold(head_->record.size());
  }

  // Of the documents, as they are stored and as they are to be, so much more.
  absl::Status Hold(size_t bytes) {
    bytes_ += bytes;
    const size_t most = documents_.write_options().unit_bytes_max;
    return bytes_ > most ? versioning::UnitTooLarge(most) : absl::OkStatus();
  }

  // A document is held by a version of its own, so it needs a collection, read or written.
  absl::Status CheckCollection(const DocumentName& name, bool may_make) {
    if (!collection_ && !documents_.write_options().create_collections) {
      return versioning::CollectionNotFound(name.collection);
    }
    if (!collection_ || !collection_->used) {
      evaluation_.unprepared.push_back({name.collection, !collection_, may_make});
    }
    return absl::OkStatus();
  }

  absl::Status CheckPrecondition(const Operation& operation) {
    const versioning::Precondition& precondition = operation.precondition;
    const bool exists = current() != nullptr && !current()->deleted();
    if (precondition.version && *precondition.version != version()) {
      return versioning::VersionConflict(operation.name, std::to_string(*precondition.version),
                                         version());
    }
    if (precondition.exists && *precondition.exists != exists) {
      return versioning::VersionConflict(
          operation.name, *precondition.exists ? "an existing one" : "a missing one", version());
    }
    if (!precondition.filter) return absl::OkStatus();
    if (!exists) return versioning::FilterNotMatched(operation.name, current());
    return CheckFilter(operation);
  }

  // Conditions cost what they are, on a small document too; all together have the time of one.
  absl::Status CheckFilter(const Operation& operation) {
    const document::Filter& filter = *operation.precondition.filter;
    if (brief_ && filter.WorkBytes(current()->content->size()) > versioning::kBriefFilterBytesMax) {
      return versioning::TakesLong();
    }
    if (brief_ && !filters_until_) {
      filters_until_ = clock_.SteadyNow() + versioning::kBriefTimeMax;
    }
    bool takes_long = false;
    const StopCheck stopped = [&] {
      takes_long = filters_until_ && clock_.SteadyNow() >= *filters_until_;
      return takes_long || Stopped(limits_.stopped);
    };
    const absl::StatusOr<bool> matches = filter.Matches(*current()->content, stopped);
    if (ReasonOf(matches.status()) == ErrorReason::kInvalidFilter) return matches.status();
    if (!matches.ok()) return takes_long ? versioning::TakesLong() : StoppedError();
    return *matches ? absl::OkStatus() : versioning::FilterNotMatched(operation.name, current());
  }

  versioning::CurrentState State() const {
    versioning::CurrentState state;
    state.version = current();
    state.brief = brief_;
    state.read = [this](int64_t version) -> absl::StatusOr<StoredVersion> {
      if (Stopped(limits_.stopped)) return StoppedError();
      return collection_->strategy->ReadVersion(context_, document_, *head_, version,
                                                versioning::Part::kContent);
    };
    return state;
  }

  std::optional<document::Content> AsItIs() const {
    return head_ ? head_->version.content : std::nullopt;
  }

  // A slot that is filled may have to be undone: a layout that has room for the one and not for the
  // other would leave the transaction unfinished for ever.
  absl::Status CheckRoom(const versioning::ChangeInfo& change,
                         std::optional<document::Content> content) {
    if (!collection_) return absl::OkStatus();
    StoredVersion versions[] = {LikeIn(change, version() + 1, std::move(content)),
                                LikeIn(undoing_, version() + 2, AsItIs())};
    // What holds or undoes a deletion keeps its numbers.
    if (head_ && head_->version.deleted()) {
      for (StoredVersion& made : versions) {
        made.header.change.labels.merge(versioning::NumbersKept(head_->version));
      }
    }
    if (head_) RETURN_IF_ERROR(collection_->strategy->PrepareToPlan(context_, document_, *head_));
    store::WriteBatch nowhere;
    return collection_->strategy->Plan(document_, head_ ? &*head_ : nullptr, versions,
                                       context_.capabilities, nowhere);
  }

  Participant& Add(const DocumentName& name) {
    Participant& participant = evaluation_.participants.emplace_back();
    participant.name = name;
    participant.incarnation = collection_ ? collection_->incarnation : 0;
    participant.base = version();
    return participant;
  }

  bool IsSame(const versioning::Mutation& mutation) const {
    return head_ && !head_->version.deleted() && mutation.content &&
           mutation.kind != versioning::VersionKind::kCreated &&
           document::SameMeaning(*head_->version.content, *mutation.content);
  }

  void AddResult(const Operation& operation, versioning::Mutation mutation,
                 const Participant& participant) {
    versioning::WriteResult& result = evaluation_.results.emplace_back();
    result.name = operation.name;
    result.changed = participant.changed;
    result.stale = participant.stale;
    result.note = participant.note;
    if (!participant.changed) {
      result.version = head_->version;
      return;
    }
    versioning::VersionHeader& header = result.version.header;
    header.version = participant.base + 1;
    header.kind = mutation.kind;
    header.commit_time = clock_.Now();
    const bool lives_on = head_ && !head_->version.deleted();
    header.create_time = lives_on ? head_->version.header.create_time : header.commit_time;
    header.change = operation.change;
    header.change.labels.merge(mutation.labels);
    result.version.content = std::move(mutation.content);
  }

  versioning::Documents& documents_;
  const Clock& clock_;
  const versioning::ChangeInfo& change_;  // the transaction's, which what is only read is held with
  versioning::ChangeInfo undoing_;        // as large as that of its undoing, or closing, may be
  const bool brief_;
  const versioning::ReadLimits limits_;
  const std::unique_ptr<store::Reader> reader_;
  const versioning::ReadContext context_;
  Evaluation evaluation_;
  size_t bytes_ = 0;
  // When the thread that others wait for has gone through conditions for long enough; none before
  // the first one.
  std::optional<std::chrono::steady_clock::time_point> filters_until_;
  // Of the document that is looked at.
  CollectionPtr collection_;
  store::DocumentKey document_;
  std::optional<Head> head_;
};

}  // namespace

absl::StatusOr<Evaluation> Evaluate(store::Store& store, versioning::Documents& documents,
                                    const Clock& clock, const std::vector<Operation>& operations,
                                    const std::vector<versioning::ReadCheck>& reads,
                                    const versioning::ChangeInfo& change,
                                    const EvaluationLimits& limits) {
  Evaluator reading(store, documents, clock, change, limits);
  const auto go_on = [&] { return reading.evaluation().undecided.empty(); };
  // Reads are decided first, as in a unit.
  for (size_t i = 0; i < reads.size() && go_on(); ++i) {
    const bool made =
        std::any_of(operations.begin(), operations.end(), [&](const Operation& operation) {
          return operation.name.collection == reads[i].name.collection;
        });
    if (absl::Status refusal = reading.Read(reads[i], made); !refusal.ok()) {
      return InElement(refusal, "reads", i);
    }
  }
  for (size_t i = 0; i < operations.size() && go_on(); ++i) {
    if (absl::Status refusal = reading.Write(operations[i]); !refusal.ok()) {
      return InElement(refusal, "writes", i);
    }
  }
  return reading.Take();
}

}  // namespace strata::transaction
