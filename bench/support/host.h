// Where and when something was measured.
#pragma once

#include <string>

namespace strata::bench {

// As the kernel names it.
std::string ProcessorName();

// The day, in UTC.
std::string Today();

}  // namespace strata::bench
