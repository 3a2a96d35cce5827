#include "bench/support/rounds.h"

#include <algorithm>
#include <utility>

namespace strata::bench {
namespace {

double Ratio(double value, double to) { return to == 0 ? 0 : value / to; }

}  // namespace

void WriteRounds(const std::string& figure, const Parameters& parameters,
                 const std::vector<double>& values, Unit unit, FigureLines& lines) {
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const Spread spread = {sorted.front(), sorted.back(), static_cast<int>(sorted.size())};
  lines.Number(figure, parameters, sorted[sorted.size() / 2], unit, spread);
}

void WriteCalls(const std::string& workload, std::vector<Measurement> rounds, FigureLines& lines) {
  std::sort(rounds.begin(), rounds.end(), [](const Measurement& a, const Measurement& b) {
    return a.calls_per_second() < b.calls_per_second();
  });
  const size_t middle = rounds.size() / 2;
  rounds[middle].workload = workload;
  Write(ParametersOf(rounds[middle]), rounds, middle, lines);
}

void WriteRatios(const std::string& workload, const std::vector<Measurement>& rounds,
                 const std::string& to_workload, const std::vector<Measurement>& to_rounds,
                 FigureLines& lines) {
  std::vector<double> calls;
  std::vector<double> cpu;
  std::vector<double> cpu_above;
  Histogram latencies;
  Histogram to_latencies;
  for (size_t i = 0; i < rounds.size(); ++i) {
    calls.push_back(Ratio(rounds[i].calls_per_second(), to_rounds[i].calls_per_second()));
    cpu.push_back(Ratio(rounds[i].server_cpu_us(), to_rounds[i].server_cpu_us()));
    cpu_above.push_back(rounds[i].server_cpu_us() - to_rounds[i].server_cpu_us());
    latencies.Merge(rounds[i].latencies);
    to_latencies.Merge(to_rounds[i].latencies);
  }
  const Parameters parameters = {{"of", workload}, {"to", to_workload}};
  WriteRounds("calls_ratio", parameters, calls, Unit::kRatio, lines);
  // Where others are in flight besides, it is not known whose it is.
  if (rounds.front().server_cpu.count() > 0) {
    WriteRounds("server_cpu_ratio", parameters, cpu, Unit::kRatio, lines);
    WriteRounds("server_cpu_above", parameters, cpu_above, Unit::kMicroseconds, lines);
  }
  const auto p99 = [](const Histogram& all) {
    return static_cast<double>(all.Quantile(0.99).count());
  };
  lines.Number("latency_p99_ratio", parameters, Ratio(p99(latencies), p99(to_latencies)),
               Unit::kRatio);
}

}  // namespace strata::bench
