// Values at random, of every type.
#pragma once

#include <random>

#include "strata/client/value.h"

namespace strata::client {

// An object of up to `depth` levels that ToBson takes.
Value RandomObject(std::mt19937_64& random, int depth);

}  // namespace strata::client
