// The lines that strata_load and strata_peers appended to one file, found by what they measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace strata::bench {

// As MeasurementJson writes it.
struct Result {
  double calls_per_second = 0;
  double server_cpu_us = 0;
  double attempts_per_call = 0;
  double p50_ms = 0;
  double p99_ms = 0;
  double empty_calls_per_second = 0;
  double empty_server_cpu_us = 0;
  double empty_p50_ms = 0;
};

class Results {
 public:
  // Later lines replace earlier ones of the same measurement. Nothing if the file cannot be read or
  // holds anything else.
  static std::optional<Results> Read(const std::string& path);

  // Null: it was not measured.
  const Result* Find(const std::string& system, const std::string& workload, int in_flight) const;

 private:
  std::map<std::tuple<std::string, std::string, int>, Result> results_;
};

}  // namespace strata::bench
