// Verifying the ledger: whether it and the versions say the same. Internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
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

// What a walk over the ledger is about.
struct LedgerScope {
  const Collection* collection = nullptr;  // null: no versions, but every collection
  std::string_view id{};                   // empty: all documents of the collection
};

// The walk over the ledger: that its running hash holds from the floor to the last block, that it
// leads to the head that was expected, that the versions of its entries are stored, and that each
// incarnation of which it has versions lives or was deleted. Not thread-safe.
class LedgerCheck {
 public:
  LedgerCheck(const VerifyPlace::Ledger& place, const std::optional<LedgerHead>& expected)
      : place_(place), expected_(expected), replay_next_(place.unended_since) {}

  // Checks on until all was checked (then `complete`) or the budget is used up. The scope is the
  // same in every run. POSITION_TRIMMED if the floor is above the expected head.
  absl::Status Run(const ReadContext& context, const LedgerScope& scope, SnapshotBudget& budget,
                   std::vector<Finding>& findings);

  bool complete() const { return complete_; }
  const VerifyPlace::Ledger& place() const { return place_; }

 private:
  // An incarnation that is not there and whose end the walk has not come to.
  struct Unended {
    std::string collection;
    store::CommitPosition first = 0;  // that names it
  };

  absl::Status Replay(const ReadContext& context, const LedgerScope& scope, SnapshotBudget& budget);
  absl::Status BeginAt(const LedgerFloor& floor, std::vector<Finding>& findings);
  absl::Status CheckBlock(const ReadContext& context, const LedgerScope& scope,
                          const LedgerBlocks& blocks, SnapshotBudget& budget,
                          std::vector<Finding>& findings);
  absl::Status NoteIncarnation(const ReadContext& context, const LedgerScope& scope,
                               const store::LedgerBlockReader& entries);
  absl::Status NameUnended(const ReadContext& context, std::vector<Finding>& findings);
  absl::Status CheckEntry(const ReadContext& context, const Collection& collection,
                          const store::LedgerBlockReader& entries, std::vector<Finding>& findings);
  void CheckHead(const store::LedgerTail& tail, std::vector<Finding>& findings);
  absl::StatusOr<bool> Stored(const ReadContext& context, const Collection& collection,
                              const std::string& id, int64_t version);

  VerifyPlace::Ledger place_;
  const std::optional<LedgerHead> expected_;
  bool complete_ = false;
  bool ends_told_ = false;               // as of IncarnationCounter
  std::unordered_set<int64_t> settled_;  // incarnations that live, or were deleted
  std::map<int64_t, Unended> unended_;
  store::CommitPosition replay_next_ = 0;  // of the walk that makes `unended_` anew; 0: it is made
  // The greatest version of documents met lately: it only grows, so a look suffices until an entry
  // names a greater one.
  std::unordered_map<std::string, int64_t> heads_;
};

}  // namespace strata::versioning
