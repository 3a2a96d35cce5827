// The growth as a page with plots.
#include "bench/growth/writers.h"
namespace strata::bench {
std::string HtmlReport(const Figures& /*figures*/) { return {}; }
}  // namespace strata::bench
