// Numbers of all BSON types, compared by their exact value.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace strata::document {

// int32, int64, double or decimal128.
bool IsNumber(uint8_t type);

// Negative, zero or positive; nothing is rounded. NaN equals itself and comes before all others,
// -0.0 equals 0. REQUIRES: both are numbers.
int CompareNumbers(uint8_t type_a, std::string_view a, uint8_t type_b, std::string_view b);

// The number as an int64, if it is whole and fits (a decimal128 only as far as doubles are whole
// without gaps, up to 2^53). REQUIRES: a number.
std::optional<int64_t> WholeNumber(uint8_t type, std::string_view value);

}  // namespace strata::document
