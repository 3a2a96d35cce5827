#include "bench/queue/message_rounds.h"

#include <algorithm>

#include "bench/support/rounds.h"

namespace strata::bench {

Parameters QueueParameters(const std::string& queue, const std::string& system) {
  return {{"system", system}, {"queue", queue}};
}

Measurement InMessages(Measurement measured) {
  measured.calls *= std::max(measured.documents_per_call, 1);
  measured.documents_per_call = 0;
  return measured;
}

void WriteMessages(const std::string& queue, const std::vector<Measurement>& rounds,
                   FigureLines& lines) {
  struct Quantity {
    const char* figure;
    Unit unit;
    double (*of)(const Measurement&);
  };
  constexpr Quantity kQuantities[] = {
      {"messages_per_second", Unit::kPerSecond,
       [](const auto& one) { return one.calls_per_second(); }},
      {"server_cpu", Unit::kMicroseconds, [](const auto& one) { return one.server_cpu_us(); }},
      {"client_cpu", Unit::kMicroseconds, [](const auto& one) { return one.client_cpu_us(); }},
      {"latency_p50", Unit::kMicroseconds, [](const auto& one) { return one.latency_us(0.5); }},
      {"latency_p99", Unit::kMicroseconds, [](const auto& one) { return one.latency_us(0.99); }}};
  for (const Quantity& quantity : kQuantities) {
    std::vector<double> values;
    for (const Measurement& round : rounds) values.push_back(quantity.of(round));
    // Where others are in flight besides, it is not known whose it is.
    if (std::all_of(values.begin(), values.end(), [](double value) { return value == 0; }))
      continue;
    WriteRounds(quantity.figure, QueueParameters(queue), values, quantity.unit, lines);
  }
}

}  // namespace strata::bench
