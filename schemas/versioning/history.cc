#include "schemas/versioning/history.h"

#include <algorithm>
#include <utility>

#include "schemas/base/status_macros.h"

namespace strata::versioning {

HistoryCursor::HistoryCursor(store::Store& store, Collections& collections, HistoryQuery query)
    : CollectionWalk(store, collections, query.name.collection, query.stopped, query.incarnation),
      query_(std::move(query)),
      next_(query_.resume_at) {
  Refuse(ValidateName(query_.name));
}

absl::Status HistoryCursor::Begin() {
  RETURN_IF_ERROR(DocumentView::Open(query_.name, reader(), document_));
  ASSIGN_OR_RETURN(const VersionRange range, Range());
  const bool content = query_.include_content || query_.filter;
  versions_.emplace(*document_, range, content ? Part::kContent : Part::kHeader,
                    query_.include_changes);
  return absl::OkStatus();
}

absl::StatusOr<VersionRange> HistoryCursor::Range() const {
  const int64_t newest = document_->newest();
  VersionRange range{query_.from_version.value_or(1),
                     std::min(query_.to_version.value_or(newest), newest), !query_.oldest_first};
  // One more tells whether there is another page.
  if (query_.page_size > 0 && !query_.filter) range.wanted = query_.page_size + 1;
  if (query_.from_time) {
    ASSIGN_OR_RETURN(const int64_t before,
                     document_->VersionAsOf(AsOf::AtTime(*query_.from_time - 1)));
    range.first = before + 1;
  }
  if (query_.to_time) {
    ASSIGN_OR_RETURN(range.last, document_->VersionAsOf(AsOf::AtTime(*query_.to_time)));
  }
  if (next_ && query_.oldest_first) range.first = std::max(range.first, *next_);
  if (next_ && !query_.oldest_first) range.last = std::min(range.last, *next_);
  return range;
}

absl::StatusOr<bool> HistoryCursor::Advance() {
  while (versions_->Next()) {
    StoredVersion& version = versions_->version();
    const int64_t number = version.header.version;
    resume_at_ = number;
    if (query_.filter && examined_++ == kExaminedMax) return false;
    if (Stopped(stopped())) return StoppedError();
    next_ = query_.oldest_first ? number + 1 : number - 1;
    ASSIGN_OR_RETURN(const bool matches, Matches(query_.filter, version, stopped()));
    if (!matches) continue;
    if (query_.include_changes) changes_ = versions_->changes();
    if (!query_.include_content) version.content.reset();
    return true;
  }
  RETURN_IF_ERROR(versions_->status());
  resume_at_.reset();
  return false;
}

void HistoryCursor::LetGo() {
  versions_.reset();
  document_.reset();
}

}  // namespace strata::versioning
