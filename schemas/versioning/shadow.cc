// SHADOW_COLLECTION, the article's choice 3: the current version in one place, the previous ones in
// another.
//
//   heads    (id)    = version            the current one
//   versions (id, v) = version            those before it
//
// Order of writes:
//   1. ensure (id, v) = the current version that was read; then v+1 … v+n-1 of a batch of n
//   2. replace the head if its stamp is the one read (insert it if absent, for the first version):
//      the commit point
//
// A crash between them leaves a copy of the version that is still current. It is harmless and
// nobody cleans it up: readers read the head first and then only the versions *below* it, and the
// next update, whoever makes it, finds its `ensure` done. A version's record never depends on who
// copied it, so a late writer's copy says the same as the one it finds. (Insert in place of ensure
// would let that copy block the document for ever; the head first would lose a version; deleting
// the copy as an orphan would delete a version that a concurrent writer just superseded.)
//
// The copy keeps the position of its version's commit as a member.
//
// The article: "Fetch 1: Easy, Fastest; fetch many: Easy, Fastest; update: Medium; recover if fail:
// Medium Hard". Here recovery is nothing.

#include "schemas/base/status_macros.h"
#include "schemas/versioning/inspection.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/version_records.h"

namespace strata::versioning {
namespace {

using store::DocumentKey;
using store::Keyspace;

class ShadowCollection final : public Strategy {
 public:
  absl::StatusOr<std::optional<Head>> ReadHead(const ReadContext& context,
                                               const DocumentKey& document) const override {
    return ReadHeadRecord(context, document, DecodeWholeHead);
  }

  absl::StatusOr<StoredVersion> ReadVersion(const ReadContext& context, const DocumentKey& document,
                                            const Head& head, int64_t version,
                                            Part part) const override {
    return ReadWholeVersion(context, document, head, version, part);
  }

  absl::Status ScanVersions(const ReadContext& context, const DocumentKey& document,
                            const Head& head, const VersionRange& range, Part part,
                            const VersionVisitor& visitor) const override {
    return ScanWholeVersions(context, document, head, range, part, visitor);
  }

  absl::Status ScanHeads(const ReadContext& context, int64_t incarnation,
                         std::string_view id_prefix, std::string_view after_id, Part part,
                         const HeadVisitor& visitor) const override {
    return ScanHeadRecords(context, incarnation, id_prefix, after_id, part, DecodeWholeHead,
                           visitor);
  }

  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::WriteBatch& batch) const override {
    if (head != nullptr) EnsureCopy(document, head->version, batch);
    for (const StoredVersion& version : next.first(next.size() - 1)) {
      EnsureCopy(document, version, batch);
    }
    WriteHead(document, head, EncodeVersion(next.back()), batch);
    return absl::OkStatus();
  }

  absl::Status Inspect(const ReadContext& context, const DocumentKey& document, const Head* head,
                       int64_t first, InspectionStatePtr& /*state*/,
                       const InspectionVisitor& visitor) const override {
    ASSIGN_OR_RETURN(const int64_t last, LastBelowHead(context, document, head));
    RecordWalk walk(context, document, first, last);
    while (walk.Next()) {
      Inspected inspected = walk.inspected();
      if (const store::Record* const record = walk.record()) {
        auto found = InspectWhole(*record, walk.first(), inspected.faults);
        if (found) inspected.version = std::move(found->version);
      }
      if (!visitor(std::move(inspected))) return absl::OkStatus();
    }
    RETURN_IF_ERROR(walk.status());
    std::vector<Fault> faults;
    std::string right_copy;
    if (head != nullptr) {
      InspectContent(head->version, faults);
      if (faults.empty()) right_copy = EncodeVersion(head->version);
    }
    return InspectHead(context, document, head, first, std::move(faults), std::move(right_copy),
                       visitor);
  }

 private:
  static void EnsureCopy(const DocumentKey& document, const StoredVersion& version,
                         store::WriteBatch& batch) {
    batch.Ensure(Keyspace::kVersions, store::VersionKey(document, version.header.version),
                 EncodeVersion(version));
  }
};

}  // namespace

std::unique_ptr<Strategy> MakeShadowCollection(const StrategyOptions& /*options*/) {
  return std::make_unique<ShadowCollection>();
}

}  // namespace strata::versioning
