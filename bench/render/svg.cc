#include "bench/render/svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <numeric>

#include "bench/render/numbers.h"

namespace strata::bench {
namespace {

constexpr double kWidth = 560;

std::string Coordinate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string Open(const std::string& title, double height) {
  return "<svg viewBox=\"0 0 " + Coordinate(kWidth) + " " + Coordinate(height) +
         "\" role=\"img\" aria-label=\"" + Escaped(title) + "\">\n";
}

std::string Text(double x, double y, std::string_view css, const std::string& text) {
  return "<text x=\"" + Coordinate(x) + "\" y=\"" + Coordinate(y) + "\" class=\"" +
         std::string(css) + "\">" + Escaped(text) + "</text>\n";
}

std::string Segment(double x1, double y1, double x2, double y2, const std::string& css) {
  return "<line x1=\"" + Coordinate(x1) + "\" y1=\"" + Coordinate(y1) + "\" x2=\"" +
         Coordinate(x2) + "\" y2=\"" + Coordinate(y2) + "\" class=\"" + css + "\"/>\n";
}

std::string Rectangle(double x, double y, double width, double height, const std::string& css) {
  return "<rect x=\"" + Coordinate(x) + "\" y=\"" + Coordinate(y) + "\" width=\"" +
         Coordinate(width) + "\" height=\"" + Coordinate(height) + "\" class=\"" + css + "\"/>\n";
}

// A shape besides the colour, for those who cannot tell colours.
std::string Mark(double x, double y, int style) {
  constexpr const char* kShapes[] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
                                     "m-3.6 -3.6h7.2v7.2h-7.2z", "m0 -4.8l4.6 8h-9.2z",
                                     "m0 -5l5 5l-5 5l-5 -5z", "m0 4.8l4.6 -8h-9.2z"};
  return "<path d=\"M" + Coordinate(x) + " " + Coordinate(y) +
         kShapes[static_cast<size_t>(style) % std::size(kShapes)] + "\" class=\"mark c" +
         std::to_string(style) + "\"/>\n";
}

class LineDrawing {
 public:
  explicit LineDrawing(const LinePlot& plot) : plot_(plot) {}

  std::string Draw() {
    svg_ = Open(plot_.title, kHeight);
    DrawGrid();
    for (const Line& line : plot_.lines) DrawLine(line);
    DrawLabels();
    return svg_ + "</svg>\n";
  }

 private:
  static constexpr double kHeight = 300;
  static constexpr double kLeft = 62;
  static constexpr double kRight = 338;  // labels stand to the right
  static constexpr double kTop = 12;
  static constexpr double kBottom = 252;
  static constexpr double kLabelX = 354;
  static constexpr double kLabelGap = 17;

  static double Share(double value, double first, double last) {
    return (std::log(value) - std::log(first)) / (std::log(last) - std::log(first));
  }
  double X(double value) const {
    return kLeft + (kRight - kLeft) * Share(value, plot_.x_ticks.front(), plot_.x_ticks.back());
  }
  double Y(double value) const {
    return kBottom - (kBottom - kTop) * Share(value, plot_.y_min, plot_.y_max);
  }

  void DrawGrid() {
    // Between the powers of ten only where there are few of them.
    const bool fine = plot_.y_max / plot_.y_min < 150;
    const double first = std::pow(10, std::floor(std::log10(plot_.y_min)));
    for (double decade = first; decade <= plot_.y_max; decade *= 10) {
      for (const double step : {1.0, 2.0, 5.0}) {
        const double value = decade * step;
        const bool inside = value >= plot_.y_min * 0.999 && value <= plot_.y_max;
        if (!inside || (step > 1 && !fine)) continue;
        svg_ += Segment(kLeft, Y(value), kRight, Y(value), "grid");
        svg_ += Text(kLeft - 8, Y(value) + 4, "tick end", plot_.tick_text(value));
      }
    }
    for (const double tick : plot_.x_ticks) {
      svg_ += Segment(X(tick), kBottom, X(tick), kBottom + 5, "axis");
      svg_ += Text(X(tick), kBottom + 19, "tick middle", Number(tick, 0));
    }
    svg_ += Segment(kLeft, kBottom, kRight, kBottom, "axis");
    svg_ += Text((kLeft + kRight) / 2, kBottom + 39, "tick middle", plot_.x_title);
  }

  void DrawLine(const Line& line) {
    std::string points;
    for (const auto& [x, y] : line.points) {
      points += Coordinate(X(x)) + "," + Coordinate(Y(y)) + " ";
    }
    svg_ += "<polyline points=\"" + points + "\" class=\"line c" + std::to_string(line.style) +
            "\"/>\n";
    for (const auto& [x, y] : line.points) svg_ += Mark(X(x), Y(y), line.style);
  }

  // Where lines end close together their labels move apart, and thin lines lead to them.
  void DrawLabels() {
    struct Label {
      const Line* line;
      double y;
    };
    std::vector<Label> labels;
    for (const Line& line : plot_.lines) labels.push_back({&line, Y(line.points.back().second)});
    std::sort(labels.begin(), labels.end(),
              [](const Label& a, const Label& b) { return a.y < b.y; });
    for (int round = 0; round < 200; ++round) {
      for (size_t i = 0; i + 1 < labels.size(); ++i) {
        const double overlap = kLabelGap - (labels[i + 1].y - labels[i].y);
        if (overlap <= 0) continue;
        labels[i].y -= overlap / 2;
        labels[i + 1].y += overlap / 2;
      }
      labels.front().y = std::max(labels.front().y, kTop + 4);
      labels.back().y = std::min(labels.back().y, kBottom - 6);
    }
    for (const Label& label : labels) DrawLabel(*label.line, label.y);
  }

  void DrawLabel(const Line& line, double y) {
    const auto& [last_x, last_y] = line.points.back();
    svg_ +=
        Segment(X(last_x) + 6, Y(last_y), kLabelX - 6, y, "leader c" + std::to_string(line.style));
    svg_ += Mark(kLabelX, y, line.style);
    svg_ += Text(kLabelX + 10, y + 4, "name", line.name);
    svg_ += Text(kWidth - 2, y + 4, "value end", plot_.y_text(last_y));
  }

  const LinePlot& plot_;
  std::string svg_;
};

double Length(const Bar& bar) { return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0); }

}  // namespace

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string ToSvg(const LinePlot& plot) { return LineDrawing(plot).Draw(); }

// Names stand above their bars, so that they can be as long as the plot is wide.
std::string ToSvg(const BarPlot& plot) {
  constexpr double kRight = 450;  // values stand to the right
  constexpr double kTop = 26;
  constexpr double kRow = 46;
  double longest = std::numeric_limits<double>::min();  // of what is all zero, too
  for (const Bar& bar : plot.bars) longest = std::max(longest, Length(bar));
  std::string svg = Open(plot.title, kTop + kRow * static_cast<double>(plot.bars.size()));
  double key_x = 0;
  for (size_t i = 0; i < plot.parts.size() && plot.parts.size() > 1; ++i) {
    svg += Rectangle(key_x, 4, 11, 11, "part" + std::to_string(i));
    svg += Text(key_x + 16, 14, "tick", plot.parts[i]);
    key_x += 34 + 6.6 * static_cast<double>(plot.parts[i].size());
  }
  double y = kTop;
  for (const Bar& bar : plot.bars) {
    svg += Text(0, y + 14, "name", bar.name);
    double x = 0;
    for (size_t i = 0; i < bar.parts.size(); ++i) {
      const double width = bar.parts[i] / longest * kRight;
      svg +=
          Rectangle(x, y + 20, width, 18, bar.reference ? "reference" : "part" + std::to_string(i));
      x += width;
    }
    svg += Text(x + 8, y + 33, "value", bar.text);
    y += kRow;
  }
  return svg + "</svg>\n";
}

}  // namespace strata::bench
