// Refusals that are made in more than one place and have to be the same everywhere.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace strata::transaction {

// TRANSACTION_NOT_FOUND; also what is answered about one that the caller may not see.
absl::Status TransactionNotFound(std::string_view id);

// STORE_UNAVAILABLE, of whoever is not let in (doors.h).
absl::Status Stopping();

}  // namespace strata::transaction
