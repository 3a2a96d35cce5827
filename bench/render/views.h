// Tables and plots of figures: what stands in rows, columns, lines and bars is said, not drawn.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/render/document.h"
#include "bench/render/figures.h"

namespace strata::bench {

// How a column shows its values: each with the unit that suits it, or all in one, which its heading
// names.
enum class Shown { kWithUnit, kMicroseconds, kMilliseconds };

using WordsOf = std::function<std::string(const Where& row)>;

struct Column {
  std::string heading;
  std::string figure;
  Where where{};  // besides what the row and the view say
  Shown shown = Shown::kWithUnit;
  WordsOf words{};
};

// A row for each combination of the keys' values that a column has a figure of, in their order.
struct TableView {
  std::vector<std::pair<std::string, std::string>> keys;  // parameter and heading
  Where where{};                                          // of all figures
  std::vector<Column> columns;
  WordsOf words{};  // of the first key
  std::string folded{};
};
// Nothing if it had no row.
std::optional<Table> MakeTable(const Figures& figures, const TableView& view);

// A figure that stands by itself among others.
struct Reference {
  std::string title;
  std::string figure;
  Where where{};
};

// A line for each value of the parameter `series`.
struct LineView {
  std::string title;
  std::string figure;
  Where where{};
  std::string x{};  // the parameter
  std::string x_title{};
  std::string series{};
  // A line besides: at each x the median of what was measured beside the others.
  std::optional<Reference> reference{};
};
// The views that have anything to show, all to one scale.
std::vector<Plot> MakeLinePlots(const Figures& figures, const std::vector<LineView>& views);

// A bar for each value of the parameter `bar`, in parts.
struct BarView {
  std::string title;
  std::string bar;
  Where where{};
  std::vector<Reference> parts;
  std::optional<Reference> reference{};  // a bar besides
  std::string caption{};
};
std::optional<Plot> MakeBarPlot(const Figures& figures, const BarView& view);

}  // namespace strata::bench
