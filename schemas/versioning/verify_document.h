// Verifying one document: what its records say of each other. Internal to this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/finding.h"
#include "schemas/versioning/snapshot_budget.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/verify.h"
#include "schemas/versioning/verify_ledger.h"

namespace strata::versioning {

// What a finding with a repair takes of a budget: the repair holds a content.
inline constexpr int64_t kRepairCost = 32;

// The verification of one document, which may go on in a later snapshot: what was checked below the
// head never changes. A copy is the same place once more. Not thread-safe.
class DocumentCheck {
 public:
  // Begins, or goes on, at `place`, which names the document.
  DocumentCheck(CollectionPtr collection, VerifyPlace::Document place)
      : collection_(std::move(collection)), at_(std::move(place)) {}

  // Checks on until all was checked (then `complete`) or the budget is used up.
  absl::Status Run(const ReadContext& context, SnapshotBudget& budget,
                   std::vector<Finding>& findings);

  const VerifyPlace::Document& place() const { return at_; }
  bool complete() const { return complete_; }
  // The head that the last run saw: 0 for none.
  std::pair<int64_t, store::Stamp> head() const { return {head_version_, head_stamp_}; }
  // Of that head's commit; 0: there is none, or it cannot be read.
  store::CommitPosition head_position() const { return head_position_; }

 private:
  absl::Status RunVersions(const ReadContext& context, const Head* head, LedgerLookup& ledger,
                           SnapshotBudget& budget, std::vector<Finding>& findings);
  absl::Status CheckVersion(const ReadContext& context, const Head* head, LedgerLookup& ledger,
                            UnixMicros now, InspectedVersions& inspected);
  absl::Status RunRequests(const ReadContext& context, const Head* head, SnapshotBudget& budget,
                           std::vector<Finding>& findings);
  absl::Status CheckRemembered(const ReadContext& context, const Head* head,
                               const VersionHeader& header, UnixMicros now,
                               std::vector<Finding>& findings) const;
  void CheckHistory(const VersionHeader& header, std::vector<Finding>& findings);
  UnixMicros CreateTimeOf(const VersionHeader& header, bool live) const;
  absl::StatusOr<std::string> RequestProblem(const ReadContext& context, const Head* head,
                                             std::string_view request_id,
                                             const store::Record& record, int64_t& version) const;
  Finding OfDocument(Finding finding, store::CommitPosition position) const;

  CollectionPtr collection_;
  VerifyPlace::Document at_;
  StrategyStatePtr inspection_;  // of what stands below the next version
  bool complete_ = false;
  int64_t head_version_ = 0;
  store::Stamp head_stamp_ = 0;
  store::CommitPosition head_position_ = 0;
  bool head_unreadable_ = false;
};

}  // namespace strata::versioning
