#include "bench/support/measurement.h"

#include <bson/bson.h>

#include <cstdio>

#include "bench/support/table.h"

namespace strata::bench {
namespace {

double PerCall(std::chrono::nanoseconds time, int64_t calls) {
  return calls == 0 ? 0 : static_cast<double>(time.count()) / 1e3 / static_cast<double>(calls);
}

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

double Measurement::latency_ms(double share) const {
  return static_cast<double>(latencies.Quantile(share).count()) / 1e6;
}

std::string MeasurementTable(const std::vector<Measurement>& measurements) {
  Table table({"system", "workload", "in flight", "calls/s", "of empty", "server us/call",
               "empty us/call", "client us/call", "p50 ms", "p99 ms", "attempts", "failures"});
  for (const Measurement& one : measurements) {
    const double of_empty =
        one.empty_calls_per_second == 0 ? 0 : one.calls_per_second() / one.empty_calls_per_second;
    table.Add(
        {one.system, one.workload, Number(one.in_flight, 0), Number(one.calls_per_second(), 0),
         of_empty == 0 ? "" : Number(of_empty, 2), Number(one.server_cpu_us(), 1),
         of_empty == 0 ? "" : Number(one.empty_server_cpu_us, 1), Number(one.client_cpu_us(), 1),
         Number(one.latency_ms(0.5), 3), Number(one.latency_ms(0.99), 3),
         one.attempts == 0 ? "" : Number(one.attempts_per_call(), 2),
         Number(static_cast<double>(one.failures), 0)});
  }
  return table.Text();
}

std::string MeasurementJson(const Measurement& one) {
  bson_t object = BSON_INITIALIZER;
  BSON_APPEND_UTF8(&object, "system", one.system.c_str());
  BSON_APPEND_UTF8(&object, "workload", one.workload.c_str());
  BSON_APPEND_INT32(&object, "in_flight", one.in_flight);
  BSON_APPEND_INT64(&object, "calls", one.calls);
  BSON_APPEND_INT64(&object, "failures", one.failures);
  if (one.attempts > 0) BSON_APPEND_DOUBLE(&object, "attempts_per_call", one.attempts_per_call());
  BSON_APPEND_DOUBLE(&object, "calls_per_second", one.calls_per_second());
  BSON_APPEND_DOUBLE(&object, "server_cpu_us", one.server_cpu_us());
  BSON_APPEND_DOUBLE(&object, "client_cpu_us", one.client_cpu_us());
  BSON_APPEND_DOUBLE(&object, "p50_ms", one.latency_ms(0.5));
  BSON_APPEND_DOUBLE(&object, "p99_ms", one.latency_ms(0.99));
  BSON_APPEND_DOUBLE(&object, "p999_ms", one.latency_ms(0.999));
  if (one.empty_calls_per_second > 0) {
    BSON_APPEND_DOUBLE(&object, "empty_calls_per_second", one.empty_calls_per_second);
    BSON_APPEND_DOUBLE(&object, "empty_server_cpu_us", one.empty_server_cpu_us);
    BSON_APPEND_DOUBLE(&object, "empty_p50_ms", one.empty_p50_ms);
  }
  char* const text = bson_as_relaxed_extended_json(&object, nullptr);
  std::string line = text;
  bson_free(text);
  bson_destroy(&object);
  return line;
}

}  // namespace strata::bench
