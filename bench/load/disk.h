// What the disk takes to make a small write durable: the floor under every durable update.
#pragma once

#include <string>

#include "bench/support/measurement.h"

namespace strata::bench {

// 300 bytes at a time into a preallocated file in `directory`, fdatasync after each, `writes`
// times. Aborts if the disk fails.
// As a measurement of system "disk", a write a call.
Measurement MeasureDisk(const std::string& directory, int writes = 500);

}  // namespace strata::bench
