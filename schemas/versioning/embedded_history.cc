// EMBEDDED_HISTORY: a document and all its versions in one record. Choice 2 of the article "How to
// Track Versions with MongoDB" (askasya.com, 2014).
//
//   heads (id) = { current: version, prev: [ version … ] }      prev from version 1 upward
//
// Order of writes: replace the record if its stamp is the one read (insert it if absent, for the
// first version), which is the commit point. There is nothing between two writes, so a crash leaves
// nothing and nobody has to repair anything. Two writers that read the same head hold the same
// stamp: one wins.
//
// Each update rewrites the whole history, so its cost grows with it: the layout is for documents
// with "single digits or low double digits" of versions, as the article says. Past 12 MB it refuses
// the update with LAYOUT_LIMIT; it never truncates. The bytes of `prev` are carried over as they
// are, and the new element is put after them.
//
// A version without the member `position` belongs to the commit that wrote the record. The next
// plan carries it into a record of another commit and so fills the member in; that is always the
// old `current`, and after a batch of n versions the last n-1 elements of `prev` too.
//
// The article: "Fetch 1: Easy, Fastest; fetch many: Easy, Fastest; update: Medium; recover if fail:
// N/A".

#include "schemas/versioning/embedded_history.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/versioning/inspection.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using document::BsonReader;

using store::DocumentKey;
using store::Keyspace;

constexpr char kDocumentType = 0x03;
constexpr char kArrayType = 0x04;
constexpr size_t kLengthSize = 4;  // of the int32 that every BSON document begins with

struct Layout {
  std::string_view current;
  std::string_view prev;
};

absl::StatusOr<Layout> Split(std::string_view record) {
  Layout layout;
  BsonReader reader(record);
  while (reader.Next()) {
    if (reader.name() == "current") layout.current = reader.Document();
    if (reader.name() == "prev") layout.prev = reader.Document();
  }
  if (reader.corrupt() || layout.current.empty() || layout.prev.empty()) {
    return Error(ErrorReason::kRecordCorrupt, "embedded history record");
  }
  return layout;
}

absl::Status DecodeCurrent(const store::Record& record, Part part, StoredVersion& version) {
  ASSIGN_OR_RETURN(const Layout layout, Split(record.value));
  return DecodeWholeHead({std::string(layout.current), record.stamp, record.position}, part,
                         version);
}

// The elements of the head's `prev`, oldest first: element i is version i + 1. RECORD_CORRUPT if
// they are not as many as versions below the head.
absl::StatusOr<std::vector<std::string_view>> Elements(const Head& head) {
  const int64_t count = head.version.header.version - 1;
  ASSIGN_OR_RETURN(const Layout layout, Split(head.record));
  std::vector<std::string_view> elements;
  elements.reserve(static_cast<size_t>(count));
  BsonReader reader(layout.prev);
  while (reader.Next()) elements.push_back(reader.Document());
  if (reader.corrupt() || elements.size() != static_cast<size_t>(count)) {
    return CorruptVersion(count, "or one below it is missing");
  }
  return elements;
}

// The position of the commit that wrote the record, as the head tells it.
store::CommitPosition RecordPosition(const Head& head) { return head.version.position; }

bool HasPosition(std::string_view element) {
  BsonReader reader(element);
  while (reader.Next()) {
    if (reader.name() == "position") return true;
    if (reader.name() == "content") return false;
  }
  return false;
}

size_t BeginDocument(std::string& out) {
  out.append(kLengthSize, '\0');
  return out.size() - kLengthSize;
}

void EndDocument(size_t begin, std::string& out) {
  out += '\0';
  const auto size = static_cast<int32_t>(out.size() - begin);
  std::memcpy(&out[begin], &size, sizeof(size));
}

void AppendMember(char type, std::string_view name, std::string_view value, std::string& out) {
  out += type;
  out += name;
  out += '\0';
  out += value;
}

void AppendElement(int64_t version, std::string_view record, std::string& out) {
  AppendMember(kDocumentType, std::to_string(version - 1), record, out);
}

// Appends the elements of the head's `prev`, those without a position with it.
absl::Status CarryOver(const Head& head, std::string& out) {
  ASSIGN_OR_RETURN(const Layout layout, Split(head.record));
  ASSIGN_OR_RETURN(const std::vector<std::string_view> elements, Elements(head));
  size_t settled = elements.size();
  if (RecordPosition(head) != 0) {
    while (settled > 0 && !HasPosition(elements[settled - 1])) --settled;
  }
  if (settled > 0) {
    const std::string_view last = elements[settled - 1];
    out.append(layout.prev.data() + kLengthSize, last.data() + last.size());
  }
  for (size_t i = settled; i < elements.size(); ++i) {
    const auto version = static_cast<int64_t>(i) + 1;
    ASSIGN_OR_RETURN(const StoredVersion element,
                     DecodeWhole(elements[i], RecordPosition(head), Part::kContent, version));
    AppendElement(version, EncodeVersion(element), out);
  }
  return absl::OkStatus();
}

class EmbeddedVersions final : public VersionsAndHead {
 public:
  EmbeddedVersions(const Head& head, const VersionRange& range, Part part)
      : VersionsAndHead(head, range, part),
        next_(range.newest_first ? below().last : below().first) {}

 private:
  absl::StatusOr<std::optional<StoredVersion>> ProduceBelow() override {
    if (elements_.empty()) {
      ASSIGN_OR_RETURN(elements_, Elements(head()));
    }
    const int64_t version = next_;
    next_ += below().newest_first ? -1 : 1;
    return DecodeWhole(elements_[static_cast<size_t>(version - 1)], RecordPosition(head()), part(),
                       version);
  }

  std::vector<std::string_view> elements_;
  int64_t next_;
};

// An element says itself which version it is, so one that is missing shifts nothing.
class EmbeddedInspection final : public InspectionCursor {
 public:
  EmbeddedInspection(const ReadContext& context, const DocumentKey& document, const Head* head,
                     int64_t first)
      : context_(context), document_(document), head_(head), first_(first) {
    if (head == nullptr) return;
    const int64_t current = head->version.header.version;
    current_ = InspectedVersions{current, current, head->version, {}};
    // ReadHead could split it.
    if (const absl::StatusOr<Layout> layout = Split(head->record); layout.ok()) {
      elements_.emplace(layout->prev);
    }
  }

 private:
  absl::StatusOr<std::optional<InspectedVersions>> Produce() override {
    while (ready_.empty() && elements_) InspectNext();
    if (!ready_.empty()) {
      InspectedVersions next = std::move(ready_.front());
      ready_.pop_front();
      return next;
    }
    if (whole_) return std::nullopt;
    whole_ = true;
    return ProduceWhole();
  }

  // The next element of `prev`, with what is missing below it; after them the head.
  void InspectNext() {
    const int64_t current = head_->version.header.version;
    if (expected_ < current && elements_->Next()) {
      InspectedVersions inspected = InspectElement(elements_->Document());
      MissUpTo(inspected.first);
      ++expected_;
      if (inspected.first >= first_) ready_.push_back(std::move(inspected));
      return;
    }
    InspectContent(head_->version, current_.findings);
    if (expected_ >= current && elements_->Next()) {
      current_.findings.push_back({FindingKind::kRecordCorrupt, current,
                                   "its record holds more versions than stand below it"});
    }
    elements_.reset();
    MissUpTo(current);
    if (current >= first_) ready_.push_back(std::move(current_));
  }

  // What has no element up to `next` is missing.
  void MissUpTo(int64_t next) {
    const int64_t from = std::max(expected_, first_);
    expected_ = std::max(expected_, next);
    if (from < next) ready_.push_back(MissingVersions(from, next - 1));
  }

  // An element of `prev`, which must be the expected version or a later one below the head's.
  InspectedVersions InspectElement(std::string_view element) const {
    InspectedVersions inspected{expected_, expected_, std::nullopt, {}};
    const absl::StatusOr<VersionRecord> found =
        DecodeVersion(element, RecordPosition(*head_), Part::kContent);
    if (!found.ok()) {
      inspected.findings.push_back(
          {FindingKind::kRecordCorrupt, expected_, "its record cannot be decoded"});
      return inspected;
    }
    const int64_t version = found->version.header.version;
    if (version < expected_ || version >= head_->version.header.version) {
      inspected.findings.push_back({FindingKind::kRecordCorrupt, expected_,
                                    "version " + std::to_string(version) + " stands in its place"});
      return inspected;
    }
    inspected.first = inspected.last = version;
    inspected.version = found->version;
    InspectContent(found->version, inspected.findings);
    return inspected;
  }

  absl::StatusOr<std::optional<InspectedVersions>> ProduceWhole() const {
    std::vector<Finding> findings;
    if (head_ == nullptr) {
      RETURN_IF_ERROR(InspectHeadRecord(context_, document_, FindingKind::kRecordCorrupt,
                                        "its record cannot be decoded", findings));
    }
    RETURN_IF_ERROR(
        InspectOrphans(context_, document_, 0, "apart, and the layout stores none so", findings));
    return WholeDocument(std::move(findings));
  }

  const ReadContext context_;
  const DocumentKey& document_;
  const Head* const head_;
  const int64_t first_;
  std::optional<BsonReader> elements_;  // those that are left; nothing after the head
  int64_t expected_ = 1;                // below it all was found or is missing
  InspectedVersions current_;
  std::deque<InspectedVersions> ready_;
  bool whole_ = false;
};

class EmbeddedHistory final : public Strategy {
 public:
  explicit EmbeddedHistory(size_t record_bytes_max) : record_bytes_max_(record_bytes_max) {}

  absl::StatusOr<std::optional<Head>> ReadHead(const ReadContext& context,
                                               const DocumentKey& document) const override {
    return ReadHeadRecord(context, document, DecodeCurrent);
  }

  absl::StatusOr<StoredVersion> ReadVersion(const ReadContext& /*context*/,
                                            const DocumentKey& /*document*/, const Head& head,
                                            int64_t version, Part part) const override {
    if (version == head.version.header.version) return AnswerFromHead(head, part);
    ASSIGN_OR_RETURN(const std::vector<std::string_view> elements, Elements(head));
    return DecodeWhole(elements[static_cast<size_t>(version - 1)], RecordPosition(head), part,
                       version);
  }

  std::unique_ptr<VersionCursor> ScanVersions(const ReadContext& /*context*/,
                                              const DocumentKey& /*document*/, const Head& head,
                                              const VersionRange& range, Part part) const override {
    return std::make_unique<EmbeddedVersions>(head, range, part);
  }

  std::unique_ptr<HeadCursor> ScanHeads(const ReadContext& context, int64_t incarnation,
                                        std::string_view id_prefix, std::string_view after_id,
                                        Part part) const override {
    return ScanHeadRecords(context, incarnation, id_prefix, after_id, part, DecodeCurrent);
  }

  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities /*capabilities*/,
                    store::WriteBatch& batch) const override {
    std::string record;
    const size_t begin = BeginDocument(record);
    AppendMember(kDocumentType, "current", EncodeVersion(next.back()), record);
    AppendMember(kArrayType, "prev", "", record);
    const size_t prev = BeginDocument(record);
    if (head != nullptr) {
      RETURN_IF_ERROR(CarryOver(*head, record));
      AppendElement(head->version.header.version, EncodeVersion(head->version), record);
    }
    for (const StoredVersion& version : next.first(next.size() - 1)) {
      AppendElement(version.header.version, EncodeVersion(version), record);
    }
    EndDocument(prev, record);
    EndDocument(begin, record);
    RETURN_IF_ERROR(CheckSize(record.size()));
    WriteHead(document, head, std::move(record), batch);
    return absl::OkStatus();
  }

  void Confirm(const DocumentKey& document, const Head* head,
               store::WriteBatch& batch) const override {
    ConfirmHeadRecord(document, head, batch);
  }

  std::unique_ptr<InspectionCursor> Inspect(const ReadContext& context, const DocumentKey& document,
                                            const Head* head, int64_t first,
                                            StrategyStatePtr /*state*/) const override {
    return std::make_unique<EmbeddedInspection>(context, document, head, first);
  }

 private:
  absl::Status CheckSize(size_t size) const {
    if (size <= record_bytes_max_) return absl::OkStatus();
    return Error(ErrorReason::kLayoutLimit,
                 "the document's history no longer fits into one record; the layouts "
                 "full-copies, current-flag, shadow-collection and deltas have no such limit")
        .With("strategy", "embedded-history")
        .With("size", static_cast<int64_t>(size))
        .With("limit", static_cast<int64_t>(record_bytes_max_));
  }

  const size_t record_bytes_max_;
};

}  // namespace

std::unique_ptr<Strategy> MakeEmbeddedHistory(size_t record_bytes_max) {
  return std::make_unique<EmbeddedHistory>(record_bytes_max);
}

StrategyEntry DescribeEmbeddedHistory(int32_t id, std::string_view name) {
  return {
      id, name, {}, [](const StrategyOptions&) { return MakeEmbeddedHistory(kEmbeddedBytesMax); }};
}

}  // namespace strata::versioning
