// Decimal128 numbers, exactly.
#include "schemas/document/extended_json/decimal.h"

#include <bson/bson.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "schemas/document/bson_view.h"

namespace strata::document {
namespace {

using Coefficient = Decimal::Coefficient;

constexpr int kExponentMin = -6176;
constexpr int kExponentMax = 6111;
constexpr int kBias = 6176;
constexpr int kExponentShift = 49;  // in the upper 64 bits, above the coefficient's upper bits

constexpr Coefficient TenTo(int power) { return power == 0 ? 1 : 10 * TenTo(power - 1); }
constexpr Coefficient kCoefficientEnd = TenTo(34);

// The decimal of this value, its coefficient and exponent brought into their ranges.
std::optional<Decimal> Fit(bool negative, Coefficient coefficient, int64_t exponent) {
  for (; coefficient >= kCoefficientEnd; ++exponent) {
    if (coefficient % 10 != 0) return std::nullopt;
    coefficient /= 10;
  }
  if (coefficient == 0) {
    exponent = std::clamp<int64_t>(exponent, kExponentMin, kExponentMax);
  }
  for (; exponent > kExponentMax; --exponent) {
    coefficient *= 10;
    if (coefficient >= kCoefficientEnd) return std::nullopt;
  }
  for (; exponent < kExponentMin; ++exponent) {
    if (coefficient % 10 != 0) return std::nullopt;
    coefficient /= 10;
  }
  return Decimal{negative, coefficient, static_cast<int>(exponent)};
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes a sign off the front: whether it is "-".
bool TakeMinus(std::string_view& text) {
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return false;
  const bool minus = text[0] == '-';
  text.remove_prefix(1);
  return minus;
}

// The whole text as an exponent. What is far beyond any exponent is cut short: no number has enough
// digits to make up for it.
std::optional<int64_t> ParseExponent(std::string_view text) {
  constexpr int64_t kFar = int64_t{1} << 40;
  const bool negative = TakeMinus(text);
  if (text.empty()) return std::nullopt;
  int64_t exponent = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return std::nullopt;
    exponent = std::min(exponent * 10 + (c - '0'), kFar);
  }
  return negative ? -exponent : exponent;
}

// With the exponent as near to `exponent` as zeros at the end allow.
void Approach(int exponent, Decimal& decimal) {
  while (decimal.exponent > exponent && decimal.coefficient * 10 < kCoefficientEnd) {
    decimal.coefficient *= 10;
    --decimal.exponent;
  }
}

// Brings the two to the same exponent, the sum of whose coefficients then says whether the sum
// fits. False: it does not.
bool Align(Decimal& high, Decimal& low) {
  if (low.coefficient == 0) low.exponent = high.exponent;
  if (high.coefficient == 0) high.exponent = low.exponent;
  for (; low.exponent < high.exponent && low.coefficient % 10 == 0; ++low.exponent) {
    low.coefficient /= 10;
  }
  // From here on the last digit of `low` is also the sum's, and is not zero.
  for (; high.exponent > low.exponent; --high.exponent) {
    high.coefficient *= 10;
    if (high.coefficient >= 2 * kCoefficientEnd) return false;
  }
  return true;
}

}  // namespace

bool IsFiniteDecimal(std::string_view bytes) {
  return (LoadNumber<uint64_t>(bytes.data() + 8) >> 59 & 0xF) != 0xF;
}

std::optional<Decimal> LoadDecimal(std::string_view bytes) {
  const auto low = LoadNumber<uint64_t>(bytes.data());
  const auto high = LoadNumber<uint64_t>(bytes.data() + 8);
  // Set, these two bits stand for NaN, infinity or a coefficient past 34 digits.
  if ((high >> 61 & 3) == 3) return std::nullopt;
  Decimal decimal;
  decimal.negative = (high >> 63) != 0;
  decimal.coefficient = Coefficient{high & ((uint64_t{1} << kExponentShift) - 1)} << 64 | low;
  decimal.exponent = static_cast<int>(high >> kExponentShift & 0x3FFF) - kBias;
  if (decimal.coefficient >= kCoefficientEnd) return std::nullopt;
  return decimal;
}

std::string DecimalBytes(const Decimal& decimal) {
  const auto exponent = static_cast<uint64_t>(decimal.exponent + kBias);
  std::string bytes;
  AppendNumber(static_cast<uint64_t>(decimal.coefficient), bytes);
  AppendNumber(uint64_t{decimal.negative} << 63 | exponent << kExponentShift |
                   static_cast<uint64_t>(decimal.coefficient >> 64),
               bytes);
  return bytes;
}

std::optional<Decimal> ParseDecimal(std::string_view text) {
  const bool negative = TakeMinus(text);
  Coefficient coefficient = 0;
  int64_t exponent = 0;
  bool digits = false;
  bool point = false;
  for (; !text.empty() && text[0] != 'e' && text[0] != 'E'; text.remove_prefix(1)) {
    if (text[0] == '.' && !point) {
      point = true;
      continue;
    }
    if (!IsDigit(text[0])) return std::nullopt;
    digits = true;
    if (point) --exponent;
    if (coefficient < kCoefficientEnd) {
      coefficient = coefficient * 10 + static_cast<unsigned>(text[0] - '0');
    } else {
      if (text[0] != '0') return std::nullopt;
      ++exponent;
    }
  }
  if (!digits) return std::nullopt;
  if (!text.empty()) {
    const std::optional<int64_t> written = ParseExponent(text.substr(1));
    if (!written) return std::nullopt;
    exponent += *written;
  }
  return Fit(negative, coefficient, exponent);
}

std::string DecimalText(std::string_view bytes) {
  bson_decimal128_t decimal;
  decimal.low = LoadNumber<uint64_t>(bytes.data());
  decimal.high = LoadNumber<uint64_t>(bytes.data() + 8);
  char text[BSON_DECIMAL128_STRING];
  bson_decimal128_to_string(&decimal, text);
  return text;
}

Decimal DecimalOfInteger(int64_t number) {
  const auto bits = static_cast<uint64_t>(number);
  return {number < 0, number < 0 ? 0 - bits : bits, 0};
}

std::optional<Decimal> DecimalOfDouble(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  int twos = 0;
  const double fraction = std::frexp(std::abs(number), &twos);
  Coefficient coefficient = static_cast<uint64_t>(std::ldexp(fraction, 53));
  if (coefficient == 0) return Decimal{std::signbit(number), 0, 0};
  for (twos -= 53; coefficient % 2 == 0; ++twos) coefficient /= 2;
  // 2^-1 is 5 * 10^-1. Upwards, each 2 finds a 5 to make a 10, or doubles what is there.
  int exponent = 0;
  for (; twos != 0 && coefficient < kCoefficientEnd; twos += twos < 0 ? 1 : -1) {
    if (twos < 0) {
      coefficient *= 5;
      --exponent;
    } else if (coefficient % 5 == 0) {
      coefficient /= 5;
      ++exponent;
    } else {
      coefficient *= 2;
    }
  }
  if (twos != 0) return std::nullopt;
  std::optional<Decimal> decimal = Fit(std::signbit(number), coefficient, exponent);
  if (decimal) Approach(0, *decimal);
  return decimal;
}

std::optional<Decimal> Sum(const Decimal& a, const Decimal& b) {
  Decimal high = a;
  Decimal low = b;
  if (high.exponent < low.exponent) std::swap(high, low);
  const int preferred = low.exponent;
  if (!Align(high, low)) return std::nullopt;
  const bool same_sign = high.negative == low.negative;
  if (high.coefficient < low.coefficient) std::swap(high, low);
  const Coefficient coefficient =
      same_sign ? high.coefficient + low.coefficient : high.coefficient - low.coefficient;
  // What cancels out is a positive zero, as the standard has it.
  const bool negative = coefficient == 0 ? a.negative && b.negative : high.negative;
  std::optional<Decimal> sum = Fit(negative, coefficient, low.exponent);
  if (sum) Approach(preferred, *sum);
  return sum;
}

}  // namespace strata::document
