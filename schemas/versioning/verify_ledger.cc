#include "schemas/versioning/verify_ledger.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/collection_record.h"
#include "schemas/versioning/document_errors.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

// Documents whose greatest version the walk remembers.
constexpr size_t kHeadsMax = 10'000;
// Incarnations that it does not look for again.
constexpr size_t kSettledMax = 100'000;

// Whether the incarnation lives, or its tombstone says that it was deleted. A record that cannot be
// read says neither.
absl::StatusOr<bool> IsSettled(const store::Reader& reader, std::string_view collection,
                               int64_t incarnation) {
  const auto record = ReadCollectionRecord(reader, collection);
  if (IsCorrupt(record.status())) return false;
  RETURN_IF_ERROR(record.status());
  return *record && (*record)->incarnation == incarnation;
}

// What the entry says otherwise than the version; empty: nothing.
std::string_view Difference(const store::LedgerEntry& entry, const Collection& collection,
                            const VersionHeader& header) {
  const store::LedgerEntry right =
      MakeLedgerEntry(collection.name, collection.incarnation, entry.id, header);
  if (entry.collection != right.collection) return "collection";
  if (entry.kind != right.kind) return "kind";
  if (entry.time != right.time) return "commit time";
  if (entry.actor != right.actor || entry.on_behalf_of != right.on_behalf_of ||
      entry.reason != right.reason || entry.labels != right.labels) {
    return "actor, reason or labels";
  }
  if (entry.request_id != right.request_id) return "request id";
  if (entry.transaction_id != right.transaction_id) return "transaction id";
  return "";
}

bool ChainBroken(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.kind == FindingKind::kChainBroken;
  });
}

Finding OfLedger(FindingKind kind, store::CommitPosition position, std::string problem) {
  Finding finding;
  finding.kind = kind;
  finding.position = position;
  finding.problem = std::move(problem);
  return finding;
}

}  // namespace

absl::StatusOr<bool> LedgerLookup::Check(const StoredVersion& version,
                                         std::vector<Finding>& findings) {
  if (!context_.capabilities.commit_positions) return false;
  const int64_t number = version.header.version;
  if (version.position < floor_.position) return false;
  if (version.position != loaded_) RETURN_IF_ERROR(Load(version.position));
  const auto found = entries_.find(number);
  if (found == entries_.end()) {
    ASSIGN_OR_RETURN(const bool trimmed, IsTrimmed(version.position));
    if (trimmed) return false;
    findings.push_back(
        {FindingKind::kLedgerEntryMissing, number,
         "the ledger has no entry of it at commit position " + std::to_string(version.position)});
    return false;
  }
  const store::LedgerEntry& entry = found->second;
  std::string_view difference = Difference(entry, collection_, version.header);
  // A version whose own hash is wrong is a finding already.
  if (difference.empty() && !entry.chain.empty() && entry.chain != LedgerChain(version.header) &&
      !ChainBroken(findings)) {
    difference = "chain hash";
  }
  if (!difference.empty()) {
    findings.push_back({FindingKind::kLedgerMismatch, number,
                        "its ledger entry has another " + std::string(difference)});
  }
  return true;
}

// Of an entry that was looked for: the floor is read after the scan.
absl::StatusOr<bool> LedgerLookup::IsTrimmed(store::CommitPosition position) {
  ASSIGN_OR_RETURN(floor_, ReadLedgerFloor(context_.reader));
  return position < floor_.position;
}

absl::Status LedgerLookup::Load(store::CommitPosition position) {
  entries_.clear();
  loaded_ = position;
  // A position that no commit can have: whatever record it stood in is damaged.
  if (position < 1) return absl::OkStatus();
  absl::Status found = commit_.Find(position);
  if (found.ok()) {
    while (commit_.Next()) {
      const store::LedgerEntryView& entry = commit_.entry();
      if (entry.incarnation == collection_.incarnation && entry.id == id_) {
        entries_.emplace(entry.version, entry.ToEntry());
      }
    }
  }
  // The walk over the ledger names what is damaged; here it is as good as missing.
  return IsCorrupt(found) ? absl::OkStatus() : found;
}

absl::Status LedgerCheck::Run(const ReadContext& context, const LedgerScope& scope,
                              SnapshotBudget& budget, std::vector<Finding>& findings) {
  const absl::StatusOr<IncarnationCounter> counter = ReadIncarnationCounter(context.reader);
  if (!counter.ok() && !IsCorrupt(counter.status())) return counter.status();
  // Where it is gone, or damaged, there were collections all the same.
  ends_told_ = !counter.ok() || counter->ends_told;
  RETURN_IF_ERROR(Replay(context, scope, budget));
  if (replay_next_ != 0) return absl::OkStatus();
  LedgerBlocks blocks(context.reader, place_.next);
  ASSIGN_OR_RETURN(const LedgerFloor floor, ReadLedgerFloor(context.reader));
  if (place_.next < floor.position) {
    RETURN_IF_ERROR(BeginAt(floor, findings));
    return Run(context, scope, budget, findings);
  }
  // What is not there now may have been deleted since the walk began.
  for (; blocks.Valid() && (blocks.key() <= place_.last || !unended_.empty()); blocks.Next()) {
    // The walk begins anew with what it could not read; of that there is a finding.
    if (!blocks.header() && blocks.key() < place_.next) continue;
    RETURN_IF_ERROR(CheckBlock(context, scope, blocks, budget, findings));
    if (budget.used_up()) return absl::OkStatus();
  }
  RETURN_IF_ERROR(blocks.status());
  if (expected_ && !place_.head_passed) {
    findings.push_back(OfLedger(FindingKind::kLedgerHeadMismatch, expected_->position,
                                "the ledger ends before the position of the expected head"));
  }
  RETURN_IF_ERROR(NameUnended(context, findings));
  complete_ = true;
  return absl::OkStatus();
}

// A walk that goes on elsewhere knows where the first of the incarnations that it has to wait for
// was named, and looks at what lies between once more.
absl::Status LedgerCheck::Replay(const ReadContext& context, const LedgerScope& scope,
                                 SnapshotBudget& budget) {
  if (replay_next_ == 0) return absl::OkStatus();
  LedgerBlocks blocks(context.reader, replay_next_);
  for (; blocks.Valid() && blocks.key() < place_.next; blocks.Next()) {
    if (!blocks.header()) continue;  // a finding already
    store::LedgerBlockReader entries(blocks.bytes());
    while (entries.Next()) {
      budget.Take();
      RETURN_IF_ERROR(NoteIncarnation(context, scope, entries));
    }
    replay_next_ = blocks.header()->tail.last + 1;
    if (budget.used_up()) return absl::OkStatus();
  }
  RETURN_IF_ERROR(blocks.status());
  replay_next_ = 0;
  return absl::OkStatus();
}

// What lies below was trimmed, before the walk or since it was there.
absl::Status LedgerCheck::BeginAt(const LedgerFloor& floor, std::vector<Finding>& findings) {
  if (expected_ && !place_.head_passed) {
    RETURN_IF_ERROR(CheckKept(floor, "expect_head.position", expected_->position));
    CheckHead({.last = floor.trimmed, .hash = floor.hash}, findings);
  }
  place_.next = floor.position;
  place_.before = floor.hash;
  return absl::OkStatus();
}

absl::Status LedgerCheck::CheckBlock(const ReadContext& context, const LedgerScope& scope,
                                     const LedgerBlocks& blocks, SnapshotBudget& budget,
                                     std::vector<Finding>& findings) {
  budget.Take();
  if (!blocks.header()) {
    findings.push_back(OfLedger(FindingKind::kRecordCorrupt, blocks.key(),
                                "a block of the ledger cannot be read"));
    place_.next = blocks.key() + 1;
    place_.before.reset();
    return absl::OkStatus();
  }
  const store::LedgerTail& tail = blocks.header()->tail;
  if (place_.before && store::LedgerBlockHash(*place_.before, blocks.bytes()) != tail.hash) {
    findings.push_back(
        OfLedger(FindingKind::kLedgerBroken, blocks.key(),
                 "the ledger's running hash does not hold: entries of positions " +
                     std::to_string(blocks.key()) + " to " + std::to_string(tail.last) +
                     ", or of the block right before, were changed, added or removed"));
  }
  // As stored: what the next block stands on, whatever became of this one.
  place_.before = tail.hash;
  CheckHead(tail, findings);
  store::LedgerBlockReader entries(blocks.bytes());
  while (entries.Next()) {
    budget.Take();
    RETURN_IF_ERROR(NoteIncarnation(context, scope, entries));
    if (scope.collection == nullptr) {
      ++place_.entries;
    } else if (entries.entry().incarnation == scope.collection->incarnation) {
      ++place_.entries;
      if (!scope.id.empty() && entries.entry().id != scope.id) continue;
      RETURN_IF_ERROR(CheckEntry(context, *scope.collection, entries, findings));
    }
  }
  if (entries.corrupt()) {
    findings.push_back(OfLedger(FindingKind::kRecordCorrupt, blocks.key(),
                                "entries of a block of the ledger cannot be read"));
  }
  place_.next = tail.last + 1;
  place_.unended_since = 0;
  for (const auto& [incarnation, unended] : unended_) {
    if (place_.unended_since == 0 || unended.first < place_.unended_since) {
      place_.unended_since = unended.first;
    }
  }
  return absl::OkStatus();
}

absl::Status LedgerCheck::NoteIncarnation(const ReadContext& context, const LedgerScope& scope,
                                          const store::LedgerBlockReader& entries) {
  const store::LedgerEntryView& entry = entries.entry();
  if (!ends_told_ || (scope.collection != nullptr && entry.collection != scope.collection->name)) {
    return absl::OkStatus();
  }
  const int64_t incarnation = entry.incarnation;
  if (!IsVersion(entry)) {
    if (entry.kind != static_cast<uint8_t>(LedgerEvent::kCollectionDeleted)) {
      return absl::OkStatus();
    }
    unended_.erase(incarnation);
  } else {
    if (settled_.contains(incarnation) || unended_.contains(incarnation)) return absl::OkStatus();
    ASSIGN_OR_RETURN(const bool settled, IsSettled(context.reader, entry.collection, incarnation));
    if (!settled) {
      unended_.emplace(incarnation, Unended{std::string(entry.collection), entries.position()});
      return absl::OkStatus();
    }
  }
  if (settled_.size() >= kSettledMax) settled_.clear();
  settled_.insert(incarnation);
  return absl::OkStatus();
}

// Whatever is left at the ledger's end was not deleted. REQUIRES: the walk is there.
absl::Status LedgerCheck::NameUnended(const ReadContext& context, std::vector<Finding>& findings) {
  for (const auto& [incarnation, unended] : unended_) {
    // Without snapshots it may have been looked for before it could be seen.
    ASSIGN_OR_RETURN(const bool settled,
                     IsSettled(context.reader, unended.collection, incarnation));
    if (settled) continue;
    std::string problem = "the ledger has versions of ";
    problem += ValidateName("collection", unended.collection).ok()
                   ? "collection \"" + unended.collection + "\""
                   : "a collection whose name none can have";
    problem += " (incarnation " + std::to_string(incarnation) +
               ") and no deletion of it, and no such collection is stored";
    findings.push_back(
        OfLedger(FindingKind::kCollectionMissing, unended.first, std::move(problem)));
  }
  return absl::OkStatus();
}

// Holds the end of a block against the head that somebody wrote down.
void LedgerCheck::CheckHead(const store::LedgerTail& tail, std::vector<Finding>& findings) {
  if (!expected_ || place_.head_passed || tail.last < expected_->position) return;
  place_.head_passed = true;
  if (LedgerHead{tail.last, tail.hash} == *expected_) return;
  findings.push_back(OfLedger(
      FindingKind::kLedgerHeadMismatch, expected_->position,
      tail.last == expected_->position
          ? "the ledger's hash at the position of the expected head is another: something up to "
            "there was changed, added or removed"
          : "no block of the ledger ends at the position of the expected head: something up to "
            "there was changed, added or removed, or it was never a head"));
}

absl::Status LedgerCheck::CheckEntry(const ReadContext& context, const Collection& collection,
                                     const store::LedgerBlockReader& entries,
                                     std::vector<Finding>& findings) {
  const store::LedgerEntryView& entry = entries.entry();
  if (entry.version == 0) return absl::OkStatus();
  Finding finding = OfLedger(FindingKind::kLedgerEntryOrphan, entries.position(),
                             "the ledger names the version, and it is not stored");
  finding.id = entry.id;
  finding.version = entry.version;
  ASSIGN_OR_RETURN(const bool stored, Stored(context, collection, finding.id, finding.version));
  if (stored) return absl::OkStatus();
  if (!ValidateName("id", finding.id).ok()) {
    finding.id.clear();
    finding.problem = "the ledger has a name that no document can have";
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
