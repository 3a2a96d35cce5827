// Cron expressions: at which minutes a schedule fires, in UTC.
//
//   minute hour day-of-month month day-of-week
//
//   minute        0 to 59
//   hour          0 to 23
//   day-of-month  1 to 31
//   month         1 to 12, or JAN to DEC
//   day-of-week   0 to 7, or SUN to SAT; 0 and 7 are Sunday
//
// A field is a list, with commas, of: `*` (all), a value `a`, a range `a-b`, and with a step `*/n`,
// `a-b/n` and `a/n` (from a on, to the field's end, which is Saturday for days of the week). A step
// counts from where its range begins, and is at most as long as all of the field. Names are in any
// case. Spaces or tabs are between the fields.
//
// Where neither of the two day fields begins with `*`, a day matches if either does; else it has to
// match both. So `0 0 13 * 5` is each Friday and each 13th, and `0 0 */13 * 5` is each Friday that
// is a 1st, 14th or 27th.
//
// In place of the five fields: @yearly (or @annually), @monthly, @weekly (Sunday), @daily (or
// @midnight), @hourly. There are no seconds, no time zones, and none of `?`, `L`, `W` and `#`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "schemas/base/clock.h"

namespace strata::queue {

// One such expression; there are times that match it. Thread-safe, as nothing changes it.
class CronExpression {
 public:
  static constexpr size_t kTextBytesMax = 256;
  // How far ahead NextAfter looks. From one 29 February to the next are up to 8 years.
  static constexpr int kYearsAhead = 8;

  // INVALID_SCHEDULE for what is no such expression, or would never match (`0 0 31 2 *`): the
  // message says which of the fields is wrong and what it may hold.
  static absl::StatusOr<CronExpression> Parse(std::string_view text);

  // The first time after `time` that matches, which is the beginning of a minute. Nothing if there
  // is none in the 8 years from the minute of `time` on (asked later there may be: a 29 February
  // that has to be a Sunday comes after 28 years), or none that UnixMicros can tell.
  std::optional<UnixMicros> NextAfter(UnixMicros time) const;

  // The newest time after `from_exclusive` and up to `until_inclusive` that matches; nothing if
  // there is none. What it costs does not depend on how many others lie between.
  std::optional<UnixMicros> LatestUpTo(UnixMicros from_exclusive, UnixMicros until_inclusive) const;

 private:
  CronExpression() = default;

  bool MatchesMonth(absl::CivilDay day) const;
  // Of a day whose month matches.
  bool MatchesDay(absl::CivilDay day) const;
  // The first minute from `minute` on, and the last one up to it, on the same day; the day itself
  // matches.
  std::optional<absl::CivilMinute> FirstFrom(absl::CivilMinute minute) const;
  std::optional<absl::CivilMinute> LastUpTo(absl::CivilMinute minute) const;

  // Bit n: n matches. None of them is empty.
  uint64_t minutes_ = 0;
  uint64_t hours_ = 0;
  uint64_t days_ = 0;
  uint64_t months_ = 0;
  uint64_t weekdays_ = 0;    // from 0, Sunday, to 6
  bool either_day_ = false;  // it is enough that one of days_ and weekdays_ matches
};

}  // namespace strata::queue
