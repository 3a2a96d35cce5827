// A commit in two phases, as it was asked for: a transaction, and where that lost a slot another
// one. Internal to this folder.
#pragma once

#include <string>

#include "schemas/transaction/environment.h"
#include "schemas/transaction/transactions.h"

namespace strata::transaction {

// Transactions::Commit, of a request that was checked. `id`: of the first attempt, the request's
// own if it has one. Any thread may call back, later.
void CommitInTwoPhases(const Environment& environment, std::string id, CommitRequest request,
                       std::string fingerprint, CommitCallback done);

}  // namespace strata::transaction
