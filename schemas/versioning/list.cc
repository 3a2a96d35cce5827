#include "schemas/versioning/list.h"

#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_view.h"
#include "schemas/versioning/names.h"

namespace strata::versioning {

ListCursor::ListCursor(store::Store& store, Collections& collections, const Clock& clock,
                       ListQuery query)
    : CollectionWalk(store, collections, query.collection, query.stopped),
      query_(std::move(query)),
      passed_(query_.after_id) {
  absl::Status valid = CheckAtTime(query_.at_time, clock);
  if (valid.ok()) valid = ValidateName("collection", query_.collection);
  Refuse(std::move(valid));
}

absl::Status ListCursor::Begin() {
  const Collection& collection = reader().collection();
  heads_ = collection.strategy->ScanHeads(reader().context(), collection.incarnation,
                                          query_.id_prefix, passed_, Part::kContent);
  return absl::OkStatus();
}

absl::StatusOr<bool> ListCursor::Advance() {
  if (more_) Pass();
  while ((more_ = heads_->Next())) {
    if (examined_ == kExaminedMax) return false;
    if (Stopped(stopped())) return StoppedError();
    ASSIGN_OR_RETURN(const bool listed, IsListed());
    if (listed) return true;
    Pass();
  }
  RETURN_IF_ERROR(heads_->status());
  return false;
}

// Sets `version_` to what is listed of the document stood on: its current version, or an older one.
absl::StatusOr<bool> ListCursor::IsListed() {
  version_ = &heads_->item().version;
  const VersionHeader& current = version_->header;
  const bool later = query_.at_time && current.commit_time > *query_.at_time;
  if (later && current.version == 1) return false;
  if (later || current.mark == VersionMark::kApplied) {
    ASSIGN_OR_RETURN(old_, ReadVisible());
    if (!old_) return false;
    version_ = &*old_;
  }
  if (version_->deleted() && !query_.show_deleted) return false;
  return Matches(query_.filter, *version_, stopped());
}

// What readers are to see of the document stood on, with content; nothing if that is nothing.
absl::StatusOr<std::optional<StoredVersion>> ListCursor::ReadVisible() const {
  const DocumentName name{query_.collection, id()};
  std::optional<DocumentView> document;
  absl::Status opened = DocumentView::Open(name, reader(), document);
  if (ReasonOf(opened) == ErrorReason::kDocumentNotFound) {
    // The scan found it just now.
    return Error(ErrorReason::kRecordCorrupt, "a document has lost its current version")
        .With("collection", name.collection)
        .With("id", name.id);
  }
  RETURN_IF_ERROR(opened);
  if (query_.at_time) return document->TakeAsOf(*query_.at_time);
  ASSIGN_OR_RETURN(const bool visible, document->ShowVisible());
  if (!visible) return std::nullopt;
  return document->TakeNewest();
}

void ListCursor::Pass() {
  ++examined_;
  passed_ = std::move(heads_->item().id);
}

void ListCursor::LetGo() {
  heads_.reset();
  more_ = false;
}

std::optional<std::string> ListCursor::resume_after() const {
  if (!more_) return std::nullopt;
  return passed_;
}

}  // namespace strata::versioning
