// Decimal128 as text and back: sign, 14 bits of exponent and 113 bits of coefficient, as IEEE 754
// has them in the binary encoding.
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

#include "strata/client/value.h"

namespace strata::client {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kDigitsMax = 34;
constexpr int kExponentBias = 6176;
constexpr int kExponentMin = -6176;
constexpr int kExponentMax = 6111;
constexpr int kExponentShift = 49;
constexpr uint64_t kSign = uint64_t{1} << 63;
constexpr uint64_t kCoefficientMask = (uint64_t{1} << kExponentShift) - 1;

absl::Status NotADecimal(std::string_view text, const char* why) {
  return absl::InvalidArgumentError("'" + std::string(text) + "' is no decimal128: " + why);
}

// What a text says, before it is known whether 34 digits hold it.
struct Parts {
  bool negative = false;
  std::string digits;  // without zeros in front
  int64_t exponent = 0;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// False: the text is no number.
bool ReadParts(std::string_view text, Parts& parts) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    parts.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  bool point = false;
  bool any = false;
  while (!text.empty() && (IsDigit(text[0]) || (text[0] == '.' && !point))) {
    if (text[0] == '.') {
      point = true;
    } else {
      any = true;
      if (text[0] != '0' || !parts.digits.empty()) parts.digits += text[0];
      if (point) --parts.exponent;
    }
    text.remove_prefix(1);
  }
  if (!any) return false;
  if (text.empty()) return true;
  if (text[0] != 'e' && text[0] != 'E') return false;
  text.remove_prefix(1);
  if (text.size() > 1 && text[0] == '+' && IsDigit(text[1])) text.remove_prefix(1);
  int32_t exponent = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  if (error != std::errc() || rest != text.data() + text.size()) return false;
  parts.exponent += exponent;
  return true;
}

// Moves zeros between digits and exponent until both fit. False: they do not.
bool Fit(Parts& parts) {
  std::string& digits = parts.digits;
  if (digits.empty()) {
    parts.exponent = std::clamp<int64_t>(parts.exponent, kExponentMin, kExponentMax);
    return true;
  }
  while ((digits.size() > kDigitsMax || parts.exponent < kExponentMin) && digits.back() == '0' &&
         digits.size() > 1) {
    digits.pop_back();
    ++parts.exponent;
  }
  while (parts.exponent > kExponentMax && digits.size() < kDigitsMax) {
    digits += '0';
    --parts.exponent;
  }
  return digits.size() <= kDigitsMax && parts.exponent >= kExponentMin &&
         parts.exponent <= kExponentMax;
}

}  // namespace

absl::StatusOr<Decimal128> Decimal128::FromText(std::string_view text) {
  Parts parts;
  if (!ReadParts(text, parts)) return NotADecimal(text, "write 1.10 or -3E+5");
  if (!Fit(parts)) return NotADecimal(text, "34 digits do not hold it exactly");
  Wide coefficient = 0;
  for (const char digit : parts.digits) {
    coefficient = coefficient * 10 + static_cast<unsigned>(digit - '0');
  }
  Decimal128 decimal;
  decimal.low = static_cast<uint64_t>(coefficient);
  decimal.high = static_cast<uint64_t>(coefficient >> 64) |
                 static_cast<uint64_t>(parts.exponent + kExponentBias) << kExponentShift;
  if (parts.negative) decimal.high |= kSign;
  return decimal;
}

std::string Decimal128::text() const {
  const std::string sign = (high & kSign) != 0 ? "-" : "";
  if (!is_finite()) {
    const bool infinity = (high & 0x7C00'0000'0000'0000) == 0x7800'0000'0000'0000;
    return infinity ? sign + "Infinity" : "NaN";
  }
  // The second form of a coefficient says more than 34 digits hold, and so counts as zero.
  const bool second_form = (high & 0x6000'0000'0000'0000) == 0x6000'0000'0000'0000;
  const int shift = second_form ? kExponentShift - 2 : kExponentShift;
  const int exponent = static_cast<int>(high >> shift & 0x3FFF) - kExponentBias;
  Wide coefficient = Wide{high & kCoefficientMask} << 64 | low;
  Wide most = 1;
  for (int i = 0; i < kDigitsMax; ++i) most *= 10;
  if (second_form || coefficient >= most) coefficient = 0;
  std::string digits;
  do {
    digits += static_cast<char>('0' + static_cast<int>(coefficient % 10));
    coefficient /= 10;
  } while (coefficient != 0);
  std::reverse(digits.begin(), digits.end());

  const int count = static_cast<int>(digits.size());
  const int adjusted = exponent + count - 1;
  if (exponent > 0 || adjusted < -6) {
    std::string text = sign + digits.substr(0, 1);
    if (count > 1) text += "." + digits.substr(1);
    return text + (adjusted < 0 ? "E" : "E+") + std::to_string(adjusted);
  }
  const int whole = count + exponent;
  if (exponent == 0) return sign + digits;
  if (whole > 0) {
    const auto point = static_cast<size_t>(whole);
    return sign + digits.substr(0, point) + "." + digits.substr(point);
  }
  return sign + "0." + std::string(static_cast<size_t>(-whole), '0') + digits;
}

}  // namespace strata::client
