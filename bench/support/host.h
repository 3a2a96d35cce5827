// Where and when something was measured.
#pragma once

#include <string>

namespace strata::bench {

// "2026-11-22, AMD EPYC, 2 cores, 24 GiB, Linux 6.18.44, g++ 12.2.0": the day is UTC's, the
// processor has the kernel's name.
std::string DescribeHost();

}  // namespace strata::bench
