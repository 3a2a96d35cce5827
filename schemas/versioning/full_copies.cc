// FULL_COPIES: one whole record for each version. Choice 1 of the article "How to Track Versions
// with MongoDB" (askasya.com, 2014).
//
//   versions (id, v) = version
//
// Order of writes: insert (id, v+1) if absent, which is the commit point. There is nothing between
// two writes, so a crash leaves nothing and nobody has to repair anything. Two writers that read
// the same head insert the same key: one wins.
//
// The current version is the greatest, found by one reverse seek. Where scans may be stale it is
// confirmed by point reads upward, until one finds nothing.
//
// The article: "Fetch 1: Easy, Fast; fetch many: Not easy, Slow; update: Medium; recover if fail:
// N/A". Fetch many is no longer slow here: it seeks from document to document.

#include "schemas/base/status_macros.h"
#include "schemas/versioning/inspection.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using store::DocumentKey;
using store::Keyspace;

class FullCopies final : public Strategy {
 public:
  absl::StatusOr<std::optional<Head>> ReadHead(const ReadContext& context,
                                               const DocumentKey& document) const override {
    return ReadGreatestVersion(context, document);
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

  absl::Status Plan(const DocumentKey& document, const Head* /*head*/,
                    std::span<const StoredVersion> next, store::Capabilities /*capabilities*/,
                    store::WriteBatch& batch) const override {
    for (const StoredVersion& version : next) {
      batch.Insert(Keyspace::kVersions, store::VersionKey(document, version.header.version),
                   EncodeVersion(version));
    }
    batch.MarkCommitPoint();
    return absl::OkStatus();
  }

  void Confirm(const DocumentKey& document, const Head* head,
               store::WriteBatch& batch) const override {
    ConfirmNoNextVersion(document, head, batch);
  }

  std::unique_ptr<InspectionCursor> Inspect(const ReadContext& context, const DocumentKey& document,
                                            const Head* head, int64_t first,
                                            StrategyStatePtr /*state*/) const override {
    return InspectGreatestVersions(context, document, head, first, {});
  }
};

}  // namespace

StrategyEntry DescribeFullCopies(int32_t id, std::string_view name) {
  return {id, name, {}, [](const StrategyOptions&) -> std::unique_ptr<Strategy> {
            return std::make_unique<FullCopies>();
          }};
}

}  // namespace strata::versioning
