// Parts of the pages that show results.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace strata::bench
