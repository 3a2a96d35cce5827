// What is checked of a CommitRequest before anything is read. Internal to this folder.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "schemas/transaction/transactions.h"

namespace strata::transaction {

// INVALID_FIELD, INVALID_NAME, with the request's field, and `index` where it is in a write or
// read; UNSUPPORTED_BY_ENGINE for what only one commit can do.
absl::Status CheckCommit(const CommitRequest& request, TransactionMode mode);

// Of all that decides what a transaction does: equal for a repeated call.
std::string FingerprintOf(const CommitRequest& request);

}  // namespace strata::transaction
