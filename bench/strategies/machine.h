// Where and with what the figures were taken.
#pragma once

#include <filesystem>
#include <string>

#include "bench/strategies/figures.h"
#include "bench/support/host.h"

namespace strata::bench {

// `directory`: on the disk whose sync is to be measured.
Machine DescribeMachine(const std::filesystem::path& directory);

// The median of an fdatasync behind 300 bytes in a file of that directory: what no durable update
// can do without. Disks change their minds, so take it next to what is held against it.
double MeasureSync(const std::filesystem::path& directory);

}  // namespace strata::bench
