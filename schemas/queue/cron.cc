#include "schemas/queue/cron.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"

namespace strata::queue {
namespace {

constexpr int64_t kMicrosInMinute = 60'000'000;
constexpr absl::CivilMinute kEpoch(1970, 1, 1);
constexpr int kMinutesInDay = 24 * 60;
constexpr std::string_view kBlanks = " \t";

constexpr int kSunday = 0;
constexpr int kSundayToo = 7;

// One of the five fields.
struct Field {
  std::string_view name;
  int first;
  int last;                 // of `*`, and where `a/n` ends
  std::string_view values;  // as errors tell them
  std::string_view names;   // of the values from `first` on, three letters each

  int Count() const { return last - first + 1; }
  bool IsWeekday() const { return first == kSunday && last == kSundayToo - 1; }
};

constexpr std::string_view kMonthNames = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
constexpr std::string_view kWeekdayNames = "SUNMONTUEWEDTHUFRISAT";

constexpr Field kMinute = {"minute", 0, 59, "0 to 59", ""};
constexpr Field kHour = {"hour", 0, 23, "0 to 23", ""};
constexpr Field kDay = {"day-of-month", 1, 31, "1 to 31", ""};
constexpr Field kMonth = {"month", 1, 12, "1 to 12 or JAN to DEC", kMonthNames};
constexpr Field kWeekday = {"day-of-week", kSunday, kSundayToo - 1,
                            "0 to 7 (0 and 7 are Sunday) or SUN to SAT", kWeekdayNames};

constexpr std::pair<std::string_view, std::string_view> kNicknames[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};
constexpr std::string_view kNicknameList =
    "@yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly";

// How long a month is in the year in which it is longest, from January on.
constexpr int kLongest[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

absl::Status Invalid(std::string_view message) {
  return Error(ErrorReason::kInvalidSchedule, message).With("field", "cron");
}

// What can be shown of the caller's text: errors are UTF-8, and no control character is in them.
std::string Quoted(std::string_view text) {
  const bool printable =
      std::all_of(text.begin(), text.end(), [](char byte) { return byte >= 0x20 && byte < 0x7F; });
  return printable ? absl::StrCat("\"", ToAbsl(text), "\"") : "(which is not printable ASCII)";
}

absl::Status InvalidField(const Field& field, std::string_view text, std::string_view problem) {
  return Invalid(absl::StrCat("the ", ToAbsl(field.name), " field of the cron expression, ",
                              Quoted(text), ", ", ToAbsl(problem), "; it takes *, values of ",
                              ToAbsl(field.values), ", ranges a-b, steps of 1 to ", field.Count(),
                              " after a slash, and lists of these with commas"));
}

// Nothing for what is not digits alone. Numbers that are too large for any field stay too large.
std::optional<int> NumberOf(std::string_view text) {
  if (text.empty()) return std::nullopt;
  int number = 0;
  for (const char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = std::min(number * 10 + (digit - '0'), 1000);
  }
  return number;
}

// The value that a name stands for.
std::optional<int> NamedValue(const Field& field, std::string_view text) {
  if (text.size() != 3) return std::nullopt;
  for (size_t at = 0; at < field.names.size(); at += 3) {
    if (absl::EqualsIgnoreCase(ToAbsl(field.names.substr(at, 3)), ToAbsl(text))) {
      return field.first + static_cast<int>(at / 3);
    }
  }
  return std::nullopt;
}

// `value` is part of the field's `text`.
absl::StatusOr<int> ParseValue(const Field& field, std::string_view text, std::string_view value) {
  if (value.empty()) return InvalidField(field, text, "lacks a value");
  if (const std::optional<int> named = NamedValue(field, value)) return *named;
  const std::optional<int> number = NumberOf(value);
  if (!number) {
    return InvalidField(field, text,
                        absl::StrCat("has ", Quoted(value), ", which is no value of it"));
  }
  const int last = field.IsWeekday() ? kSundayToo : field.last;
  if (*number < field.first || *number > last) {
    return InvalidField(field, text,
                        absl::StrCat("has ", Quoted(value), ", which is out of range"));
  }
  return *number;
}

// The values of one element of a field's list, as bits.
absl::StatusOr<uint64_t> ParseElement(const Field& field, std::string_view text,
                                      std::string_view element) {
  const size_t slash = element.find('/');
  const std::string_view range = element.substr(0, slash);
  int first = field.first;
  int last = field.last;
  if (range != "*") {
    const size_t dash = range.find('-');
    ASSIGN_OR_RETURN(first, ParseValue(field, text, range.substr(0, dash)));
    if (dash != range.npos) {
      ASSIGN_OR_RETURN(last, ParseValue(field, text, range.substr(dash + 1)));
      if (first > last) {
        return InvalidField(field, text,
                            absl::StrCat("has ", Quoted(range), ", which ends before it begins"));
      }
    } else if (slash == element.npos) {
      last = first;
    } else if (field.IsWeekday() && first == kSundayToo) {
      first = kSunday;  // so that 7/2 is what SUN/2 is
    }
  }
  int step = 1;
  if (slash != element.npos) {
    const std::string_view shown = element.substr(slash + 1);
    step = NumberOf(shown).value_or(0);
    if (step < 1 || step > field.Count()) {
      return InvalidField(field, text, absl::StrCat("has the step ", Quoted(shown)));
    }
  }
  uint64_t bits = 0;
  for (int value = first; value <= last; value += step) {
    const bool sunday = field.IsWeekday() && value == kSundayToo;
    bits |= uint64_t{1} << (sunday ? kSunday : value);
  }
  return bits;
}

absl::StatusOr<uint64_t> ParseField(const Field& field, std::string_view text) {
  uint64_t bits = 0;
  for (const absl::string_view element : absl::StrSplit(ToAbsl(text), ',')) {
    ASSIGN_OR_RETURN(const uint64_t of_element, ParseElement(field, text, ToStd(element)));
    bits |= of_element;
  }
  return bits;
}

bool Has(uint64_t bits, int value) { return (bits >> value & 1) != 0; }

// The lowest bit from `value` on, and the highest up to it.
std::optional<int> LowestFrom(uint64_t bits, int value) {
  bits = bits >> value << value;
  if (bits == 0) return std::nullopt;
  return std::countr_zero(bits);
}

std::optional<int> HighestUpTo(uint64_t bits, int value) {
  if (value < 0) return std::nullopt;
  bits &= (uint64_t{2} << value) - 1;
  if (bits == 0) return std::nullopt;
  return static_cast<int>(std::bit_width(bits)) - 1;
}

// The minute that `time` is in: it begins at `time` or before.
absl::CivilMinute MinuteOf(UnixMicros time) {
  const int64_t minutes = time / kMicrosInMinute;
  return kEpoch + (time % kMicrosInMinute < 0 ? minutes - 1 : minutes);
}

// Where it begins; nothing if UnixMicros cannot tell.
std::optional<UnixMicros> BeginOf(absl::CivilMinute minute) {
  const int64_t minutes = minute - kEpoch;
  if (minutes > std::numeric_limits<UnixMicros>::max() / kMicrosInMinute ||
      minutes < std::numeric_limits<UnixMicros>::min() / kMicrosInMinute) {
    return std::nullopt;
  }
  return minutes * kMicrosInMinute;
}

// Days that are in none of the months do not come.
bool IsInAnyMonth(uint64_t days, uint64_t months) {
  for (int month = 1; month <= 12; ++month) {
    if (Has(months, month) && HighestUpTo(days, kLongest[month - 1])) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<CronExpression> CronExpression::Parse(std::string_view text) {
  if (text.size() > kTextBytesMax) {
    return Invalid(absl::StrCat("the cron expression has ", text.size(), " bytes, at most ",
                                kTextBytesMax, " are allowed"));
  }
  std::vector<std::string> texts =
      absl::StrSplit(ToAbsl(text), absl::ByAnyChar(ToAbsl(kBlanks)), absl::SkipEmpty());
  if (!texts.empty() && texts[0].starts_with('@')) {
    const auto* const nickname =
        std::find_if(std::begin(kNicknames), std::end(kNicknames),
                     [&](const auto& known) { return known.first == texts[0]; });
    if (texts.size() != 1 || nickname == std::end(kNicknames)) {
      return Invalid(absl::StrCat("the cron expression is ", Quoted(text),
                                  ", but the nicknames are ", ToAbsl(kNicknameList),
                                  ", each of them alone"));
    }
    texts = absl::StrSplit(ToAbsl(nickname->second), ' ');
  }
  if (texts.size() != 5) {
    return Invalid(absl::StrCat("the cron expression has ", texts.size(),
                                " fields, but has to have 5: minute hour day-of-month month "
                                "day-of-week; or be one of ",
                                ToAbsl(kNicknameList)));
  }
  CronExpression parsed;
  ASSIGN_OR_RETURN(parsed.minutes_, ParseField(kMinute, texts[0]));
  ASSIGN_OR_RETURN(parsed.hours_, ParseField(kHour, texts[1]));
  ASSIGN_OR_RETURN(parsed.days_, ParseField(kDay, texts[2]));
  ASSIGN_OR_RETURN(parsed.months_, ParseField(kMonth, texts[3]));
  ASSIGN_OR_RETURN(parsed.weekdays_, ParseField(kWeekday, texts[4]));
  parsed.either_day_ = texts[2][0] != '*' && texts[4][0] != '*';
  // Each day of the year is each day of the week in some year, so those do not matter here.
  if (!parsed.either_day_ && !IsInAnyMonth(parsed.days_, parsed.months_)) {
    return InvalidField(kDay, texts[2],
                        absl::StrCat("is never in the month ", Quoted(texts[3]),
                                     "; February has 28 or 29 days, and April, June, September "
                                     "and November 30"));
  }
  return parsed;
}

std::optional<UnixMicros> CronExpression::NextAfter(UnixMicros time) const {
  const absl::CivilMinute now = MinuteOf(time);
  const absl::CivilMinute begin = now + 1;
  const absl::CivilMinute last(now.year() + kYearsAhead, now.month(), now.day(), now.hour(),
                               now.minute());
  for (absl::CivilDay day(begin); day <= absl::CivilDay(last);) {
    if (!MatchesMonth(day)) {
      day = absl::CivilDay(absl::CivilMonth(day) + 1);
      continue;
    }
    if (MatchesDay(day)) {
      const auto found = FirstFrom(std::max(begin, absl::CivilMinute(day)));
      if (found) return *found <= last ? BeginOf(*found) : std::nullopt;
    }
    ++day;
  }
  return std::nullopt;
}

std::optional<UnixMicros> CronExpression::LatestUpTo(UnixMicros from_exclusive,
                                                     UnixMicros until_inclusive) const {
  const absl::CivilMinute from = MinuteOf(from_exclusive);
  const absl::CivilMinute until = MinuteOf(until_inclusive);
  // However long ago `from` is: no 40 years are without the 29 February of any day of the week.
  for (absl::CivilDay day(until); day >= absl::CivilDay(from);) {
    if (!MatchesMonth(day)) {
      day = absl::CivilDay(absl::CivilMonth(day)) - 1;
      continue;
    }
    if (MatchesDay(day)) {
      const auto found = LastUpTo(std::min(until, absl::CivilMinute(day) + (kMinutesInDay - 1)));
      if (found) return *found > from ? BeginOf(*found) : std::nullopt;
    }
    --day;
  }
  return std::nullopt;
}

bool CronExpression::MatchesMonth(absl::CivilDay day) const { return Has(months_, day.month()); }

bool CronExpression::MatchesDay(absl::CivilDay day) const {
  // Abseil's week begins with Monday.
  const int weekday = (static_cast<int>(absl::GetWeekday(day)) + 1) % 7;
  const bool by_month = Has(days_, day.day());
  const bool by_week = Has(weekdays_, weekday);
  return either_day_ ? by_month || by_week : by_month && by_week;
}

std::optional<absl::CivilMinute> CronExpression::FirstFrom(absl::CivilMinute minute) const {
  if (Has(hours_, minute.hour())) {
    if (const auto found = LowestFrom(minutes_, minute.minute())) {
      return minute + (*found - minute.minute());
    }
  }
  const auto hour = LowestFrom(hours_, minute.hour() + 1);
  if (!hour) return std::nullopt;
  return absl::CivilMinute(absl::CivilDay(minute)) + (*hour * 60 + *LowestFrom(minutes_, 0));
}

std::optional<absl::CivilMinute> CronExpression::LastUpTo(absl::CivilMinute minute) const {
  if (Has(hours_, minute.hour())) {
    if (const auto found = HighestUpTo(minutes_, minute.minute())) {
      return minute - (minute.minute() - *found);
    }
  }
  const auto hour = HighestUpTo(hours_, minute.hour() - 1);
  if (!hour) return std::nullopt;
  return absl::CivilMinute(absl::CivilDay(minute)) + (*hour * 60 + *HighestUpTo(minutes_, 59));
}

}  // namespace strata::queue
