// List: the documents of a collection, as a walk that its caller pulls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/document/filter.h"
#include "schemas/store/store.h"
#include "schemas/versioning/as_of.h"
#include "schemas/versioning/collection_walk.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

struct ListQuery {
  std::string collection;
  std::string id_prefix;
  std::string after_id;     // only ids greater than this
  int64_t incarnation = 0;  // of the collection where it goes on; 0: it begins
  bool show_deleted = false;
  std::optional<document::Filter> filter;  // only documents whose content matches
  // As of then; both unset: now.
  std::optional<UnixMicros> at_time;
  std::optional<store::CommitPosition> at_position;
  // The newest version counts, even if it is undecided or was undone: what the ledger tells of.
  bool as_written = false;
  // With this much content looked at, the walk ends as after kExaminedMax documents.
  size_t examined_bytes_max = std::numeric_limits<size_t>::max();
  // Asked for each document that is looked at, and while its filter is; then CANCELLED.
  StopCheck stopped = {};
};

class ListCursor final : public CollectionWalk {
 public:
  // Documents::List. All must outlive it.
  ListCursor(store::Store& store, Collections& collections, const Clock& clock, ListQuery query);

  const ListQuery& query() const { return query_; }

  // Of the document moved to, until the next Next.
  const std::string& id() const { return heads_->item().id; }
  StoredVersion& version() { return *version_; }  // may be moved from

  // The id after which a walk goes on that does not take the document stood on. At the end:
  // nothing, or, where this walk might look no further, the last that it looked at.
  std::optional<std::string> resume_after() const;
  // How many documents were looked at up to there.
  int64_t examined() const { return examined_; }
  // How much content of them, that of the document stood on included.
  size_t examined_bytes() const { return examined_bytes_; }

 private:
  absl::Status Begin() override;
  absl::StatusOr<bool> Advance() override;
  void LetGo() override;
  absl::StatusOr<bool> IsListed();
  absl::StatusOr<std::optional<StoredVersion>> ReadVisible() const;
  void Pass();

  const ListQuery query_;
  std::optional<AsOf> as_of_;
  std::string passed_;  // the id before those to come
  int64_t examined_ = 0;
  size_t examined_bytes_ = 0;
  std::unique_ptr<HeadCursor> heads_;
  bool more_ = false;                 // it stands on a document
  std::optional<StoredVersion> old_;  // that is listed in the current one's place
  StoredVersion* version_ = nullptr;
};

}  // namespace strata::versioning
