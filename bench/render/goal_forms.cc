#include "bench/render/goal_forms.h"

#include <utility>

namespace strata::bench {

Goal AtLeast(std::string what, double limit, Measured figure, std::vector<Measured> by) {
  return {std::move(what), Bound::kAtLeast, limit, Unit::kRatio, std::move(figure), std::move(by)};
}

Goal AtLeast(std::string what, double limit, Unit unit, Measured figure) {
  return {std::move(what), Bound::kAtLeast, limit, unit, std::move(figure), {}};
}

Goal ToLookAt(std::string what, Measured figure, std::vector<Measured> by) {
  return {std::move(what), Bound::kNone, 0, Unit::kRatio, std::move(figure), std::move(by)};
}

Goal AtMost(std::string what, double limit, Measured figure, std::vector<Measured> by) {
  return {std::move(what), Bound::kAtMost, limit, Unit::kRatio, std::move(figure), std::move(by)};
}

Goal AtMost(std::string what, double limit, Unit unit, Measured figure) {
  return {std::move(what), Bound::kAtMost, limit, unit, std::move(figure), {}};
}

Measured RatioOf(const std::string& figure, const std::string& of, const std::string& to) {
  return {figure, {{"of", of}, {"to", to}}};
}

}  // namespace strata::bench
