#include "bench/strategies/html_parts.h"

namespace strata::bench {

std::vector<const Result*> On(const Report& report, std::string_view engine) {
  std::vector<const Result*> results;
  for (const Result& result : report.results) {
    if (result.engine == engine) results.push_back(&result);
  }
  return results;
}

}  // namespace strata::bench
