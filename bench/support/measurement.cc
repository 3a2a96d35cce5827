#include "bench/support/measurement.h"

#include <algorithm>
#include <optional>

namespace strata::bench {
namespace {

double PerCall(std::chrono::nanoseconds time, int64_t calls) {
  return calls == 0 ? 0 : static_cast<double>(time.count()) / 1e3 / static_cast<double>(calls);
}

struct Quantity {
  const char* figure;
  Unit unit;
  double (*of)(const Measurement&);
  bool always = true;  // false: 0 means that it was not measured
};

constexpr Quantity kQuantities[] = {
    {"calls", Unit::kCount, [](const auto& one) { return static_cast<double>(one.calls); }},
    {"failures", Unit::kCount, [](const auto& one) { return static_cast<double>(one.failures); }},
    {"calls_per_second", Unit::kPerSecond, [](const auto& one) { return one.calls_per_second(); }},
    {"server_cpu", Unit::kMicroseconds, [](const auto& one) { return one.server_cpu_us(); }, false},
    {"client_cpu", Unit::kMicroseconds, [](const auto& one) { return one.client_cpu_us(); }, false},
    {"latency_p50", Unit::kMicroseconds, [](const auto& one) { return one.latency_us(0.5); }},
    {"latency_p99", Unit::kMicroseconds, [](const auto& one) { return one.latency_us(0.99); }},
    {"latency_p999", Unit::kMicroseconds, [](const auto& one) { return one.latency_us(0.999); }},
    {"attempts_per_call", Unit::kRatio, [](const auto& one) { return one.attempts_per_call(); },
     false},
    {"documents_per_second", Unit::kPerSecond,
     [](const auto& one) { return one.calls_per_second() * one.documents_per_call; }, false},
    {"units_per_commit", Unit::kRatio, [](const auto& one) { return one.units_per_commit; }, false},
    {"documents_per_commit", Unit::kRatio, [](const auto& one) { return one.documents_per_commit; },
     false},
    {"share_of_empty_calls", Unit::kRatio,
     [](const auto& one) { return one.share_of_empty_calls(); }, false},
    {"empty_calls_per_second", Unit::kPerSecond,
     [](const auto& one) { return one.empty_calls_per_second; }, false},
    {"empty_server_cpu", Unit::kMicroseconds,
     [](const auto& one) { return one.empty_server_cpu_us; }, false},
    {"server_cpu_above_empty", Unit::kMicroseconds,
     [](const auto& one) { return one.server_cpu_above_empty_us(); }, false},
    {"empty_latency_p50", Unit::kMicroseconds,
     [](const auto& one) { return one.empty_latency_p50_us; }, false},
};

}  // namespace

double Measurement::calls_per_second() const {
  return duration.count() == 0
             ? 0
             : static_cast<double>(calls) * 1e9 / static_cast<double>(duration.count());
}

double Measurement::server_cpu_us() const { return PerCall(server_cpu, calls); }
double Measurement::client_cpu_us() const { return PerCall(client_cpu, calls); }

double Measurement::attempts_per_call() const {
  return calls == 0 ? 0 : static_cast<double>(attempts) / static_cast<double>(calls);
}

double Measurement::latency_us(double share) const {
  return static_cast<double>(latencies.Quantile(share).count()) / 1e3;
}

double Measurement::share_of_empty_calls() const {
  return empty_calls_per_second == 0 ? 0 : calls_per_second() / empty_calls_per_second;
}

double Measurement::server_cpu_above_empty_us() const {
  return empty_server_cpu_us == 0 ? 0 : server_cpu_us() - empty_server_cpu_us;
}

Parameters ParametersOf(const Measurement& measurement) {
  return {{"system", measurement.system},
          {"workload", measurement.workload},
          {"in_flight", measurement.in_flight}};
}

void Write(const Parameters& parameters, const std::vector<Measurement>& rounds, size_t chosen,
           FigureLines& lines) {
  for (const Quantity& quantity : kQuantities) {
    std::vector<double> values;
    for (const Measurement& round : rounds) values.push_back(quantity.of(round));
    if (!quantity.always && values[chosen] == 0) continue;
    std::optional<Spread> spread;
    if (rounds.size() > 1) {
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      spread = {*low, *high, static_cast<int>(rounds.size())};
    }
    lines.Number(quantity.figure, parameters, values[chosen], quantity.unit, spread);
  }
}

void Write(const Parameters& parameters, const Measurement& measurement, FigureLines& lines) {
  Write(parameters, {measurement}, 0, lines);
}

}  // namespace strata::bench
