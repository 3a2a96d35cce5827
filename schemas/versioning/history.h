// History: the versions of one document, as a walk that its caller pulls.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/names.h"
#include "schemas/document/diff.h"
#include "schemas/document/filter.h"
#include "schemas/versioning/collection_walk.h"
#include "schemas/versioning/document_view.h"
#include "schemas/versioning/version_pairs.h"

namespace strata::versioning {

struct HistoryQuery {
  DocumentName name;
  std::optional<int64_t> from_version;
  std::optional<UnixMicros> from_time;
  std::optional<int64_t> to_version;
  std::optional<UnixMicros> to_time;
  bool oldest_first = false;
  std::optional<document::Filter> filter;  // only versions whose content matches
  std::optional<int64_t> resume_at;        // goes on with this version, in the query's direction
  int64_t incarnation = 0;                 // of the collection where it goes on; 0: it begins
  int64_t page_size = 0;  // so many will be taken at most, for reading ahead; 0: all
  bool include_content = false;
  bool include_changes = false;
  StopCheck stopped = {};  // as of a ListQuery
};

class HistoryCursor final : public CollectionWalk {
 public:
  // Documents::History. All must outlive it.
  HistoryCursor(store::Store& store, Collections& collections, HistoryQuery query);

  const HistoryQuery& query() const { return query_; }

  // Of the version moved to, until the next Next; may be moved from.
  StoredVersion& version() { return versions_->version(); }
  document::Changes& changes() { return changes_; }

  // Where a walk goes on that does not take the version stood on: there. At the end: nothing, or,
  // where this walk might look no further, with the first that it did not look at.
  const std::optional<int64_t>& resume_at() const { return resume_at_; }

 private:
  absl::Status Begin() override;
  absl::StatusOr<bool> Advance() override;
  void LetGo() override;
  absl::StatusOr<VersionRange> Range() const;

  const HistoryQuery query_;
  std::optional<int64_t> next_;  // of a walk that begins anew
  std::optional<int64_t> resume_at_;
  int64_t examined_ = 0;
  std::optional<DocumentView> document_;
  std::optional<VersionPairs> versions_;
  document::Changes changes_;
};

}  // namespace strata::versioning
