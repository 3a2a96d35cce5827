// What one workload gave: the same for Strata, for the empty call and for the peers, so that all
// are held against each other in one table.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/figure_lines.h"
#include "bench/support/histogram.h"

namespace strata::bench {

// The calls of one workload between the end of its warm-up and its end.
struct Measurement {
  std::string system;    // "strata deltas", "empty call", "etcd", "postgresql"
  std::string workload;  // "W1 update"
  int in_flight = 0;
  int64_t calls = 0;           // that were answered as they had to be
  int64_t failures = 0;        // that were not; a measurement with any is worth nothing
  int64_t attempts = 0;        // tries, lost ones included; 0: not counted
  int documents_per_call = 0;  // where that is more than one
  // T1 to T3: transactions that shared a commit, and their documents; 0: not counted.
  double units_per_commit = 0;
  double documents_per_commit = 0;
  std::chrono::nanoseconds duration{0};
  std::chrono::nanoseconds server_cpu{0};
  std::chrono::nanoseconds client_cpu{0};
  Histogram latencies;
  // The empty call measured right before, with as many in flight; 0: it was not.
  double empty_calls_per_second = 0;
  double empty_server_cpu_us = 0;
  double empty_latency_p50_us = 0;

  double calls_per_second() const;
  double server_cpu_us() const;  // a call
  double client_cpu_us() const;
  double attempts_per_call() const;
  double latency_us(double share) const;
  // 0: the empty call was not measured.
  double share_of_empty_calls() const;
  double server_cpu_above_empty_us() const;
};

// System, workload and calls in flight.
Parameters ParametersOf(const Measurement& measurement);

// A line for each figure: that of `rounds[chosen]`, between the least and the greatest of all
// rounds.
void Write(const Parameters& parameters, const std::vector<Measurement>& rounds, size_t chosen,
           FigureLines& lines);
void Write(const Parameters& parameters, const Measurement& measurement, FigureLines& lines);

}  // namespace strata::bench
