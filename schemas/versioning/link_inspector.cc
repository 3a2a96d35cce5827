#include "schemas/versioning/link_inspector.h"

#include <utility>

#include "absl/status/statusor.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/delta.h"
#include "schemas/versioning/inspection.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

// The chain whose top is version `last`, each record of which is a version's.
absl::StatusOr<DeltaChain> GatherBelow(const ReadContext& context,
                                       const store::DocumentKey& document, int64_t last) {
  VersionWalk walk(context, document, {.first = 1, .last = last, .newest_first = true});
  if (!walk.Next()) return walk.status();
  absl::StatusOr<DeltaChain> chain = DeltaChain::GatherDownward(walk);
  if (!chain.ok()) return chain;
  RETURN_IF_ERROR(chain->CheckRecords());
  return chain;
}

}  // namespace

absl::Status LinkInspector::Begin(const ReadContext& context, const store::DocumentKey& document,
                                  int64_t first) {
  if (first == 1) return absl::OkStatus();
  Break();
  absl::StatusOr<DeltaChain> chain = GatherBelow(context, document, first - 1);
  if (ReasonOf(chain.status()) == ErrorReason::kRecordCorrupt) return absl::OkStatus();
  RETURN_IF_ERROR(chain.status());
  run_known_ = true;
  run_length_ = static_cast<int64_t>(chain->size()) - 1;
  run_bytes_ = chain->delta_bytes();
  absl::StatusOr<StoredVersion> below = chain->At(chain->size() - 1);
  if (!below.ok()) return absl::OkStatus();
  content_known_ = true;
  content_ = std::move(below->content);
  return absl::OkStatus();
}

void LinkInspector::Inspect(const store::Record& record, InspectedVersions& inspected) {
  std::vector<Finding>& findings = inspected.findings;
  std::optional<VersionRecord> found = InspectRecord(record, inspected.first, findings);
  if (!found) return Break();
  const std::string_view delta = found->delta;
  inspected.version = std::move(found->version);
  StoredVersion& version = *inspected.version;
  if (delta.empty()) {
    InspectContent(version, findings);
    run_known_ = true;
    run_length_ = run_bytes_ = 0;
  } else if (version.content || version.deleted()) {
    findings.push_back({FindingKind::kRecordCorrupt, inspected.first,
                        "its record is neither a keyframe nor a delta"});
    return Break();
  } else {
    RebuildContent(delta, version, findings);
    ++run_length_;
    run_bytes_ += static_cast<int64_t>(delta.size());
    if (!content_known_) return;
  }
  content_known_ = findings.empty();
  content_ = version.content;
}

bool LinkInspector::InspectHead(const CodedVersion& head, std::vector<Finding>& findings) const {
  InspectContent(*head.version, findings);
  if (!head.delta.empty()) InspectHeadDelta(head, findings);
  const bool counted = !head.delta.empty();
  if (run_known_ && (head.chain_length != (counted ? run_length_ : 0) ||
                     head.chain_bytes != (counted ? run_bytes_ : 0))) {
    findings.push_back({FindingKind::kRecordCorrupt, head.version->header.version,
                        "its record miscounts the deltas below it"});
  }
  return findings.empty();
}

void LinkInspector::InspectHeadDelta(const CodedVersion& head,
                                     std::vector<Finding>& findings) const {
  const int64_t number = head.version->header.version;
  if (head.version->deleted()) {
    findings.push_back({FindingKind::kRecordCorrupt, number, "it is a deletion and has a delta"});
    return;
  }
  if (!content_known_ || !findings.empty()) return;
  if (!content_) {
    findings.push_back({FindingKind::kRecordCorrupt, number, "it is a delta without a base"});
    return;
  }
  const absl::StatusOr<document::Content> made = document::ApplyDelta(*content_, head.delta);
  if (made.ok() && *made == *head.version->content) return;
  findings.push_back({FindingKind::kContentMismatch, number,
                      "its delta does not lead to its content; the next update would store it so"});
}

void LinkInspector::RebuildContent(std::string_view delta, StoredVersion& version,
                                   std::vector<Finding>& findings) const {
  if (!content_known_) return;
  const int64_t number = version.header.version;
  if (!content_) {
    findings.push_back({FindingKind::kRecordCorrupt, number, "it is a delta without a base"});
    return;
  }
  absl::StatusOr<document::Content> content = document::ApplyDelta(*content_, delta);
  if (!content.ok() ||
      ContentHashOf(version.header.salt, *content) != version.header.content_hash) {
    findings.push_back(
        {FindingKind::kContentMismatch, number, "it cannot be rebuilt from its deltas"});
    return;
  }
  version.content = *std::move(content);
}

}  // namespace strata::versioning
