// Documents as text.
#include <algorithm>
#include <string>
#include <vector>

#include "bench/render/document.h"

namespace strata::bench {
namespace {

// Characters, not bytes.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string ToText(const Cell& cell) {
  if (cell.judgement == Cell::Judgement::kBad) return "MISSED";
  if (cell.words.empty() || cell.text.empty()) return cell.words + cell.text;
  return cell.words + ": " + cell.text;
}

// The first column to the left, all others to the right.
std::string Row(const std::vector<std::string>& cells, const std::vector<size_t>& widths) {
  std::string row;
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string padding(widths[i] - Width(cells[i]), ' ');
    row += "| " + (i == 0 ? cells[i] + padding : padding + cells[i]) + " ";
  }
  return row + "|\n";
}

std::string ToText(const Table& table) {
  std::vector<std::vector<std::string>> rows = {table.heading};
  for (const std::vector<Cell>& row : table.rows) {
    std::vector<std::string>& texts = rows.emplace_back();
    for (const Cell& cell : row) texts.push_back(ToText(cell));
  }
  std::vector<size_t> widths(table.heading.size(), 3);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text = Row(rows[0], widths);
  for (size_t i = 0; i < widths.size(); ++i) {
    text += "|-" + std::string(widths[i], '-') + (i == 0 ? "-" : ":");
  }
  text += "|\n";
  for (size_t i = 1; i < rows.size(); ++i) text += Row(rows[i], widths);
  return text;
}

// What is plotted stands in tables, too.
std::string ToText(const Section& section) {
  if (section.tables.empty() && section.notes.empty()) return "";
  std::string text = "\n== " + section.title + "\n";
  if (!section.words.empty()) text += section.words + "\n";
  for (const Table& table : section.tables) text += "\n" + ToText(table);
  if (!section.notes.empty()) text += "\n";
  for (const std::string& note : section.notes) text += note + "\n";
  return text;
}

}  // namespace

std::string ToText(const Document& document) {
  std::string text;
  for (const std::string& fact : document.facts) text += fact + "\n";
  for (const Section& section : document.sections) text += ToText(section);
  for (const std::string& wrong : document.wrong) text += "WRONG: " + wrong + "\n";
  return text;
}

}  // namespace strata::bench
