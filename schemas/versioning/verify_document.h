// Verifying one document: what its records say of each other. Internal to this folder.
#pragma once

#include <chrono>
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
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/verify.h"
#include "schemas/versioning/verify_ledger.h"

namespace strata::versioning {

// A finding and the writes that mend it, if there are any.
struct Found {
  Finding finding;
  store::WriteBatch mend;
};

// How much is done on one snapshot.
class Allowance {
 public:
  Allowance(const Clock& clock, std::chrono::steady_clock::time_point until, int64_t items)
      : clock_(clock), until_(until), items_(items) {}

  // Takes one version, request or ledger entry.
  void Take(int64_t items = 1) { taken_ += items; }
  bool used_up() const { return taken_ >= items_ || clock_.SteadyNow() >= until_; }
  int64_t taken() const { return taken_; }
  UnixMicros now() const { return clock_.Now(); }

 private:
  const Clock& clock_;
  const std::chrono::steady_clock::time_point until_;
  const int64_t items_;
  int64_t taken_ = 0;
};

// What a version with a mend takes of an allowance: the mend holds a content.
inline constexpr int64_t kMendCost = 32;

// The verification of one document, which may go on in a later snapshot: what was checked below the
// head never changes. A copy is the same place once more. Not thread-safe.
class DocumentCheck {
 public:
  // Begins, or goes on, at `place`, which names the document.
  DocumentCheck(CollectionPtr collection, VerifyPlace::Document place)
      : collection_(std::move(collection)), at_(std::move(place)) {}

  // Checks on until all was checked (then `complete`) or the allowance is used up.
  absl::Status Run(const ReadContext& context, Allowance& allowance, std::vector<Found>& found);

  const VerifyPlace::Document& place() const { return at_; }
  bool complete() const { return complete_; }
  // The head that the last run saw: 0 for none.
  std::pair<int64_t, store::Stamp> head() const { return {head_version_, head_stamp_}; }

 private:
  absl::Status RunVersions(const ReadContext& context, const Head* head, LedgerLookup& ledger,
                           Allowance& allowance, std::vector<Found>& found);
  absl::Status CheckVersion(const ReadContext& context, const Head* head, LedgerLookup& ledger,
                            UnixMicros now, Inspected& inspected);
  absl::Status RunRequests(const ReadContext& context, const Head* head, Allowance& allowance,
                           std::vector<Found>& found);
  absl::Status CheckRemembered(const ReadContext& context, const Head* head,
                               const VersionHeader& header, UnixMicros now,
                               std::vector<Fault>& faults) const;
  void CheckHistory(const VersionHeader& header, std::vector<Fault>& faults);
  absl::StatusOr<std::string> RequestProblem(const ReadContext& context, const Head* head,
                                             std::string_view request_id,
                                             const store::Record& record, int64_t& version) const;
  Found ToFound(Fault fault, store::CommitPosition position) const;

  CollectionPtr collection_;
  VerifyPlace::Document at_;
  InspectionStatePtr inspection_;  // of what stands below the next version
  bool complete_ = false;
  int64_t head_version_ = 0;
  store::Stamp head_stamp_ = 0;
  bool head_unreadable_ = false;
};

}  // namespace strata::versioning
