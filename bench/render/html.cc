// Documents as a page, well-formed as XML too.
#include <string>
#include <variant>

#include "bench/render/document.h"
#include "bench/render/html_style.h"

namespace strata::bench {
namespace {

std::string Element(const std::string& name, const std::string& text) {
  return "<" + name + ">" + Escaped(text) + "</" + name + ">";
}

std::string ToHtml(const Cell& cell) {
  using Judgement = Cell::Judgement;
  std::string html = cell.judgement == Judgement::kNone   ? "<td>"
                     : cell.judgement == Judgement::kGood ? "<td class=\"met\">"
                                                          : "<td class=\"missed\">";
  html += Escaped(cell.text);
  if (!cell.words.empty()) html += Element("small", cell.words);
  return html + "</td>";
}

std::string ToHtml(const Table& table) {
  std::string html;
  if (!table.folded.empty()) html += "<details>" + Element("summary", table.folded) + "\n";
  html += "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& name : table.heading) html += Element("th", name);
  html += "</tr></thead><tbody>\n";
  for (const std::vector<Cell>& row : table.rows) {
    html += "<tr>";
    for (const Cell& cell : row) html += ToHtml(cell);
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  return table.folded.empty() ? html : html + "</details>\n";
}

std::string ToHtml(const Plot& plot) {
  return std::visit(
      [&](const auto& drawing) {
        return "<figure>" + Element("h3", drawing.title) + ToSvg(drawing) + "<figcaption>" +
               Element("small", plot.caption) + "</figcaption></figure>\n";
      },
      plot.drawing);
}

std::string ToHtml(const Section& section) {
  std::string html = Element("h2", section.title) + "\n";
  if (!section.words.empty()) html += Element("p", section.words) + "\n";
  if (!section.plots.empty()) html += "<div class=\"pair\">\n";
  for (const Plot& plot : section.plots) html += ToHtml(plot);
  if (!section.plots.empty()) html += "</div>\n";
  for (const Table& table : section.tables) html += ToHtml(table);
  for (const std::string& note : section.notes) {
    html += "<p class=\"note\">" + Element("small", note) + "</p>\n";
  }
  return html;
}

}  // namespace

std::string ToHtml(const Document& document) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n" +
      Element("title", document.title) + "\n<style>" + kHtmlStyle +
      "</style></head><body><main>\n" + Element("h1", document.title) + "\n";
  for (const std::string& fact : document.facts) {
    html += "<p>" + Element("small", fact) + "</p>\n";
  }
  for (const std::string& wrong : document.wrong) {
    html += "<p class=\"missed\">" + Escaped(wrong) + "</p>\n";
  }
  for (const Section& section : document.sections) html += ToHtml(section);
  return html + "</main></body></html>\n";
}

}  // namespace strata::bench
