// What one workload gave: the same for Strata, for the empty call and for the peers, so that all
// are held against each other in one table.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/histogram.h"

namespace strata::bench {

// The calls of one workload between the end of its warm-up and its end.
struct Measurement {
  std::string system;    // "strata deltas", "empty call", "etcd", "postgresql"
  std::string workload;  // "W1 update"
  int in_flight = 0;
  int64_t calls = 0;     // that were answered as they had to be
  int64_t failures = 0;  // that were not; a measurement with any is worth nothing
  int64_t attempts = 0;  // W2: tries, lost ones included; 0: not counted
  std::chrono::nanoseconds duration{0};
  std::chrono::nanoseconds server_cpu{0};
  std::chrono::nanoseconds client_cpu{0};
  Histogram latencies;
  // The empty call measured right before, with as many in flight; 0: it was not.
  double empty_calls_per_second = 0;
  double empty_server_cpu_us = 0;
  double empty_p50_ms = 0;

  double calls_per_second() const;
  double server_cpu_us() const;  // a call
  double client_cpu_us() const;
  double attempts_per_call() const;
  double latency_ms(double share) const;
};

// A line each: system, workload, in flight, calls/s, CPU, p50, p99.
std::string MeasurementTable(const std::vector<Measurement>& measurements);

// One JSON object a line, for programs; the members are named as above, with their units.
std::string MeasurementJson(const Measurement& measurement);

}  // namespace strata::bench
