#include "schemas/versioning/verify_ledger.h"

#include <limits>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/documents.h"
#include "schemas/versioning/verify_document.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

// Documents whose greatest version the walk remembers.
constexpr size_t kHeadsMax = 10'000;

bool IsCorrupt(const absl::Status& status) {
  return ReasonOf(status) == ErrorReason::kRecordCorrupt;
}

// What the entry says otherwise than the version; empty: nothing.
std::string_view Difference(const LedgerEntry& entry, const Collection& collection,
                            const VersionHeader& header) {
  if (entry.collection != collection.name) return "collection";
  if (entry.header.kind != header.kind) return "kind";
  if (entry.header.commit_time != header.commit_time) return "commit time";
  if (!(entry.header.change == header.change)) return "actor, reason or labels";
  if (entry.header.request_id != header.request_id) return "request id";
  return "";
}

}  // namespace

absl::StatusOr<bool> LedgerLookup::Check(const StoredVersion& version, std::vector<Fault>& faults) {
  if (!context_.capabilities.commit_positions) return false;
  const int64_t number = version.header.version;
  if (version.position != loaded_) RETURN_IF_ERROR(Load(version.position));
  const auto found = entries_.find(number);
  if (found == entries_.end()) {
    faults.push_back(
        {FindingKind::kLedgerEntryMissing, number,
         "the ledger has no entry of it at commit position " + std::to_string(version.position)});
    return false;
  }
  const std::string_view difference = Difference(found->second, collection_, version.header);
  if (!difference.empty()) {
    faults.push_back({FindingKind::kLedgerMismatch, number,
                      "its ledger entry tells another " + std::string(difference)});
  }
  return true;
}

absl::Status LedgerLookup::Load(store::CommitPosition position) {
  entries_.clear();
  loaded_ = position;
  // A position that no commit can have: whatever record it stood in is damaged.
  if (position < 1 || position == std::numeric_limits<store::CommitPosition>::max()) {
    return absl::OkStatus();
  }
  const std::string begin = store::LedgerKey(position, 0);
  const std::string end = store::LedgerKey(position + 1, 0);
  if (cursor_ == nullptr) {
    cursor_ = context_.reader.Scan(Keyspace::kLedger, {});
  }
  cursor_->Seek(begin);
  for (; cursor_->Valid() && cursor_->key() < end; cursor_->Next()) {
    absl::StatusOr<LedgerEntry> entry = DecodeLedgerEntry(cursor_->value());
    // The walk over the ledger names it; here it is as good as missing.
    if (!entry.ok() || entry->incarnation != collection_.incarnation || entry->id != id_) continue;
    const int64_t version = entry->header.version;
    entries_.emplace(version, *std::move(entry));
  }
  return IsCorrupt(cursor_->status()) ? absl::OkStatus() : cursor_->status();
}

absl::Status LedgerCheck::Run(const ReadContext& context, const Collection& collection,
                              Allowance& allowance, std::vector<Finding>& findings) {
  store::Range range{.begin = next_, .end = store::LedgerKey(last_ + 1, 0)};
  const auto cursor = context.reader.Scan(Keyspace::kLedger, range);
  for (; cursor->Valid(); cursor->Next()) {
    RETURN_IF_ERROR(CheckEntry(context, collection, *cursor, findings));
    next_ = cursor->key();
    next_ += '\0';
    allowance.Take();
    if (allowance.used_up()) return absl::OkStatus();
  }
  RETURN_IF_ERROR(cursor->status());
  complete_ = true;
  return absl::OkStatus();
}

absl::Status LedgerCheck::CheckEntry(const ReadContext& context, const Collection& collection,
                                     const store::Cursor& cursor, std::vector<Finding>& findings) {
  Finding finding;
  if (const auto key = store::ParseLedgerKey(cursor.key())) finding.position = key->position;
  const absl::StatusOr<LedgerEntry> entry = DecodeLedgerEntry(cursor.value());
  if (!entry.ok()) {
    // Whose it was, nobody can tell.
    finding.problem = "a ledger entry cannot be decoded";
    findings.push_back(std::move(finding));
    return absl::OkStatus();
  }
  if (entry->incarnation != collection.incarnation) return absl::OkStatus();
  ++entries_;
  finding.id = entry->id;
  finding.version = entry->header.version;
  ASSIGN_OR_RETURN(const bool stored, Stored(context, collection, finding.id, finding.version));
  if (stored) return absl::OkStatus();
  finding.kind = FindingKind::kLedgerEntryOrphan;
  finding.problem = "the ledger names the version, and it is not stored";
  if (!ValidateName("id", finding.id).ok()) {
    finding.id.clear();
    finding.problem = "the ledger names what no document can be called";
  }
  findings.push_back(std::move(finding));
  return absl::OkStatus();
}

// True for a hole below the head too: that is a finding of the document's.
absl::StatusOr<bool> LedgerCheck::Stored(const ReadContext& context, const Collection& collection,
                                         const std::string& id, int64_t version) {
  const auto known = heads_.find(id);
  if (known != heads_.end() && version <= known->second) return true;
  const absl::StatusOr<std::optional<Head>> head =
      collection.strategy->ReadHead(context, {collection.incarnation, id});
  if (IsCorrupt(head.status())) return true;  // a finding of the document's, too
  RETURN_IF_ERROR(head.status());
  if (!*head) return false;
  if (heads_.size() >= kHeadsMax) heads_.clear();
  const int64_t greatest = (*head)->version.header.version;
  heads_[id] = greatest;
  return version <= greatest;
}

}  // namespace strata::versioning
