// Decimal128 numbers, exactly: up to 34 digits and an exponent, never rounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace strata::document {

// (-1)^negative * coefficient * 10^exponent, as IEEE 754-2008 has it: 1.50 is 150 * 10^-2 and keeps
// its zero.
struct Decimal {
  __extension__ using Coefficient = unsigned __int128;

  bool negative = false;
  Coefficient coefficient = 0;  // below 10^34
  int exponent = 0;             // from -6176 to 6111

  friend bool operator==(const Decimal&, const Decimal&) = default;
};

// Whether 16 BSON bytes are neither NaN nor infinite.
bool IsFiniteDecimal(std::string_view bytes);

// Nothing for NaN, infinity, and bytes that are not as MongoDB's drivers write a number: one that
// claims more than 34 digits, which the standard reads as zero.
std::optional<Decimal> LoadDecimal(std::string_view bytes);
std::string DecimalBytes(const Decimal& decimal);

// Digits with an optional sign, point and exponent, of any length. Nothing for NaN, infinity and
// what 34 digits and an exponent do not hold exactly; zeros in front and at the end are no reason,
// and a zero takes the nearest exponent that there is.
std::optional<Decimal> ParseDecimal(std::string_view text);
std::string DecimalText(std::string_view bytes);

// The decimal of exactly the same value, if there is one: all whole numbers have one, and a double
// has one if at most 34 digits write it out (0.5, but not 0.1, which as a double has 55).
Decimal DecimalOfInteger(int64_t number);
std::optional<Decimal> DecimalOfDouble(double number);

// a + b, with the exponent that the standard prefers (1.50 + 1 = 2.50). Nothing if 34 digits do not
// hold the sum exactly.
std::optional<Decimal> Sum(const Decimal& a, const Decimal& b);

}  // namespace strata::document
