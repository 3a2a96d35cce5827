// The Documents facade: everything that one can do with versioned documents, over any store and
// strategy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/document/content.h"
#include "schemas/document/diff.h"
#include "schemas/document/filter.h"
#include "schemas/document/patch.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/names.h"
#include "schemas/versioning/verify.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {

// Which version a reader wants; neither: the current one.
struct At {
  std::optional<int64_t> version;
  std::optional<UnixMicros> time;
};

// In all visitors, false means: this item was not taken, stop here.

struct HistoryQuery {
  DocumentName name;
  std::optional<int64_t> from_version;
  std::optional<UnixMicros> from_time;
  std::optional<int64_t> to_version;
  std::optional<UnixMicros> to_time;
  bool oldest_first = false;
  std::optional<document::Filter> filter;  // only versions whose content matches
  std::optional<int64_t> resume_at;        // goes on with this version, in the query's direction
  int64_t page_size = 0;  // so many will be visited at most, for reading ahead; 0: all
  bool include_content = false;
  bool include_changes = false;
};
using HistoryVisitor = std::function<bool(StoredVersion&& version, document::Changes&& changes)>;

struct DiffQuery {
  DocumentName name;
  int64_t from_version = 0;
  int64_t to_version = 0;  // 0: the current one
  int64_t skip = 0;        // so many changes are passed over
};
struct DiffEnd {
  int64_t from_version = 0;
  int64_t to_version = 0;
  bool complete = false;  // the visitor took all
};

// Where a walk over the ledger (or, of one document, over its versions) goes on.
struct LedgerPlace {
  store::CommitPosition position = 0;
  uint32_t index = 0;
  int64_t version = 0;  // of one document
};

struct AuditQuery {
  std::string collection;          // empty: every one
  std::string id;                  // empty: every one; needs a collection
  std::string actor;               // empty: everybody's
  std::vector<VersionKind> kinds;  // empty: all
  std::optional<UnixMicros> start_time;
  std::optional<UnixMicros> end_time;  // exclusive
  std::string request_id;              // empty: all
  LedgerPlace resume_at;
  bool include_changes = false;
};
struct AuditRow {
  LedgerPlace place;
  std::string collection;
  std::string id;
  StoredVersion version;  // header only; without hashes if the collection has been deleted since
  document::Changes changes;
};
using AuditVisitor = std::function<bool(AuditRow&& row)>;

struct ListQuery {
  std::string collection;
  std::string id_prefix;
  std::string after_id;  // only ids greater than this
  bool show_deleted = false;
  std::optional<document::Filter> filter;  // only documents whose content matches
  std::optional<UnixMicros> at_time;       // as of then; now
};
using ListVisitor = std::function<bool(std::string_view id, StoredVersion&& version)>;
struct ListEnd {
  int64_t examined = 0;
  std::optional<std::string> resume_after;  // set: there may be more behind this id
};

struct DocumentsOptions {
  document::Limits limits;
  WriteOptions write;
  // For writes alone, which callers wait for; null: the executor of all else. Outlives what that
  // does.
  Executor* write_executor = nullptr;
};

// Of each version of History and Audit, so many bytes of changes are told (document::WireSize).
// Together with a content of document::Limits::kBytesCeiling and all else that a version says they
// stay below the 4 MiB that a client takes as one message, in both encodings.
inline constexpr size_t kChangesBytesMax = size_t{1} << 20;

// A page looks at no more than this many documents (List), versions (History with a filter, Audit
// of one document) or ledger entries (Audit).
inline constexpr int64_t kExaminedMax = 10'000;

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
  // INVALID_PATCH, DOCUMENT_TOO_LARGE.
  using NewContent = std::variant<document::Content, document::Patch>;
  void Update(WriteRequest request, NewContent new_content, bool allow_missing, WriteCallback done);

  // DOCUMENT_NOT_FOUND, DOCUMENT_DELETED.
  void Delete(WriteRequest request, WriteCallback done);

  // VERSION_NOT_FOUND; DOCUMENT_DELETED if that version is a deletion.
  void Restore(WriteRequest request, int64_t version, WriteCallback done);

  // Any other function on the only write path.
  void Modify(WriteRequest request, Mutator mutator, WriteCallback done);

  // VERSION_NOT_FOUND, DOCUMENT_DELETED; INVALID_FIELD for a time in the future.
  absl::StatusOr<StoredVersion> Get(const DocumentName& name, const At& at) const;

  // The current version of each id, as of one moment; null for a missing or deleted one.
  using BatchVisitor = std::function<bool(const std::string& id, StoredVersion* version)>;
  absl::Status BatchGet(const std::string& collection, const std::vector<std::string>& ids,
                        const BatchVisitor& visitor) const;

  // The version to go on with, or nothing at the end.
  absl::StatusOr<std::optional<int64_t>> History(const HistoryQuery& query,
                                                 const HistoryVisitor& visitor) const;

  // Visits what changed from one version to another. VERSION_NOT_FOUND.
  absl::StatusOr<DiffEnd> Diff(const DiffQuery& query,
                               const document::ChangeVisitor& visitor) const;

  // Where to go on, or nothing at the end. UNSUPPORTED_BY_ENGINE for more than one document without
  // commit positions.
  absl::StatusOr<std::optional<LedgerPlace>> Audit(const AuditQuery& query,
                                                   const AuditVisitor& visitor) const;

  // Proves that what is stored is whole (verify.h); reads nothing yet. Must not outlive the facade.
  Verification Verify(VerifyQuery query, VerifyPlace place = {});

  // Where the ledger ends. UNSUPPORTED_BY_ENGINE without commit positions.
  absl::StatusOr<LedgerHead> GetLedgerHead() const;

  // Current documents, or those of a time, in the byte order of their ids. The filter sees the
  // version that is listed and no other; a deletion matches only the empty filter. INVALID_FIELD
  // for a time in the future.
  absl::StatusOr<ListEnd> List(const ListQuery& query, const ListVisitor& visitor) const;

  Collections& collections() { return *collections_; }
  const document::Limits& limits() const { return options_.limits; }
  store::Capabilities capabilities() const { return capabilities_; }

 private:
  struct DocumentView;

  template <typename Function>
  absl::Status WithCollection(const std::string& collection, Function&& function) const;
  template <typename Function>
  absl::Status WithDocument(const DocumentName& name, Function&& function) const;
  absl::Status CheckTime(const std::optional<UnixMicros>& time) const;
  absl::StatusOr<int64_t> VersionAt(const DocumentView& view, UnixMicros time) const;
  absl::StatusOr<std::optional<StoredVersion>> AsOf(const DocumentView& view,
                                                    UnixMicros time) const;
  absl::StatusOr<std::optional<LedgerPlace>> AuditLedger(const AuditQuery& query,
                                                         const AuditVisitor& visitor) const;
  absl::StatusOr<std::optional<LedgerPlace>> AuditDocument(const AuditQuery& query,
                                                           const AuditVisitor& visitor) const;

  store::Store& store_;
  const store::Capabilities capabilities_;
  const Clock& clock_;
  Entropy& entropy_;
  const DocumentsOptions options_;
  std::shared_ptr<Collections> collections_;
  std::shared_ptr<WritePath> write_path_;
};

}  // namespace strata::versioning
