#include "schemas/versioning/verify_document.h"

#include <algorithm>

#include "schemas/base/error.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/versioning/document_errors.h"
#include "schemas/versioning/newer.h"
#include "schemas/versioning/transaction_record.h"
#include "schemas/versioning/write_path.h"

namespace strata::versioning {
namespace {

using store::Keyspace;

std::string NameOf(std::string_view request_id) {
  if (request_id.empty() || !ValidateRequestId(request_id).ok()) {
    return "a request record under a key that is no request id's: ";
  }
  return "request " + std::string(request_id) + ": ";
}

// Whether such a version may stand on a live document, or on none. A transaction keeps a slot of
// what is not there by one more deletion, and a deletion of what is not there keeps its number.
bool MayFollow(const VersionHeader& header, bool first, bool live) {
  switch (header.kind) {
    case VersionKind::kCreated:
      return !live;
    case VersionKind::kUpdated:
      return live;
    case VersionKind::kDeleted:
      return live || header.mark != VersionMark::kNone || KeepsNumber(header);
    case VersionKind::kRestored:
      return !first;
  }
  return false;
}

}  // namespace

absl::Status DocumentCheck::Run(const ReadContext& context, SnapshotBudget& budget,
                                std::vector<Finding>& findings) {
  const store::DocumentKey document{collection_->incarnation, at_.id};
  absl::StatusOr<std::optional<Head>> read = collection_->strategy->ReadHead(context, document);
  // A head that cannot be read is for the strategy to name: it knows where heads stand.
  if (!read.ok() && !IsCorrupt(read.status())) return read.status();
  const Head* const head = read.ok() && *read ? &**read : nullptr;
  head_unreadable_ = !read.ok();
  head_version_ = head != nullptr ? head->version.header.version : 0;
  head_stamp_ = head != nullptr ? head->stamp : 0;
  head_position_ = head != nullptr ? head->version.position : 0;
  at_.seen |= head != nullptr;
  if (!at_.versions_checked) {
    LedgerLookup ledger(context, *collection_, at_.id);
    RETURN_IF_ERROR(RunVersions(context, head, ledger, budget, findings));
    if (!at_.versions_checked || budget.used_up()) return absl::OkStatus();
  }
  return RunRequests(context, head, budget, findings);
}

Finding DocumentCheck::OfDocument(Finding finding, store::CommitPosition position) const {
  finding.id = at_.id;
  finding.position = position;
  return finding;
}

absl::Status DocumentCheck::RunVersions(const ReadContext& context, const Head* head,
                                        LedgerLookup& ledger, SnapshotBudget& budget,
                                        std::vector<Finding>& findings) {
  const store::DocumentKey document{collection_->incarnation, at_.id};
  const auto cursor = collection_->strategy->Inspect(context, document, head, at_.next_version,
                                                     std::exchange(inspection_, nullptr));
  while (cursor->Next()) {
    InspectedVersions& inspected = cursor->item();
    at_.seen = true;
    RETURN_IF_ERROR(CheckVersion(context, head, ledger, budget.now(), inspected));
    const auto position = inspected.version ? inspected.version->position : 0;
    for (Finding& finding : inspected.findings) {
      budget.Take(finding.repair.writes().empty() ? 1 : kRepairCost);
      findings.push_back(OfDocument(std::move(finding), position));
    }
    budget.Take();
    if (inspected.first == 0) continue;
    at_.next_version = inspected.last + 1;
    if (budget.used_up()) {
      inspection_ = cursor->state();
      return absl::OkStatus();
    }
  }
  at_.versions_checked = cursor->status().ok();
  return cursor->status();
}

// What a version and others say of each other.
absl::Status DocumentCheck::CheckVersion(const ReadContext& context, const Head* head,
                                         LedgerLookup& ledger, UnixMicros now,
                                         InspectedVersions& inspected) {
  if (!inspected.version) {
    if (inspected.first != 0) at_.before.reset();
    return absl::OkStatus();
  }
  const StoredVersion& version = *inspected.version;
  CheckHistory(version.header, inspected.findings);
  ASSIGN_OR_RETURN(const bool has_entry, ledger.Check(version, inspected.findings));
  RETURN_IF_ERROR(CheckRemembered(context, head, version.header, now, inspected.findings));
  at_.ledger_entries += has_entry ? 1 : 0;
  ++at_.versions;
  return absl::OkStatus();
}

// Whether the request that made a version is remembered, while it has to be: without its record a
// repeated call would take effect again. Of a single write the head remembers the last one itself.
absl::Status DocumentCheck::CheckRemembered(const ReadContext& context, const Head* head,
                                            const VersionHeader& header, UnixMicros now,
                                            std::vector<Finding>& findings) const {
  // The engine drops the record in its own time.
  constexpr UnixMicros kMargin = 60'000'000;
  static_assert(kTransactionLifetime >= kRequestIdLifetime);
  if (header.commit_time + kRequestIdLifetime < now + kMargin) return absl::OkStatus();
  const auto miss = [&](Keyspace keyspace, const std::string& key,
                        std::string_view record) -> absl::Status {
    const auto found = context.reader.Get(keyspace, key);
    if (IsCorrupt(found.status())) return absl::OkStatus();  // it is there
    RETURN_IF_ERROR(found.status());
    if (*found) return absl::OkStatus();
    findings.push_back({FindingKind::kRequestMissing, header.version,
                        "the record of the " + std::string(record) +
                            " that made it is missing: a repeated call would take effect again"});
    return absl::OkStatus();
  };
  if (!header.transaction_id.empty() && !IsForgottenId(header.transaction_id)) {
    RETURN_IF_ERROR(
        miss(Keyspace::kTransactions, TransactionKey(header.transaction_id), "transaction"));
  }
  const bool superseded = head != nullptr && header.version < head->version.header.version;
  if (!superseded || header.request_id.empty()) return absl::OkStatus();
  const store::DocumentKey document{collection_->incarnation, at_.id};
  return miss(Keyspace::kRequests, store::RequestKey(document, header.request_id), "request");
}

// Judges a version by the one before it, and becomes what the next is judged by.
void DocumentCheck::CheckHistory(const VersionHeader& header, std::vector<Finding>& findings) {
  const auto broken = [&](std::string_view problem) {
    findings.push_back({FindingKind::kChainBroken, header.version, std::string(problem)});
  };
  const bool first = header.version == 1;
  const bool follows = first || (at_.before && at_.before->version == header.version - 1);
  document::Hash computed = header.chain_hash;
  UnixMicros create_time = header.create_time;
  if (follows) {
    const auto start = ChainStart(collection_->name, at_.id);
    computed = ChainHash(first ? start : at_.before->chain_computed, header);
    if (computed != header.chain_hash && !first) {
      const document::Hash other = ChainHash(at_.before->chain_stored, header);
      if (other == header.chain_hash) computed = other;
    }
    if (computed != header.chain_hash) {
      broken("it does not hash to its chain_hash on top of the version before");
    }
    const bool live = !first && at_.before->kind != VersionKind::kDeleted;
    if (!MayFollow(header, first, live)) {
      broken(live ? "its kind cannot follow a version that is no deletion"
                  : "its kind cannot follow where there is no document");
    }
    if (!first && header.commit_time < at_.before->commit_time) {
      broken("its commit time lies before that of the version before");
    }
    // In no hash, so nothing else would tell.
    create_time = CreateTimeOf(header, live);
    if (header.create_time != create_time) {
      findings.push_back({FindingKind::kRecordCorrupt, header.version,
                          "its creation time is not that of the creation it comes from"});
    }
  }
  const UnixMicros created_before = at_.before && follows && !first ? at_.before->create_time : 0;
  at_.before = {header.version,    header.kind, header.commit_time, create_time, created_before,
                header.chain_hash, computed};
}

// What it should be. REQUIRES: it is the first version, or the one before it is known.
UnixMicros DocumentCheck::CreateTimeOf(const VersionHeader& header, bool live) const {
  if (header.version == 1) return header.commit_time;
  // An undoing gives back what stood before the version that it undoes, if anything did.
  if (header.mark == VersionMark::kUndone && header.version > 2) {
    return at_.before->created_before != 0 ? at_.before->created_before : header.create_time;
  }
  const bool born = !live && header.kind != VersionKind::kDeleted;
  return born ? header.commit_time : at_.before->create_time;
}

absl::Status DocumentCheck::RunRequests(const ReadContext& context, const Head* head,
                                        SnapshotBudget& budget, std::vector<Finding>& findings) {
  const std::string prefix = store::HeadKey(collection_->incarnation, at_.id);
  // No key before the prefix, whoever made the place.
  store::Range range{.begin = std::max(prefix, at_.next_request), .end = store::PrefixEnd(prefix)};
  const auto cursor = context.reader.Scan(Keyspace::kRequests, range);
  for (; cursor->Valid(); cursor->Next()) {
    at_.seen = true;
    const std::string_view request_id = cursor->key().substr(prefix.size());
    const store::Record record{std::string(cursor->value()), cursor->stamp(), cursor->position()};
    int64_t version = 0;
    ASSIGN_OR_RETURN(const std::string problem,
                     RequestProblem(context, head, request_id, record, version));
    const bool decoded = version != 0;
    if (!problem.empty()) {
      findings.push_back(
          OfDocument({decoded ? FindingKind::kRequestMismatch : FindingKind::kRecordCorrupt,
                      version, NameOf(request_id) + problem},
                     record.position));
    }
    at_.next_request = cursor->key();
    at_.next_request += '\0';
    budget.Take();
    if (budget.used_up()) return absl::OkStatus();
  }
  if (IsCorrupt(cursor->status())) {
    findings.push_back(
        OfDocument({FindingKind::kRecordCorrupt, 0,
                    "the engine finds a request record damaged; those after it were not "
                    "checked"},
                   0));
  } else {
    RETURN_IF_ERROR(cursor->status());
  }
  complete_ = true;
  return absl::OkStatus();
}

// Empty if the record names a version that its request made, as it was made.
absl::StatusOr<std::string> DocumentCheck::RequestProblem(const ReadContext& context,
                                                          const Head* head,
                                                          std::string_view request_id,
                                                          const store::Record& record,
                                                          int64_t& version) const {
  const absl::StatusOr<int64_t> request = DecodeRequest(record.value);
  if (!request.ok()) return "its record cannot be decoded";
  version = *request;
  if (head_unreadable_) return "";  // of that there is a finding
  if (head == nullptr) return "it names a version, and there is none";
  if (version > head->version.header.version) return "the version that it names does not exist";
  const absl::StatusOr<StoredVersion> made = collection_->strategy->ReadVersion(
      context, {collection_->incarnation, at_.id}, *head, version, Part::kHeader);
  if (IsCorrupt(made.status())) return "";  // there is a finding of that version
  RETURN_IF_ERROR(made.status());
  if (made->header.request_id != request_id) {
    return "the version that it names was made by another request, or by none";
  }
  return "";
}

}  // namespace strata::versioning
