// The Documents facade: all operations on versioned documents, over any store and strategy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/base/names.h"
#include "schemas/document/content.h"
#include "schemas/document/diff.h"
#include "schemas/store/store.h"
#include "schemas/versioning/audit.h"
#include "schemas/versioning/batch_get.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/copy.h"
#include "schemas/versioning/history.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/list.h"
#include "schemas/versioning/mutators.h"
#include "schemas/versioning/verify.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {

// The version that a reader wants, by one of these; none: the current one.
struct At {
  std::optional<int64_t> version;
  std::optional<UnixMicros> time;
  std::optional<store::CommitPosition> position = {};
};

struct DiffQuery {
  DocumentName name;
  int64_t from_version = 0;
  int64_t to_version = 0;   // 0: the current one
  int64_t skip = 0;         // number of changes passed over
  int64_t incarnation = 0;  // of the collection where it goes on; 0: it begins
  StopCheck stopped = {};   // asked while versions are rebuilt; then CANCELLED
};
struct DiffEnd {
  int64_t from_version = 0;
  int64_t to_version = 0;
  int64_t incarnation = 0;  // of the collection
  bool complete = false;    // the visitor took all
};

struct DocumentsOptions {
  document::Limits limits;
  WriteOptions write;
  int64_t collections_max = kCollectionsMaxDefault;
  // For writes alone, which callers wait for; null: the executor of all other work. Outlives that
  // work.
  Executor* write_executor = nullptr;
};

// Thread-safe. Writes are asynchronous (see write_path.h for `done` and the errors of all writes);
// reads run on the caller's thread, each from one snapshot. All reads: COLLECTION_NOT_FOUND,
// DOCUMENT_NOT_FOUND, RECORD_CORRUPT, STORE_UNAVAILABLE, INVALID_NAME.
class Documents {
 public:
  // All must outlive the facade and every write in flight.
  Documents(store::Store& store, const Clock& clock, Entropy& entropy, Executor& executor,
            DocumentsOptions options);

  // DOCUMENT_EXISTS. An empty id makes one: derived from the request id if there is one, so that a
  // repeated call finds the document; random otherwise. Over a deletion the numbering goes on.
  void Create(WriteRequest request, document::Content content, WriteCallback done);

  // Replaces or patches the content. DOCUMENT_NOT_FOUND, DOCUMENT_DELETED unless `allow_missing`;
  // INVALID_PATCH, DOCUMENT_TOO_LARGE; with precondition.newer the errors of newer.h.
  using NewContent = versioning::NewContent;
  void Update(WriteRequest request, NewContent new_content, bool allow_missing, WriteCallback done);

  // DOCUMENT_NOT_FOUND, DOCUMENT_DELETED: not with precondition.newer, which also deletes a deleted
  // or missing document; then the errors of newer.h.
  void Delete(WriteRequest request, WriteCallback done);

  // VERSION_NOT_FOUND; DOCUMENT_DELETED if that version is a deletion.
  void Restore(WriteRequest request, int64_t version, WriteCallback done);

  // Any other function on the only write path.
  void Modify(WriteRequest request, Mutator mutator, WriteCallback done);

  // Forwarded to WritePath.
  void Commit(UnitRequest request, UnitCallback done);
  void TakeSlot(SlotRequest request, SlotCallback done);
  void SettleWith(Settle settle);

  // VERSION_NOT_FOUND, DOCUMENT_DELETED; of a time and a position the refusals of AsOf::Make.
  // TakesLong past the limits. A version that is asked for by its number is answered as it was
  // written; else an undecided one does not count.
  absl::StatusOr<StoredVersion> Get(const DocumentName& name, const At& at,
                                    const ReadLimits& limits = {}) const;

  // Visits the changes from one version to another, until the visitor answers false: it did not
  // take that change. VERSION_NOT_FOUND.
  absl::StatusOr<DiffEnd> Diff(const DiffQuery& query,
                               const document::ChangeVisitor& visitor) const;

  // Reads of many documents. They give a cursor: it reads nothing before its first Next, has the
  // read's error in its status, and must not outlive the facade.

  // The current version of each id, as of one moment. RETRIES_EXHAUSTED on an engine without
  // snapshots, if the documents change all the time.
  BatchGetCursor BatchGet(std::string collection, std::vector<std::string> ids) const;

  // The versions of a document, newest first unless asked for otherwise.
  HistoryCursor History(HistoryQuery query) const;

  // Current documents, or those as of a time or a commit, in the byte order of their ids. The
  // filter sees the version that is listed and no other; a deletion matches only the empty filter.
  // The refusals of AsOf::Make.
  ListCursor List(ListQuery query) const;

  // The documents of many collections as of one commit (copy.h).
  CopyCursor Copy(CopyQuery query) const;

  // Of one document its versions, upward; where its collection is gone, and of more, the ledger's
  // entries in commit order, from where it was trimmed to. INVALID_FIELD for an id without
  // collection; UNSUPPORTED_BY_ENGINE for more than one document without commit positions;
  // POSITION_TRIMMED for a place that the ledger was trimmed beyond.
  AuditCursor Audit(AuditQuery query) const;

  // Proves that the stored data is whole (verify.h); reads nothing yet. Must not outlive the
  // facade.
  Verification Verify(VerifyQuery query, VerifyPlace place = {});

  // Where the ledger ends. UNSUPPORTED_BY_ENGINE without commit positions.
  absl::StatusOr<LedgerHead> GetLedgerHead() const;

  Collections& collections() { return *collections_; }
  const document::Limits& limits() const { return options_.limits; }
  const WriteOptions& write_options() const { return options_.write; }
  store::Capabilities capabilities() const { return capabilities_; }

 private:
  store::Store& store_;
  const store::Capabilities capabilities_;
  const Clock& clock_;
  Entropy& entropy_;
  const DocumentsOptions options_;
  std::shared_ptr<Collections> collections_;
  std::shared_ptr<WritePath> write_path_;
};

}  // namespace strata::versioning
