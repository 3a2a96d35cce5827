#include "bench/render/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>

namespace strata::bench {

std::string Number(double value, int decimals) {
  char digits[64];
  std::snprintf(digits, sizeof(digits), "%.*f", decimals, value);
  std::string text = digits;
  const size_t begin = text[0] == '-' ? 1 : 0;
  size_t end = std::min(text.find('.'), text.size());
  while (end > begin + 3) {
    end -= 3;
    text.insert(text.begin() + static_cast<std::ptrdiff_t>(end), ',');
  }
  return text;
}

std::string Digits(double value) {
  const double size = std::abs(value);
  return Number(value, size < 10 ? 2 : size < 100 ? 1 : 0);
}

namespace {

std::string Duration(double us) {
  if (us >= 1e6) return Digits(us / 1e6) + " s";
  if (us >= 1e3) return Digits(us / 1e3) + " ms";
  return Digits(us) + " us";
}

std::string Bytes(double bytes) {
  constexpr double kKibibyte = 1024;
  if (bytes < 10 * kKibibyte) return Digits(bytes) + " B";
  if (bytes < kKibibyte * kKibibyte) return Digits(bytes / kKibibyte) + " KiB";
  return Digits(bytes / kKibibyte / kKibibyte) + " MiB";
}

}  // namespace

std::string WithUnit(double value, Unit unit) {
  switch (unit) {
    case Unit::kMicroseconds:
      return Duration(value);
    case Unit::kBytes:
      return Bytes(value);
    case Unit::kPerSecond:
    case Unit::kCount:
      return Number(value, 0);
    case Unit::kRatio:
      return Number(value, std::abs(value) < 0.1 ? 3 : 2);
  }
  return {};
}

std::string WithoutZeros(std::string text) {
  const size_t point = text.find('.');
  if (point == std::string::npos) return text;
  const size_t end = std::min(text.find(' ', point), text.size());
  size_t keep = end;
  while (text[keep - 1] == '0') --keep;
  if (keep - 1 == point) --keep;
  return text.erase(keep, end - keep);
}

}  // namespace strata::bench
