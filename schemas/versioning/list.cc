#include "schemas/versioning/list.h"

#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_view.h"

namespace strata::versioning {

ListCursor::ListCursor(store::Store& store, Collections& collections, const Clock& clock,
                       ListQuery query)
    : CollectionWalk(store, collections, query.collection, query.stopped, query.incarnation),
      query_(std::move(query)),
      passed_(query_.after_id) {
  const absl::StatusOr<std::optional<AsOf>> as_of =
      AsOf::Make(query_.at_time, query_.at_position, store, clock);
  if (as_of.ok()) as_of_ = *as_of;
  Refuse(as_of.ok() ? ValidateName("collection", query_.collection) : as_of.status());
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
    if (examined_ == kExaminedMax || examined_bytes_ >= query_.examined_bytes_max) return false;
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
  const bool later = as_of_ && !as_of_->Covers(*version_);
  if (later && current.version == 1) return false;
  if (later || (current.mark == VersionMark::kApplied && !query_.as_written)) {
    ASSIGN_OR_RETURN(old_, ReadVisible());
    if (!old_) return false;
    version_ = &*old_;
  }
  if (version_->content) examined_bytes_ += version_->content->size();
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
  if (as_of_) {
    return query_.as_written ? document->TakeWrittenBy(*as_of_) : document->TakeAsOf(*as_of_);
  }
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
