// Calls completion callbacks on the thread that has the result, without growing its stack for ever.
#pragma once

#include <functional>

#include "schemas/store/store.h"

namespace strata::engines {

// Calls `callback`, a completion of `store`, on this thread: now, or, if this thread is already
// inside many callbacks of that store, when the outermost of them has returned. For stores that
// complete a commit inside Commit: there each callback that commits again would otherwise add its
// frames to the last one's.
void CallNested(const store::Store& store, std::function<void()> callback);

}  // namespace strata::engines
