#include "schemas/versioning/inspection.h"

#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_errors.h"

namespace strata::versioning {
namespace {

using store::DocumentKey;
using store::Keyspace;
using store::Record;

// So many versions of a gap are confirmed missing by point reads where scans may be stale. A longer
// gap is a damaged key's, and nobody waits for a billion reads.
constexpr int64_t kConfirmedMax = 1000;

std::string Versions(int64_t first, int64_t last) {
  if (first == last) return "version " + std::to_string(first) + " is";
  return "versions " + std::to_string(first) + " to " + std::to_string(last) + " are";
}

// The version of a key of the document; 0 for none.
int64_t VersionOf(std::string_view key, const DocumentKey& document) {
  const std::optional<store::ParsedVersionKey> parsed = store::ParseVersionKey(key);
  return parsed && parsed->document == document ? parsed->version : 0;
}

store::Range RecordsOf(const DocumentKey& document) {
  std::string begin = store::HeadKey(document);
  std::string end = store::PrefixEnd(begin);
  return {.begin = std::move(begin), .end = std::move(end)};
}

class GreatestInspection final : public InspectionCursor {
 public:
  GreatestInspection(const ReadContext& context, const DocumentKey& document, const Head* head,
                     int64_t first, RecordInspector also)
      : context_(context),
        document_(document),
        head_(head),
        first_(first),
        also_(std::move(also)) {}

 private:
  absl::StatusOr<std::optional<InspectedVersions>> Produce() override {
    if (!walk_) {
      ASSIGN_OR_RETURN(last_, Last());
      walk_.emplace(context_, document_, first_, last_);
    }
    if (whole_) return std::nullopt;
    if (!walk_->Next()) {
      RETURN_IF_ERROR(walk_->status());
      whole_ = true;
      return ProduceWhole();
    }
    InspectedVersions inspected = walk_->inspected();
    if (const Record* const record = walk_->record()) {
      std::optional<VersionRecord> found =
          InspectWhole(*record, walk_->first(), inspected.findings);
      if (found && also_) also_(*found, record->stamp, inspected.findings);
      if (found) inspected.version = std::move(found->version);
    }
    return inspected;
  }

  absl::StatusOr<int64_t> Last() const {
    if (head_ != nullptr) return head_->version.header.version;
    return GreatestRecord(context_, document_);
  }

  absl::StatusOr<std::optional<InspectedVersions>> ProduceWhole() const {
    std::vector<Finding> findings;
    RETURN_IF_ERROR(InspectHeadRecord(context_, document_, FindingKind::kOrphan,
                                      "a heads record is stored, and the layout has none",
                                      findings));
    if (context_.capabilities.fresh_scans) {  // else it may have grown since the head was read
      RETURN_IF_ERROR(
          InspectOrphans(context_, document_, last_, "above the current one", findings));
    }
    return WholeDocument(std::move(findings));
  }

  const ReadContext context_;
  const DocumentKey& document_;
  const Head* const head_;
  const int64_t first_;
  const RecordInspector also_;
  int64_t last_ = 0;
  std::optional<RecordWalk> walk_;
  bool whole_ = false;
};

}  // namespace

RecordWalk::RecordWalk(const ReadContext& context, const DocumentKey& document, int64_t first,
                       int64_t last)
    : reader_(context.reader),
      document_(document),
      fresh_(context.capabilities.fresh_scans),
      end_(last),
      next_(first) {
  if (first > last) return;
  store::Range range = RecordsOf(document);
  range.begin = store::VersionKey(document, first);
  cursor_ = reader_.Scan(Keyspace::kVersions, range);
}

bool RecordWalk::Next() {
  if (!status_.ok() || unreadable_ || next_ > end_) return false;
  record_.reset();
  return fresh_ ? NextFromCursor() : NextFromPointRead();
}

bool RecordWalk::NextFromCursor() {
  int64_t version = 0;
  for (; cursor_->Valid(); cursor_->Next()) {
    version = VersionOf(cursor_->key(), document_);
    if (version >= next_) break;  // else a key that is no version's: InspectOrphans names it
  }
  if (!cursor_->Valid() && !cursor_->status().ok()) return Fail(cursor_->status());
  if (!cursor_->Valid() || version > end_) return Miss(end_);
  if (version > next_) return Miss(version - 1);
  first_ = last_ = next_++;
  record_ = {std::string(cursor_->value()), cursor_->stamp(), cursor_->position()};
  cursor_->Next();
  return true;
}

bool RecordWalk::NextFromPointRead() {
  const auto read = [this](int64_t version) {
    return reader_.Get(Keyspace::kVersions, store::VersionKey(document_, version));
  };
  absl::StatusOr<std::optional<Record>> record = read(next_);
  if (!record.ok()) return Fail(record.status());
  if (*record) {
    first_ = last_ = next_++;
    record_ = **std::move(record);
    return true;
  }
  // The scan says how far the gap may reach at most; versions may stand in it all the same.
  cursor_->Seek(store::VersionKey(document_, next_ + 1));
  int64_t last = end_;
  if (cursor_->Valid()) {
    const int64_t version = VersionOf(cursor_->key(), document_);
    if (version > next_ && version <= end_) last = version - 1;
  }
  for (int64_t version = next_ + 1; version <= last; ++version) {
    if (version - next_ > kConfirmedMax) break;
    record = read(version);
    if (!record.ok()) return Fail(record.status());
    if (*record) last = version - 1;
  }
  return Miss(last);
}

bool RecordWalk::Miss(int64_t last) {
  first_ = next_;
  last_ = last;
  next_ = last + 1;
  return true;
}

bool RecordWalk::Fail(const absl::Status& status) {
  if (!IsCorrupt(status)) {
    status_ = status;
    return false;
  }
  unreadable_ = true;
  first_ = last_ = next_;
  return true;
}

InspectedVersions RecordWalk::inspected() const {
  if (!record_ && !unreadable_) return MissingVersions(first_, last_);
  InspectedVersions inspected{first_, last_, std::nullopt, {}};
  if (unreadable_) {
    inspected.findings.push_back(
        {FindingKind::kRecordCorrupt, first_,
         "the engine finds the version's record, or one after it, damaged; what is after it was "
         "not checked"});
  }
  return inspected;
}

InspectedVersions MissingVersions(int64_t first, int64_t last) {
  InspectedVersions inspected{first, last, std::nullopt, {}};
  inspected.findings.push_back(
      {FindingKind::kVersionMissing, first, Versions(first, last) + " missing"});
  return inspected;
}

std::optional<VersionRecord> InspectRecord(const Record& record, int64_t version,
                                           std::vector<Finding>& findings) {
  absl::StatusOr<VersionRecord> decoded =
      DecodeVersion(record.value, record.position, Part::kContent);
  if (!decoded.ok()) {
    findings.push_back({FindingKind::kRecordCorrupt, version, "its record cannot be decoded"});
    return std::nullopt;
  }
  const int64_t stored = decoded->version.header.version;
  if (version != 0 && stored != version) {
    findings.push_back({FindingKind::kRecordCorrupt, version,
                        "the record under its key is version " + std::to_string(stored)});
    return std::nullopt;
  }
  return *std::move(decoded);
}

void InspectContent(const StoredVersion& version, std::vector<Finding>& findings) {
  const VersionHeader& header = version.header;
  const auto mismatch = [&](std::string_view problem) {
    findings.push_back({FindingKind::kContentMismatch, header.version, std::string(problem)});
  };
  if (version.deleted() && version.content) return mismatch("it is a deletion and has a content");
  if (!version.deleted() && !version.content) return mismatch("its content is missing");
  if (ContentHashOf(header.salt, version.content) != header.content_hash) {
    mismatch("its content does not hash to its content_hash");
  }
}

std::optional<VersionRecord> InspectWhole(const Record& record, int64_t version,
                                          std::vector<Finding>& findings) {
  std::optional<VersionRecord> decoded = InspectRecord(record, version, findings);
  if (decoded) InspectContent(decoded->version, findings);
  return decoded;
}

absl::StatusOr<int64_t> GreatestRecord(const ReadContext& context, const DocumentKey& document) {
  store::Range range = RecordsOf(document);
  range.reverse = true;
  const auto cursor = context.reader.Scan(Keyspace::kVersions, range);
  for (; cursor->Valid(); cursor->Next()) {
    if (const int64_t version = VersionOf(cursor->key(), document); version > 0) return version;
  }
  // What the engine cannot read, the walk upward will meet and name.
  if (IsCorrupt(cursor->status())) return 0;
  RETURN_IF_ERROR(cursor->status());
  return 0;
}

absl::StatusOr<int64_t> LastBelowHead(const ReadContext& context, const DocumentKey& document,
                                      const Head* head) {
  if (head != nullptr) return head->version.header.version - 1;
  std::vector<Finding> unreadable;
  RETURN_IF_ERROR(
      InspectHeadRecord(context, document, FindingKind::kRecordCorrupt, "", unreadable));
  if (unreadable.empty()) return 0;
  return GreatestRecord(context, document);
}

absl::Status InspectOrphans(const ReadContext& context, const DocumentKey& document,
                            int64_t version, std::string_view problem,
                            std::vector<Finding>& findings) {
  store::Range range = RecordsOf(document);
  const auto present = [&](std::string_view key) -> absl::StatusOr<bool> {
    if (context.capabilities.fresh_scans) return true;
    ASSIGN_OR_RETURN(const std::optional<Record> record,
                     context.reader.Get(Keyspace::kVersions, key));
    return record.has_value();
  };
  const auto end_of = [](const store::Cursor& cursor) {
    return IsCorrupt(cursor.status()) ? absl::OkStatus() : cursor.status();
  };
  // Below version 1 no key is a version's.
  store::Range below = range;
  below.end = store::VersionKey(document, 1);
  const auto strange = context.reader.Scan(Keyspace::kVersions, below);
  if (strange->Valid()) {
    findings.push_back(
        {FindingKind::kOrphan, 0, "a record stands under a key that is no version's"});
  } else {
    RETURN_IF_ERROR(end_of(*strange));
  }
  range.begin = store::VersionKey(document, version + 1);
  const auto upward = context.reader.Scan(Keyspace::kVersions, range);
  if (!upward->Valid()) return end_of(*upward);
  const std::string first_key(upward->key());
  ASSIGN_OR_RETURN(const bool there, present(first_key));
  if (!there) return absl::OkStatus();
  range.reverse = true;
  const auto downward = context.reader.Scan(Keyspace::kVersions, range);
  const int64_t first = VersionOf(first_key, document);
  const int64_t last = downward->Valid() ? VersionOf(downward->key(), document) : first;
  std::string text = "a record of " + Versions(first, first) + " stored";
  if (last > first) text = "records of " + Versions(first, last) + " stored";
  findings.push_back({FindingKind::kOrphan, first, text.append(" ").append(problem)});
  return absl::OkStatus();
}

absl::Status InspectHeadRecord(const ReadContext& context, const DocumentKey& document,
                               FindingKind kind, std::string_view problem,
                               std::vector<Finding>& findings) {
  const absl::StatusOr<std::optional<Record>> record =
      context.reader.Get(Keyspace::kHeads, store::HeadKey(document));
  if (!record.ok() && !IsCorrupt(record.status())) return record.status();
  if (!record.ok() || *record) findings.push_back({kind, 0, std::string(problem)});
  return absl::OkStatus();
}

absl::Status InspectCopy(const ReadContext& context, const DocumentKey& document, const Head& head,
                         std::string right, std::vector<Finding>& findings) {
  const int64_t version = head.version.header.version;
  std::string key = store::VersionKey(document, version);
  const absl::StatusOr<std::optional<Record>> copy = context.reader.Get(Keyspace::kVersions, key);
  if (!copy.ok()) {
    if (!IsCorrupt(copy.status())) return copy.status();
    findings.push_back({FindingKind::kWrongCopy, version,
                        "the engine finds a copy of the current version beside it damaged"});
    return absl::OkStatus();
  }
  if (!*copy) return absl::OkStatus();
  Finding finding;
  finding.version = version;
  finding.recoverable = !right.empty();
  const bool early = (*copy)->value == right;
  finding.kind = early ? FindingKind::kEarlyCopy : FindingKind::kWrongCopy;
  finding.problem = early
                        ? "a copy of the current version stands beside it; the next update uses it"
                        : "a copy of the current version stands beside it and is not what the next "
                          "update would store";
  if (finding.recoverable && context.capabilities.atomic_batches) {
    // Only together with the proof that the version is still current: deleting the copy of one that
    // was just superseded would lose it.
    finding.repair.Check(Keyspace::kHeads, store::HeadKey(document), head.stamp);
    finding.repair.DeleteIf(Keyspace::kVersions, std::move(key), (*copy)->stamp);
  } else if (finding.recoverable && !early) {
    // The bytes depend on that version alone, so they are right whatever was written meanwhile.
    finding.repair.Replace(Keyspace::kVersions, std::move(key), std::move(right), (*copy)->stamp);
  }
  findings.push_back(std::move(finding));
  return absl::OkStatus();
}

std::unique_ptr<InspectionCursor> InspectGreatestVersions(const ReadContext& context,
                                                          const DocumentKey& document,
                                                          const Head* head, int64_t first,
                                                          RecordInspector also) {
  return std::make_unique<GreatestInspection>(context, document, head, first, std::move(also));
}

absl::StatusOr<std::optional<InspectedVersions>> HeadedInspection::Produce() {
  if (stage_ == Stage::kBegin) {
    ASSIGN_OR_RETURN(const int64_t last, LastBelowHead(context_, document_, head_));
    RETURN_IF_ERROR(Begin(last));
    walk_.emplace(context_, document_, first_, last);
    stage_ = Stage::kBelowHead;
  }
  if (stage_ == Stage::kBelowHead) {
    if (walk_->Next()) {
      InspectedVersions inspected = walk_->inspected();
      if (const Record* const record = walk_->record()) {
        InspectBelow(*record, inspected);
      } else {
        SkipMissing();
      }
      return inspected;
    }
    RETURN_IF_ERROR(walk_->status());
    stage_ = Stage::kHead;
    if (head_ != nullptr && first_ <= head_->version.header.version) return ProduceHead();
  }
  if (stage_ == Stage::kWhole) return std::nullopt;
  stage_ = Stage::kWhole;
  return ProduceWhole();
}

absl::StatusOr<std::optional<InspectedVersions>> HeadedInspection::ProduceHead() {
  const int64_t version = head_->version.header.version;
  InspectedVersions inspected{version, version, head_->version, {}};
  ASSIGN_OR_RETURN(std::string right_copy, InspectHead(*head_, inspected.findings));
  RETURN_IF_ERROR(
      InspectCopy(context_, document_, *head_, std::move(right_copy), inspected.findings));
  return inspected;
}

absl::StatusOr<std::optional<InspectedVersions>> HeadedInspection::ProduceWhole() {
  std::vector<Finding> findings;
  if (head_ != nullptr) {
    RETURN_IF_ERROR(InspectOrphans(context_, document_, head_->version.header.version,
                                   "above the current one", findings));
    return WholeDocument(std::move(findings));
  }
  RETURN_IF_ERROR(InspectHeadRecord(context_, document_, FindingKind::kRecordCorrupt,
                                    "its heads record cannot be decoded", findings));
  if (findings.empty()) {
    RETURN_IF_ERROR(InspectOrphans(context_, document_, 0, "without a current one", findings));
  }
  return WholeDocument(std::move(findings));
}

std::optional<InspectedVersions> WholeDocument(std::vector<Finding> findings) {
  if (findings.empty()) return std::nullopt;
  return InspectedVersions{0, 0, std::nullopt, std::move(findings)};
}

}  // namespace strata::versioning
