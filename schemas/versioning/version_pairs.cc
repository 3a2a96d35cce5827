#include "schemas/versioning/version_pairs.h"

#include <algorithm>
#include <utility>

namespace strata::versioning {

document::Changes ChangesSince(const document::Content& before, const StoredVersion& version) {
  return document::Diff(before, ContentOrEmpty(version), kChangesBytesMax);
}

VersionPairs::VersionPairs(const DocumentView& view, VersionRange range, Part part, bool pairs)
    : pairs_(pairs), downward_(range.newest_first), first_(range.first) {
  if (range.first > range.last) return;
  if (pairs) {
    range.first = std::max<int64_t>(1, range.first - 1);
    if (range.wanted > 0) ++range.wanted;
    part = Part::kContent;
  }
  versions_ =
      view.strategy().ScanVersions(view.context(), view.document(), view.head(), range, part);
}

bool VersionPairs::Next() {
  if (versions_ == nullptr) return false;
  if (!pairs_) return versions_->Next();
  return downward_ ? NextDownward() : NextUpward();
}

bool VersionPairs::NextUpward() {
  while (versions_->Next()) {
    before_ = std::exchange(content_, ContentOrEmpty(versions_->item()));
    if (versions_->item().header.version >= first_) return true;
  }
  return false;
}

// The cursor stands on the version before the one given last, or has ended.
bool VersionPairs::NextDownward() {
  if (!std::exchange(begun_, true)) more_ = versions_->Next();
  if (!more_ || versions_->item().header.version < first_) return false;
  held_ = std::move(versions_->item());
  more_ = versions_->Next();
  before_ = more_ ? ContentOrEmpty(versions_->item()) : document::Content();
  return versions_->status().ok();
}

}  // namespace strata::versioning
