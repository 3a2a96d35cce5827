// What a Write of a transaction asks for, as the domain's operation.
#pragma once

#include "schemas/transaction/operation.h"
#include "service/rpc/convert.h"

namespace strata::rpc::transaction_service {

// Write `index` of a request whose own change is `change`, which counts for every write that has
// none; whoever calls has to be allowed to make it on the write's collection either way. Errors
// name the field inside the request: "writes[2].update.patch.operations[0].path".
absl::StatusOr<transaction::Operation> ToOperation(int index, const wire::Write& write,
                                                   const wire::ChangeInfo& change,
                                                   const Context& context);

}  // namespace strata::rpc::transaction_service
