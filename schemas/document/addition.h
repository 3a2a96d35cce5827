// Adding numbers of all BSON types, as MongoDB's $inc does, but without ever rounding a decimal128.
#pragma once

#include <cstdint>
#include <string_view>

#include "schemas/document/bson_view.h"

namespace strata::document {

struct Addition {
  Value sum;
  std::string_view problem;  // why there is no sum ("makes …"), and what to do; empty: there is one
};

// Two int32 make an int32, or an int64 if that is too small; int64 stays int64; a double makes a
// double of whatever is no decimal128. A decimal128 makes a decimal128 of everything, exactly or
// not at all: a double counts as the value that it has, so 0.5 can be added, and 0.1, which as a
// double has 55 digits, cannot. REQUIRES: both are numbers.
Addition AddNumbers(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b);

}  // namespace strata::document
