// What the disk takes to make a small write durable.
#pragma once

#include <filesystem>

namespace strata::bench {

// The median of an fdatasync after 300 bytes in a file of that directory, in us: what no durable
// update can do without. Disks change their minds, so take it next to what is held against it.
double MeasureSync(const std::filesystem::path& directory);

}  // namespace strata::bench
