// Documents of any collections as of one moment. Internal to this folder.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "schemas/transaction/transactions.h"

namespace strata::transaction {

// Transactions::Read.
absl::StatusOr<ReadDocuments> ReadMoment(store::Store& store, versioning::Documents& documents,
                                         std::vector<DocumentName> names,
                                         const versioning::ReadLimits& limits);

}  // namespace strata::transaction
