// What rounds of a workload on queues gave, as figures a message.
#pragma once

#include <string>
#include <vector>

#include "bench/support/figure_lines.h"
#include "bench/support/measurement.h"

namespace strata::bench {

// What a figure of queues was measured on: a system, such as "strata", and what it did.
Parameters QueueParameters(const std::string& queue, const std::string& system = "strata");

// Its calls are messages from now on; its latencies stay those of calls.
Measurement InMessages(Measurement measured);

// The median of each figure. REQUIRES: calls are messages.
void WriteMessages(const std::string& queue, const std::vector<Measurement>& rounds,
                   FigureLines& lines);

}  // namespace strata::bench
