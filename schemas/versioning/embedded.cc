// EMBEDDED_HISTORY, the article's choice 2: a document and all its versions in one record.
//
//   heads (id) = { current: version, prev: [ version … ] }      prev from version 1 upward
//
// Order of writes: replace the record if its stamp is the one read (insert it if absent, for the
// first version), which is the commit point. There is nothing between two writes, so a crash leaves
// nothing and nobody has to mend anything. Two writers that read the same head hold the same stamp:
// one wins.
//
// Each update rewrites the whole history, so its cost grows with it: the layout is for documents
// with "single digits or low double digits" of versions, as the article says. Past 12 MB it refuses
// the update with LAYOUT_LIMIT; it never truncates. The bytes of `prev` are carried over as they
// are, and the new element is put behind them.
//
// A version without the member `position` belongs to the commit that wrote the record. The next
// plan carries it into a record of another commit and so fills the member in; that is always the
// old `current`, and after a batch of n versions the last n-1 elements of `prev` too.
//
// The article: "Fetch 1: Easy, Fastest; fetch many: Easy, Fastest; update: Medium; recover if fail:
// N/A".

#include "schemas/versioning/embedded.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/inspection.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

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

absl::StatusOr<StoredVersion> DecodeCurrent(const store::Record& record, Part part) {
  ASSIGN_OR_RETURN(const Layout layout, Split(record.value));
  return DecodeWholeHead({std::string(layout.current), record.stamp, record.position}, part);
}

// The elements of `prev`, oldest first: element i is version i + 1. RECORD_CORRUPT if there are not
// `count`.
absl::StatusOr<std::vector<std::string_view>> Elements(std::string_view prev, int64_t count) {
  std::vector<std::string_view> elements;
  elements.reserve(static_cast<size_t>(count));
  BsonReader reader(prev);
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
absl::Status CarryOver(const Head& head, std::string_view prev, std::string& out) {
  const int64_t count = head.version.header.version - 1;
  ASSIGN_OR_RETURN(const std::vector<std::string_view> elements, Elements(prev, count));
  size_t settled = elements.size();
  if (RecordPosition(head) != 0) {
    while (settled > 0 && !HasPosition(elements[settled - 1])) --settled;
  }
  if (settled > 0) {
    const std::string_view last = elements[settled - 1];
    out.append(prev.data() + kLengthSize, last.data() + last.size());
  }
  for (size_t i = settled; i < elements.size(); ++i) {
    const auto version = static_cast<int64_t>(i) + 1;
    ASSIGN_OR_RETURN(const StoredVersion element,
                     DecodeWhole(elements[i], RecordPosition(head), Part::kContent, version));
    AppendElement(version, EncodeVersion(element), out);
  }
  return absl::OkStatus();
}

class EmbeddedHistory final : public Strategy {
 public:
  explicit EmbeddedHistory(size_t record_bytes_max) : record_bytes_max_(record_bytes_max) {}

  absl::StatusOr<std::optional<Head>> ReadHead(const ReadContext& context,
                                               const DocumentKey& document) const override {
    return ReadHeadRecord(context, document, DecodeCurrent);
  }

  absl::StatusOr<StoredVersion> ReadVersion(const ReadContext& context, const DocumentKey& document,
                                            const Head& head, int64_t version,
                                            Part part) const override {
    absl::StatusOr<StoredVersion> answer = StoredVersion();
    RETURN_IF_ERROR(ScanVersions(context, document, head, {.first = version, .last = version}, part,
                                 [&](StoredVersion&& found) {
                                   answer = std::move(found);
                                   return true;
                                 }));
    return answer;
  }

  absl::Status ScanVersions(const ReadContext& /*context*/, const DocumentKey& /*document*/,
                            const Head& head, const VersionRange& range, Part part,
                            const VersionVisitor& visitor) const override {
    VersionRange below = range;
    const bool with_head = TakeHead(head, below);
    if (with_head && range.newest_first && !visitor(AnswerFromHead(head, part))) {
      return absl::OkStatus();
    }
    if (below.first <= below.last) {
      bool more = true;
      RETURN_IF_ERROR(ScanPrevious(head, below, part, visitor, more));
      if (!more) return absl::OkStatus();
    }
    if (with_head && !range.newest_first) visitor(AnswerFromHead(head, part));
    return absl::OkStatus();
  }

  absl::Status ScanHeads(const ReadContext& context, int64_t incarnation,
                         std::string_view id_prefix, std::string_view after_id, Part part,
                         const HeadVisitor& visitor) const override {
    return ScanHeadRecords(context, incarnation, id_prefix, after_id, part, DecodeCurrent, visitor);
  }

  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::WriteBatch& batch) const override {
    std::string record;
    const size_t begin = BeginDocument(record);
    AppendMember(kDocumentType, "current", EncodeVersion(next.back()), record);
    AppendMember(kArrayType, "prev", "", record);
    const size_t prev = BeginDocument(record);
    if (head != nullptr) {
      ASSIGN_OR_RETURN(const Layout layout, Split(head->record));
      RETURN_IF_ERROR(CarryOver(*head, layout.prev, record));
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

  absl::Status Inspect(const ReadContext& context, const DocumentKey& document, const Head* head,
                       int64_t first, InspectionStatePtr& /*state*/,
                       const InspectionVisitor& visitor) const override {
    std::vector<Fault> faults;
    if (head == nullptr) {
      RETURN_IF_ERROR(InspectHeadRecord(context, document, FindingKind::kRecordCorrupt,
                                        "its record cannot be decoded", faults));
    } else if (!InspectElements(*head, first, visitor)) {
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(
        InspectOrphans(context, document, 0, "apart, and the layout stores none so", faults));
    VisitWhole(std::move(faults), visitor);
    return absl::OkStatus();
  }

 private:
  // Versions `first` to the head's. An element says itself which version it is, so one that is
  // missing shifts nothing. False if the visitor ended the walk.
  static bool InspectElements(const Head& head, int64_t first, const InspectionVisitor& visitor) {
    const int64_t current = head.version.header.version;
    Inspected last{current, current, head.version, {}};
    InspectContent(head.version, last.faults);
    int64_t expected = 1;
    // What has no element up to `next` is missing.
    const auto miss_up_to = [&](int64_t next) {
      const int64_t from = std::max(expected, first);
      expected = std::max(expected, next);
      return from >= next || visitor(MissingVersions(from, next - 1));
    };
    const absl::StatusOr<Layout> layout = Split(head.record);  // ReadHead could, so it is right
    BsonReader reader(layout->prev);
    while (reader.Next()) {
      if (expected >= current) {
        last.faults.push_back({FindingKind::kRecordCorrupt, current,
                               "its record holds more versions than stand below it"});
        break;
      }
      Inspected inspected = InspectElement(head, reader.Document(), expected);
      if (!miss_up_to(inspected.first)) return false;
      ++expected;
      if (inspected.first >= first && !visitor(std::move(inspected))) return false;
    }
    if (!miss_up_to(current)) return false;
    return current < first || visitor(std::move(last));
  }

  // An element of `prev`, which must be version `expected` or a later one below the head's.
  static Inspected InspectElement(const Head& head, std::string_view element, int64_t expected) {
    Inspected inspected{expected, expected, std::nullopt, {}};
    const absl::StatusOr<VersionRecord> found =
        DecodeVersion(element, RecordPosition(head), Part::kContent);
    if (!found.ok()) {
      inspected.faults.push_back(
          {FindingKind::kRecordCorrupt, expected, "its record cannot be decoded"});
      return inspected;
    }
    const int64_t version = found->version.header.version;
    if (version < expected || version >= head.version.header.version) {
      inspected.faults.push_back({FindingKind::kRecordCorrupt, expected,
                                  "in its place stands version " + std::to_string(version)});
      return inspected;
    }
    inspected.first = inspected.last = version;
    inspected.version = found->version;
    InspectContent(found->version, inspected.faults);
    return inspected;
  }

  static absl::Status ScanPrevious(const Head& head, const VersionRange& range, Part part,
                                   const VersionVisitor& visitor, bool& more) {
    ASSIGN_OR_RETURN(const Layout layout, Split(head.record));
    ASSIGN_OR_RETURN(const std::vector<std::string_view> elements,
                     Elements(layout.prev, head.version.header.version - 1));
    const int64_t step = range.newest_first ? -1 : 1;
    int64_t version = range.newest_first ? range.last : range.first;
    for (; more && range.first <= version && version <= range.last; version += step) {
      ASSIGN_OR_RETURN(StoredVersion found, DecodeWhole(elements[static_cast<size_t>(version - 1)],
                                                        RecordPosition(head), part, version));
      more = visitor(std::move(found));
    }
    return absl::OkStatus();
  }

  absl::Status CheckSize(size_t size) const {
    if (size <= record_bytes_max_) return absl::OkStatus();
    return Error(ErrorReason::kLayoutLimit,
                 "the document's history does not fit into one record any more; the layouts "
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

std::unique_ptr<Strategy> MakeEmbeddedHistory(const StrategyOptions& /*options*/) {
  return MakeEmbeddedHistory(kEmbeddedBytesMax);
}

}  // namespace strata::versioning
