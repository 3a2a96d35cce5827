// Versions, each with what the one right before it held. Internal to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "schemas/document/content.h"
#include "schemas/document/diff.h"
#include "schemas/versioning/document_view.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// Of each version of History and Audit, so many bytes of changes are told (document::WireSize).
// Together with a content of document::Limits::kBytesCeiling and all else that a version says they
// stay below the 4 MiB that a client takes as one message, in both encodings.
inline constexpr size_t kChangesBytesMax = size_t{1} << 20;

// What changed from a content to that of `version`.
document::Changes ChangesSince(const document::Content& before, const StoredVersion& version);

// Walks versions of one document in either direction. To have pairs it walks one version further
// down than was asked for, and reads contents.
class VersionPairs {
 public:
  // The view must outlive it. A range whose first is greater than its last is empty.
  VersionPairs(const DocumentView& view, VersionRange range, Part part, bool pairs);

  bool Next();
  absl::Status status() const { return versions_ ? versions_->status() : absl::OkStatus(); }

  // The version moved to, until the next Next; may be moved from.
  StoredVersion& version() { return held_ ? *held_ : versions_->item(); }
  // What changed from the version right before it. REQUIRES: pairs, and its content is there.
  document::Changes changes() { return ChangesSince(before_, version()); }

 private:
  bool NextUpward();
  bool NextDownward();

  const bool pairs_;
  const bool downward_;
  const int64_t first_;                      // that was asked for
  std::unique_ptr<VersionCursor> versions_;  // null: none
  bool begun_ = false;
  bool more_ = false;                  // downward, in pairs: the cursor stands on a version
  std::optional<StoredVersion> held_;  // downward, in pairs: the cursor is one version ahead
  document::Content before_;
  document::Content content_;  // upward: of the version moved to
};

}  // namespace strata::versioning
