// Audit: who changed what, when and why, as a walk that its caller pulls: of one document over its
// versions, of more over the ledger (ledger.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schemas/base/clock.h"
#include "schemas/base/stop.h"
#include "schemas/document/diff.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/version.h"

namespace strata::versioning {

// Where a walk goes on: over the ledger, or, where there is a version, over those of one document.
// A version's place in the ledger is told along with it, as far as it is known, because its
// collection may be gone by then.
struct LedgerPlace {
  store::CommitPosition position = 0;
  uint32_t index = 0;
  int64_t version = 0;
  int64_t incarnation = 0;  // of the collection, where a walk over versions stood; 0: elsewhere
};

struct AuditQuery {
  std::string collection;          // empty: every one
  std::string id;                  // empty: every one; needs a collection
  std::string actor;               // empty: everybody's
  std::vector<VersionKind> kinds;  // empty: all
  std::optional<UnixMicros> start_time;
  std::optional<UnixMicros> end_time;        // exclusive
  std::string request_id;                    // empty: all
  std::vector<std::string> transaction_ids;  // empty: all
  LedgerPlace resume_at;
  bool newest_first = false;
  bool include_changes = false;
  StopCheck stopped = {};  // asked for each version or entry that is looked at; then CANCELLED
};

struct AuditRow {
  // Its index is 0 where the ledger was trimmed.
  LedgerPlace place;
  std::string collection;
  std::string id;
  StoredVersion version;  // header only; without hashes if the collection has been deleted since
  document::Changes changes;
};

// Holds resources of the engine from the first Next on: let it go within a second or so. Not
// thread-safe; must not outlive the facade.
//
//   while (cursor.Next()) Use(cursor.row());
//   RETURN_IF_ERROR(cursor.status());
class AuditCursor {
 public:
  // Documents::Audit. All must outlive it.
  AuditCursor(store::Store& store, Collections& collections, AuditQuery query);
  ~AuditCursor();
  AuditCursor(const AuditCursor&) = delete;
  AuditCursor& operator=(const AuditCursor&) = delete;

  // Moves to the next row; false at the end, where the walk has looked at all that one may look at,
  // and after an error; from then on, too.
  bool Next();

  // Of the row moved to, until the next Next; may be moved from.
  AuditRow& row();

  // Where a walk goes on that does not take the row stood on: there. At the end: nothing, or, where
  // this walk might look no further, with the first that it did not look at.
  std::optional<LedgerPlace> resume_at() const;

  // Why the walk ended: OK unless it failed.
  const absl::Status& status() const;

 private:
  class Walk;
  class DocumentWalk;
  class LedgerDetails;
  class LedgerWalk;

  store::Store& store_;
  Collections& collections_;
  const AuditQuery query_;
  absl::Status refusal_;
  std::unique_ptr<Walk> walk_;  // null: refused
  bool may_turn_to_ledger_ = false;
};

// UNSUPPORTED_BY_ENGINE: there is no ledger without commit positions; `advice` says what to do.
absl::Status NoLedger(std::string_view advice);

}  // namespace strata::versioning
