// How long work learns that its caller cancelled.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "schemas/base/error.h"

namespace strata {

// Whether to stop. Empty: never. Once true it stays true. Asked often: cheap.
using StopCheck = std::function<bool()>;

inline bool Stopped(const StopCheck& stopped) { return stopped && stopped(); }

// CANCELLED: the status of stopped work. The caller that stopped it does not read it.
inline absl::Status StoppedError() {
  return Error(ErrorReason::kCancelled, "the caller cancelled");
}

}  // namespace strata
