// Verify: whether everything that is stored of a collection, or of one document, is whole.
//
// A verification walks the documents in the order of their ids, each in one snapshot or, where
// versions are many, in several: versions below the head never change. Of each it checks that
// versions 1 to n are there, that contents hash to what their headers say (deltas replayed), that
// the chain of hashes holds, that commit times never go back, that no record is without owner, that
// request records name versions their requests made, that what a repeated request has to meet is
// remembered, and that the ledger has an entry for each version. Last it walks the ledger, for
// entries whose version is not stored, and for collections that are gone and were not deleted:
// for one document from its newest version on, or, with an expected head, from the beginning. What
// was trimmed from the ledger is not missed; its running hash holds from there on.
//
// It runs beside writers. On an engine without snapshots a document may seem broken because it
// changed under the reader; there every suspect is read again, and only what is found again
// counts.
//
// States that a crash may leave are `recoverable`; `repair` repairs these and nothing else, with
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
#include "schemas/versioning/version.h"

namespace strata::versioning {

struct VerifyQuery {
  std::string collection;
  std::string id;  // empty: every document
  bool repair = false;
  // What the ledger must lead to. With it the collection may be empty: then the ledger alone.
  std::optional<LedgerHead> expect_head{};
};

// Where a verification stands between two steps: all that another one of the same query, perhaps of
// another process, needs to go on there. Nothing in it is trusted: a place that no verification was
// at may lead to wrong findings, and to nothing worse.
struct VerifyPlace {
  enum class Stage : uint8_t { kDocuments, kLedger, kDone };

  // A document that is under way.
  struct Document {
    // What the next version is judged by; nothing after one that could not be read.
    struct Before {
      int64_t version = 0;
      VersionKind kind = VersionKind::kCreated;
      UnixMicros commit_time = 0;
      UnixMicros create_time = 0;     // as it should be
      UnixMicros created_before = 0;  // that of the version before it; 0: unknown, or there is none
      // The hash that the next version may stand on: as stored, and as it should be. They differ
      // after a version that was found broken, and either may be what its successor was made on.
      document::Hash chain_stored{};
      document::Hash chain_computed{};
    };

    std::string id;
    bool versions_checked = false;  // then its request records
    int64_t next_version = 1;
    std::optional<Before> before{};
    std::string next_request{};  // key; empty: from the first
    bool seen = false;           // something is stored of it
    int64_t versions = 0;
    int64_t ledger_entries = 0;
  };

  // The walk over the ledger, at the border of a block.
  struct Ledger {
    store::CommitPosition last = 0;  // blocks after it are not looked at: the ledger grows
    store::CommitPosition next = 0;  // begin with the block at or after it
    // The hash that the next block must stand on; nothing after one that could not be read.
    std::optional<Hash> before;
    bool head_passed = false;  // the expected head was held against the ledger
    int64_t entries = 0;
    // The first entry of an incarnation that is not there and whose end is still to come; 0: none.
    store::CommitPosition unended_since = 0;
  };

  int64_t incarnation = 0;  // of the collection; 0: before the first step
  Stage stage = Stage::kDocuments;
  std::string next_key;  // of the id after those that were checked
  std::optional<Document> document;
  // Where the walk over the ledger begins; 0: at its beginning.
  store::CommitPosition ledger_from = 0;
  std::optional<Ledger> ledger;
  // So far; of the document under way and the ledger see there.
  int64_t documents = 0;
  int64_t versions = 0;
  int64_t ledger_entries = 0;
  int64_t broken = 0;  // findings that are neither recoverable nor repaired
};

struct VerifyStep {
  std::vector<Finding> findings;  // of this step
  int64_t documents = 0;          // checked so far
  int64_t versions = 0;
  int64_t ledger_entries = 0;
  bool complete = false;
  VerifyPlace place;  // after this step
};

// One verification, in steps, so that its caller can send what was found, wait until it was taken,
// and give up in between. Not thread-safe.
class Verification {
 public:
  // All must outlive it. Reads nothing yet. Goes on at `place`, where a verification of the same
  // query was.
  Verification(store::Store& store, Collections& collections, const Clock& clock, VerifyQuery query,
               VerifyPlace place = {});
  ~Verification();
  Verification(Verification&&) noexcept;
  Verification& operator=(Verification&&) noexcept;

  // Checks on for about 100 ms; `repair` waits for its commits here. After a step that is
  // `complete` there is none. COLLECTION_NOT_FOUND, DOCUMENT_NOT_FOUND (of one document, nothing is
  // stored and the ledger does not name it), INVALID_NAME, STORE_UNAVAILABLE; POSITION_TRIMMED for
  // an expected head that the ledger was trimmed beyond. COLLECTION_NOT_FOUND too if the collection
  // was made anew since the first step.
  absl::StatusOr<VerifyStep> Next();

 private:
  class Walk;
  std::unique_ptr<Walk> walk_;
};

// DATA_LOSS / CHAIN_BROKEN for the first finding that is neither recoverable nor repaired, of
// `findings` such ones, `before` of them found before the verification went on at a place (null:
// all of them).
absl::Status BrokenBy(const VerifyQuery& query, const Finding* first, int64_t findings,
                      int64_t before);

}  // namespace strata::versioning
