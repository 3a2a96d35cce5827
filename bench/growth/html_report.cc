#include "bench/growth/writers.h"
namespace strata::bench {
std::string HtmlReport(const Figures& /*figures*/) { return {}; }
}  // namespace strata::bench
