// Verifying the ledger: whether it and the versions say the same. Internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/finding.h"
#include "schemas/versioning/ledger.h"
#include "schemas/versioning/ledger_floor.h"
#include "schemas/versioning/snapshot_budget.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/verify.h"

namespace strata::versioning {

// Finds the ledger entries of one document's versions.
class LedgerLookup {
 public:
  // All must outlive it.
  LedgerLookup(const ReadContext& context, const Collection& collection, const std::string& id)
      : context_(context), collection_(collection), id_(id), commit_(context.reader) {}

  // Adds what is wrong with the entry of `version`, of which `findings` are known. True if there is
  // one; false if it was trimmed, and always on engines without a ledger.
  absl::StatusOr<bool> Check(const StoredVersion& version, std::vector<Finding>& findings);

 private:
  absl::Status Load(store::CommitPosition position);
  absl::StatusOr<bool> IsTrimmed(store::CommitPosition position);

  const ReadContext& context_;
  const Collection& collection_;
  const std::string& id_;
  CommitEntries commit_;
  LedgerFloor floor_;  // as far as it is known
  store::CommitPosition loaded_ = 0;
  std::map<int64_t, store::LedgerEntry> entries_;  // of that commit and this document, by version
};

// The walk over the ledger: that its running hash holds from the floor to the last block, that it
// leads to the head that was expected, and that the versions of its entries are stored. Not
// thread-safe.
class LedgerCheck {
 public:
  LedgerCheck(const VerifyPlace::Ledger& place, const std::optional<LedgerHead>& expected)
      : place_(place), expected_(expected) {}

  // Checks on until all was checked (then `complete`) or the budget is used up. Without a
  // collection it looks at no versions. POSITION_TRIMMED if the floor is above the expected head.
  absl::Status Run(const ReadContext& context, const Collection* collection, SnapshotBudget& budget,
                   std::vector<Finding>& findings);

  bool complete() const { return complete_; }
  const VerifyPlace::Ledger& place() const { return place_; }

 private:
  absl::Status BeginAt(const LedgerFloor& floor, std::vector<Finding>& findings);
  absl::Status CheckBlock(const ReadContext& context, const Collection* collection,
                          const LedgerBlocks& blocks, SnapshotBudget& budget,
                          std::vector<Finding>& findings);
  absl::Status CheckEntry(const ReadContext& context, const Collection& collection,
                          const store::LedgerBlockReader& entries, std::vector<Finding>& findings);
  void CheckHead(const store::LedgerTail& tail, std::vector<Finding>& findings);
  absl::StatusOr<bool> Stored(const ReadContext& context, const Collection& collection,
                              const std::string& id, int64_t version);

  VerifyPlace::Ledger place_;
  const std::optional<LedgerHead> expected_;
  bool complete_ = false;
  // The greatest version of documents met lately: it only grows, so a look suffices until an entry
  // names a greater one.
  std::unordered_map<std::string, int64_t> heads_;
};

}  // namespace strata::versioning
