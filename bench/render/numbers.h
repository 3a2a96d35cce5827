// Numbers as people read them.
#pragma once

#include <string>

#include "bench/support/figure_lines.h"

namespace strata::bench {

// With commas between thousands: "12,345.6".
std::string Number(double value, int decimals);

// "3.1", "215", "12,500": three digits that matter.
std::string Digits(double value);

// "3.1 us", "12.5 ms"; "512 B", "1.2 KiB"; "12,500"; "0.89".
std::string WithUnit(double value, Unit unit);

// "4.00 ms" is "4 ms" beside an axis.
std::string WithoutZeros(std::string text);

}  // namespace strata::bench
