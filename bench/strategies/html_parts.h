// Parts of the page that its sections share, and the section that is all plots.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/strategies/figures.h"

namespace strata::bench {

// "12,206".
std::string Count(int64_t value);

// Cells of tables: a figure with small words under it, or words alone.
std::string Cell(const std::string& figure, std::string_view words = "");
std::string WordsCell(std::string_view words);

// A table from its heading on, and what ends it. Its kind is one of the style sheet's.
std::string TableHead(const std::vector<std::string>& names, std::string_view kind = "figures");
inline constexpr char kTableEnd[] = "</tbody></table></div>\n";

// A heading and the sentence that says what is to be seen.
std::string Heading(std::string_view title, const std::string& sentence);

// An engine's results, in the order of the strategies.
std::vector<const Result*> On(const Report& report, std::string_view engine);

// Cost against the number of versions, a plot for each operation and engine.
std::string GrowthSections(const Report& report);

}  // namespace strata::bench
