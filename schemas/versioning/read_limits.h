// How far a read may go.
#pragma once

#include "schemas/base/stop.h"

namespace strata::versioning {

struct ReadLimits {
  StopCheck stopped = {};  // asked while many records are gone through; then StoppedError
};

}  // namespace strata::versioning
