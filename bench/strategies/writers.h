// The three forms of the report.
#pragma once

#include <string>

#include "bench/strategies/figures.h"

namespace strata::bench {

// For a terminal: the article's table with our figures, then what the article has no column for.
std::string TextReport(const Report& report);

// For programs: everything.
std::string JsonReport(const Report& report);

// For people: one page that needs nothing but itself.
std::string HtmlReport(const Report& report);

}  // namespace strata::bench
