// Times by hand: absl::ParseTime accepts more than people should rely on, and less than they type.
#include "clients/client/time_text.h"

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
                                    "' is not a time; write 2026-01-31, 2026-01-31T12:00 (UTC) or "
                                    "2026-01-31T12:00:00+02:00");
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
  constexpr double kTenYears = 3660.0 * 86'400'000;
  const double milliseconds = Milliseconds(text);
  if (!(milliseconds >= 0 && milliseconds <= kTenYears)) {
    return NotADuration(text, "30, 1.5s, 250ms, 2m, 1h or 30d");
  }
  return static_cast<int64_t>(milliseconds);
}

}  // namespace strata::client
