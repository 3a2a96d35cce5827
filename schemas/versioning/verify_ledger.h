// Verifying the ledger: whether it and the versions say the same. Internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/finding.h"
#include "schemas/versioning/strategy.h"
#include "schemas/versioning/verify.h"

namespace strata::versioning {

// Finds the ledger entries of one document's versions. Versions of one commit stand together, so
// each commit's entries are read once.
class LedgerLookup {
 public:
  // All must outlive it.
  LedgerLookup(const ReadContext& context, const Collection& collection, const std::string& id)
      : context_(context), collection_(collection), id_(id) {}

  // Adds what is wrong with the entry of `version`. True if there is one; false always on engines
  // without a ledger.
  absl::StatusOr<bool> Check(const StoredVersion& version, std::vector<Fault>& faults);

 private:
  absl::Status Load(store::CommitPosition position);

  const ReadContext& context_;
  const Collection& collection_;
  const std::string& id_;
  std::unique_ptr<store::Cursor> cursor_;
  store::CommitPosition loaded_ = 0;
  std::map<int64_t, LedgerEntry> entries_;  // of that commit and this document, by version
};

// The walk over the ledger, for entries whose version is not stored. Not thread-safe.
class LedgerCheck {
 public:
  // Entries behind `last` are not looked at: the ledger grows while it is walked.
  explicit LedgerCheck(store::CommitPosition last) : last_(last) {}
  // Goes on where another one was.
  explicit LedgerCheck(VerifyPlace::Ledger place)
      : last_(place.last), next_(std::move(place.next)), entries_(place.entries) {}

  // Checks on until all was checked (then `complete`) or the allowance is used up.
  absl::Status Run(const ReadContext& context, const Collection& collection,
                   class Allowance& allowance, std::vector<Finding>& findings);

  bool complete() const { return complete_; }
  int64_t entries() const { return entries_; }
  VerifyPlace::Ledger place() const { return {last_, next_, entries_}; }

 private:
  absl::Status CheckEntry(const ReadContext& context, const Collection& collection,
                          const store::Cursor& cursor, std::vector<Finding>& findings);
  absl::StatusOr<bool> Stored(const ReadContext& context, const Collection& collection,
                              const std::string& id, int64_t version);

  const store::CommitPosition last_;
  std::string next_;  // key; empty: from the first
  bool complete_ = false;
  int64_t entries_ = 0;
  // The greatest version of documents met lately: it only grows, so a look suffices until an entry
  // names a greater one.
  std::unordered_map<std::string, int64_t> heads_;
};

}  // namespace strata::versioning
