// Transactions by their ids, for those who may see them.
#pragma once

#include <string>

#include "schemas/transaction/transactions.h"
#include "service/rpc/convert.h"

namespace strata::rpc::transaction_service {

// Whether the caller has the permission on the collections of all participants; on all collections,
// of a transaction that has none.
bool Permits(const Context& context, security::Permission permission,
             const transaction::Transaction& transaction);

// The caller's own transaction of that request id, or else the one with that id, or else the first
// of another principal's with that request id that the caller has the permission on.
// TRANSACTION_NOT_FOUND, alike for one that is not there and one that the caller has not the
// permission on; INVALID_FIELD for what cannot be an id.
absl::StatusOr<transaction::Transaction> FindPermitted(const Context& context,
                                                       security::Permission permission,
                                                       const std::string& id);

void FillTransaction(const transaction::Transaction& transaction, wire::Transaction& filled);

}  // namespace strata::rpc::transaction_service
