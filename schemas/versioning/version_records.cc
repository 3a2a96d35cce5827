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

// The keys of the documents after `after_id` whose ids begin with `id_prefix`, in the heads and
// versions keyspaces alike.
store::Range DocumentsAfter(int64_t incarnation, std::string_view id_prefix,
                            std::string_view after_id) {
  std::string begin = store::IncarnationRange(incarnation).begin;
  begin += id_prefix;
  std::string end = store::PrefixEnd(begin);
  if (!after_id.empty()) {
    begin = std::max(begin, store::PrefixEnd(store::HeadKey(incarnation, after_id)));
  }
  if (begin > end) begin = end;  // after the prefix: an empty range
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

// The greatest version of each document. One cursor finds the documents, the other the greatest
// version of each that has several.
class GreatestVersions final : public HeadCursor {
 public:
  GreatestVersions(const ReadContext& context, store::Range range, Part part)
      : context_(context), range_(std::move(range)), part_(part) {}

 private:
  absl::StatusOr<std::optional<CurrentVersion>> Produce() override {
    if (forward_ == nullptr) forward_ = context_.reader.Scan(Keyspace::kVersions, range_);
    if (!forward_->Valid()) {
      RETURN_IF_ERROR(forward_->status());
      return std::nullopt;
    }
    std::optional<store::ParsedVersionKey> key = store::ParseVersionKey(forward_->key());
    if (!key) return Error(ErrorReason::kRecordCorrupt, "not a version's key");
    Greatest greatest{key->version, RecordAt(*forward_)};
    forward_->Next();
    RETURN_IF_ERROR(Climb(key->document, greatest));
    if (!context_.capabilities.fresh_scans) {
      RETURN_IF_ERROR(Confirm(context_.reader, key->document, greatest));
    }
    absl::StatusOr<StoredVersion> version = DecodeWhole(greatest.record, part_, greatest.version);
    if (!version.ok()) return version.status();
    return CurrentVersion{std::move(key->document.id), *std::move(version)};
  }

  // From the document's first record to its last, and on to the next document.
  absl::Status Climb(const DocumentKey& document, Greatest& greatest) {
    const std::string prefix = store::HeadKey(document);
    // One that failed behind the document's first record does not say that there are no more.
    if (!forward_->Valid()) RETURN_IF_ERROR(forward_->status());
    if (!AtDocument(*forward_, prefix)) return absl::OkStatus();
    const std::string end = store::PrefixEnd(prefix);
    if (backward_ == nullptr) {
      range_.reverse = true;
      backward_ = context_.reader.Scan(Keyspace::kVersions, range_);
    }
    backward_->Seek(end);
    if (!backward_->Valid()) RETURN_IF_ERROR(backward_->status());
    if (AtDocument(*backward_, prefix)) {
      ASSIGN_OR_RETURN(greatest.version, VersionAt(*backward_));
      greatest.record = RecordAt(*backward_);
    }
    forward_->Seek(end);
    return absl::OkStatus();
  }

  const ReadContext context_;
  store::Range range_;
  const Part part_;
  std::unique_ptr<store::Cursor> forward_;
  std::unique_ptr<store::Cursor> backward_;
};

class HeadRecords final : public HeadCursor {
 public:
  HeadRecords(const ReadContext& context, store::Range range, Part part, HeadDecoder decode)
      : context_(context), range_(std::move(range)), part_(part), decode_(decode) {}

 private:
  absl::StatusOr<std::optional<CurrentVersion>> Produce() override {
    for (Move(); cursor_->Valid(); Move()) {
      std::optional<DocumentKey> document = store::ParseHeadKey(cursor_->key());
      if (!document) return Error(ErrorReason::kRecordCorrupt, "not a head's key");
      const absl::StatusOr<std::optional<Record>> record = ReadRecord();
      if (!record.ok()) return record.status();
      if (!*record) continue;
      CurrentVersion current{std::move(document->id), {}};
      RETURN_IF_ERROR(decode_(**record, part_, current.version));
      return current;
    }
    RETURN_IF_ERROR(cursor_->status());
    return std::nullopt;
  }

  void Move() {
    if (cursor_ == nullptr) {
      cursor_ = context_.reader.Scan(Keyspace::kHeads, range_);
    } else {
      cursor_->Next();
    }
  }

  // That which the cursor stands on; nothing if the scan is stale and it is gone.
  absl::StatusOr<std::optional<Record>> ReadRecord() const {
    if (context_.capabilities.fresh_scans) return RecordAt(*cursor_);
    return context_.reader.Get(Keyspace::kHeads, cursor_->key());
  }

  const ReadContext context_;
  const store::Range range_;
  const Part part_;
  const HeadDecoder decode_;
  std::unique_ptr<store::Cursor> cursor_;
};

class WholeVersions final : public VersionsAndHead {
 public:
  WholeVersions(const ReadContext& context, const DocumentKey& document, const Head& head,
                const VersionRange& range, Part part)
      : VersionsAndHead(head, range, part), walk_(context, document, below()) {}

 private:
  absl::StatusOr<std::optional<StoredVersion>> ProduceBelow() override {
    if (!walk_.Next()) return walk_.status();
    return DecodeWhole(walk_.bytes(), walk_.position(), part(), walk_.version());
  }

  VersionWalk walk_;
};

}  // namespace

absl::Status CorruptVersion(int64_t version, std::string_view problem) {
  std::string message = "version " + std::to_string(version) + " ";
  message += problem;
  return Error(ErrorReason::kRecordCorrupt, message).With("version", version);
}

namespace {

absl::StatusOr<VersionRecord> Expect(int64_t version, absl::StatusOr<VersionRecord> record) {
  if (record.ok() && record->version.header.version != version) {
    return CorruptVersion(version, "is stored under another's key");
  }
  return record;
}

absl::StatusOr<StoredVersion> Whole(int64_t version, Part part,
                                    absl::StatusOr<VersionRecord> decoded) {
  ASSIGN_OR_RETURN(VersionRecord record, Expect(version, std::move(decoded)));
  if (part == Part::kContent && record.version.content.has_value() == record.version.deleted()) {
    return CorruptVersion(version, "has lost its content");
  }
  return std::move(record.version);
}

}  // namespace

absl::StatusOr<VersionRecord> DecodeExpected(std::string_view bytes,
                                             store::CommitPosition record_position, Part part,
                                             int64_t version) {
  return Expect(version, DecodeVersion(bytes, record_position, part));
}

absl::StatusOr<StoredVersion> DecodeWhole(std::string_view bytes,
                                          store::CommitPosition record_position, Part part,
                                          int64_t version) {
  return Whole(version, part, DecodeVersion(bytes, record_position, part));
}

absl::StatusOr<StoredVersion> DecodeWhole(const Record& record, Part part, int64_t version) {
  return Whole(version, part, DecodeVersion(record, part));
}

StoredVersion AnswerFromHead(const Head& head, Part part) {
  if (part == Part::kContent) return head.version;
  return {head.version.header, std::nullopt, head.version.position};
}

VersionsAndHead::VersionsAndHead(const Head& head, const VersionRange& range, Part part)
    : head_(head), part_(part), below_(range) {
  const int64_t current = head.version.header.version;
  head_left_ = range.first <= current && range.last >= current;
  below_.last = std::min(range.last, current - 1);
  left_below_ = std::max<int64_t>(below_.last - below_.first + 1, 0);
}

absl::StatusOr<std::optional<StoredVersion>> VersionsAndHead::Produce() {
  if (head_left_ && (below_.newest_first || left_below_ == 0)) {
    head_left_ = false;
    return AnswerFromHead(head_, part_);
  }
  if (left_below_ == 0) return std::nullopt;
  --left_below_;
  return ProduceBelow();
}

VersionWalk::VersionWalk(const ReadContext& context, const DocumentKey& document,
                         const VersionRange& range, Source source)
    : reader_(context.reader),
      document_(document),
      range_(range),
      begun_(source == Source::kPointReads || range.first >= range.last),
      version_(range.newest_first ? range.last + 1 : range.first - 1) {}

bool VersionWalk::Next() {
  if (!status_.ok()) return false;
  if (!begun_) Begin();
  if (cursor_used_) cursor_->Next();
  cursor_used_ = false;
  version_ += range_.newest_first ? -1 : 1;
  if (version_ < range_.first || version_ > range_.last) return false;
  key_ = store::VersionKey(document_, version_);
  return NextFromCursor() || NextFromPointRead();
}

void VersionWalk::Begin() {
  begun_ = true;
  cursor_ = reader_.Scan(Keyspace::kVersions, {.begin = store::VersionKey(document_, range_.first),
                                               .end = store::VersionKey(document_, range_.last + 1),
                                               .reverse = range_.newest_first});
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
  ASSIGN_OR_RETURN(head.version, DecodeWhole(greatest.record, Part::kContent, greatest.version));
  head.stamp = greatest.record.stamp;
  head.record = std::move(greatest.record.value);
  return head;
}

std::unique_ptr<HeadCursor> ScanGreatestVersions(const ReadContext& context, int64_t incarnation,
                                                 std::string_view id_prefix,
                                                 std::string_view after_id, Part part) {
  return std::make_unique<GreatestVersions>(context,
                                            DocumentsAfter(incarnation, id_prefix, after_id), part);
}

namespace {

absl::Status ReadHeadInto(const ReadContext& context, const DocumentKey& document,
                          HeadDecoder decode, std::optional<Head>& head) {
  absl::StatusOr<std::optional<Record>> read =
      context.reader.Get(Keyspace::kHeads, store::HeadKey(document));
  if (!read.ok()) return std::move(read).status();
  if (!*read) return absl::OkStatus();
  Record& record = **read;
  if (context.limits != nullptr && record.value.size() > context.limits->document_bytes_max) {
    return TakesLong();
  }
  head.emplace();
  RETURN_IF_ERROR(decode(record, Part::kContent, head->version));
  head->stamp = record.stamp;
  head->record = std::move(record.value);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::optional<Head>> ReadHeadRecord(const ReadContext& context,
                                                   const DocumentKey& document,
                                                   HeadDecoder decode) {
  absl::StatusOr<std::optional<Head>> head(absl::in_place);  // nothing
  absl::Status read = ReadHeadInto(context, document, decode, *head);
  if (!read.ok()) head = std::move(read);
  return head;
}

std::unique_ptr<HeadCursor> ScanHeadRecords(const ReadContext& context, int64_t incarnation,
                                            std::string_view id_prefix, std::string_view after_id,
                                            Part part, HeadDecoder decode) {
  return std::make_unique<HeadRecords>(context, DocumentsAfter(incarnation, id_prefix, after_id),
                                       part, decode);
}

store::Write& SetAside(Keyspace keyspace, std::string key, std::string record,
                       store::Capabilities capabilities, store::WriteBatch& batch) {
  return capabilities.atomic_batches ? batch.Put(keyspace, std::move(key), std::move(record))
                                     : batch.Ensure(keyspace, std::move(key), std::move(record));
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

void ConfirmNoNextVersion(const DocumentKey& document, const Head* head, store::WriteBatch& batch) {
  const int64_t current = head != nullptr ? head->version.header.version : 0;
  batch.CheckAbsent(Keyspace::kVersions, store::VersionKey(document, current + 1));
}

void ConfirmHeadRecord(const DocumentKey& document, const Head* head, store::WriteBatch& batch) {
  std::string key = store::HeadKey(document);
  if (head == nullptr) {
    batch.CheckAbsent(Keyspace::kHeads, std::move(key));
  } else {
    batch.Check(Keyspace::kHeads, std::move(key), head->stamp);
  }
}

absl::Status DecodeWholeHead(const Record& record, Part part, StoredVersion& version) {
  RETURN_IF_ERROR(DecodeVersion(record, part, version));
  if (part == Part::kContent && version.content.has_value() == version.deleted()) {
    return CorruptVersion(version.header.version, "has lost its content");
  }
  return absl::OkStatus();
}

absl::StatusOr<StoredVersion> ReadWholeVersion(const ReadContext& context,
                                               const DocumentKey& document, const Head& head,
                                               int64_t version, Part part) {
  if (version == head.version.header.version) return AnswerFromHead(head, part);
  ASSIGN_OR_RETURN(std::optional<Record> record,
                   context.reader.Get(Keyspace::kVersions, store::VersionKey(document, version)));
  if (!record) return CorruptVersion(version, "is missing");
  return DecodeWhole(*record, part, version);
}

std::unique_ptr<VersionCursor> ScanWholeVersions(const ReadContext& context,
                                                 const DocumentKey& document, const Head& head,
                                                 const VersionRange& range, Part part) {
  return std::make_unique<WholeVersions>(context, document, head, range, part);
}

}  // namespace strata::versioning
