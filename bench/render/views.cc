#include "bench/render/views.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/render/numbers.h"

namespace strata::bench {
namespace {

// The values of a row's keys, if the figure is one of the column and has no other parameters.
std::optional<Where> RowOf(const Figure& figure, const TableView& view, const Column& column) {
  const Where fixed = Both(view.where, column.where);
  if (figure.name != column.figure || figure.parameters.size() != fixed.size() + view.keys.size()) {
    return std::nullopt;
  }
  for (const auto& [name, value] : fixed) {
    const auto found = figure.parameters.find(name);
    if (found == figure.parameters.end() || found->second != value) return std::nullopt;
  }
  Where row;
  for (const auto& [name, heading] : view.keys) {
    const auto found = figure.parameters.find(name);
    if (found == figure.parameters.end()) return std::nullopt;
    row.insert(*found);
  }
  return row;
}

std::vector<Where> RowsOf(const Figures& figures, const TableView& view) {
  std::vector<Where> rows;
  std::set<Where> seen;
  for (const Figure& figure : figures.all()) {
    for (const Column& column : view.columns) {
      const std::optional<Where> row = RowOf(figure, view, column);
      if (row && seen.insert(*row).second) rows.push_back(*row);
    }
  }
  return rows;
}

std::string ValueText(const Figure& figure, Shown shown) {
  if (!figure.value) return figure.text;
  switch (shown) {
    case Shown::kWithUnit:
      return WithUnit(*figure.value, figure.unit);
    case Shown::kMicroseconds:
      return Number(*figure.value, 1);
    case Shown::kMilliseconds:
      return Number(*figure.value / 1e3, 3);
  }
  return {};
}

// "1,000", "W3 get": numbers among the values of parameters as numbers.
std::string ParameterText(const std::string& value) {
  const bool is_number =
      !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? Number(std::atof(value.c_str()), 0) : value;
}

// Axes start anywhere, so they are widened: a line that hardly moves is not to look as if it did.
void SetScale(const std::vector<Plot>& plots, double& y_min, double& y_max) {
  double least = 0;
  double most = 0;
  for (const Plot& plot : plots) {
    for (const Line& line : std::get<LinePlot>(plot.drawing).lines) {
      for (const auto& [x, y] : line.points) {
        least = least == 0 ? y : std::min(least, y);
        most = std::max(most, y);
      }
    }
  }
  const double room = most / least < 3 ? 2 : 1.3;
  y_min = least / room;
  y_max = most * room;
}

// Where several lines have a point, and at both ends.
std::vector<double> Ticks(const std::vector<Line>& lines) {
  std::map<double, size_t> counts;
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) ++counts[x];
  }
  std::vector<double> ticks;
  for (const auto& [x, count] : counts) {
    const bool end = x == counts.begin()->first || x == counts.rbegin()->first;
    if (end || count > 1 || lines.size() == 1) ticks.push_back(x);
  }
  return ticks;
}

// Who rises from ten on, one being a case by itself, and how much.
std::string Course(const std::vector<Line>& lines) {
  std::vector<std::string> rising;
  for (const Line& line : lines) {
    const auto first = std::find_if(line.points.begin(), line.points.end(),
                                    [](const auto& point) { return point.first >= 10; });
    if (first == line.points.end()) continue;
    const double factor = line.points.back().second / first->second;
    if (factor >= 2) rising.push_back(absl::StrCat(line.name, " grows ", Digits(factor), " times"));
  }
  if (rising.empty()) return "From 10 on nothing doubles.";
  return absl::StrCat("From 10 on ", absl::StrJoin(rising, ", "),
                      rising.size() == lines.size() ? "." : "; nothing else doubles.");
}

// A point wherever both are above zero, which logarithmic axes need.
Line MakeLine(const Figures& figures, const LineView& view, const std::string& series,
              size_t style) {
  Line line{series, static_cast<int>(style), {}};
  for (const std::string& x : figures.ValuesOf(view.x, view.figure)) {
    const Where where = Both(view.where, {{view.series, series}, {view.x, x}});
    const std::optional<double> y = figures.Value(view.figure, where);
    const double number = std::atof(x.c_str());
    if (y && *y > 0 && number > 0) line.points.emplace_back(number, *y);
  }
  std::sort(line.points.begin(), line.points.end());
  return line;
}

Line MakeReference(const Figures& figures, const LineView& view) {
  constexpr int kReferenceStyle = 5;
  Line line{view.reference->title, kReferenceStyle, {}};
  for (const std::string& x : figures.ValuesOf(view.x, view.reference->figure)) {
    std::vector<double> values;
    for (const std::string& series : figures.ValuesOf(view.series, view.reference->figure)) {
      const auto value =
          figures.Value(view.reference->figure,
                        Both(view.reference->where, {{view.series, series}, {view.x, x}}));
      if (value) values.push_back(*value);
    }
    // One strategy's own depth is no place for it, and logarithmic axes begin above zero.
    if (values.size() < 2 || std::atof(x.c_str()) <= 0) continue;
    std::sort(values.begin(), values.end());
    line.points.emplace_back(std::atof(x.c_str()), values[values.size() / 2]);
  }
  std::sort(line.points.begin(), line.points.end());
  return line;
}

std::optional<Plot> MakeLinePlot(const Figures& figures, const LineView& view) {
  LinePlot plot;
  plot.title = view.title;
  plot.x_title = view.x_title;
  Unit unit = Unit::kCount;
  for (const Figure& figure : figures.all()) {
    if (figure.name == view.figure) unit = figure.unit;
  }
  plot.y_text = [unit](double value) { return WithUnit(value, unit); };
  plot.tick_text = [unit](double value) { return WithoutZeros(WithUnit(value, unit)); };
  // A strategy has one colour and one mark on the whole page, whether it has a line or not.
  const std::vector<std::string> series = figures.ValuesOf(view.series, view.figure);
  for (size_t i = 0; i < series.size(); ++i) {
    Line line = MakeLine(figures, view, series[i], i);
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
  if (plot.lines.empty()) return std::nullopt;
  const std::string course = Course(plot.lines);
  if (view.reference) {
    Line reference = MakeReference(figures, view);
    if (!reference.points.empty()) plot.lines.push_back(std::move(reference));
  }
  plot.x_ticks = Ticks(plot.lines);
  if (plot.x_ticks.size() < 2) return std::nullopt;  // nothing to see
  return Plot{plot, course};
}

}  // namespace

std::optional<Table> MakeTable(const Figures& figures, const TableView& view) {
  Table table;
  table.folded = view.folded;
  for (const auto& [name, heading] : view.keys) table.heading.push_back(heading);
  for (const Column& column : view.columns) table.heading.push_back(column.heading);
  for (const Where& row : RowsOf(figures, view)) {
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const auto& [name, heading] : view.keys) cells.emplace_back(ParameterText(row.at(name)));
    if (view.words) cells.front().words = view.words(row);
    for (const Column& column : view.columns) {
      const Where where = Both(Both(view.where, column.where), row);
      const Figure* const figure = figures.Find(column.figure, where);
      Cell& cell = cells.emplace_back(figure == nullptr ? "" : ValueText(*figure, column.shown));
      if (column.words) cell.words = column.words(row);
    }
  }
  if (table.rows.empty()) return std::nullopt;
  return table;
}

std::vector<Plot> MakeLinePlots(const Figures& figures, const std::vector<LineView>& views) {
  std::vector<Plot> plots;
  for (const LineView& view : views) {
    if (std::optional<Plot> plot = MakeLinePlot(figures, view)) plots.push_back(*std::move(plot));
  }
  double y_min = 0;
  double y_max = 0;
  SetScale(plots, y_min, y_max);
  for (Plot& plot : plots) {
    std::get<LinePlot>(plot.drawing).y_min = y_min;
    std::get<LinePlot>(plot.drawing).y_max = y_max;
  }
  return plots;
}

std::optional<Plot> MakeBarPlot(const Figures& figures, const BarView& view) {
  BarPlot plot;
  plot.title = view.title;
  const auto add = [&](const std::string& name, const std::vector<Reference>& parts,
                       const Where& where, bool reference) {
    Bar bar;
    bar.name = name;
    bar.reference = reference;
    double sum = 0;
    Unit unit = Unit::kCount;
    for (const Reference& part : parts) {
      const Figure* const figure = figures.Find(part.figure, Both(where, part.where));
      if (figure == nullptr || !figure->value) return;
      bar.parts.push_back(std::max(*figure->value, 0.0));
      sum += *figure->value;
      unit = figure->unit;
    }
    bar.text = WithUnit(sum, unit);
    plot.bars.push_back(std::move(bar));
  };
  for (const Reference& part : view.parts) plot.parts.push_back(part.title);
  for (const std::string& name : figures.ValuesOf(view.bar, view.parts.front().figure)) {
    add(name, view.parts, Both(view.where, {{view.bar, name}}), false);
  }
  if (plot.bars.empty()) return std::nullopt;
  if (view.reference) add(view.reference->title, {*view.reference}, {}, true);
  return Plot{plot, view.caption};
}

}  // namespace strata::bench
