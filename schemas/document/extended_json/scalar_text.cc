// The text forms of values that JSON has no type for.
#include "schemas/document/extended_json/scalar_text.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "schemas/base/hex.h"
#include "schemas/base/strings.h"

namespace strata::document {
namespace {

using std::chrono::milliseconds;

// Takes exactly `count` digits off the front.
std::optional<int> TakeDigits(size_t count, std::string_view& text) {
  if (text.size() < count) return std::nullopt;
  int number = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) return std::nullopt;
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

// Takes "2026-01-31".
std::optional<std::chrono::sys_days> TakeDay(std::string_view& text) {
  const std::optional<int> year = TakeDigits(4, text);
  if (!year || !Take('-', text)) return std::nullopt;
  const std::optional<int> month = TakeDigits(2, text);
  if (!month || !Take('-', text)) return std::nullopt;
  const std::optional<int> day = TakeDigits(2, text);
  if (!day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

// Takes "T12:00:00" and an optional fraction, as milliseconds of the day.
std::optional<int64_t> TakeTime(std::string_view& text) {
  if (!Take('T', text) && !Take('t', text)) return std::nullopt;
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

// Takes "Z" or an offset, as the milliseconds that the zone is ahead of UTC.
std::optional<int64_t> TakeZone(std::string_view& text) {
  if (Take('Z', text) || Take('z', text)) return 0;
  const bool ahead = Take('+', text);
  if (!ahead && !Take('-', text)) return std::nullopt;
  const std::optional<int> hours = TakeDigits(2, text);
  Take(':', text);
  const std::optional<int> minutes = TakeDigits(2, text);
  if (!hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const int64_t offset = (*hours * 60 + *minutes) * int64_t{60'000};
  return ahead ? offset : -offset;
}

void AppendDigits(int64_t number, size_t count, std::string& out) {
  char digits[8];
  for (size_t i = count; i-- > 0; number /= 10) digits[i] = static_cast<char>('0' + number % 10);
  out.append(digits, count);
}

}  // namespace

std::string Base64Text(std::string_view bytes) { return absl::Base64Escape(ToAbsl(bytes)); }

// Abseil forgives missing padding, spaces, and bits that stand for no byte; then two texts would
// mean the same bytes.
std::optional<std::string> ParseBase64(std::string_view text) {
  std::string bytes;
  if (!absl::Base64Unescape(ToAbsl(text), &bytes) || Base64Text(bytes) != text) return std::nullopt;
  return bytes;
}

std::string HexText(std::string_view bytes) { return absl::BytesToHexString(ToAbsl(bytes)); }

std::optional<std::string> ParseHex(std::string_view text) { return BytesOfHex(text); }

std::optional<std::string> ParseUuid(std::string_view text) {
  if (text.size() != 36) return std::nullopt;
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
    if (hyphen != (text[i] == '-')) return std::nullopt;
    if (!hyphen) digits.push_back(text[i]);
  }
  return ParseHex(digits);
}

std::string DateText(int64_t unix_millis) {
  using std::chrono::floor;
  const std::chrono::sys_time<milliseconds> time{milliseconds(unix_millis)};
  const auto midnight = floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(midnight);
  const std::chrono::hh_mm_ss clock(time - midnight);
  std::string text;
  AppendDigits(static_cast<int>(date.year()), 4, text);
  text.push_back('-');
  AppendDigits(static_cast<unsigned>(date.month()), 2, text);
  text.push_back('-');
  AppendDigits(static_cast<unsigned>(date.day()), 2, text);
  text.push_back('T');
  AppendDigits(clock.hours().count(), 2, text);
  text.push_back(':');
  AppendDigits(clock.minutes().count(), 2, text);
  text.push_back(':');
  AppendDigits(clock.seconds().count(), 2, text);
  if (clock.subseconds().count() != 0) {
    text.push_back('.');
    AppendDigits(clock.subseconds().count(), 3, text);
  }
  text.push_back('Z');
  return text;
}

std::optional<int64_t> ParseDate(std::string_view text) {
  const std::optional<std::chrono::sys_days> day = TakeDay(text);
  if (!day) return std::nullopt;
  const std::optional<int64_t> time = TakeTime(text);
  if (!time) return std::nullopt;
  const std::optional<int64_t> zone = TakeZone(text);
  if (!zone || !text.empty()) return std::nullopt;
  return milliseconds(day->time_since_epoch()).count() + *time - *zone;
}

bool AreRegexOptions(std::string_view text) {
  constexpr std::string_view kLetters = "ilmsux";
  size_t least = 0;
  for (const char letter : text) {
    const size_t at = kLetters.find(letter, least);
    if (at == std::string_view::npos) return false;
    least = at + 1;
  }
  return true;
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
  if (result.ptr != end) return std::nullopt;
  // Too large or too small, which from_chars does not tell apart.
  if (result.ec == std::errc::result_out_of_range) {
    number = std::strtod(std::string(text).c_str(), nullptr);
  } else if (result.ec != std::errc()) {
    return std::nullopt;
  }
  if (!std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace strata::document
