// CURRENT_FLAG: as FULL_COPIES, and the latest record carries a flag. Choice 1a of the article "How
// to Track Versions with MongoDB" (askasya.com, 2014).
//
//   versions (id, v) = version            with `current: true` on the latest
//
// Order of writes:
//   1. insert (id, v+1), flagged, if absent          the commit point
//   2. clear the flags below it, oldest first, the old head's last, each if its stamp is the one
//      read (the head's own; the others were read by PrepareToPlan, from the head down to the first
//      record without a flag)
//
// A crash before 1 leaves nothing. A crash after it, or a lost guard in 2, leaves several flagged
// records; as flags go oldest first, the flagged ones are always the newest without a gap. Readers
// never trust the flag: the current version is the greatest. The next update clears what is left,
// or Inspect's repairs do. Flags that are cleared before the new record stands would leave a
// document without any current version after a crash; clearing newest first would hide older flags
// from the next walk.
//
// A cleared record is written anew, so it keeps the position of its version's commit as a member.
//
// The article: "Fetch 1: Easy, Fast; fetch many: Easy, Fast; update: Medium; recover if fail:
// Hard". Recovery is no longer hard: there is nothing to find out, only flags to clear.

#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/versioning/inspection.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using store::DocumentKey;
using store::Keyspace;

std::string EncodeFlagged(const StoredVersion& version) {
  document::BsonBuilder builder(kHeaderBytes + (version.content ? version.content->size() : 0));
  AppendHeader(version.header, version.position, builder);
  builder.Bool("current", true);
  if (version.content) builder.Document("content", version.content->bytes());
  return builder.Take();
}

// Older versions that are still flagged as current.
struct FlaggedBelow final : StrategyState {
  struct Flagged {
    int64_t version = 0;
    store::Record record;
  };
  std::vector<Flagged> newest_first;
};

class CurrentFlag final : public Strategy {
 public:
  absl::StatusOr<std::optional<Head>> ReadHead(const ReadContext& context,
                                               const DocumentKey& document) const override {
    return ReadGreatestVersion(context, document);
  }

  absl::Status PrepareToPlan(const ReadContext& context, const DocumentKey& document,
                             Head& head) const override {
    auto flagged = std::make_shared<FlaggedBelow>();
    VersionWalk walk(context, document,
                     {.first = 1, .last = head.version.header.version - 1, .newest_first = true},
                     VersionWalk::Source::kPointReads);
    while (walk.Next()) {
      ASSIGN_OR_RETURN(const VersionRecord record, DecodeExpected(walk.bytes(), walk.position(),
                                                                  Part::kHeader, walk.version()));
      if (!record.current) break;
      flagged->newest_first.push_back({walk.version(), walk.TakeRecord()});
    }
    head.state = flagged->newest_first.empty() ? nullptr : std::move(flagged);
    return walk.status();
  }

  absl::StatusOr<StoredVersion> ReadVersion(const ReadContext& context, const DocumentKey& document,
                                            const Head& head, int64_t version,
                                            Part part) const override {
    return ReadWholeVersion(context, document, head, version, part);
  }

  std::unique_ptr<VersionCursor> ScanVersions(const ReadContext& context,
                                              const DocumentKey& document, const Head& head,
                                              const VersionRange& range, Part part) const override {
    return ScanWholeVersions(context, document, head, range, part);
  }

  std::unique_ptr<HeadCursor> ScanHeads(const ReadContext& context, int64_t incarnation,
                                        std::string_view id_prefix, std::string_view after_id,
                                        Part part) const override {
    return ScanGreatestVersions(context, incarnation, id_prefix, after_id, part);
  }

  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities /*capabilities*/,
                    store::WriteBatch& batch) const override {
    for (const StoredVersion& version : next) {
      batch.Insert(Keyspace::kVersions, store::VersionKey(document, version.header.version),
                   &version == &next.back() ? EncodeFlagged(version) : EncodeVersion(version));
    }
    batch.MarkCommitPoint();
    if (head == nullptr) return absl::OkStatus();
    if (head->state != nullptr) {
      const auto& flagged = static_cast<const FlaggedBelow&>(*head->state);
      RETURN_IF_ERROR(ClearFlags(document, flagged, batch));
    }
    batch.Replace(Keyspace::kVersions, store::VersionKey(document, head->version.header.version),
                  EncodeVersion(head->version), head->stamp);
    return absl::OkStatus();
  }

  void Confirm(const DocumentKey& document, const Head* head,
               store::WriteBatch& batch) const override {
    ConfirmNoNextVersion(document, head, batch);
  }

  // Any flag below the head counts, not only those that a crash leaves without a gap.
  std::unique_ptr<InspectionCursor> Inspect(const ReadContext& context, const DocumentKey& document,
                                            const Head* head, int64_t first,
                                            StrategyStatePtr /*state*/) const override {
    // Of a head that cannot be read nobody can tell where it is.
    if (head == nullptr) return InspectGreatestVersions(context, document, head, first, {});
    return InspectGreatestVersions(
        context, document, head, first,
        [&document, current = head->version.header.version](
            const VersionRecord& found, store::Stamp stamp, std::vector<Finding>& findings) {
          InspectFlag(document, current, found, stamp, findings);
        });
  }

 private:
  static void InspectFlag(const DocumentKey& document, int64_t current, const VersionRecord& found,
                          store::Stamp stamp, std::vector<Finding>& findings) {
    const int64_t version = found.version.header.version;
    const bool right = version == current;
    if (found.current == right) return;
    Finding finding{FindingKind::kWrongFlag, version,
                    right ? "it is current and not flagged" : "it is flagged and not current",
                    true};
    finding.repair.Replace(Keyspace::kVersions, store::VersionKey(document, version),
                           right ? EncodeFlagged(found.version) : EncodeVersion(found.version),
                           stamp);
    findings.push_back(std::move(finding));
  }

  static absl::Status ClearFlags(const DocumentKey& document, const FlaggedBelow& flagged,
                                 store::WriteBatch& batch) {
    const auto& newest_first = flagged.newest_first;
    for (auto each = newest_first.rbegin(); each != newest_first.rend(); ++each) {
      const store::Record& record = each->record;
      ASSIGN_OR_RETURN(const StoredVersion version,
                       DecodeWhole(record, Part::kContent, each->version));
      batch.Replace(Keyspace::kVersions, store::VersionKey(document, each->version),
                    EncodeVersion(version), record.stamp);
    }
    return absl::OkStatus();
  }
};

}  // namespace

StrategyEntry DescribeCurrentFlag(int32_t id, std::string_view name) {
  return {id, name, {}, [](const StrategyOptions&) -> std::unique_ptr<Strategy> {
            return std::make_unique<CurrentFlag>();
          }};
}

}  // namespace strata::versioning
