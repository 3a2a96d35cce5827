// The measurements, each on servers of its own, which it stops again. They write what they measure
// into `lines`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "bench/support/figure_lines.h"

namespace strata::bench {

struct HttpLoadSettings {
  std::string folder;                        // for data and logs
  std::chrono::milliseconds duration{1000};  // of each round
  int rounds = 9;
  int64_t documents = 10'000;
};

// Get of JSON by HTTP/1.1 and by gRPC, in turns on one server.
void MeasureGets(const HttpLoadSettings& settings, FigureLines& lines);

// W1 to W3 by gRPC on a server whose port for people is open and idle, in turns with a server that
// has none.
void MeasureIdlePort(const HttpLoadSettings& settings, FigureLines& lines);

}  // namespace strata::bench
