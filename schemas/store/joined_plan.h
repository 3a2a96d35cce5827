// What other rooms commit along with a write of documents.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "schemas/store/store.h"
#include "schemas/store/write_batch.h"

namespace strata::store {

// Adds guarded writes that commit with the write or the unit, decided on what `reader` shows; an
// error refuses it. Pure; called at each attempt. The writes concern no document. What it reads and
// would replace it adds before it refuses: where others of the round replace that, it is asked
// again when they have.
using JoinedPlan = std::function<absl::Status(const Reader& reader, WriteBatch& batch)>;

}  // namespace strata::store
