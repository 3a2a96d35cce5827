// Commit plans: from a decided round to the one batch that makes its versions. Internal to this
// folder.
#pragma once

#include "absl/status/statusor.h"
#include "schemas/store/store.h"
#include "schemas/store/write_batch.h"
#include "schemas/versioning/decision.h"

namespace strata::versioning {

// The check of the collection, what is remembered of the requests, the strategy's writes, and the
// ledger's entries. REQUIRES: the round has a collection and planned a version. LAYOUT_LIMIT, and
// what reading the document fails with.
absl::StatusOr<store::WriteBatch> PlanCommit(Round& round, store::Capabilities capabilities);

}  // namespace strata::versioning
