// Trimming the ledger: what is older than it is kept goes, a block at a time, from the beginning.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/age_clock.h"
#include "schemas/base/clock.h"
#include "schemas/base/stop.h"
#include "schemas/store/store.h"
#include "schemas/versioning/ledger_floor.h"

namespace strata::versioning {

// A block goes once all of its entries, and all before it, are older than `retention`. The newest
// one never does, nor one that a holder still needs. How old they are is told by an AgeClock, so
// that a wall clock that jumps ahead trims nothing for a day, in which it can be set right.
//
// Killed at any moment, the next Trim deletes what was left below the floor. Not thread-safe;
// several processes may trim one store.
class LedgerTrimmer {
 public:
  // All must outlive it. REQUIRES: `store` has commit positions and atomic batches; retention > 0.
  // A commit deletes up to `chunk` blocks: enough to make its fsync cheap, few enough not to hold
  // up others' commits.
  LedgerTrimmer(store::Store& store, const Clock& clock, std::chrono::microseconds retention,
                const FloorHolders& holders, size_t chunk = 1000);

  // Trims what may go by now, in bounded commits, each of which it waits for. Ends early, with OK,
  // once it is stopped. What holders fail with, RECORD_CORRUPT (the ledger is damaged where its
  // new floor would be: nothing more is trimmed), and what the store refuses.
  absl::Status Trim(const StopCheck& stopped = {});

 private:
  absl::StatusOr<std::optional<LedgerFloor>> Choose(const store::Reader& reader,
                                                    const LedgerFloor& floor) const;
  absl::StatusOr<bool> Raise(const LedgerFloor& from, const LedgerFloor& to,
                             const std::optional<store::Record>& holders);
  absl::Status DeleteBelow(store::CommitPosition position, const StopCheck& stopped);
  absl::StatusOr<bool> Commit(store::WriteBatch batch);

  store::Store& store_;
  const AgeClock clock_;
  const std::chrono::microseconds retention_;
  const FloorHolders& holders_;
  const size_t chunk_;
  // Nothing is left below it. Deleted keys are slow to walk over for as long as the engine keeps
  // their traces, so that no walk begins there.
  store::CommitPosition deleted_below_ = 0;
};

}  // namespace strata::versioning
