// How goals are written down: forms of the table's rows.
#pragma once

#include <string>
#include <vector>

#include "bench/render/goals.h"

namespace strata::bench {

inline constexpr double kMillisecond = 1e3;
inline constexpr double kKibibyte = 1024;
inline constexpr double kMebibyte = 1024 * kKibibyte;

// The figure, divided by the sum of others if there are any.
Goal AtLeast(std::string what, double limit, Measured figure, std::vector<Measured> by = {});
Goal AtLeast(std::string what, double limit, Unit unit, Measured figure);
Goal AtMost(std::string what, double limit, Measured figure, std::vector<Measured> by);
Goal AtMost(std::string what, double limit, Unit unit, Measured figure);
Goal ToLookAt(std::string what, Measured figure, std::vector<Measured> by);

// Of rounds in turns.
Measured RatioOf(const std::string& figure, const std::string& of, const std::string& to);

}  // namespace strata::bench
