// Waits for what the port does asynchronously.
#pragma once

#include <utility>

#include "schemas/store/store.h"

namespace strata::test_support {

// Commits and blocks until the callback. Not from a callback of the same store.
store::CommitResult AwaitCommit(store::Store& store, store::WriteBatch batch);

}  // namespace strata::test_support
