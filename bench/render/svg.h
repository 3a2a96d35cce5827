// Plots as SVG text, coloured by the page's style sheet (html_style.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::bench {

// For text in HTML and SVG.
std::string Escaped(std::string_view text);

struct Line {
  std::string name;
  int style = 0;                                  // of the palette and of the marks
  std::vector<std::pair<double, double>> points;  // by x; both from above 0
};

struct LinePlot {
  std::string title;
  std::string x_title;
  std::vector<double> x_ticks;
  double y_min = 1;
  double y_max = 10;
  std::function<std::string(double)> y_text;
  std::function<std::string(double)> tick_text;
  std::vector<Line> lines;
};

// Both axes logarithmic; each line has its name and last value at its end.
std::string ToSvg(const LinePlot& plot);

struct Bar {
  std::string name;
  std::vector<double> parts;  // one after the other
  std::string text;           // after its end
  bool reference = false;     // no part of the comparison
};

struct BarPlot {
  std::string title;
  std::vector<std::string> parts;
  std::vector<Bar> bars;
};

// From the left, with a key to the parts above where there are several.
std::string ToSvg(const BarPlot& plot);

}  // namespace strata::bench
