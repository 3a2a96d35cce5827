// The text forms of values that JSON has no type for.
#include "schemas/document/scalar_text.h"

#include <bson/bson.h>

#include <array>
#include <charconv>
#include <cmath>

#include "schemas/document/bson_view.h"

namespace strata::document {
namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kHexDigits = "0123456789abcdef";

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

constexpr std::array<int8_t, 256> MakeBase64Values() {
  std::array<int8_t, 256> values{};
  for (int8_t& value : values) value = -1;
  for (size_t i = 0; i < kBase64Digits.size(); ++i) {
    values[static_cast<uint8_t>(kBase64Digits[i])] = static_cast<int8_t>(i);
  }
  return values;
}
constexpr std::array<int8_t, 256> kBase64Values = MakeBase64Values();

// Takes exactly `count` digits off the front.
std::optional<int> TakeDigits(size_t count, std::string_view& text) {
  if (text.size() < count) return std::nullopt;
  int number = 0;
  for (size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    number = number * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return number;
}

bool Take(char c, std::string_view& text) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

// Days from 1970-01-01 to a day of the proleptic Gregorian calendar, and back: Howard Hinnant,
// "chrono-Compatible Low-Level Date Algorithms". Years begin in March, so that leap days end them.
int64_t DaysFromCivil(int64_t year, int month, int day) {
  if (month <= 2) --year;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

struct Civil {
  int64_t year;
  int64_t month;
  int64_t day;
};

// REQUIRES: days >= 0.
Civil CivilFromDays(int64_t days) {
  days += 719468;
  const int64_t era = days / 146097;
  const int64_t day_of_era = days - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted_month = (5 * day_of_year + 2) / 153;
  const int64_t month = shifted_month < 10 ? shifted_month + 3 : shifted_month - 9;
  return {year_of_era + era * 400 + (month <= 2 ? 1 : 0), month,
          day_of_year - (153 * shifted_month + 2) / 5 + 1};
}

int DaysInMonth(int year, int month) {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

void AppendDigits(int64_t number, size_t count, std::string& out) {
  char digits[8];
  for (size_t i = count; i-- > 0; number /= 10) digits[i] = static_cast<char>('0' + number % 10);
  out.append(digits, count);
}

// Takes "Z" or an offset, as the milliseconds that the zone is ahead of UTC.
std::optional<int64_t> TakeZone(std::string_view& text) {
  if (Take('Z', text)) return 0;
  const bool ahead = Take('+', text);
  if (!ahead && !Take('-', text)) return std::nullopt;
  const std::optional<int> hours = TakeDigits(2, text);
  Take(':', text);
  const std::optional<int> minutes = TakeDigits(2, text);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const int64_t offset = (*hours * 60 + *minutes) * int64_t{60'000};
  return ahead ? offset : -offset;
}

// Takes "T12:00:00" and an optional fraction, as milliseconds of the day.
std::optional<int64_t> TakeTime(std::string_view& text) {
  if (!Take('T', text)) return std::nullopt;
  const std::optional<int> hour = TakeDigits(2, text);
  if (!hour || *hour > 23 || !Take(':', text)) return std::nullopt;
  const std::optional<int> minute = TakeDigits(2, text);
  if (!minute || *minute > 59 || !Take(':', text)) return std::nullopt;
  const std::optional<int> second = TakeDigits(2, text);
  if (!second || *second > 59) return std::nullopt;
  int64_t millis = 0;
  if (Take('.', text)) {
    int64_t weight = 100;
    const size_t before = text.size();
    for (; weight > 0 && !text.empty() && text[0] >= '0' && text[0] <= '9'; weight /= 10) {
      millis += (text[0] - '0') * weight;
      text.remove_prefix(1);
    }
    if (text.size() == before) return std::nullopt;
  }
  return ((*hour * 60 + *minute) * int64_t{60} + *second) * 1000 + millis;
}

bson_decimal128_t LoadDecimal(std::string_view bytes) {
  bson_decimal128_t decimal;
  decimal.low = LoadNumber<uint64_t>(bytes.data());
  decimal.high = LoadNumber<uint64_t>(bytes.data() + 8);
  return decimal;
}

}  // namespace

void AppendBase64(std::string_view bytes, std::string& out) {
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      out.push_back(j <= count ? kBase64Digits[group >> (18 - 6 * j) & 63] : '=');
    }
  }
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    size_t padding = 0;
    if (i + 4 == text.size() && text[i + 3] == '=') padding = text[i + 2] == '=' ? 2 : 1;
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const int value = j < 4 - padding ? kBase64Values[static_cast<uint8_t>(text[i + j])] : 0;
      if (value < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    // Bits that stand for no byte must be zero, otherwise two texts would mean the same bytes.
    if ((group & ((1u << (8 * padding)) - 1)) != 0) return std::nullopt;
    for (size_t j = 0; j < 3 - padding; ++j) {
      bytes.push_back(static_cast<char>(group >> (16 - 8 * j) & 0xFF));
    }
  }
  return bytes;
}

void AppendHex(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    out.push_back(kHexDigits[static_cast<uint8_t>(c) >> 4]);
    out.push_back(kHexDigits[static_cast<uint8_t>(c) & 15]);
  }
}

std::optional<std::string> DecodeHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexValue(text[i]);
    const int low = HexValue(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return bytes;
}

std::optional<std::string> DecodeUuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen != (text[i] == '-')) return std::nullopt;
    if (!hyphen) digits.push_back(text[i]);
  }
  return DecodeHex(digits);
}

void AppendDate(int64_t unix_millis, std::string& out) {
  constexpr int64_t kDay = 86'400'000;
  const Civil civil = CivilFromDays(unix_millis / kDay);
  const int64_t millis = unix_millis % kDay;
  AppendDigits(civil.year, 4, out);
  out.push_back('-');
  AppendDigits(civil.month, 2, out);
  out.push_back('-');
  AppendDigits(civil.day, 2, out);
  out.push_back('T');
  AppendDigits(millis / 3'600'000, 2, out);
  out.push_back(':');
  AppendDigits(millis / 60'000 % 60, 2, out);
  out.push_back(':');
  AppendDigits(millis / 1000 % 60, 2, out);
  if (millis % 1000 != 0) {
    out.push_back('.');
    AppendDigits(millis % 1000, 3, out);
  }
  out.push_back('Z');
}

std::optional<int64_t> ParseDate(std::string_view text) {
  const std::optional<int> year = TakeDigits(4, text);
  if (!year || !Take('-', text)) return std::nullopt;
  const std::optional<int> month = TakeDigits(2, text);
  if (!month || *month < 1 || *month > 12 || !Take('-', text)) return std::nullopt;
  const std::optional<int> day = TakeDigits(2, text);
  if (!day || *day < 1 || *day > DaysInMonth(*year, *month)) return std::nullopt;
  const std::optional<int64_t> time = TakeTime(text);
  if (!time) return std::nullopt;
  const std::optional<int64_t> zone = TakeZone(text);
  if (!zone || !text.empty()) return std::nullopt;
  return DaysFromCivil(*year, *month, *day) * 86'400'000 + *time - *zone;
}

template <typename Integer>
std::optional<Integer> ParseInteger(std::string_view text) {
  Integer number = 0;
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return number;
}
template std::optional<int32_t> ParseInteger(std::string_view text);
template std::optional<int64_t> ParseInteger(std::string_view text);

void AppendDouble(double number, std::string& out) {
  char text[32];
  const std::to_chars_result result = std::to_chars(text, text + sizeof(text), number);
  const std::string_view shortest(text, static_cast<size_t>(result.ptr - text));
  out += shortest;
  if (shortest.find_first_of(".e") == std::string_view::npos) out += ".0";
}

std::optional<double> ParseDouble(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string DecimalText(std::string_view bytes) {
  const bson_decimal128_t decimal = LoadDecimal(bytes);
  char text[BSON_DECIMAL128_STRING];
  bson_decimal128_to_string(&decimal, text);
  return text;
}

std::optional<std::string> ParseDecimal(std::string_view text) {
  // 34 digits, point, sign and exponent fit; zeros beyond that are no number that a person writes.
  if (text.empty() || text.size() > 64) return std::nullopt;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && c != '+' && c != '-' && c != '.' && c != 'e' && c != 'E') return std::nullopt;
  }
  bson_decimal128_t decimal;
  const std::string terminated(text);
  if (!bson_decimal128_from_string(terminated.c_str(), &decimal)) return std::nullopt;
  std::string bytes;
  AppendNumber(decimal.low, bytes);
  AppendNumber(decimal.high, bytes);
  return bytes;
}

}  // namespace strata::document
