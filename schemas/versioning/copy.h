// Copy: the documents of many collections as of one commit, as a walk that its caller pulls, cuts
// off where it likes and goes on with later. Whoever takes a copy as of p and then every version of
// a later commit (ledger.h) has each document as it is, and each later version once.
//
// No moment of the engine is held from walk to walk: a document as of p is its current version if
// that was committed by p, else the newest one that was. Versions never change, so it is the same
// whenever it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/stop.h"
#include "schemas/document/filter.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/list.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// How far a copy has come: all documents up to this one, in the byte order of collection and id,
// were looked at. Both empty: none.
struct CopyPlace {
  std::string collection;
  std::string id;

  friend bool operator==(const CopyPlace&, const CopyPlace&) = default;
};

struct CopyQuery {
  store::CommitPosition at_position = 0;
  // Of these, in any order, which need not exist; empty: of all.
  std::vector<std::string> collections;
  std::string id_prefix;
  std::optional<document::Filter> filter;  // only documents whose content matched then
  CopyPlace after;
  size_t examined_bytes_max = std::numeric_limits<size_t>::max();  // both as ListQuery's
  StopCheck stopped = {};
};

// Gives what was written: the versions of transactions in two phases count from their own commits
// on, decided or not, as they do in the ledger. Deleted documents and those of collections that are
// deleted by now are left out; the ledger says after p that these are gone.
//
// Holds resources of the engine from the first Next on: let it go within a second or so, and go on
// with another one. Not thread-safe; must not outlive the facade.
//
//   while (cursor.Next()) Use(cursor.collection(), cursor.id(), cursor.version());
//   RETURN_IF_ERROR(cursor.status());
class CopyCursor {
 public:
  // Documents::Copy. All must outlive it.
  CopyCursor(store::Store& store, Collections& collections, const Clock& clock, CopyQuery query);

  // Moves to the next document; false at the end, where the walk has looked at all that one may
  // look at (kExaminedMax documents or so), and after an error; from then on, too.
  bool Next();

  // Of the document moved to, until the next Next.
  const std::string& collection() const { return documents_->query().collection; }
  const std::string& id() const { return documents_->id(); }
  StoredVersion& version() { return documents_->version(); }  // may be moved from

  // Where a walk goes on that does not take the document stood on. At the end: nothing, the copy is
  // whole; or, where this walk might look no further, the last place that it looked at.
  std::optional<CopyPlace> resume_after() const;

  // Why the walk ended: OK unless it failed. As ListCursor's, but for COLLECTION_NOT_FOUND.
  const absl::Status& status() const { return status_; }

 private:
  absl::StatusOr<bool> Advance();
  absl::StatusOr<std::optional<std::string>> NextCollection();
  void Open(std::string collection, std::string after_id);

  store::Store& store_;
  Collections& collections_;
  const Clock& clock_;
  const CopyQuery query_;
  size_t next_named_ = 0;                  // of the query's collections
  std::optional<CollectionCursor> names_;  // of all
  bool begun_ = false;
  bool ended_ = false;
  // In the collections before this one; themselves count as documents.
  int64_t examined_ = 0;
  size_t examined_bytes_ = 0;
  std::unique_ptr<ListCursor> documents_;
  std::optional<std::string> unopened_;  // the collection that this walk might not begin with
  absl::Status status_;
};

}  // namespace strata::versioning
