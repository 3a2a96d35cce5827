// The report for people: one page.
#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/growth/summary.h"
#include "bench/growth/writers.h"
#include "bench/support/host.h"
#include "bench/support/html.h"
#include "bench/support/html_style.h"
#include "bench/support/svg.h"
#include "bench/support/table.h"

namespace strata::bench {
namespace {

struct Quantity {
  std::string title;
  double (*value)(const Measurement&);
  std::string (*text)(double);
};

const Quantity kCpu{"server CPU per call",
                    [](const Measurement& measured) { return measured.server_cpu_us(); },
                    [](double us) { return Duration(us, true); }};
const Quantity kRate{"calls per second",
                     [](const Measurement& measured) { return measured.calls_per_second(); },
                     [](double rate) { return Number(rate, 0); }};
const Quantity kSlowest{"99th percentile",
                        [](const Measurement& measured) { return measured.latency_ms(0.99); },
                        [](double ms) { return Duration(ms * 1e3, true); }};
const Quantity kMiddle{"median",
                       [](const Measurement& measured) { return measured.latency_ms(0.5); },
                       [](double ms) { return Duration(ms * 1e3, true); }};

// What is said of a plot whose axes start anywhere: nothing moves as much as it may look.
void SetScale(LinePlot& plot) {
  double least = plot.lines.front().points.front().second;
  double most = least;
  for (const Line& line : plot.lines) {
    for (const auto& [x, y] : line.points) {
      least = std::min(least, y);
      most = std::max(most, y);
    }
  }
  const double room = most / least < 3 ? 2 : 1.3;
  plot.y_min = least / room;
  plot.y_max = most * room;
}

std::string Figure(const std::string& title, LinePlot plot, const Quantity& quantity,
                   const std::string& caption) {
  SetScale(plot);
  plot.title = title;
  plot.y_text = quantity.text;
  plot.tick_text = [text = quantity.text](double value) { return WithoutZeros(text(value)); };
  return "<figure><h3>" + Escaped(title) + "</h3>" + ToSvg(plot) + "<figcaption><small>" +
         Escaped(caption) + "</small></figcaption></figure>\n";
}

std::string Figure(const BarPlot& plot, const std::string& caption) {
  return "<figure><h3>" + Escaped(plot.title) + "</h3>" + ToSvg(plot) + "<figcaption><small>" +
         Escaped(caption) + "</small></figcaption></figure>\n";
}

double Mib(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// "from 14.2 us to 22.0 us".
std::string FromTo(const Measurement& first, const Measurement& last) {
  return "from " + Duration(first.server_cpu_us(), true) + " to " +
         Duration(last.server_cpu_us(), true);
}

class Page {
 public:
  explicit Page(const Figures& figures) : figures_(figures) {}

  std::string Write() {
    html_ =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>Strata: how the server grows</title>\n<style>" +
        std::string(kHtmlStyle) + "</style></head><body><main>\n<h1>How the server grows</h1>\n" +
        "<p>The real server process under load over loopback, client and server on one machine; "
        "every answer checked" +
        std::string(figures_.wrong.empty() ? "" : ", and some were wrong") + ".</p>\n<p><small>" +
        Today() + " &middot; " + Escaped(ProcessorName()) + " &middot; the whole took " +
        Digits(figures_.seconds) + " s</small></p>\n";
    for (const std::string& wrong : figures_.wrong) {
      html_ += "<p class=\"missed\">" + Escaped(wrong) + "</p>\n";
    }
    WriteDocuments();
    WriteVersions();
    WriteIdle();
    WriteBursts();
    WriteStarts();
    WriteGoals();
    WriteDetails();
    return html_ + "</main></body></html>\n";
  }

 private:
  void WriteDocuments() {
    if (figures_.documents.empty()) return;
    const DocumentsPoint& first = figures_.documents.front();
    const DocumentsPoint& last = figures_.documents.back();
    const auto course = [&](Operation operation) {
      return FromTo(first.costs.of(operation), last.costs.of(operation));
    };
    html_ += Heading("With the number of documents",
                     "Between " + Count(first.documents) + " and " + Count(last.documents) +
                         " documents, the server's CPU goes " + course(Operation::kGet) +
                         " for a Get, " + course(Operation::kUpdate) + " for an Update, and " +
                         course(Operation::kHistory) + " for a page of ten versions.");
    html_ += "<div class=\"pair\">\n";
    for (const Quantity* quantity : {&kCpu, &kRate, &kMiddle, &kSlowest}) {
      html_ += Figure(quantity->title, DocumentsPlot(*quantity), *quantity,
                      "Strategy deltas, documents of 300 B of BSON, 64 calls in flight.");
    }
    html_ += "</div>\n";
  }

  LinePlot DocumentsPlot(const Quantity& quantity) const {
    LinePlot plot;
    plot.x_title = "documents";
    for (size_t i = 0; i < kOperationNames.size(); ++i) {
      plot.lines.push_back({kOperationNames[i], static_cast<int>(i), {}});
    }
    plot.lines.back().name = "ten versions";
    for (const DocumentsPoint& point : figures_.documents) {
      const auto x = static_cast<double>(point.documents);
      plot.x_ticks.push_back(x);
      for (size_t i = 0; i < kOperationNames.size(); ++i) {
        plot.lines[i].points.emplace_back(x, quantity.value(point.costs.operations[i]));
      }
    }
    return plot;
  }

  void WriteVersions() {
    if (figures_.versions.empty()) return;
    html_ += Heading("With the number of versions",
                     "Only embedded history, which keeps all versions in one record, is to cost "
                     "more with each of them.");
    html_ += "<div class=\"pair\">\n";
    for (size_t i = 0; i < kOperationNames.size(); ++i) {
      const std::string caption = i == static_cast<size_t>(Operation::kUpdate)
                                      ? "4 calls in flight, no two on one document."
                                      : "64 calls in flight, on documents of as many versions.";
      for (const Quantity* quantity : {&kCpu, &kSlowest}) {
        html_ += Figure(std::string(kOperationNames[i]) + ": " + quantity->title,
                        VersionsPlot(i, *quantity), *quantity, caption);
      }
    }
    html_ += "</div>\n";
    for (const StrategyEnd& end : figures_.ends) {
      html_ +=
          "<p class=\"note\"><small>" + Escaped(end.strategy + " " + end.why) + ".</small></p>\n";
    }
  }

  LinePlot VersionsPlot(size_t operation, const Quantity& quantity) const {
    LinePlot plot;
    plot.x_title = "versions of each document";
    plot.x_ticks = {1, 100, 10'000};
    for (const VersionsPoint& point : figures_.versions) {
      const bool is_new = plot.lines.empty() || plot.lines.back().name != point.strategy;
      if (is_new) plot.lines.push_back({point.strategy, static_cast<int>(plot.lines.size()), {}});
      plot.lines.back().points.emplace_back(static_cast<double>(point.versions),
                                            quantity.value(point.costs.operations[operation]));
    }
    return plot;
  }

  void WriteIdle() {
    if (figures_.idle.empty()) return;
    const IdleResult& first = figures_.idle.front();
    html_ += Heading("Idle connections and streams",
                     Count(first.open) + " " + first.what + " on which nothing happens take " +
                         Mebibytes(first.with.resident_bytes - first.before.resident_bytes) +
                         " of the server's memory, and Get beside them is answered " +
                         Number(first.get_beside.calls_per_second(), 0) + " times a second (" +
                         Number(first.get_before.calls_per_second(), 0) + " without).");
    BarPlot plot;
    plot.title = "Server memory for each one, KiB";
    for (const IdleResult& idle : figures_.idle) {
      plot.bars.push_back({ShortName(idle.what), {idle.kib_each()}, Digits(idle.kib_each())});
    }
    plot.bars.push_back({"goal per stream", {32}, "32", true});
    html_ += "<div class=\"pair\">\n" +
             Figure(plot, "Resident bytes with them less those before, by their number.") +
             "</div>\n";
    html_ += TableHead({"idle", "open", "memory before", "with them", "after", "open files",
                        "Get before", "Get beside"});
    for (const IdleResult& idle : figures_.idle) {
      html_ += "<tr><td>" + Escaped(idle.what) + "</td>" +
               Cell(Count(idle.open), Digits(idle.opening_seconds) + " s to open") +
               Cell(Mebibytes(idle.before.resident_bytes)) +
               Cell(Mebibytes(idle.with.resident_bytes)) +
               Cell(Mebibytes(idle.after.resident_bytes)) +
               Cell(Count(idle.with.open_files), Count(idle.before.open_files) + " before, " +
                                                     Count(idle.after.open_files) + " after") +
               RateCell(idle.get_before) + RateCell(idle.get_beside) + "</tr>\n";
    }
    html_ += kTableEnd;
  }

  static std::string ShortName(const std::string& what) {
    const size_t open = what.find('(');
    if (open == std::string::npos) return what;
    return what.substr(open + 1, what.size() - open - 2);
  }

  static std::string RateCell(const Measurement& measured) {
    return Cell(Number(measured.calls_per_second(), 0) + "/s",
                "p99 " + Duration(measured.latency_ms(0.99) * 1e3, true));
  }

  void WriteBursts() {
    if (figures_.bursts.empty()) return;
    html_ += Heading(
        "A burst of large updates",
        "What does not fit is refused with RESOURCE_EXHAUSTED and writes nothing; the "
        "server goes on. Calls that gRPC cuts off, because what is on its way in "
        "passes its quota, end with the same code without a reason, and may have "
        "taken effect. The server's memory follows what may be in flight, which bounds what "
        "has arrived whole and, apart from it, what is still arriving.");
    BarPlot plot;
    plot.title = "Server memory at its peak, MiB";
    plot.parts = {"before", "more at the peak"};
    for (const BurstResult& burst : figures_.bursts) {
      plot.bars.push_back({BarName(burst),
                           {Mib(burst.resident_before), Mib(burst.growth())},
                           Number(Mib(burst.resident_peak), 0)});
    }
    const BurstResult& last = figures_.bursts.back();
    plot.bars.push_back(
        {"sent in all", {Mib(last.sent_bytes)}, Number(Mib(last.sent_bytes), 0), true});
    html_ += "<div class=\"pair\">\n" +
             Figure(plot, "By connections and --in-flight-mib-max; resident, seen every 20 ms.") +
             "</div>\n";
    html_ += TableHead({"burst", "accepted", "refused", "cut off", "other answers", "took",
                        "memory peak", "a second later", "Get behind"});
    for (const BurstResult& burst : figures_.bursts) {
      html_ += "<tr><td>" + Escaped(Describe(burst)) + "</td>" + Cell(Count(burst.accepted)) +
               Cell(Count(burst.refused)) + Cell(Count(burst.cut_off)) +
               Cell(Count(burst.others), burst.other) + Cell(Digits(burst.seconds) + " s") +
               Cell(Mebibytes(burst.resident_peak)) + Cell(Mebibytes(burst.resident_after)) +
               Cell(Duration(burst.get_ms * 1e3, true)) + "</tr>\n";
    }
    html_ += kTableEnd;
  }

  static std::string BarName(const BurstResult& burst) {
    if (burst.stalled) return "unfinished, " + std::to_string(burst.connections) + " conn.";
    if (burst.at_once == 1) return Count(burst.calls) + " one by one";
    return std::to_string(burst.connections) + " conn., " +
           std::to_string(burst.in_flight_mib_max) + " MiB";
  }

  void WriteStarts() {
    if (figures_.starts.empty()) return;
    const StartResult& first = figures_.starts.front();
    html_ += Heading("At start", "On " + first.what + " the server serves " +
                                     Duration(first.serving_ms * 1e3, true) + " after exec, with " +
                                     Mebibytes(first.resident_bytes) + " of resident memory.");
    html_ +=
        TableHead({"start on", "directory", "serving after, median of 5", "longest", "resident"});
    for (const StartResult& start : figures_.starts) {
      html_ += "<tr><td>" + Escaped(start.what) + "</td>" + Cell(Mebibytes(start.directory_bytes)) +
               Cell(Duration(start.serving_ms * 1e3, true)) +
               Cell(Duration(start.serving_ms_max * 1e3, true)) +
               Cell(Mebibytes(start.resident_bytes)) + "</tr>\n";
    }
    html_ += kTableEnd;
  }

  void WriteGoals() {
    const std::vector<Goal> goals = GrowthGoals(figures_);
    const auto met = std::count_if(goals.begin(), goals.end(), [](const Goal& g) { return g.met; });
    html_ += Heading("Goals",
                     Count(met) + " of " + Count(static_cast<int64_t>(goals.size())) + " are met.");
    html_ += TableHead({"goal", "measured", ""});
    for (const Goal& goal : goals) {
      html_ += "<tr>" + WordsCell(goal.goal) + Cell(goal.measured) +
               (goal.met ? "<td class=\"met\">met</td>" : "<td class=\"missed\">missed</td>") +
               "</tr>\n";
    }
    html_ += kTableEnd;
  }

  void WriteDetails() {
    html_ += "<details><summary>All costs of calls</summary>\n";
    html_ += TableHead({"what", "call", "in flight", "calls/s", "server CPU", "median", "99 %"});
    for (const DocumentsPoint& point : figures_.documents) {
      WriteCosts(Count(point.documents) + " documents", point.costs);
    }
    for (const VersionsPoint& point : figures_.versions) {
      WriteCosts(point.strategy + ", " + Count(point.versions) +
                     (point.versions == 1 ? " version" : " versions"),
                 point.costs);
    }
    html_ += kTableEnd + std::string("</details>\n");
  }

  void WriteCosts(const std::string& what, const Costs& costs) {
    for (size_t i = 0; i < kOperationNames.size(); ++i) {
      const Measurement& measured = costs.operations[i];
      html_ += "<tr><td>" + Escaped(what) + "</td>" + Cell(kOperationNames[i]) +
               Cell(Count(measured.in_flight)) + Cell(kRate.text(kRate.value(measured))) +
               Cell(kCpu.text(kCpu.value(measured))) + Cell(kMiddle.text(kMiddle.value(measured))) +
               Cell(kSlowest.text(kSlowest.value(measured))) + "</tr>\n";
    }
  }

  const Figures& figures_;
  std::string html_;
};

}  // namespace

std::string HtmlReport(const Figures& figures) { return Page(figures).Write(); }

}  // namespace strata::bench
