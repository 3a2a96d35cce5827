// Parts of the page that its sections share, and the section that is all plots.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/strategies/figures.h"
#include "bench/support/html.h"

namespace strata::bench {

// An engine's results, in the order of the strategies.
std::vector<const Result*> On(const Report& report, std::string_view engine);

// Cost against the number of versions, a plot for each operation and engine.
std::string GrowthSections(const Report& report);

}  // namespace strata::bench
