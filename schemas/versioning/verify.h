// Verify: whether everything that is stored of a collection, or of one document, is whole.
//
// A verification walks the documents in the order of their ids, each in one snapshot or, where
// versions are many, in several: versions below the head never change. Of each it checks that
// versions 1 to n are there, that contents hash to what their headers say (deltas replayed), that
// the chain of hashes holds, that commit times never go back, that no record is without owner, that
// request records name versions their requests made, and that the ledger has an entry for each
// version. Last it walks the ledger, for entries whose version is not stored.
//
// It runs beside writers. On an engine without snapshots a document may seem broken because it
// changed under the reader; there every suspect is read again, and only what is found again
// counts.
//
// States that a crash may leave are `recoverable`; `repair` mends these and nothing else, with
// writes guarded by the stamps that were read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"
#include "schemas/versioning/collections.h"
#include "schemas/versioning/finding.h"
#include "schemas/versioning/ledger.h"

namespace strata::versioning {

struct VerifyQuery {
  std::string collection;
  std::string id;  // empty: every document, and the ledger
  bool repair = false;
  // What the ledger must lead to. With it the collection may be empty: then the ledger alone.
  std::optional<LedgerHead> expect_head{};
};

struct VerifyStep {
  std::vector<Finding> findings;  // of this step
  int64_t documents = 0;          // checked so far
  int64_t versions = 0;
  int64_t ledger_entries = 0;
  bool complete = false;
};

// One verification, in steps, so that its caller can send what was found, wait until it was taken,
// and give up in between. Not thread-safe.
class Verification {
 public:
  // All must outlive it. Reads nothing yet.
  Verification(store::Store& store, Collections& collections, const Clock& clock,
               VerifyQuery query);
  ~Verification();
  Verification(const Verification&) = delete;
  Verification& operator=(const Verification&) = delete;

  // Checks on for about 100 ms; `repair` waits for its commits here. After a step that is
  // `complete` there is none. COLLECTION_NOT_FOUND, DOCUMENT_NOT_FOUND (of one document, nothing is
  // stored), INVALID_NAME, STORE_UNAVAILABLE.
  absl::StatusOr<VerifyStep> Next();

 private:
  class Walk;
  std::unique_ptr<Walk> walk_;
};

// DATA_LOSS / CHAIN_BROKEN for the first finding that is neither recoverable nor repaired.
absl::Status BrokenBy(const VerifyQuery& query, const Finding& finding, int64_t findings);

}  // namespace strata::versioning
