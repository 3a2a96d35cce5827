// What is shown, apart from its form: text for a terminal, or a page.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/render/svg.h"

namespace strata::bench {

struct Cell {
  Cell() = default;
  Cell(std::string its_text) : text(std::move(its_text)) {}  // NOLINT: a cell is mostly its text
  Cell(const char* its_text) : text(its_text) {}             // NOLINT
  Cell(std::string its_text, std::string its_words)
      : text(std::move(its_text)), words(std::move(its_words)) {}

  std::string text;
  std::string words;  // that belong to it
  enum class Judgement { kNone, kGood, kBad } judgement = Judgement::kNone;
};

struct Table {
  std::vector<std::string> heading;
  std::vector<std::vector<Cell>> rows;  // as long as the heading
  std::string folded;  // if not empty, a page shows only this until it is asked for the table
};

struct Plot {
  std::variant<LinePlot, BarPlot> drawing;
  std::string caption;
};

struct Section {
  std::string title;
  std::string words;
  std::vector<Plot> plots;  // text has none
  std::vector<Table> tables;
  std::vector<std::string> notes;
};

struct Document {
  std::string title;
  std::vector<std::string> facts;  // on what it was measured
  std::vector<std::string> wrong;  // what went wrong
  std::vector<Section> sections;
};

// Tables in Markdown that read well as they are.
std::string ToText(const Document& document);

// One page that needs nothing but itself.
std::string ToHtml(const Document& document);

}  // namespace strata::bench
