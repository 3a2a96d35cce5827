// Commit plans: from a decided round to the one batch that makes its versions. Internal to this
// folder.
#pragma once

#include "absl/status/statusor.h"
#include "schemas/store/store.h"
#include "schemas/store/write_batch.h"
#include "schemas/versioning/decision.h"

namespace strata::versioning {

// The checks of the collections, what is remembered of the requests and each strategy's writes, the
// checks of what was only read, what others join, the records of units, and the ledger's entries.
// REQUIRES: the round planned something, and has the collections of all versions that it planned.
// LAYOUT_LIMIT, and what reading the documents fails with.
absl::StatusOr<store::WriteBatch> PlanCommit(Round& round, store::Capabilities capabilities);

}  // namespace strata::versioning
