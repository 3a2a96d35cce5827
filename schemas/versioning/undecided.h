// Undecided versions: those of a transaction in two phases that is neither applied nor cancelled.
//
// A version that is marked as applied is undecided while its transaction's record is pending or
// cancelling and names it as a slot; else (done, gone, an id that is used anew) it is decided.
// Readers are answered with the version before it, and nothing is ever built on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/strategy.h"

namespace strata::versioning {

// Which version of a document readers are to see.
struct Visible {
  int64_t version = 0;                 // 0: none
  std::string pending_transaction_id;  // of the undecided version above it; empty: there is none
};

// Of a document whose current version is `current`; asks the store only where that bears a mark.
// RECORD_CORRUPT, STORE_UNAVAILABLE.
absl::StatusOr<Visible> FindVisible(const ReadContext& context, const store::DocumentKey& document,
                                    const VersionHeader& current);

// For whoever is to build on the head: the transaction that has to be settled first; empty: none. A
// head that was settled since it was read is read anew. RECORD_CORRUPT, also for a version that was
// never undone though its transaction is cancelled: nothing can stand on it.
absl::StatusOr<std::string> FindUndecided(const ReadContext& context, const Strategy& strategy,
                                          const store::DocumentKey& document,
                                          std::optional<Head>& head);

// Puts the version that readers are to see into the head's place, with its pending transaction;
// false if there is none. The head is of no use for further reads then, where it bore a mark.
absl::StatusOr<bool> ShowVisible(const ReadContext& context, const Strategy& strategy,
                                 const store::DocumentKey& document, Head& head);

// Whether the version was undone by the one right after it, so that it never counted.
inline bool IsUndoneBy(const VersionHeader& version, const VersionHeader& next) {
  return version.mark == VersionMark::kApplied && next.mark == VersionMark::kUndone &&
         next.transaction_id == version.transaction_id;
}

}  // namespace strata::versioning
