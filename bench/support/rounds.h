// Figures of several rounds. The round with the median counts; the least and the greatest stand
// beside it.
#pragma once

#include <string>
#include <vector>

#include "bench/support/figure_lines.h"
#include "bench/support/measurement.h"

namespace strata::bench {

// REQUIRES: there is a value, as in all below.
void WriteRounds(const std::string& figure, const Parameters& parameters,
                 const std::vector<double>& values, Unit unit, FigureLines& lines);

// All figures of calls, as `workload`; the round with the median of calls/s counts.
void WriteCalls(const std::string& workload, std::vector<Measurement> rounds, FigureLines& lines);

// "calls_ratio" and "server_cpu_ratio": those of each round by those of the same round of another;
// "server_cpu_above" is their difference.
// "latency_p99_ratio" is of the calls of all rounds together: one round has too few that are slow.
void WriteRatios(const std::string& workload, const std::vector<Measurement>& rounds,
                 const std::string& to_workload, const std::vector<Measurement>& to_rounds,
                 FigureLines& lines);

}  // namespace strata::bench
