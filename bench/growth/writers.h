// The forms of the report.
#pragma once

#include <string>

#include "bench/growth/figures.h"

namespace strata::bench {

std::string TextReport(const Figures& figures);

// One JSON object a line, for programs.
std::string JsonLines(const Figures& figures);

// One page with plots.
std::string HtmlReport(const Figures& figures);

}  // namespace strata::bench
