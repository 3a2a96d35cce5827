#include "schemas/versioning/documents.h"

#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/versioning/collection_walk.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/document_view.h"
#include "schemas/versioning/fingerprint.h"

namespace strata::versioning {
namespace {

// An id for a document that its creator did not name.
std::string MakeId(const WriteRequest& request, Entropy& entropy) {
  if (request.request_id.empty()) return absl::BytesToHexString(entropy.Bytes(16));
  const document::Hash hash = document::PartHasher()
                                  .Add("document id")
                                  .Add(request.name.collection)
                                  .Add(request.request_id)
                                  .Finish();
  return absl::BytesToHexString(ToAbsl(document::HashBytes(hash).substr(0, 16)));
}

absl::Status ValidateWrite(const WriteRequest& request) {
  RETURN_IF_ERROR(ValidateName(request.name));
  RETURN_IF_ERROR(ValidateChange(request.change));
  return ValidateRequestId(request.request_id);
}

// Of what makes a document, or brings an old content back, whatever its number.
absl::Status RefuseNewer(const WriteRequest& request) {
  return request.precondition.newer ? NewerRefused() : absl::OkStatus();
}

absl::Status FindAsOf(const DocumentName& name, const AsOf& as_of, DocumentView& document,
                      StoredVersion& found) {
  ASSIGN_OR_RETURN(std::optional<StoredVersion> version, document.TakeAsOf(as_of));
  if (version) {
    found = *std::move(version);
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const StoredVersion first, document.Read(1, Part::kHeader));
  if (as_of.Covers(first)) return DocumentNotFound(name);
  return as_of.time()
             ? NoVersionYet(name, *as_of.time(), first.header.commit_time, document.newest())
             : NoVersionYetAt(name, as_of.position(), first.position, document.newest());
}

// Of the document, out of its view: the version asked for, as it was written; else what readers
// are to see.
absl::Status Find(const DocumentName& name, const std::optional<int64_t>& number,
                  const std::optional<AsOf>& as_of, DocumentView& document, StoredVersion& found) {
  if (as_of) return FindAsOf(name, *as_of, document, found);
  if (number && *number != document.newest()) {
    ASSIGN_OR_RETURN(found, document.Read(*number, Part::kContent));
    return absl::OkStatus();
  }
  if (!number) {
    ASSIGN_OR_RETURN(const bool visible, document.ShowVisible());
    if (!visible) return DocumentNotFound(name);
  }
  found = document.TakeNewest();
  return absl::OkStatus();
}

}  // namespace

Documents::Documents(store::Store& store, const Clock& clock, Entropy& entropy, Executor& executor,
                     DocumentsOptions options)
    : store_(store),
      capabilities_(store.capabilities()),
      clock_(clock),
      entropy_(entropy),
      options_(options),
      collections_(std::make_shared<Collections>(store, clock, executor, options.collections_max,
                                                 options.write_executor)),
      write_path_(std::make_shared<WritePath>(
          store, collections_, clock, entropy,
          options.write_executor != nullptr ? *options.write_executor : executor, options.write)) {}

// Writes.

void Documents::Modify(WriteRequest request, Mutator mutator, WriteCallback done) {
  if (absl::Status status = ValidateWrite(request); !status.ok()) return done(std::move(status));
  write_path_->Modify(std::move(request), std::move(mutator), std::move(done));
}

void Documents::Commit(UnitRequest request, UnitCallback done) {
  write_path_->Commit(std::move(request), std::move(done));
}

void Documents::TakeSlot(SlotRequest request, SlotCallback done) {
  write_path_->TakeSlot(std::move(request), std::move(done));
}

void Documents::SettleWith(Settle settle) { write_path_->SettleWith(std::move(settle)); }

void Documents::Create(WriteRequest request, document::Content content, WriteCallback done) {
  if (absl::Status refusal = RefuseNewer(request); !refusal.ok()) return done(std::move(refusal));
  if (request.name.id.empty()) request.name.id = MakeId(request, entropy_);
  request.request_fingerprint = Fingerprint("create", request, content.bytes());
  Mutator create = CreateMutator(request.name, std::move(content));
  Modify(std::move(request), std::move(create), std::move(done));
}

void Documents::Update(WriteRequest request, NewContent new_content, bool allow_missing,
                       WriteCallback done) {
  if (const auto* const content = std::get_if<document::Content>(&new_content)) {
    request.request_fingerprint =
        Fingerprint(allow_missing ? "upsert" : "replace", request, content->bytes());
  } else {
    request.request_fingerprint =
        Fingerprint(allow_missing ? "patch or create" : "patch", request,
                    PatchArguments(std::get<document::Patch>(new_content)));
  }
  Mutator update =
      UpdateMutator(request.name, std::move(new_content), allow_missing, options_.limits);
  if (const auto& newer = request.precondition.newer) {
    update = NewerUpdateMutator(request.name, *newer, std::move(update), options_.limits);
  }
  Modify(std::move(request), std::move(update), std::move(done));
}

void Documents::Delete(WriteRequest request, WriteCallback done) {
  const std::optional<Newer>& newer = request.precondition.newer;
  request.removal = !newer;  // one that may add a document removes nothing
  request.request_fingerprint = Fingerprint("delete", request, "");
  Mutator remove = newer ? NewerDeleteMutator(request.name, *newer) : DeleteMutator(request.name);
  Modify(std::move(request), std::move(remove), std::move(done));
}

void Documents::Restore(WriteRequest request, int64_t version, WriteCallback done) {
  if (absl::Status refusal = RefuseNewer(request); !refusal.ok()) return done(std::move(refusal));
  request.request_fingerprint = Fingerprint("restore", request, std::to_string(version));
  Mutator restore = RestoreMutator(request.name, version);
  Modify(std::move(request), std::move(restore), std::move(done));
}

// Reads.

absl::StatusOr<StoredVersion> Documents::Get(const DocumentName& name, const At& at,
                                             const ReadLimits& limits) const {
  ASSIGN_OR_RETURN(const std::optional<AsOf> as_of,
                   AsOf::Make(at.time, at.position, store_, clock_));
  RETURN_IF_ERROR(ValidateName(name));
  absl::StatusOr<StoredVersion> found(absl::in_place);
  CollectionReader reader(store_, *collections_, limits);
  RETURN_IF_ERROR(reader.Read(name.collection, [&]() -> absl::Status {
    std::optional<DocumentView> document;
    RETURN_IF_ERROR(DocumentView::Open(name, reader, document));
    RETURN_IF_ERROR(Find(name, at.version, as_of, *document, *found));
    if (found->deleted()) return DocumentDeleted(name, found->header.version);
    return found->content->size() > limits.document_bytes_max ? TakesLong() : absl::OkStatus();
  }));
  return found;
}

absl::StatusOr<DiffEnd> Documents::Diff(const DiffQuery& query,
                                        const document::ChangeVisitor& visitor) const {
  RETURN_IF_ERROR(ValidateName(query.name));
  DiffEnd end;
  const ReadLimits limits{query.stopped};
  CollectionReader reader(store_, *collections_, limits);
  RETURN_IF_ERROR(reader.Read(query.name.collection, [&]() -> absl::Status {
    std::optional<DocumentView> document;
    end.incarnation = reader.collection().incarnation;
    if (query.incarnation != 0 && query.incarnation != end.incarnation) {
      return CollectionNotFound(query.name.collection);
    }
    RETURN_IF_ERROR(DocumentView::Open(query.name, reader, document));
    end.from_version = query.from_version;
    end.to_version = query.to_version == 0 ? document->newest() : query.to_version;
    ASSIGN_OR_RETURN(const StoredVersion from, document->Read(end.from_version, Part::kContent));
    ASSIGN_OR_RETURN(const StoredVersion to, document->Read(end.to_version, Part::kContent));
    end.complete =
        document::VisitChanges(ContentOrEmpty(from), ContentOrEmpty(to), query.skip, visitor);
    return absl::OkStatus();
  }));
  return end;
}

BatchGetCursor Documents::BatchGet(std::string collection, std::vector<std::string> ids) const {
  return BatchGetCursor(store_, *collections_, std::move(collection), std::move(ids));
}

HistoryCursor Documents::History(HistoryQuery query) const {
  return HistoryCursor(store_, *collections_, std::move(query));
}

ListCursor Documents::List(ListQuery query) const {
  return ListCursor(store_, *collections_, clock_, std::move(query));
}

CopyCursor Documents::Copy(CopyQuery query) const {
  return CopyCursor(store_, *collections_, clock_, std::move(query));
}

AuditCursor Documents::Audit(AuditQuery query) const {
  return AuditCursor(store_, *collections_, std::move(query));
}

Verification Documents::Verify(VerifyQuery query, VerifyPlace place) {
  return Verification(store_, *collections_, clock_, std::move(query), std::move(place));
}

absl::StatusOr<LedgerHead> Documents::GetLedgerHead() const {
  if (!capabilities_.commit_positions) return NoLedger("it keeps no ledger");
  return ReadLedgerHead(store_);
}

}  // namespace strata::versioning
