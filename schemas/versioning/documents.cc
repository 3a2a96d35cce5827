#include "schemas/versioning/documents.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/fingerprint.h"

namespace strata::versioning {
namespace {

// A read on an engine without snapshots starts again when its collection changed under it, so
// often.
constexpr int kReadAttempts = 3;

// An id for a document that its creator did not name.
std::string MakeId(const WriteRequest& request, Entropy& entropy) {
  if (request.request_id.empty()) return absl::BytesToHexString(entropy.Bytes(16));
  const document::Hash hash = document::PartHasher()
                                  .Add("document id")
                                  .Add(request.name.collection)
                                  .Add(request.request_id)
                                  .Finish();
  return absl::BytesToHexString(ToAbsl(document::HashBytes(hash).substr(0, 16)));
}

absl::Status ValidateWrite(const WriteRequest& request) {
  RETURN_IF_ERROR(ValidateName(request.name));
  RETURN_IF_ERROR(ValidateChange(request.change));
  return ValidateRequestId(request.request_id);
}

const document::Content& ContentOrEmpty(const StoredVersion* version) {
  static const auto* const empty = new document::Content();
  return version != nullptr && version->content ? *version->content : *empty;
}

}  // namespace

// Called with each version in order; false ends the walk.
using VersionVisitor = std::function<bool(StoredVersion&& version)>;

// A document and its current version, as one reader sees them.
struct Documents::DocumentView {
  const DocumentName& name;
  const Collection& collection;
  ReadContext context;
  store::DocumentKey document;
  Head head;

  int64_t newest() const { return head.version.header.version; }
  absl::StatusOr<StoredVersion> Read(int64_t version, Part part) const {
    if (version < 1 || version > newest()) return VersionNotFound(name, version, newest());
    return collection.strategy->ReadVersion(context, document, head, version, part);
  }
  absl::Status Scan(const VersionRange& range, Part part, const VersionVisitor& visitor) const {
    const auto cursor = collection.strategy->ScanVersions(context, document, head, range, part);
    while (cursor->Next()) {
      if (!visitor(std::move(cursor->item()))) return absl::OkStatus();
    }
    return cursor->status();
  }
};

Documents::Documents(store::Store& store, const Clock& clock, Entropy& entropy, Executor& executor,
                     DocumentsOptions options)
    : store_(store),
      capabilities_(store.capabilities()),
      clock_(clock),
      entropy_(entropy),
      options_(options),
      collections_(std::make_shared<Collections>(store, clock, executor)),
      write_path_(std::make_shared<WritePath>(
          store, collections_, clock, entropy,
          options.write_executor != nullptr ? *options.write_executor : executor, options.write)) {}

// Writes.

void Documents::Modify(WriteRequest request, Mutator mutator, WriteCallback done) {
  if (absl::Status status = ValidateWrite(request); !status.ok()) return done(std::move(status));
  write_path_->Modify(std::move(request), std::move(mutator), std::move(done));
}

void Documents::Create(WriteRequest request, document::Content content, WriteCallback done) {
  if (request.name.id.empty()) request.name.id = MakeId(request, entropy_);
  request.request_fingerprint = Fingerprint("create", request, content.bytes());
  auto create = [name = request.name, content = std::move(content)](
                    const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (current.live()) return DocumentExists(name, current.version->header.version);
    return Mutation{VersionKind::kCreated, content};
  };
  Modify(std::move(request), std::move(create), std::move(done));
}

void Documents::Update(WriteRequest request, NewContent new_content, bool allow_missing,
                       WriteCallback done) {
  if (const auto* const content = std::get_if<document::Content>(&new_content)) {
    request.request_fingerprint =
        Fingerprint(allow_missing ? "upsert" : "replace", request, content->bytes());
  } else {
    request.request_fingerprint =
        Fingerprint(allow_missing ? "patch or create" : "patch", request,
                    PatchArguments(std::get<document::Patch>(new_content)));
  }
  auto update = [name = request.name, new_content = std::move(new_content), allow_missing,
                 limits =
                     options_.limits](const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (!current.live() && !allow_missing) return NotLive(name, current.version);
    const VersionKind kind = current.live() ? VersionKind::kUpdated : VersionKind::kCreated;
    if (const auto* const content = std::get_if<document::Content>(&new_content)) {
      return Mutation{kind, *content};
    }
    ASSIGN_OR_RETURN(document::Content patched,
                     ApplyPatch(ContentOrEmpty(current.live() ? current.version : nullptr),
                                std::get<document::Patch>(new_content), limits));
    return Mutation{kind, std::move(patched)};
  };
  Modify(std::move(request), std::move(update), std::move(done));
}

void Documents::Delete(WriteRequest request, WriteCallback done) {
  request.request_fingerprint = Fingerprint("delete", request, "");
  auto remove = [name = request.name](const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (!current.live()) return NotLive(name, current.version);
    return Mutation{VersionKind::kDeleted, std::nullopt};
  };
  Modify(std::move(request), std::move(remove), std::move(done));
}

void Documents::Restore(WriteRequest request, int64_t version, WriteCallback done) {
  request.request_fingerprint = Fingerprint("restore", request, std::to_string(version));
  auto restore = [name = request.name,
                  version](const CurrentState& current) -> absl::StatusOr<Mutation> {
    if (current.version == nullptr) return DocumentNotFound(name);
    const int64_t newest = current.version->header.version;
    if (version < 1 || version > newest) return VersionNotFound(name, version, newest);
    ASSIGN_OR_RETURN(StoredVersion old, current.read(version));
    if (old.deleted()) return DocumentDeleted(name, version);
    return Mutation{VersionKind::kRestored, std::move(old.content)};
  };
  Modify(std::move(request), std::move(restore), std::move(done));
}

// Reads.

template <typename Function>
absl::Status Documents::WithCollection(const std::string& collection, Function&& function) const {
  RETURN_IF_ERROR(ValidateName("collection", collection));
  for (int attempt = 1;; ++attempt) {
    const std::unique_ptr<store::Reader> reader = store_.Snapshot();
    ASSIGN_OR_RETURN(const CollectionPtr found, collections_->Require(*reader, collection));
    absl::Status status = function(*found, ReadContext{*reader, capabilities_});
    if (status.code() != absl::StatusCode::kDataLoss || capabilities_.snapshots) return status;
    // Records may be missing because the collection was deleted and swept while it was read.
    ASSIGN_OR_RETURN(const CollectionPtr now, collections_->Require(store_, collection));
    if (now->incarnation == found->incarnation || attempt == kReadAttempts) return status;
  }
}

template <typename Function>
absl::Status Documents::WithDocument(const DocumentName& name, Function&& function) const {
  RETURN_IF_ERROR(ValidateName("id", name.id));
  return WithCollection(
      name.collection,
      [&](const Collection& collection, const ReadContext& context) -> absl::Status {
        store::DocumentKey document{collection.incarnation, name.id};
        ASSIGN_OR_RETURN(std::optional<Head> head,
                         collection.strategy->ReadHead(context, document));
        if (!head) return DocumentNotFound(name);
        return function(
            DocumentView{name, collection, context, std::move(document), *std::move(head)});
      });
}

// The version that was current at `time`; 0 if the document was not there yet. Times never go back
// from version to version, so a binary search finds it.
absl::StatusOr<int64_t> Documents::VersionAt(const DocumentView& view, UnixMicros time) const {
  if (view.head.version.header.commit_time <= time) return view.newest();
  int64_t low = 0;               // at or before the time
  int64_t high = view.newest();  // after it
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    ASSIGN_OR_RETURN(const StoredVersion version, view.Read(middle, Part::kHeader));
    (version.header.commit_time <= time ? low : high) = middle;
  }
  return low;
}

absl::Status Documents::CheckTime(const std::optional<UnixMicros>& time) const {
  if (!time || *time <= clock_.Now()) return absl::OkStatus();
  return Error(ErrorReason::kInvalidField,
               "at_time lies in the future; leave it out to read what is current")
      .With("field", "at_time");
}

absl::StatusOr<StoredVersion> Documents::Get(const DocumentName& name, const At& at) const {
  RETURN_IF_ERROR(CheckTime(at.time));
  StoredVersion found;
  RETURN_IF_ERROR(WithDocument(name, [&](DocumentView&& view) -> absl::Status {
    int64_t version = at.version.value_or(view.newest());
    if (at.time) {
      ASSIGN_OR_RETURN(version, VersionAt(view, *at.time));
      if (version == 0) {
        ASSIGN_OR_RETURN(const StoredVersion first, view.Read(1, Part::kHeader));
        return NoVersionYet(name, *at.time, first.header.commit_time, view.newest());
      }
    }
    if (version == view.newest()) {
      found = std::move(view.head.version);
    } else {
      ASSIGN_OR_RETURN(found, view.Read(version, Part::kContent));
    }
    if (found.deleted()) return DocumentDeleted(name, found.header.version);
    return absl::OkStatus();
  }));
  return found;
}

absl::Status Documents::BatchGet(const std::string& collection, const std::vector<std::string>& ids,
                                 const BatchVisitor& visitor) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    RETURN_IF_ERROR(ValidateName("ids[" + std::to_string(i) + "]", ids[i]));
  }
  size_t next = 0;  // a read that starts again goes on after what the visitor took
  return WithCollection(
      collection, [&](const Collection& found, const ReadContext& context) -> absl::Status {
        for (; next < ids.size(); ++next) {
          ASSIGN_OR_RETURN(std::optional<Head> head,
                           found.strategy->ReadHead(context, {found.incarnation, ids[next]}));
          StoredVersion* const live = head && !head->version.deleted() ? &head->version : nullptr;
          if (!visitor(ids[next], live)) break;
        }
        return absl::OkStatus();
      });
}

namespace {

// Called with each version and the one right before it: null for version 1, and where nobody asked.
using PairVisitor = std::function<bool(StoredVersion&& version, const StoredVersion* before)>;

// Makes pairs of the versions of a walk, which includes one version older than the oldest wanted.
class PairWalk {
 public:
  PairWalk(bool newest_first, int64_t first_wanted, const PairVisitor& visitor)
      : newest_first_(newest_first), first_wanted_(first_wanted), visitor_(visitor) {}

  bool Take(StoredVersion&& version) {
    if (newest_first_) {
      const bool more = !held_ || Emit(*std::move(held_), &version);
      held_ = std::move(version);
      return more;
    }
    bool more = true;
    if (version.header.version >= first_wanted_) {
      StoredVersion copy = version;
      more = Emit(std::move(copy), held_ ? &*held_ : nullptr);
    }
    held_ = std::move(version);
    return more;
  }

  // The last version held back, newest first, is version 1 if it is wanted at all.
  void Finish() {
    if (newest_first_ && held_ && !stopped_) Emit(*std::move(held_), nullptr);
  }

 private:
  bool Emit(StoredVersion&& version, const StoredVersion* before) {
    if (version.header.version < first_wanted_) return true;
    stopped_ = !visitor_(std::move(version), before);
    return !stopped_;
  }

  const bool newest_first_;
  const int64_t first_wanted_;
  const PairVisitor& visitor_;
  std::optional<StoredVersion> held_;
  bool stopped_ = false;
};

// Visits the versions of `range`; `pairs`: each with the one before it, and both with content.
template <typename View>
absl::Status ScanPairs(const View& view, VersionRange range, Part part, bool pairs,
                       const PairVisitor& visitor) {
  if (!pairs) {
    return view.Scan(range, part,
                     [&](StoredVersion&& version) { return visitor(std::move(version), nullptr); });
  }
  if (range.first > range.last) return absl::OkStatus();
  PairWalk walk(range.newest_first, range.first, visitor);
  range.first = std::max<int64_t>(1, range.first - 1);
  if (range.wanted > 0) ++range.wanted;
  RETURN_IF_ERROR(view.Scan(range, Part::kContent, [&](StoredVersion&& version) {
    return walk.Take(std::move(version));
  }));
  walk.Finish();
  return absl::OkStatus();
}

document::Changes ChangesSince(const StoredVersion* before, const StoredVersion& version) {
  return document::Diff(ContentOrEmpty(before), ContentOrEmpty(&version), kChangesBytesMax);
}

// A deletion has nothing that a condition could be about.
bool Matches(const std::optional<document::Filter>& filter, const StoredVersion& version) {
  if (!filter || filter->empty()) return true;
  return version.content && filter->Matches(*version.content);
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> Documents::History(const HistoryQuery& query,
                                                          const HistoryVisitor& visitor) const {
  std::optional<int64_t> resume_at = query.resume_at;  // moves on: a walk may have to start again
  std::optional<int64_t> end;
  int64_t examined = 0;
  const auto visit = [&](StoredVersion&& version, const StoredVersion* before) {
    const int64_t number = version.header.version;
    end = number;
    if (query.filter && examined++ == kExaminedMax) return false;
    if (Matches(query.filter, version)) {
      document::Changes changes;
      if (query.include_changes) changes = ChangesSince(before, version);
      if (!query.include_content) version.content.reset();
      if (!visitor(std::move(version), std::move(changes))) return false;
    }
    resume_at = query.oldest_first ? number + 1 : number - 1;
    end.reset();
    return true;
  };
  RETURN_IF_ERROR(WithDocument(query.name, [&](const DocumentView& view) -> absl::Status {
    VersionRange range{query.from_version.value_or(1),
                       std::min(query.to_version.value_or(view.newest()), view.newest()),
                       !query.oldest_first};
    // One more tells whether there is another page.
    if (query.page_size > 0 && !query.filter) range.wanted = query.page_size + 1;
    if (query.from_time) {
      ASSIGN_OR_RETURN(const int64_t before, VersionAt(view, *query.from_time - 1));
      range.first = before + 1;
    }
    if (query.to_time) {
      ASSIGN_OR_RETURN(range.last, VersionAt(view, *query.to_time));
    }
    if (resume_at && query.oldest_first) range.first = std::max(range.first, *resume_at);
    if (resume_at && !query.oldest_first) range.last = std::min(range.last, *resume_at);
    const bool content = query.include_content || query.filter;
    return ScanPairs(view, range, content ? Part::kContent : Part::kHeader, query.include_changes,
                     visit);
  }));
  return end;
}

absl::StatusOr<DiffEnd> Documents::Diff(const DiffQuery& query,
                                        const document::ChangeVisitor& visitor) const {
  DiffEnd end;
  RETURN_IF_ERROR(WithDocument(query.name, [&](const DocumentView& view) -> absl::Status {
    end.from_version = query.from_version;
    end.to_version = query.to_version == 0 ? view.newest() : query.to_version;
    ASSIGN_OR_RETURN(const StoredVersion from, view.Read(end.from_version, Part::kContent));
    ASSIGN_OR_RETURN(const StoredVersion to, view.Read(end.to_version, Part::kContent));
    end.complete =
        document::VisitChanges(ContentOrEmpty(&from), ContentOrEmpty(&to), query.skip, visitor);
    return absl::OkStatus();
  }));
  return end;
}

// The version that was current at `time`, with content; nothing if the document was not there yet.
absl::StatusOr<std::optional<StoredVersion>> Documents::AsOf(const DocumentView& view,
                                                             UnixMicros time) const {
  ASSIGN_OR_RETURN(const int64_t version, VersionAt(view, time));
  if (version == 0) return std::nullopt;
  return view.Read(version, Part::kContent);
}

absl::StatusOr<ListEnd> Documents::List(const ListQuery& query, const ListVisitor& visitor) const {
  RETURN_IF_ERROR(CheckTime(query.at_time));
  ListEnd end;
  std::string last_id = query.after_id;
  const auto list = [&](const Collection& collection, const ReadContext& context) {
    absl::Status failure;
    // What is listed for the document whose current version is `current`: it, an older one, or
    // nothing.
    const auto listed =
        [&](std::string_view id,
            StoredVersion&& current) -> absl::StatusOr<std::optional<StoredVersion>> {
      if (!query.at_time || current.header.commit_time <= *query.at_time) return std::move(current);
      if (current.header.version == 1) return std::nullopt;
      const DocumentName name{collection.name, std::string(id)};
      const store::DocumentKey document{collection.incarnation, name.id};
      ASSIGN_OR_RETURN(std::optional<Head> head, collection.strategy->ReadHead(context, document));
      if (!head) return DocumentNotFound(name);
      return AsOf(DocumentView{name, collection, context, document, *std::move(head)},
                  *query.at_time);
    };
    const auto visit = [&](std::string_view id, StoredVersion&& current) {
      end.resume_after = last_id;
      if (end.examined == kExaminedMax) return false;
      absl::StatusOr<std::optional<StoredVersion>> version = listed(id, std::move(current));
      failure = version.status();
      if (!failure.ok()) return false;
      const bool shown = *version && (query.show_deleted || !(*version)->deleted()) &&
                         Matches(query.filter, **version);
      if (shown && !visitor(id, **std::move(version))) return false;
      ++end.examined;
      last_id = id;
      end.resume_after.reset();
      return true;
    };
    const auto cursor = collection.strategy->ScanHeads(context, collection.incarnation,
                                                       query.id_prefix, last_id, Part::kContent);
    while (cursor->Next()) {
      if (!visit(cursor->item().id, std::move(cursor->item().version))) return failure;
    }
    return cursor->status();
  };
  RETURN_IF_ERROR(WithCollection(query.collection, list));
  return end;
}

// Audit.

namespace {

absl::Status Validate(const AuditQuery& query) {
  if (!query.id.empty()) {
    if (query.collection.empty()) {
      return Error(ErrorReason::kInvalidField, "collection is required with id")
          .With("field", "collection");
    }
    RETURN_IF_ERROR(ValidateName("id", query.id));
  }
  if (!query.collection.empty()) RETURN_IF_ERROR(ValidateName("collection", query.collection));
  return ValidateRequestId(query.request_id);
}

bool Matches(const AuditQuery& query, const VersionHeader& header) {
  if (!query.actor.empty() && header.change.actor != query.actor) return false;
  if (!query.request_id.empty() && header.request_id != query.request_id) return false;
  if (query.start_time && header.commit_time < *query.start_time) return false;
  if (query.end_time && header.commit_time >= *query.end_time) return false;
  return query.kinds.empty() ||
         std::find(query.kinds.begin(), query.kinds.end(), header.kind) != query.kinds.end();
}

// The index of a version in the ledger entries of its commit.
absl::StatusOr<uint32_t> LedgerIndex(CommitEntries& entries, const store::DocumentKey& document,
                                     const StoredVersion& version) {
  if (version.position == 0) return 0;
  RETURN_IF_ERROR(entries.Find(version.position));
  while (entries.Next()) {
    const store::LedgerEntryView& entry = entries.entry();
    if (entry.incarnation == document.incarnation && entry.id == document.id &&
        entry.version == version.header.version) {
      return entries.index();
    }
  }
  RETURN_IF_ERROR(entries.status());
  return Error(ErrorReason::kRecordCorrupt, "the ledger lacks an entry for a stored version")
      .With("id", document.id)
      .With("version", version.header.version)
      .With("position", version.position);
}

absl::Status NoLedger(std::string_view advice) {
  return Error(ErrorReason::kUnsupportedByEngine,
               "this engine numbers no commits: " + std::string(advice))
      .With("capability", "commit_positions");
}

}  // namespace

Verification Documents::Verify(VerifyQuery query, VerifyPlace place) {
  return Verification(store_, *collections_, clock_, std::move(query), std::move(place));
}

absl::StatusOr<LedgerHead> Documents::GetLedgerHead() const {
  if (!capabilities_.commit_positions) return NoLedger("it keeps no ledger");
  return ReadLedgerHead(store_);
}

absl::StatusOr<std::optional<LedgerPlace>> Documents::Audit(const AuditQuery& query,
                                                            const AuditVisitor& visitor) const {
  RETURN_IF_ERROR(Validate(query));
  if (!query.id.empty()) {
    auto end = AuditDocument(query, visitor);
    // What was done to a document outlives its collection, in the ledger.
    const bool gone = ReasonOf(end.status()) == ErrorReason::kCollectionNotFound;
    if (!gone || !capabilities_.commit_positions) return end;
  }
  if (!capabilities_.commit_positions) {
    return NoLedger("ask for the audit of one document");
  }
  return AuditLedger(query, visitor);
}

absl::StatusOr<std::optional<LedgerPlace>> Documents::AuditDocument(
    const AuditQuery& query, const AuditVisitor& visitor) const {
  std::optional<LedgerPlace> end;
  absl::Status inner;
  int64_t first = std::max<int64_t>(1, query.resume_at.version);
  const DocumentName name{query.collection, query.id};
  RETURN_IF_ERROR(WithDocument(name, [&](const DocumentView& view) -> absl::Status {
    int64_t examined = 0;
    CommitEntries entries(view.context.reader);
    const auto visit = [&](StoredVersion&& version, const StoredVersion* before) {
      const int64_t number = version.header.version;
      const LedgerPlace here{0, 0, number};
      end = here;
      if (examined++ == kExaminedMax) return false;
      if (Matches(query, version.header)) {
        const absl::StatusOr<uint32_t> index = LedgerIndex(entries, view.document, version);
        inner = index.status();
        if (!inner.ok()) return false;
        AuditRow row{{version.position, *index, number}, name.collection, name.id, {}, {}};
        if (query.include_changes) row.changes = ChangesSince(before, version);
        row.version = std::move(version);
        row.version.content.reset();
        if (!visitor(std::move(row))) return false;
      }
      first = number + 1;
      end.reset();
      return true;
    };
    RETURN_IF_ERROR(ScanPairs(view, VersionRange{first, view.newest(), false}, Part::kHeader,
                              query.include_changes, visit));
    return inner;
  }));
  return end;
}

namespace {

// Reads what the ledger leaves out: hashes and changes, from the documents' own records.
class LedgerDetails {
 public:
  LedgerDetails(Collections& collections, const ReadContext& context)
      : collections_(collections), context_(context) {}

  // Leaves the row as it is if its collection has been deleted since.
  absl::Status Fill(const store::LedgerEntryView& entry, bool changes, AuditRow& row) {
    ASSIGN_OR_RETURN(const CollectionPtr collection,
                     collections_.Find(context_.reader, entry.collection));
    if (!collection || collection->incarnation != entry.incarnation) return absl::OkStatus();
    const store::DocumentKey document{entry.incarnation, std::string(entry.id)};
    // Entries of one document often stand together.
    if (!head_ || !(document_ == document)) {
      ASSIGN_OR_RETURN(head_, collection->strategy->ReadHead(context_, document));
      document_ = document;
    }
    const int64_t version = entry.version;
    if (!head_ || head_->version.header.version < version) {
      return Error(ErrorReason::kRecordCorrupt, "the ledger names a version that is not stored")
          .With("collection", entry.collection)
          .With("id", entry.id)
          .With("version", version);
    }
    const Part part = changes ? Part::kContent : Part::kHeader;
    ASSIGN_OR_RETURN(row.version,
                     collection->strategy->ReadVersion(context_, document, *head_, version, part));
    if (!changes) return absl::OkStatus();
    StoredVersion before;
    if (version > 1) {
      ASSIGN_OR_RETURN(
          before, collection->strategy->ReadVersion(context_, document, *head_, version - 1, part));
    }
    row.changes = ChangesSince(&before, row.version);
    row.version.content.reset();
    return absl::OkStatus();
  }

 private:
  Collections& collections_;
  const ReadContext& context_;
  store::DocumentKey document_;
  std::optional<Head> head_;
};

}  // namespace

absl::StatusOr<std::optional<LedgerPlace>> Documents::AuditLedger(
    const AuditQuery& query, const AuditVisitor& visitor) const {
  const std::unique_ptr<store::Reader> reader = store_.Snapshot();
  const ReadContext context{*reader, capabilities_};
  LedgerDetails details(*collections_, context);
  LedgerPlace begin = query.resume_at;
  if (query.start_time) {
    ASSIGN_OR_RETURN(const store::CommitPosition first,
                     FirstPositionSince(*reader, *query.start_time));
    if (first > begin.position) begin = {first, 0, 0};
  }
  ASSIGN_OR_RETURN(const store::LedgerTail end, ReadLedgerTail(*reader));
  int64_t examined = 0;
  std::optional<store::LedgerTail> block;  // with the block before the entry's
  LedgerCursor cursor(*reader, begin.position, begin.index);
  while (cursor.Next()) {
    // A block at a time: of each the ledger knows whether all that follows is too late.
    if (query.end_time && block && block->last != cursor.tail().last &&
        AllLater(*block, end, *query.end_time)) {
      return std::nullopt;
    }
    block = cursor.tail();
    const LedgerPlace place{cursor.position(), cursor.index(), 0};
    if (examined++ == kExaminedMax) return place;
    const store::LedgerEntryView& entry = cursor.entry();
    const bool named = (query.collection.empty() || entry.collection == query.collection) &&
                       (query.id.empty() || entry.id == query.id);
    if (!named) continue;
    AuditRow row;
    row.version.header = HeaderOf(entry);
    if (!Matches(query, row.version.header)) continue;
    row.place = place;
    row.place.version = entry.version;
    row.version.position = place.position;
    RETURN_IF_ERROR(details.Fill(entry, query.include_changes, row));
    row.collection = entry.collection;
    row.id = entry.id;
    if (!visitor(std::move(row))) return place;
  }
  RETURN_IF_ERROR(cursor.status());
  return std::nullopt;
}

}  // namespace strata::versioning
