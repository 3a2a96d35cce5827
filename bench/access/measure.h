// What this program measures, each on servers of its own.
#pragma once

#include <string>

#include "bench/access/secured.h"
#include "bench/support/figure_lines.h"

namespace strata::bench {

struct AccessSettings {
  std::string folder;  // for data, logs and secrets
  int rounds = 5;      // of the cost
  double seconds = 2;  // each
  int calls = 10'000;  // denied, of each kind
};

// Get where nothing is asked, with a token and a policy, with TLS, and with client certificates and
// a policy: in turns, round after round.
void MeasureCost(const AccessSettings& settings, const Secrets& secrets, FigureLines& lines);

// Denied Gets of what is there and of what is not. Wrong: two answers differ in more than the name.
void MeasureDenials(const AccessSettings& settings, const Secrets& secrets, FigureLines& lines);

// A caller at ten times its quota, and another one beside it and alone; and whether RetryInfo says
// when a call is taken again.
void MeasureQuotas(const AccessSettings& settings, const Secrets& secrets, FigureLines& lines);

}  // namespace strata::bench
