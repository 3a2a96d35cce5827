// How work that takes long learns that nobody waits for it any more.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "schemas/base/error.h"

namespace strata {

// Whether to stop. Empty: never. Once true it stays true. Asked often: cheap.
using StopCheck = std::function<bool()>;

inline bool Stopped(const StopCheck& stopped) { return stopped && stopped(); }

// CANCELLED: what work ends with that was stopped. Whoever made it stop is not there to hear it.
inline absl::Status StoppedError() {
  return Error(ErrorReason::kCancelled, "the caller cancelled");
}

}  // namespace strata
