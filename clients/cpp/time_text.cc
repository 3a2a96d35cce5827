// Times by hand: absl::ParseTime accepts more than people should rely on, and less than they type.
#include "clients/cpp/time_text.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>

namespace strata::client {
namespace {

// Reads fixed fields from the front of a text; once one is missing, `ok` stays false.
struct Cursor {
  std::string_view rest;
  bool ok = true;

  bool Take(char c) {
    if (rest.empty() || rest.front() != c) return false;
    rest.remove_prefix(1);
    return true;
  }
  void Expect(char c) { ok = Take(c) && ok; }
  int Digits(size_t count) {
    int value = 0;
    for (size_t i = 0; i < count; ++i) {
      if (i >= rest.size() || rest[i] < '0' || rest[i] > '9') {
        ok = false;
        return 0;
      }
      value = value * 10 + (rest[i] - '0');
    }
    rest.remove_prefix(count);
    return value;
  }
};

int ValueInRange(int value, int max, Cursor& in) {
  if (value > max) in.ok = false;
  return value;
}

int32_t ParseFraction(Cursor& in) {
  int32_t nanos = 0;
  int32_t unit = 100'000'000;
  const size_t before = in.rest.size();
  while (!in.rest.empty() && in.rest.front() >= '0' && in.rest.front() <= '9') {
    nanos += (in.rest.front() - '0') * unit;
    unit /= 10;  // Digits beyond the ninth count nothing.
    in.rest.remove_prefix(1);
  }
  if (in.rest.size() == before) in.ok = false;
  return nanos;
}

// "Z", "+02:00" or nothing; answers seconds east of UTC.
int ParseZone(Cursor& in) {
  if (in.rest.empty() || in.Take('Z') || in.Take('z')) return 0;
  const bool east = in.Take('+');
  if (!east) in.Expect('-');
  const int hours = ValueInRange(in.Digits(2), 23, in);
  in.Expect(':');
  const int seconds = hours * 3600 + ValueInRange(in.Digits(2), 59, in) * 60;
  return east ? seconds : -seconds;
}

void ParseTimeOfDay(Cursor& in, Instant& time) {
  time.seconds += ValueInRange(in.Digits(2), 23, in) * 3600;
  in.Expect(':');
  time.seconds += ValueInRange(in.Digits(2), 59, in) * 60;
  if (in.Take(':')) {
    time.seconds += ValueInRange(in.Digits(2), 59, in);
    if (in.Take('.')) time.nanos = ParseFraction(in);
  }
  time.seconds -= ParseZone(in);
}

absl::Status NotATime(std::string_view text) {
  return absl::InvalidArgumentError("'" + std::string(text) +
                                    "' is not a time; write 2026-01-31, 2026-01-31T12:00 (UTC), "
                                    "2026-01-31T12:00:00+02:00 or '5m ago'");
}

std::string FormatSeconds(int64_t seconds, char separator) {
  using namespace std::chrono;
  const sys_seconds time{std::chrono::seconds(seconds)};
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02u%c%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), separator,
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text;
}

}  // namespace

absl::StatusOr<Instant> ParseTime(std::string_view text) {
  Cursor in{text};
  const int year = in.Digits(4);
  in.Expect('-');
  const int month = in.Digits(2);
  in.Expect('-');
  const int day = in.Digits(2);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!in.ok || !date.ok() || year == 0) return NotATime(text);
  Instant time;
  time.seconds = std::chrono::sys_seconds(std::chrono::sys_days(date)).time_since_epoch().count();
  if (!in.rest.empty()) {
    if (!in.Take('T') && !in.Take('t')) in.Expect(' ');
    ParseTimeOfDay(in, time);
  }
  if (!in.ok || !in.rest.empty()) return NotATime(text);
  return time;
}

std::string FormatTime(Instant time) {
  std::string text = FormatSeconds(time.seconds, 'T');
  if (time.nanos != 0) {
    char fraction[16];
    std::snprintf(fraction, sizeof fraction, ".%09d", time.nanos);
    std::string_view digits = fraction;
    while (digits.ends_with("000")) digits.remove_suffix(3);
    text += digits;
  }
  return text + "Z";
}

std::string FormatTimeShort(Instant time) { return FormatSeconds(time.seconds, ' '); }

std::string FormatTimeMicros(Instant time) {
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%06d", time.nanos / 1000);
  return FormatSeconds(time.seconds, ' ') + fraction;
}

namespace {

constexpr double kTenYearsMs = 3660.0 * 86'400'000;

struct Unit {
  std::string_view name;
  double milliseconds;
};

constexpr Unit kUnits[] = {{"ms", 1},
                           {"s", 1000},
                           {"sec", 1000},
                           {"second", 1000},
                           {"m", 60'000},
                           {"min", 60'000},
                           {"minute", 60'000},
                           {"h", 3'600'000},
                           {"hour", 3'600'000},
                           {"d", 86'400'000},
                           {"day", 86'400'000},
                           {"w", 604'800'000},
                           {"week", 604'800'000}};

// NaN for what is no unit.
double MillisecondsOf(std::string_view name) {
  for (const Unit& unit : kUnits) {
    const bool plural = unit.name.size() > 2 && name.size() == unit.name.size() + 1 &&
                        name.starts_with(unit.name) && name.ends_with('s');
    if (name == unit.name || plural) return unit.milliseconds;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::string_view WithoutBlanks(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// "1h 30m", "2 days": numbers, each with its unit. NaN for anything else.
double SumOfUnits(std::string_view text) {
  double sum = 0;
  do {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (error != std::errc() || text.starts_with('-')) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    text = WithoutBlanks({rest, static_cast<size_t>(end - rest)});
    const size_t letters =
        std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"), text.size());
    sum += number * MillisecondsOf(text.substr(0, letters));
    text = WithoutBlanks(text.substr(letters));
  } while (!text.empty());
  return sum;
}

}  // namespace

absl::StatusOr<Instant> ParseTimeFrom(std::string_view text, Instant now) {
  constexpr std::string_view kAgo = "ago";
  constexpr std::string_view kIn = "in ";
  const std::string_view trimmed = WithoutBlanks(text);
  if (trimmed == "now") return now;
  const bool ago = trimmed.ends_with(kAgo);
  if (!ago && !trimmed.starts_with(kIn)) return ParseTime(text);
  const double distance = SumOfUnits(WithoutBlanks(
      ago ? trimmed.substr(0, trimmed.size() - kAgo.size()) : trimmed.substr(kIn.size())));
  if (!(distance >= 0 && distance <= kTenYearsMs)) {
    return absl::InvalidArgumentError("'" + std::string(text) +
                                      "' is not a time; write '5m ago', '2 days ago' or 'in 1h'");
  }
  const auto milliseconds = static_cast<int64_t>(ago ? -distance : distance);
  const int64_t nanos = now.nanos + milliseconds % 1000 * 1'000'000;
  const int64_t carry = nanos < 0 ? -1 : nanos / 1'000'000'000;
  return Instant{now.seconds + milliseconds / 1000 + carry,
                 static_cast<int32_t>(nanos - carry * 1'000'000'000)};
}

namespace {

// NaN for what is no duration.
double Milliseconds(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  double scale = std::numeric_limits<double>::quiet_NaN();
  if (unit.empty() || unit == "s") scale = 1000;
  if (unit == "ms") scale = 1;
  if (unit == "m") scale = 60'000;
  if (unit == "h") scale = 3'600'000;
  if (unit == "d") scale = 86'400'000;
  return error == std::errc() ? number * scale : std::numeric_limits<double>::quiet_NaN();
}

absl::Status NotADuration(std::string_view text, std::string_view examples) {
  return absl::InvalidArgumentError("'" + std::string(text) + "' is not a duration; write " +
                                    std::string(examples));
}

}  // namespace

absl::StatusOr<int64_t> ParseDurationMs(std::string_view text) {
  const double milliseconds = text.ends_with('d') ? 0 : Milliseconds(text);
  if (!(milliseconds >= 1 && milliseconds <= 1e9)) {
    return NotADuration(text, "30, 1.5s, 250ms, 2m or 1h");
  }
  return static_cast<int64_t>(milliseconds);
}

absl::StatusOr<int64_t> ParseLongDurationMs(std::string_view text) {
  const double milliseconds = Milliseconds(text);
  if (!(milliseconds >= 0 && milliseconds <= kTenYearsMs)) {
    return NotADuration(text, "30, 1.5s, 250ms, 2m, 1h or 30d");
  }
  return static_cast<int64_t>(milliseconds);
}

}  // namespace strata::client
