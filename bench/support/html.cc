#include "bench/support/html.h"

#include "bench/support/svg.h"
#include "bench/support/table.h"

namespace strata::bench {

std::string Count(int64_t value) { return Number(static_cast<double>(value), 0); }

std::string Cell(const std::string& figure, std::string_view words) {
  std::string cell = "<td>" + Escaped(figure);
  if (!words.empty()) cell += "<small>" + Escaped(words) + "</small>";
  return cell + "</td>";
}

std::string WordsCell(std::string_view words) {
  return "<td class=\"words\">" + Escaped(words) + "</td>";
}

std::string TableHead(const std::vector<std::string>& names, std::string_view kind) {
  std::string row = std::string("<div class=\"scroll\"><table") + " class=\"" + std::string(kind) +
                    "\"><thead><tr>";
  for (const std::string& name : names) row += "<th>" + Escaped(name) + "</th>";
  return row + "</tr></thead><tbody>\n";
}

std::string Heading(std::string_view title, const std::string& sentence) {
  return "<h2>" + Escaped(title) + "</h2>\n<p>" + Escaped(sentence) + "</p>\n";
}

}  // namespace strata::bench
