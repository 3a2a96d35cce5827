#include "bench/support/table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace strata::bench {

Table::Table(std::vector<std::string> heading) { rows_.push_back(std::move(heading)); }

void Table::Add(std::vector<std::string> row) {
  row.resize(rows_.front().size());
  rows_.push_back(std::move(row));
}

std::string Table::Text() const {
  std::vector<size_t> widths(rows_.front().size(), 3);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t i = 0; i < widths.size(); ++i) {
      const std::string padding(widths[i] - rows_[r][i].size(), ' ');
      text += "| ";
      text += i == 0 ? rows_[r][i] + padding : padding + rows_[r][i];
      text += ' ';
    }
    text += "|\n";
    if (r > 0) continue;
    for (size_t i = 0; i < widths.size(); ++i) {
      text += "|-";
      text += std::string(widths[i], '-') + (i == 0 ? "-" : ":");
    }
    text += "|\n";
  }
  return text;
}

std::string Number(double value, int decimals) {
  char digits[64];
  std::snprintf(digits, sizeof(digits), "%.*f", decimals, value);
  std::string text = digits;
  const size_t begin = text[0] == '-' ? 1 : 0;
  size_t end = std::min(text.find('.'), text.size());
  while (end > begin + 3) {
    end -= 3;
    text.insert(text.begin() + static_cast<std::ptrdiff_t>(end), ',');
  }
  return text;
}

std::string Digits(double value) {
  const double size = std::abs(value);
  return Number(value, size < 10 ? 2 : size < 100 ? 1 : 0);
}

std::string Duration(double us, bool greek) {
  if (us >= 1e6) return Digits(us / 1e6) + " s";
  if (us >= 1e3) return Digits(us / 1e3) + " ms";
  return Digits(us) + (greek ? " \u00b5s" : " us");
}

std::string WithoutZeros(std::string text) {
  const size_t point = text.find('.');
  if (point == std::string::npos) return text;
  const size_t end = std::min(text.find(' ', point), text.size());
  size_t keep = end;
  while (text[keep - 1] == '0') --keep;
  if (keep - 1 == point) --keep;
  return text.erase(keep, end - keep);
}

}  // namespace strata::bench
