// SHADOW_COLLECTION: the current version in one place, the previous ones in another. Choice 3 of
// the article "How to Track Versions with MongoDB" (askasya.com, 2014).
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
// With atomic batches the copy is put, whatever is there: the head's guard refuses a late writer's
// whole batch. It holds for whoever may write (id, v) some day while v is current, too: they have
// to replace the head in the same batch.
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

class ShadowInspection final : public HeadedInspection {
 public:
  using HeadedInspection::HeadedInspection;

 private:
  void InspectBelow(const store::Record& record, InspectedVersions& inspected) override {
    std::optional<VersionRecord> found = InspectWhole(record, inspected.first, inspected.findings);
    if (found) inspected.version = std::move(found->version);
  }

  absl::StatusOr<std::string> InspectHead(const Head& head,
                                          std::vector<Finding>& findings) override {
    InspectContent(head.version, findings);
    return findings.empty() ? EncodeVersion(head.version) : "";
  }
};

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

  std::unique_ptr<VersionCursor> ScanVersions(const ReadContext& context,
                                              const DocumentKey& document, const Head& head,
                                              const VersionRange& range, Part part) const override {
    return ScanWholeVersions(context, document, head, range, part);
  }

  std::unique_ptr<HeadCursor> ScanHeads(const ReadContext& context, int64_t incarnation,
                                        std::string_view id_prefix, std::string_view after_id,
                                        Part part) const override {
    return ScanHeadRecords(context, incarnation, id_prefix, after_id, part, DecodeWholeHead);
  }

  absl::Status Plan(const DocumentKey& document, const Head* head,
                    std::span<const StoredVersion> next, store::Capabilities capabilities,
                    store::WriteBatch& batch) const override {
    if (head != nullptr) SetAsideCopy(document, head->version, capabilities, batch);
    for (const StoredVersion& version : next.first(next.size() - 1)) {
      SetAsideCopy(document, version, capabilities, batch);
    }
    WriteHead(document, head, EncodeVersion(next.back()), batch);
    return absl::OkStatus();
  }

  void Confirm(const DocumentKey& document, const Head* head,
               store::WriteBatch& batch) const override {
    ConfirmHeadRecord(document, head, batch);
  }

  std::unique_ptr<InspectionCursor> Inspect(const ReadContext& context, const DocumentKey& document,
                                            const Head* head, int64_t first,
                                            StrategyStatePtr /*state*/) const override {
    return std::make_unique<ShadowInspection>(context, document, head, first);
  }

 private:
  static void SetAsideCopy(const DocumentKey& document, const StoredVersion& version,
                           store::Capabilities capabilities, store::WriteBatch& batch) {
    SetAside(Keyspace::kVersions, store::VersionKey(document, version.header.version),
             EncodeVersion(version), capabilities, batch);
  }
};

}  // namespace

StrategyEntry DescribeShadowCollection(int32_t id, std::string_view name) {
  return {id, name, {}, [](const StrategyOptions&) -> std::unique_ptr<Strategy> {
            return std::make_unique<ShadowCollection>();
          }};
}

}  // namespace strata::versioning
