#include "schemas/versioning/ledger_migration.h"

#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/record_codec.h"

namespace strata::versioning {

absl::StatusOr<store::LedgerEntry> LedgerMigration::Convert(const store::Reader& reader,
                                                            std::string_view record) {
  ASSIGN_OR_RETURN(store::LedgerEntry entry, DecodeLedgerRecord(record));
  // No engine without fresh scans and positions ever kept a ledger.
  const ReadContext context{reader, {.fresh_scans = true, .commit_positions = true}};
  const absl::Status added = AddChain(context, entry);
  if (!added.ok() && ReasonOf(added) != ErrorReason::kRecordCorrupt) return added;
  return entry;
}

absl::Status LedgerMigration::AddChain(const ReadContext& context, store::LedgerEntry& entry) {
  auto found = collections_.find(entry.collection);
  if (found == collections_.end()) {
    ASSIGN_OR_RETURN(CollectionPtr collection,
                     Collections::FindIn(context.reader, entry.collection));
    found = collections_.emplace(entry.collection, std::move(collection)).first;
  }
  const CollectionPtr& collection = found->second;
  if (!collection || collection->incarnation != entry.incarnation) return absl::OkStatus();
  const store::DocumentKey document{entry.incarnation, entry.id};
  if (!head_ || !(document_ == document)) {
    head_.reset();
    ASSIGN_OR_RETURN(head_, collection->strategy->ReadHead(context, document));
    document_ = document;
  }
  if (!head_ || head_->version.header.version < entry.version) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const StoredVersion version,
      collection->strategy->ReadVersion(context, document, *head_, entry.version, Part::kHeader));
  entry.chain = LedgerChain(version.header);
  return absl::OkStatus();
}

std::function<absl::StatusOr<store::LedgerEntry>(const store::Reader&, std::string_view)>
LedgerConverter() {
  return [migration = std::make_shared<LedgerMigration>()](const store::Reader& reader,
                                                           std::string_view record) {
    return migration->Convert(reader, record);
  };
}

}  // namespace strata::versioning
