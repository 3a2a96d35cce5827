#include "tests/versioning/strategy_subject.h"

#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "tests/support/await_commit.h"

namespace strata::versioning::checks {

absl::StatusOr<store::WriteBatch> StrategySubject::PlanWrite(
    store::Store& store, const std::string& id, std::span<const Operation> operations) {
  const ReadContext context{store, store.capabilities()};
  const store::DocumentKey key = Key(id);
  ASSIGN_OR_RETURN(std::optional<Head> head, strategy_->ReadHead(context, key));
  std::vector<StoredVersion> history;  // only what operations look at is filled in
  if (head) {
    RETURN_IF_ERROR(strategy_->PrepareToPlan(context, key, *head));
    history.resize(static_cast<size_t>(head->version.header.version));
    history.back() = head->version;
  }
  std::vector<StoredVersion> next;
  for (const Operation& operation : operations) {
    if (operation.kind == VersionKind::kRestored && head) {
      const int64_t source =
          operation.source != 0 ? operation.source : static_cast<int64_t>(history.size()) - 1;
      ASSIGN_OR_RETURN(history[static_cast<size_t>(source - 1)],
                       strategy_->ReadVersion(context, key, *head, source, Part::kContent));
    }
    std::optional<Outcome> outcome = Apply(operation, history);
    if (!outcome) return absl::FailedPreconditionError("does not apply");
    const StoredVersion* below = history.empty() ? nullptr : &history.back();
    next.push_back(NextVersion(collection(), id, operation, below, *std::move(outcome)));
    history.push_back(next.back());
  }
  store::WriteBatch batch;
  RETURN_IF_ERROR(strategy_->Plan(key, head ? &*head : nullptr, next, context.capabilities, batch));
  return batch;
}

absl::Status StrategySubject::Write(store::Store& store, const std::string& id,
                                    std::span<const Operation> operations) {
  for (int attempt = 0; attempt < attempts_max_; ++attempt) {
    ASSIGN_OR_RETURN(store::WriteBatch batch, PlanWrite(store, id, operations));
    const store::CommitResult result = test_support::AwaitCommit(store, std::move(batch));
    RETURN_IF_ERROR(result.status);
    if (result.committed) return absl::OkStatus();
  }
  return Error(ErrorReason::kRetriesExhausted, "the document takes no update");
}

absl::StatusOr<std::optional<StoredVersion>> StrategySubject::ReadHead(store::Store& store,
                                                                       const std::string& id) {
  ASSIGN_OR_RETURN(std::optional<Head> head,
                   strategy_->ReadHead({store, store.capabilities()}, Key(id)));
  if (!head) return std::nullopt;
  return std::move(head->version);
}

absl::StatusOr<StoredVersion> StrategySubject::ReadVersion(store::Store& store,
                                                           const std::string& id, int64_t version,
                                                           Part part) {
  const ReadContext context{store, store.capabilities()};
  ASSIGN_OR_RETURN(const std::optional<Head> head, strategy_->ReadHead(context, Key(id)));
  if (!head || version > head->version.header.version) {
    return Error(ErrorReason::kVersionNotFound, "no such version");
  }
  return strategy_->ReadVersion(context, Key(id), *head, version, part);
}

absl::StatusOr<std::vector<StoredVersion>> StrategySubject::ReadVersions(store::Store& store,
                                                                         const std::string& id,
                                                                         const VersionRange& range,
                                                                         Part part) {
  const ReadContext context{store, store.capabilities()};
  ASSIGN_OR_RETURN(const std::optional<Head> head, strategy_->ReadHead(context, Key(id)));
  std::vector<StoredVersion> versions;
  if (!head) return versions;
  VersionRange asked = range;
  if (asked.last == 0) asked.last = head->version.header.version;
  const store::DocumentKey key = Key(id);
  const auto cursor = strategy_->ScanVersions(context, key, *head, asked, part);
  while (cursor->Next()) versions.push_back(std::move(cursor->item()));
  RETURN_IF_ERROR(cursor->status());
  return versions;
}

std::string FlaggedSubject::CheckRecords(store::Store& store, const std::string& id) {
  bool flagged = true;
  bool newest = true;
  const std::string prefix = store::HeadKey(Key(id));
  const auto cursor =
      store.Scan(store::Keyspace::kVersions,
                 {.begin = prefix, .end = store::PrefixEnd(prefix), .reverse = true});
  for (; cursor->Valid(); cursor->Next()) {
    const auto record = DecodeVersion(cursor->value(), 0, Part::kHeader);
    if (!record.ok()) return std::string(record.status().message());
    if (newest && !record->current) return "the current version's record has no flag";
    if (record->current && !flagged) return "a flag that no walk down from the head finds";
    flagged = record->current;
    newest = false;
  }
  return "";
}

std::unique_ptr<StrategySubject> MakeSubject(const StrategyEntry& entry,
                                             const StrategyOptions& options, int64_t incarnation) {
  if (entry.name == "current-flag") {
    return std::make_unique<FlaggedSubject>(entry.make(options), incarnation);
  }
  return std::make_unique<StrategySubject>(entry.make(options), incarnation);
}

}  // namespace strata::versioning::checks
