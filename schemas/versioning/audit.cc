#include "schemas/versioning/audit.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/collection_walk.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/document_view.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/ledger_entries.h"
#include "schemas/versioning/ledger_floor.h"
#include "schemas/versioning/version_pairs.h"

namespace strata::versioning {
namespace {

absl::Status Validate(const AuditQuery& query) {
  if (!query.collection.empty()) RETURN_IF_ERROR(ValidateName("collection", query.collection));
  if (!query.id.empty()) {
    if (query.collection.empty()) return FieldError("collection", "is required with id");
    RETURN_IF_ERROR(ValidateName("id", query.id));
  }
  RETURN_IF_ERROR(ValidateRequestId(query.request_id));
  for (const std::string& id : query.transaction_ids) RETURN_IF_ERROR(ValidateTransactionId(id));
  return absl::OkStatus();
}

bool IsAskedFor(const AuditQuery& query, const store::LedgerEntryView& entry) {
  return IsVersion(entry) && (query.collection.empty() || entry.collection == query.collection) &&
         (query.id.empty() || entry.id == query.id);
}

bool IsAskedFor(const AuditQuery& query, const VersionHeader& header) {
  if (!query.actor.empty() && header.change.actor != query.actor) return false;
  if (!query.request_id.empty() && header.request_id != query.request_id) return false;
  const std::vector<std::string>& transactions = query.transaction_ids;
  if (!transactions.empty() && std::find(transactions.begin(), transactions.end(),
                                         header.transaction_id) == transactions.end()) {
    return false;
  }
  if (query.start_time && header.commit_time < *query.start_time) return false;
  if (query.end_time && header.commit_time >= *query.end_time) return false;
  return query.kinds.empty() ||
         std::find(query.kinds.begin(), query.kinds.end(), header.kind) != query.kinds.end();
}

// The index of a version in the ledger entries of its commit; 0 where these were trimmed.
absl::StatusOr<uint32_t> LedgerIndex(const LedgerFloor& floor, CommitEntries& entries,
                                     const store::DocumentKey& document,
                                     const StoredVersion& version) {
  if (version.position < floor.position || version.position == 0) return 0;
  RETURN_IF_ERROR(entries.Find(version.position));
  while (entries.Next()) {
    const store::LedgerEntryView& entry = entries.entry();
    if (entry.incarnation == document.incarnation && entry.id == document.id &&
        entry.version == version.header.version) {
      return entries.index();
    }
  }
  RETURN_IF_ERROR(entries.status());
  return Error(ErrorReason::kRecordCorrupt, "the ledger lacks an entry for a stored version")
      .With("id", document.id)
      .With("version", version.header.version)
      .With("position", version.position);
}

}  // namespace

// Reads what the ledger leaves out: hashes and changes, from the documents' own records.
class AuditCursor::LedgerDetails {
 public:
  LedgerDetails(Collections& collections, const ReadContext& context)
      : collections_(collections), context_(context) {}

  // Leaves the row as it is if its collection has been deleted since.
  absl::Status Fill(const store::LedgerEntryView& entry, bool changes, AuditRow& row) {
    ASSIGN_OR_RETURN(const CollectionPtr collection,
                     collections_.Find(context_.reader, entry.collection));
    if (!collection || collection->incarnation != entry.incarnation) return absl::OkStatus();
    const store::DocumentKey document{entry.incarnation, std::string(entry.id)};
    // Entries of one document often stand together.
    if (!head_ || !(document_ == document)) {
      ASSIGN_OR_RETURN(head_, collection->strategy->ReadHead(context_, document));
      document_ = document;
    }
    const int64_t version = entry.version;
    if (!head_ || head_->version.header.version < version) {
      return Error(ErrorReason::kRecordCorrupt, "the ledger names a version that is not stored")
          .With("collection", entry.collection)
          .With("id", entry.id)
          .With("version", version);
    }
    const Part part = changes ? Part::kContent : Part::kHeader;
    ASSIGN_OR_RETURN(row.version,
                     collection->strategy->ReadVersion(context_, document, *head_, version, part));
    if (!changes) return absl::OkStatus();
    StoredVersion before;
    if (version > 1) {
      ASSIGN_OR_RETURN(
          before, collection->strategy->ReadVersion(context_, document, *head_, version - 1, part));
    }
    row.changes = ChangesSince(ContentOrEmpty(before), row.version);
    row.version.content.reset();
    return absl::OkStatus();
  }

 private:
  Collections& collections_;
  const ReadContext context_;
  store::DocumentKey document_;
  std::optional<Head> head_;
};

absl::Status NoLedger(std::string_view advice) {
  return Error(ErrorReason::kUnsupportedByEngine,
               "this engine numbers no commits: " + std::string(advice))
      .With("capability", "commit_positions");
}

// One of the two ways to walk.
class AuditCursor::Walk {
 public:
  virtual ~Walk() = default;
  virtual bool Next() = 0;
  virtual const absl::Status& status() const = 0;
  AuditRow& row() { return row_; }
  const std::optional<LedgerPlace>& resume_at() const { return resume_at_; }

 protected:
  AuditRow row_;
  std::optional<LedgerPlace> resume_at_;
};

// Over the versions of one document.
class AuditCursor::DocumentWalk final : public Walk, private CollectionWalk {
 public:
  DocumentWalk(store::Store& store, Collections& collections, const AuditQuery& query)
      : CollectionWalk(store, collections, query.collection, query.stopped,
                       query.resume_at.incarnation),
        query_(query),
        name_{query.collection, query.id},
        next_(query.resume_at.version) {}

  bool Next() override { return CollectionWalk::Next(); }
  const absl::Status& status() const override { return CollectionWalk::status(); }

 private:
  absl::Status Begin() override {
    RETURN_IF_ERROR(DocumentView::Open(name_, reader(), document_));
    const store::Reader& store = reader().context().reader;
    entries_.emplace(store);
    if (reader().context().capabilities.commit_positions) {
      ASSIGN_OR_RETURN(floor_, ReadLedgerFloor(store));
    }
    versions_.emplace(*document_, Rest(), Part::kHeader, query_.include_changes);
    return absl::OkStatus();
  }

  VersionRange Rest() const {
    const int64_t newest = document_->newest();
    if (!query_.newest_first) return {std::max<int64_t>(1, next_), newest, false};
    if (passed_all_) return {};
    return {1, next_ == 0 ? newest : std::min(next_, newest), true};
  }

  absl::StatusOr<bool> Advance() override {
    while (versions_->Next()) {
      StoredVersion& version = versions_->version();
      const int64_t number = version.header.version;
      resume_at_ = LedgerPlace{version.position, 0, number, document_->document().incarnation};
      if (examined_++ == kExaminedMax) return false;
      if (Stopped(stopped())) return StoppedError();
      const bool asked_for = IsAskedFor(query_, version.header);
      if (asked_for) RETURN_IF_ERROR(FillRow(version));
      next_ = query_.newest_first ? number - 1 : number + 1;
      passed_all_ = next_ == 0;
      if (!asked_for) continue;
      resume_at_ = row_.place;
      return true;
    }
    RETURN_IF_ERROR(versions_->status());
    resume_at_.reset();
    return false;
  }

  void LetGo() override {
    versions_.reset();
    entries_.reset();
    document_.reset();
  }

  absl::Status FillRow(StoredVersion& version) {
    ASSIGN_OR_RETURN(const uint32_t index,
                     LedgerIndex(floor_, *entries_, document_->document(), version));
    row_.place = {version.position, index, version.header.version,
                  document_->document().incarnation};
    row_.collection = name_.collection;
    row_.id = name_.id;
    if (query_.include_changes) row_.changes = versions_->changes();
    row_.version = std::move(version);
    row_.version.content.reset();
    return absl::OkStatus();
  }

  const AuditQuery& query_;
  const DocumentName name_;
  int64_t next_;  // of a walk that begins anew; 0: the first one
  bool passed_all_ = false;
  int64_t examined_ = 0;
  std::optional<DocumentView> document_;
  LedgerFloor floor_;
  std::optional<CommitEntries> entries_;
  std::optional<VersionPairs> versions_;
};

// Over the ledger.
class AuditCursor::LedgerWalk final : public Walk {
 public:
  LedgerWalk(store::Store& store, Collections& collections, const AuditQuery& query)
      : store_(store), collections_(collections), query_(query), limits_{query.stopped} {}

  bool Next() override {
    if (ended_) return false;
    const absl::StatusOr<bool> moved = Advance();
    status_ = moved.status();
    ended_ = !moved.ok() || !*moved;
    return !ended_;
  }
  const absl::Status& status() const override { return status_; }

 private:
  absl::Status Begin() {
    reader_ = store_.Snapshot();
    details_.emplace(collections_, ReadContext{*reader_, store_.capabilities(), &limits_});
    ASSIGN_OR_RETURN(const LedgerFloor floor, ReadLedgerFloor(*reader_));
    const LedgerPlace& begin = query_.resume_at;
    // The entry that it names comes next.
    if (begin.position != 0 && begin.position < floor.position) {
      return PositionTrimmed("page_token", begin.position, floor.trimmed);
    }
    LedgerSpan span{query_.start_time, query_.end_time};
    if (query_.newest_first) {
      // Where a walk over versions stood, its version says what was passed (WasPassed).
      const uint32_t index =
          begin.version == 0 ? begin.index : std::numeric_limits<uint32_t>::max();
      ASSIGN_OR_RETURN(entries_,
                       LedgerDownward(*reader_, begin.position, index, floor.position, span));
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(entries_, LedgerUpward(*reader_, std::max(begin.position, floor.position),
                                            begin.index, span));
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Advance() {
    if (entries_ == nullptr) RETURN_IF_ERROR(Begin());
    while (entries_->Next()) {
      resume_at_ = LedgerPlace{entries_->position(), entries_->index(), 0};
      if (examined_++ == kExaminedMax) return false;
      if (Stopped(query_.stopped)) return StoppedError();
      if (!IsAskedFor(query_, entries_->entry()) || WasPassed(entries_->entry())) continue;
      ASSIGN_OR_RETURN(const bool asked_for, FillRow(entries_->entry()));
      if (asked_for) return true;
    }
    RETURN_IF_ERROR(entries_->status());
    resume_at_.reset();
    return false;
  }

  // Of the commit that a walk over versions stood in, whose index it may not have known.
  bool WasPassed(const store::LedgerEntryView& entry) const {
    const LedgerPlace& begin = query_.resume_at;
    if (begin.version == 0 || entries_->position() != begin.position) return false;
    return query_.newest_first ? entry.version > begin.version : entry.version < begin.version;
  }

  absl::StatusOr<bool> FillRow(const store::LedgerEntryView& entry) {
    row_ = AuditRow();
    row_.version.header = HeaderOf(entry);
    if (!IsAskedFor(query_, row_.version.header)) return false;
    row_.place = {entries_->position(), entries_->index(), entry.version};
    row_.version.position = row_.place.position;
    RETURN_IF_ERROR(details_->Fill(entry, query_.include_changes, row_));
    row_.collection = entry.collection;
    row_.id = entry.id;
    return true;
  }

  store::Store& store_;
  Collections& collections_;
  const AuditQuery& query_;
  const ReadLimits limits_;
  std::unique_ptr<store::Reader> reader_;
  std::optional<LedgerDetails> details_;
  std::unique_ptr<LedgerEntries> entries_;
  int64_t examined_ = 0;
  bool ended_ = false;
  absl::Status status_;
};

AuditCursor::AuditCursor(store::Store& store, Collections& collections, AuditQuery query)
    : store_(store),
      collections_(collections),
      query_(std::move(query)),
      refusal_(Validate(query_)) {
  const bool has_ledger = store.capabilities().commit_positions;
  const bool one_document = !query_.id.empty();
  if (refusal_.ok() && !one_document && !has_ledger) {
    refusal_ = NoLedger("ask for the audit of one document");
  }
  if (!refusal_.ok()) return;
  if (one_document) {
    walk_ = std::make_unique<DocumentWalk>(store_, collections_, query_);
    may_turn_to_ledger_ = has_ledger;
  } else {
    walk_ = std::make_unique<LedgerWalk>(store_, collections_, query_);
  }
}

AuditCursor::~AuditCursor() = default;

bool AuditCursor::Next() {
  if (walk_ == nullptr) return false;
  if (walk_->Next()) return true;
  // What was done to a document outlives its collection, in the ledger.
  const bool gone = ReasonOf(walk_->status()) == ErrorReason::kCollectionNotFound;
  const bool nothing_seen = !walk_->resume_at();
  if (!may_turn_to_ledger_ || !gone || !nothing_seen) return false;
  may_turn_to_ledger_ = false;
  walk_ = std::make_unique<LedgerWalk>(store_, collections_, query_);
  return walk_->Next();
}

AuditRow& AuditCursor::row() { return walk_->row(); }

std::optional<LedgerPlace> AuditCursor::resume_at() const {
  return walk_ == nullptr ? std::nullopt : walk_->resume_at();
}

const absl::Status& AuditCursor::status() const {
  return walk_ == nullptr ? refusal_ : walk_->status();
}

}  // namespace strata::versioning
