// The plots: cost against the number of versions.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "bench/strategies/html_parts.h"
#include "bench/strategies/summary.h"
#include "bench/support/svg.h"

namespace strata::bench {
namespace {

// What is plotted: nothing where a point does not have it.
using Value = std::function<std::optional<double>(const Point&)>;

struct Quantity {
  std::string title;
  std::string what;
  Value value;
  std::function<std::string(double)> text;
  bool with_sync = false;  // beside what the disk needs anyway
  bool one_scale = true;   // for all engines
};

// A strategy has one colour and one mark on the whole page.
int StyleOf(const Report& report, const std::string& strategy) {
  const auto found = std::find_if(report.crashes.begin(), report.crashes.end(),
                                  [&](const auto& crash) { return crash.strategy == strategy; });
  return static_cast<int>(found - report.crashes.begin());
}
constexpr int kReferenceStyle = 5;

// How many times its cost with ten versions a figure has with the most there are; nothing if it was
// not measured.
std::optional<double> Factor(const Result& result, const Value& value) {
  const Point* first = nullptr;
  const Point* last = nullptr;
  for (const Point& point : result.growth) {
    if (!value(point)) continue;
    if (first == nullptr && point.versions >= 10) first = &point;
    last = &point;
  }
  if (first == nullptr || last == first) return std::nullopt;
  return *value(*last) / *value(*first);
}

std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

// What is to be seen: who rises with the number of versions, and who does not.
std::string Course(const Report& report, const Value& value) {
  std::vector<std::string> flat;
  std::vector<std::string> rising;
  for (const CrashResult& strategy : report.crashes) {
    std::vector<std::string> factors;
    for (const Result& result : report.results) {
      if (result.strategy != strategy.strategy) continue;
      const auto factor = Factor(result, value);
      if (!factor || *factor < 2) continue;
      factors.push_back(Digits(*factor) + " times on " + result.engine);
    }
    if (factors.empty()) {
      flat.push_back(strategy.strategy);
    } else {
      rising.push_back(strategy.strategy + " grows " + Listed(factors));
    }
  }
  if (rising.empty()) return "From 10 versions to the most no strategy doubles.";
  std::string text = "From 10 versions to the most " + Listed(rising);
  if (!flat.empty())
    text += "; " + Listed(flat) + (flat.size() == 1 ? " does" : " do") + " not double";
  return text + ".";
}

std::vector<double> Ticks(const Report& report) {
  std::vector<double> ticks;
  for (const Result& result : report.results) {
    std::vector<double> its;
    for (const Point& point : result.growth) its.push_back(static_cast<double>(point.versions));
    if (ticks.empty() || (!result.limit && its.back() >= ticks.back())) ticks = its;
  }
  return ticks;
}

std::optional<Line> SyncLine(const std::vector<const Result*>& results,
                             const std::vector<double>& ticks) {
  Line line{"fdatasync alone", kReferenceStyle, {}};
  for (const double tick : ticks) {
    std::vector<double> syncs;
    for (const Result* result : results) {
      for (const Point& point : result->growth) {
        if (static_cast<double>(point.versions) == tick && point.sync_us > 0) {
          syncs.push_back(point.sync_us);
        }
      }
    }
    if (syncs.empty()) return std::nullopt;
    const auto middle = syncs.begin() + static_cast<std::ptrdiff_t>(syncs.size() / 2);
    std::nth_element(syncs.begin(), middle, syncs.end());
    line.points.emplace_back(tick, *middle);
  }
  return line;
}

LinePlot PlotOf(const Report& report, const std::string& engine, const Quantity& quantity) {
  LinePlot plot;
  plot.title = quantity.title + " on " + engine;
  plot.x_title = "versions of each document";
  plot.x_ticks = Ticks(report);
  plot.y_text = quantity.text;
  plot.tick_text = [text = quantity.text](double value) { return WithoutZeros(text(value)); };
  for (const Result* result : On(report, engine)) {
    Line line{result->strategy, StyleOf(report, result->strategy), {}};
    for (const Point& point : result->growth) {
      if (const auto y = quantity.value(point)) {
        line.points.emplace_back(static_cast<double>(point.versions), *y);
      }
    }
    if (!line.points.empty()) plot.lines.push_back(std::move(line));
  }
  if (plot.lines.empty() || !quantity.with_sync) return plot;
  if (auto sync = SyncLine(On(report, engine), plot.x_ticks)) plot.lines.push_back(*sync);
  return plot;
}

// Widened, so that a line that hardly moves does not look as if it did.
void SetScale(LinePlot& plot, double least, double most) {
  const double room = most / least < 3 ? 2 : 1.3;
  plot.y_min = least / room;
  plot.y_max = most * room;
}

std::pair<double, double> LeastAndMost(const LinePlot& plot) {
  double least = plot.lines.front().points.front().second;
  double most = least;
  for (const Line& line : plot.lines) {
    for (const auto& [x, y] : line.points) {
      least = std::min(least, y);
      most = std::max(most, y);
    }
  }
  return {least, most};
}

// One plot an engine.
std::string Section(const Report& report, const Quantity& quantity) {
  std::vector<std::pair<std::string, LinePlot>> plots;
  double least = 0;
  double most = 0;
  for (const EngineFacts& facts : report.engines) {
    LinePlot plot = PlotOf(report, facts.engine, quantity);
    if (plot.lines.empty()) continue;
    const auto [its_least, its_most] = LeastAndMost(plot);
    SetScale(plot, its_least, its_most);
    least = plots.empty() ? its_least : std::min(least, its_least);
    most = std::max(most, its_most);
    plots.emplace_back(facts.engine, std::move(plot));
  }
  std::string html =
      Heading(quantity.title, Course(report, quantity.value)) + "<div class=\"pair\">\n";
  for (auto& [engine, plot] : plots) {
    if (quantity.one_scale) SetScale(plot, least, most);
    html += "<figure><h3>" + Escaped(engine) + "</h3>" + ToSvg(plot) + "<figcaption><small>" +
            Escaped(quantity.what) + "</small></figcaption></figure>\n";
  }
  return html + "</div>\n";
}

std::string Limits(const Report& report) {
  std::map<std::string, std::vector<std::string>> engines;  // by what is said of them
  for (const Result& result : report.results) {
    if (!result.limit) continue;
    engines[result.strategy + " ends at " + Count(result.limit->versions) + " versions of " +
            Count(report.repeated_bytes) + " bytes: " + result.limit->reason]
        .push_back(result.engine);
  }
  std::string html;
  for (const auto& [text, names] : engines) {
    html += "<p class=\"note\"><small>" + Escaped(text) + " (" + Escaped(Listed(names)) +
            ").</small></p>\n";
  }
  return html;
}

std::vector<Quantity> Quantities() {
  const auto duration = [](double us) { return Duration(us, true); };
  std::vector<Quantity> quantities;
  for (const OperationName& name : kOperations) {
    const auto value = [operation = name.operation](const Point& point) -> std::optional<double> {
      const auto& cost = point.costs[static_cast<size_t>(operation)];
      if (!cost) return std::nullopt;
      return cost->p50_us;
    };
    quantities.push_back({std::string(name.title), "Median: " + std::string(name.what) + ".", value,
                          duration, name.operation == Operation::kUpdate, true});
  }
  quantities.push_back({"Recovery after a crash",
                        "From the start after a kill to the first read, the log replayed.",
                        [](const Point& point) -> std::optional<double> {
                          if (!point.recovery) return std::nullopt;
                          return point.recovery->total_ms() * 1e3;
                        },
                        duration, false, true});
  quantities.push_back(
      {"Bytes per version, with more versions", "Everything that is stored, compacted.",
       [](const Point& point) -> std::optional<double> { return point.bytes_per_version(); },
       [](double bytes) { return Digits(bytes) + " B"; }, false, false});
  return quantities;
}

}  // namespace

std::string GrowthSections(const Report& report) {
  std::string html;
  for (const Quantity& quantity : Quantities()) html += Section(report, quantity);
  return html + Limits(report);
}

}  // namespace strata::bench
