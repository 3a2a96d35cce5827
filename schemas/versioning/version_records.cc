#include "schemas/versioning/version_records.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"

namespace strata::versioning {
namespace {

using store::DocumentKey;
using store::Keyspace;
using store::Record;

// Every record of one document in the versions keyspace.
store::Range AllVersions(const DocumentKey& document) {
  std::string prefix = store::HeadKey(document);
  std::string end = store::PrefixEnd(prefix);
  return {.begin = std::move(prefix), .end = std::move(end)};
}

// The keys of the documents behind `after_id` whose ids begin with `id_prefix`, in the heads and
// versions keyspaces alike.
store::Range DocumentsAfter(int64_t incarnation, std::string_view id_prefix,
                            std::string_view after_id) {
  std::string begin = store::IncarnationRange(incarnation).begin;
  begin += id_prefix;
  std::string end = store::PrefixEnd(begin);
  if (!after_id.empty()) {
    begin = std::max(begin, store::PrefixEnd(store::HeadKey(incarnation, after_id)));
  }
  if (begin > end) begin = end;  // behind the prefix: an empty range
  return {.begin = std::move(begin), .end = std::move(end)};
}

Record RecordAt(const store::Cursor& cursor) {
  return {std::string(cursor.value()), cursor.stamp(), cursor.position()};
}

bool AtDocument(const store::Cursor& cursor, std::string_view document_prefix) {
  return cursor.Valid() && cursor.key().starts_with(document_prefix);
}

// The greatest version of one document, as far as known: version 0 is before the first.
struct Greatest {
  int64_t version = 0;
  Record record;
};

// Goes upward by point reads until one finds nothing.
absl::Status Confirm(const store::Reader& reader, const DocumentKey& document, Greatest& greatest) {
  for (;;) {
    ASSIGN_OR_RETURN(
        std::optional<Record> next,
        reader.Get(Keyspace::kVersions, store::VersionKey(document, greatest.version + 1)));
    if (!next) return absl::OkStatus();
    greatest = {greatest.version + 1, *std::move(next)};
  }
}

absl::StatusOr<int64_t> VersionAt(const store::Cursor& cursor) {
  const std::optional<store::ParsedVersionKey> key = store::ParseVersionKey(cursor.key());
  if (!key || key->version < 1) return Error(ErrorReason::kRecordCorrupt, "not a version's key");
  return key->version;
}

absl::Status VisitGreatest(const DocumentKey& document, const Greatest& greatest, Part part,
                           const HeadVisitor& visitor, bool& more) {
  ASSIGN_OR_RETURN(
      StoredVersion version,
      DecodeWhole(greatest.record.value, greatest.record.position, part, greatest.version));
  more = visitor(document.id, std::move(version));
  return absl::OkStatus();
}

}  // namespace

absl::Status CorruptVersion(int64_t version, std::string_view problem) {
  std::string message = "version " + std::to_string(version) + " ";
  message += problem;
  return Error(ErrorReason::kRecordCorrupt, message).With("version", version);
}

absl::StatusOr<VersionRecord> DecodeExpected(std::string_view bytes,
                                             store::CommitPosition record_position, Part part,
                                             int64_t version) {
  ASSIGN_OR_RETURN(VersionRecord record, DecodeVersion(bytes, record_position, part));
  if (record.version.header.version != version) {
    return CorruptVersion(version, "is stored under another's key");
  }
  return record;
}

absl::StatusOr<StoredVersion> DecodeWhole(std::string_view bytes,
                                          store::CommitPosition record_position, Part part,
                                          int64_t version) {
  ASSIGN_OR_RETURN(VersionRecord record, DecodeExpected(bytes, record_position, part, version));
  if (part == Part::kContent && record.version.content.has_value() == record.version.deleted()) {
    return CorruptVersion(version, "has lost its content");
  }
  return std::move(record.version);
}

StoredVersion AnswerFromHead(const Head& head, Part part) {
  if (part == Part::kContent) return head.version;
  return {head.version.header, std::nullopt, head.version.position};
}

bool TakeHead(const Head& head, VersionRange& range) {
  if (range.last < head.version.header.version) return false;
  range.last = head.version.header.version - 1;
  return true;
}

VersionWalk::VersionWalk(const ReadContext& context, const DocumentKey& document,
                         const VersionRange& range, Source source)
    : reader_(context.reader),
      document_(document),
      range_(range),
      version_(range.newest_first ? range.last + 1 : range.first - 1) {
  if (source == Source::kCursor && range.first < range.last) {
    cursor_ = reader_.Scan(Keyspace::kVersions, {.begin = store::VersionKey(document, range.first),
                                                 .end = store::VersionKey(document, range.last + 1),
                                                 .reverse = range.newest_first});
  }
}

bool VersionWalk::Next() {
  if (!status_.ok()) return false;
  if (cursor_used_) cursor_->Next();
  cursor_used_ = false;
  version_ += range_.newest_first ? -1 : 1;
  if (version_ < range_.first || version_ > range_.last) return false;
  key_ = store::VersionKey(document_, version_);
  return NextFromCursor() || NextFromPointRead();
}

bool VersionWalk::NextFromCursor() {
  if (cursor_ == nullptr || !cursor_->Valid() || cursor_->key() != key_) return false;
  cursor_used_ = true;
  bytes_ = cursor_->value();
  position_ = cursor_->position();
  return true;
}

bool VersionWalk::NextFromPointRead() {
  if (cursor_ != nullptr && !cursor_->Valid()) {
    status_ = cursor_->status();
    if (!status_.ok()) return false;
  }
  absl::StatusOr<std::optional<Record>> record = reader_.Get(Keyspace::kVersions, key_);
  if (!record.ok()) {
    status_ = record.status();
  } else if (!*record) {
    status_ = CorruptVersion(version_, "is missing");
  } else {
    record_ = **std::move(record);
    bytes_ = record_->value;
    position_ = record_->position;
  }
  return status_.ok();
}

Record VersionWalk::TakeRecord() {
  if (cursor_used_) return RecordAt(*cursor_);
  return *std::exchange(record_, std::nullopt);
}

absl::StatusOr<std::optional<Head>> ReadGreatestVersion(const ReadContext& context,
                                                        const DocumentKey& document) {
  store::Range range = AllVersions(document);
  range.reverse = true;
  const std::unique_ptr<store::Cursor> cursor = context.reader.Scan(Keyspace::kVersions, range);
  Greatest greatest;
  if (cursor->Valid()) {
    ASSIGN_OR_RETURN(greatest.version, VersionAt(*cursor));
    greatest.record = RecordAt(*cursor);
  } else {
    RETURN_IF_ERROR(cursor->status());
  }
  if (!context.capabilities.fresh_scans) {
    RETURN_IF_ERROR(Confirm(context.reader, document, greatest));
  }
  if (greatest.version == 0) return std::nullopt;
  Head head;
  ASSIGN_OR_RETURN(head.version, DecodeWhole(greatest.record.value, greatest.record.position,
                                             Part::kContent, greatest.version));
  head.stamp = greatest.record.stamp;
  head.record = std::move(greatest.record.value);
  return head;
}

absl::Status ScanGreatestVersions(const ReadContext& context, int64_t incarnation,
                                  std::string_view id_prefix, std::string_view after_id, Part part,
                                  const HeadVisitor& visitor) {
  store::Range range = DocumentsAfter(incarnation, id_prefix, after_id);
  // The one finds the documents, the other the greatest version of each that has several.
  const std::unique_ptr<store::Cursor> forward = context.reader.Scan(Keyspace::kVersions, range);
  range.reverse = true;
  std::unique_ptr<store::Cursor> backward;
  bool more = true;
  while (more && forward->Valid()) {
    const std::optional<store::ParsedVersionKey> key = store::ParseVersionKey(forward->key());
    if (!key) return Error(ErrorReason::kRecordCorrupt, "not a version's key");
    Greatest greatest{key->version, RecordAt(*forward)};
    const std::string prefix = store::HeadKey(key->document);
    forward->Next();
    if (AtDocument(*forward, prefix)) {
      const std::string end = store::PrefixEnd(prefix);
      if (backward == nullptr) backward = context.reader.Scan(Keyspace::kVersions, range);
      backward->Seek(end);
      if (!backward->Valid()) RETURN_IF_ERROR(backward->status());
      if (AtDocument(*backward, prefix)) {
        ASSIGN_OR_RETURN(greatest.version, VersionAt(*backward));
        greatest.record = RecordAt(*backward);
      }
      forward->Seek(end);
    }
    if (!context.capabilities.fresh_scans) {
      RETURN_IF_ERROR(Confirm(context.reader, key->document, greatest));
    }
    RETURN_IF_ERROR(VisitGreatest(key->document, greatest, part, visitor, more));
  }
  return forward->status();
}

absl::StatusOr<std::optional<Head>> ReadHeadRecord(const ReadContext& context,
                                                   const DocumentKey& document,
                                                   const HeadDecoder& decode) {
  ASSIGN_OR_RETURN(std::optional<Record> record,
                   context.reader.Get(Keyspace::kHeads, store::HeadKey(document)));
  if (!record) return std::nullopt;
  Head head;
  ASSIGN_OR_RETURN(head.version, decode(*record, Part::kContent));
  head.stamp = record->stamp;
  head.record = std::move(record->value);
  return head;
}

absl::Status ScanHeadRecords(const ReadContext& context, int64_t incarnation,
                             std::string_view id_prefix, std::string_view after_id, Part part,
                             const HeadDecoder& decode, const HeadVisitor& visitor) {
  const std::unique_ptr<store::Cursor> cursor =
      context.reader.Scan(Keyspace::kHeads, DocumentsAfter(incarnation, id_prefix, after_id));
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<DocumentKey> document = store::ParseHeadKey(cursor->key());
    if (!document) return Error(ErrorReason::kRecordCorrupt, "not a head's key");
    std::optional<Record> record;
    if (context.capabilities.fresh_scans) {
      record = RecordAt(*cursor);
    } else {
      ASSIGN_OR_RETURN(record, context.reader.Get(Keyspace::kHeads, cursor->key()));
      if (!record) continue;
    }
    ASSIGN_OR_RETURN(StoredVersion version, decode(*record, part));
    if (!visitor(document->id, std::move(version))) return absl::OkStatus();
  }
  return cursor->status();
}

void WriteHead(const DocumentKey& document, const Head* head, std::string record,
               store::WriteBatch& batch) {
  std::string key = store::HeadKey(document);
  if (head == nullptr) {
    batch.Insert(Keyspace::kHeads, std::move(key), std::move(record));
  } else {
    batch.Replace(Keyspace::kHeads, std::move(key), std::move(record), head->stamp);
  }
  batch.MarkCommitPoint();
}

absl::StatusOr<StoredVersion> DecodeWholeHead(const Record& record, Part part) {
  ASSIGN_OR_RETURN(VersionRecord head, DecodeVersion(record.value, record.position, part));
  if (part == Part::kContent && head.version.content.has_value() == head.version.deleted()) {
    return CorruptVersion(head.version.header.version, "has lost its content");
  }
  return std::move(head.version);
}

absl::StatusOr<StoredVersion> ReadWholeVersion(const ReadContext& context,
                                               const DocumentKey& document, const Head& head,
                                               int64_t version, Part part) {
  if (version == head.version.header.version) return AnswerFromHead(head, part);
  ASSIGN_OR_RETURN(std::optional<Record> record,
                   context.reader.Get(Keyspace::kVersions, store::VersionKey(document, version)));
  if (!record) return CorruptVersion(version, "is missing");
  return DecodeWhole(record->value, record->position, part, version);
}

absl::Status ScanWholeVersions(const ReadContext& context, const DocumentKey& document,
                               const Head& head, const VersionRange& range, Part part,
                               const VersionVisitor& visitor) {
  VersionRange below = range;
  const bool with_head = TakeHead(head, below);
  if (with_head && range.newest_first && !visitor(AnswerFromHead(head, part))) {
    return absl::OkStatus();
  }
  VersionWalk walk(context, document, below);
  while (walk.Next()) {
    ASSIGN_OR_RETURN(StoredVersion version,
                     DecodeWhole(walk.bytes(), walk.position(), part, walk.version()));
    if (!visitor(std::move(version))) return absl::OkStatus();
  }
  RETURN_IF_ERROR(walk.status());
  if (with_head && !range.newest_first) visitor(AnswerFromHead(head, part));
  return absl::OkStatus();
}

}  // namespace strata::versioning
