// Cron expressions against tables, and against a search minute by minute that shares no code with
// them.
#include "schemas/queue/cron.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "schemas/base/strings.h"
#include "tests/support/seeded_entropy.h"
#include "tests/support/status_matchers.h"

namespace strata::queue {
namespace {

using test_support::HasReason;
using test_support::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr UnixMicros kMicrosInMinute = 60'000'000;
constexpr UnixMicros kFirst = std::numeric_limits<UnixMicros>::min();
constexpr UnixMicros kLast = std::numeric_limits<UnixMicros>::max();
constexpr char kForm[] = "%Y-%m-%d %H:%M";

// "2026-01-31 12:00".
UnixMicros At(const std::string& text) {
  absl::Time time;
  std::string problem;
  EXPECT_TRUE(absl::ParseTime(kForm, text, &time, &problem)) << text << ": " << problem;
  return absl::ToUnixMicros(time);
}

std::string Shown(std::optional<UnixMicros> time) {
  if (!time) return "none";
  EXPECT_EQ(*time % kMicrosInMinute, 0) << *time;
  return absl::FormatTime(kForm, absl::FromUnixMicros(*time), absl::UTCTimeZone());
}

CronExpression Parsed(std::string_view text) {
  auto parsed = CronExpression::Parse(text);
  EXPECT_THAT(parsed, IsOk()) << text;
  return parsed.ok() ? *parsed : *CronExpression::Parse("@yearly");
}

std::string Next(std::string_view text, const std::string& time) {
  return Shown(Parsed(text).NextAfter(At(time)));
}

std::string Latest(std::string_view text, const std::string& from, const std::string& until) {
  return Shown(Parsed(text).LatestUpTo(At(from), At(until)));
}

struct Series {
  std::string text;
  std::string begin;
  std::array<std::string, 5> next;
};

// What comes next was found by trying each minute, in a program of its own.
const Series kSeries[] = {
    {"* * * * *",
     "2026-01-31 23:57",
     {"2026-01-31 23:58", "2026-01-31 23:59", "2026-02-01 00:00", "2026-02-01 00:01",
      "2026-02-01 00:02"}},
    {"*/15 * * * *",
     "2026-03-01 00:00",
     {"2026-03-01 00:15", "2026-03-01 00:30", "2026-03-01 00:45", "2026-03-01 01:00",
      "2026-03-01 01:15"}},
    {"*/7 * * * *",
     "2026-03-01 00:50",
     {"2026-03-01 00:56", "2026-03-01 01:00", "2026-03-01 01:07", "2026-03-01 01:14",
      "2026-03-01 01:21"}},
    {"0-10/5 * * * *",
     "2026-03-01 00:05",
     {"2026-03-01 00:10", "2026-03-01 01:00", "2026-03-01 01:05", "2026-03-01 01:10",
      "2026-03-01 02:00"}},
    {"50/5 * * * *",
     "2026-12-31 22:55",
     {"2026-12-31 23:50", "2026-12-31 23:55", "2027-01-01 00:50", "2027-01-01 00:55",
      "2027-01-01 01:50"}},
    {"5,3,1,3 0,12 * * *",
     "2026-05-31 00:02",
     {"2026-05-31 00:03", "2026-05-31 00:05", "2026-05-31 12:01", "2026-05-31 12:03",
      "2026-05-31 12:05"}},
    {"59 23 * * *",
     "2024-02-27 23:59",
     {"2024-02-28 23:59", "2024-02-29 23:59", "2024-03-01 23:59", "2024-03-02 23:59",
      "2024-03-03 23:59"}},
    {"00 09 * * *",
     "2026-11-24 09:00",
     {"2026-11-25 09:00", "2026-11-26 09:00", "2026-11-27 09:00", "2026-11-28 09:00",
      "2026-11-29 09:00"}},
    {"0 */5 * * *",
     "2026-11-24 14:59",
     {"2026-11-24 15:00", "2026-11-24 20:00", "2026-11-25 00:00", "2026-11-25 05:00",
      "2026-11-25 10:00"}},
    {"30 8-18/3 * * *",
     "2026-11-24 12:00",
     {"2026-11-24 14:30", "2026-11-24 17:30", "2026-11-25 08:30", "2026-11-25 11:30",
      "2026-11-25 14:30"}},
    {"0 22/1 * * *",
     "2026-11-24 22:59",
     {"2026-11-24 23:00", "2026-11-25 22:00", "2026-11-25 23:00", "2026-11-26 22:00",
      "2026-11-26 23:00"}},
    {"0 0 31 * *",
     "2026-01-31 00:00",
     {"2026-03-31 00:00", "2026-05-31 00:00", "2026-07-31 00:00", "2026-08-31 00:00",
      "2026-10-31 00:00"}},
    {"0 0 30 * *",
     "2027-12-30 00:00",
     {"2028-01-30 00:00", "2028-03-30 00:00", "2028-04-30 00:00", "2028-05-30 00:00",
      "2028-06-30 00:00"}},
    {"0 0 29 2 *",
     "2023-03-01 00:00",
     {"2024-02-29 00:00", "2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00",
      "2040-02-29 00:00"}},
    {"0 12 28-31 2 *",
     "2027-01-01 00:00",
     {"2027-02-28 12:00", "2028-02-28 12:00", "2028-02-29 12:00", "2029-02-28 12:00",
      "2030-02-28 12:00"}},
    {"0 0 29 FEB *",
     "2092-02-29 00:00",
     {"2096-02-29 00:00", "2104-02-29 00:00", "2108-02-29 00:00", "2112-02-29 00:00",
      "2116-02-29 00:00"}},
    {"0 0 31 4,5,6 *",
     "2026-04-30 23:59",
     {"2026-05-31 00:00", "2027-05-31 00:00", "2028-05-31 00:00", "2029-05-31 00:00",
      "2030-05-31 00:00"}},
    {"0 0 1 1 *",
     "1969-12-31 23:59",
     {"1970-01-01 00:00", "1971-01-01 00:00", "1972-01-01 00:00", "1973-01-01 00:00",
      "1974-01-01 00:00"}},
    {"0 0 1 1 *",
     "1960-06-01 00:00",
     {"1961-01-01 00:00", "1962-01-01 00:00", "1963-01-01 00:00", "1964-01-01 00:00",
      "1965-01-01 00:00"}},
    {"0 6 */10 * *",
     "2026-02-11 06:00",
     {"2026-02-21 06:00", "2026-03-01 06:00", "2026-03-11 06:00", "2026-03-21 06:00",
      "2026-03-31 06:00"}},
    {"0 6 25/3 * *",
     "2026-02-20 06:00",
     {"2026-02-25 06:00", "2026-02-28 06:00", "2026-03-25 06:00", "2026-03-28 06:00",
      "2026-03-31 06:00"}},
    {"0 0 1 */5 *",
     "2026-02-01 00:00",
     {"2026-06-01 00:00", "2026-11-01 00:00", "2027-01-01 00:00", "2027-06-01 00:00",
      "2027-11-01 00:00"}},
    {"0 0 15 jan,Jul-sEP *",
     "2026-01-15 00:00",
     {"2026-07-15 00:00", "2026-08-15 00:00", "2026-09-15 00:00", "2027-01-15 00:00",
      "2027-07-15 00:00"}},
    {"0 0 1 JUN-8 *",
     "2026-06-30 00:00",
     {"2026-07-01 00:00", "2026-08-01 00:00", "2027-06-01 00:00", "2027-07-01 00:00",
      "2027-08-01 00:00"}},
    {"0 0 * * 0",
     "2026-11-24 12:00",
     {"2026-11-29 00:00", "2026-12-06 00:00", "2026-12-13 00:00", "2026-12-20 00:00",
      "2026-12-27 00:00"}},
    {"0 0 * * 7",
     "2026-11-24 12:00",
     {"2026-11-29 00:00", "2026-12-06 00:00", "2026-12-13 00:00", "2026-12-20 00:00",
      "2026-12-27 00:00"}},
    {"0 9 * * MON-FRI",
     "2026-11-26 09:00",
     {"2026-11-27 09:00", "2026-11-30 09:00", "2026-12-01 09:00", "2026-12-02 09:00",
      "2026-12-03 09:00"}},
    {"0 9 * * 5-7",
     "2026-11-24 12:00",
     {"2026-11-27 09:00", "2026-11-28 09:00", "2026-11-29 09:00", "2026-12-04 09:00",
      "2026-12-05 09:00"}},
    {"0 9 * * sat,Sun",
     "2026-11-24 12:00",
     {"2026-11-28 09:00", "2026-11-29 09:00", "2026-12-05 09:00", "2026-12-06 09:00",
      "2026-12-12 09:00"}},
    {"0 9 * * */2",
     "2026-11-24 12:00",
     {"2026-11-26 09:00", "2026-11-28 09:00", "2026-11-29 09:00", "2026-12-01 09:00",
      "2026-12-03 09:00"}},
    {"0 9 * * 3/2",
     "2026-11-24 12:00",
     {"2026-11-25 09:00", "2026-11-27 09:00", "2026-12-02 09:00", "2026-12-04 09:00",
      "2026-12-09 09:00"}},
    {"0 9 * * 7/3",
     "2026-11-24 12:00",
     {"2026-11-25 09:00", "2026-11-28 09:00", "2026-11-29 09:00", "2026-12-02 09:00",
      "2026-12-05 09:00"}},
    {"0 9 * * 0-7/7",
     "2026-11-24 12:00",
     {"2026-11-29 09:00", "2026-12-06 09:00", "2026-12-13 09:00", "2026-12-20 09:00",
      "2026-12-27 09:00"}},
    {"0 0 13 * 5",
     "2026-01-31 12:00",
     {"2026-02-06 00:00", "2026-02-13 00:00", "2026-02-20 00:00", "2026-02-27 00:00",
      "2026-03-06 00:00"}},
    {"0 0 1,15 * MON",
     "2026-10-30 12:00",
     {"2026-11-01 00:00", "2026-11-02 00:00", "2026-11-09 00:00", "2026-11-15 00:00",
      "2026-11-16 00:00"}},
    {"0 0 */13 * 5",
     "2026-01-31 12:00",
     {"2026-02-27 00:00", "2026-03-27 00:00", "2026-05-01 00:00", "2026-08-14 00:00",
      "2026-11-27 00:00"}},
    {"0 0 13 * */5",
     "2026-01-31 12:00",
     {"2026-02-13 00:00", "2026-03-13 00:00", "2026-09-13 00:00", "2026-11-13 00:00",
      "2026-12-13 00:00"}},
    {"0 0 1-31 * 1",
     "2026-01-31 12:00",
     {"2026-02-01 00:00", "2026-02-02 00:00", "2026-02-03 00:00", "2026-02-04 00:00",
      "2026-02-05 00:00"}},
    {"0 0 31 2 3",
     "2028-02-20 12:00",
     {"2028-02-23 00:00", "2029-02-07 00:00", "2029-02-14 00:00", "2029-02-21 00:00",
      "2029-02-28 00:00"}},
    {"  10\t4  *\t12 * ",
     "2026-12-29 04:10",
     {"2026-12-30 04:10", "2026-12-31 04:10", "2027-12-01 04:10", "2027-12-02 04:10",
      "2027-12-03 04:10"}},
    {"@yearly",
     "2026-01-01 00:00",
     {"2027-01-01 00:00", "2028-01-01 00:00", "2029-01-01 00:00", "2030-01-01 00:00",
      "2031-01-01 00:00"}},
    {"@annually",
     "2095-12-31 23:59",
     {"2096-01-01 00:00", "2097-01-01 00:00", "2098-01-01 00:00", "2099-01-01 00:00",
      "2100-01-01 00:00"}},
    {"@monthly",
     "2026-11-24 12:00",
     {"2026-12-01 00:00", "2027-01-01 00:00", "2027-02-01 00:00", "2027-03-01 00:00",
      "2027-04-01 00:00"}},
    {"@weekly",
     "2026-11-24 12:00",
     {"2026-11-29 00:00", "2026-12-06 00:00", "2026-12-13 00:00", "2026-12-20 00:00",
      "2026-12-27 00:00"}},
    {"@daily",
     "2028-02-27 12:00",
     {"2028-02-28 00:00", "2028-02-29 00:00", "2028-03-01 00:00", "2028-03-02 00:00",
      "2028-03-03 00:00"}},
    {"@midnight",
     "2100-02-26 12:00",
     {"2100-02-27 00:00", "2100-02-28 00:00", "2100-03-01 00:00", "2100-03-02 00:00",
      "2100-03-03 00:00"}},
    {"\t@hourly ",
     "2026-12-31 21:30",
     {"2026-12-31 22:00", "2026-12-31 23:00", "2027-01-01 00:00", "2027-01-01 01:00",
      "2027-01-01 02:00"}},
};

TEST(Cron, FindsTheNextTimes) {
  for (const Series& series : kSeries) {
    const CronExpression cron = Parsed(series.text);
    UnixMicros time = At(series.begin);
    for (const std::string& next : series.next) {
      const auto found = cron.NextAfter(time);
      ASSERT_EQ(Shown(found), next) << series.text << " after " << Shown(time);
      time = *found;
    }
  }
}

TEST(Cron, FindsTheSameTimesBackwards) {
  for (const Series& series : kSeries) {
    const CronExpression cron = Parsed(series.text);
    for (size_t i = 0; i < series.next.size(); ++i) {
      const UnixMicros before = At(i == 0 ? series.begin : series.next[i - 1]);
      const UnixMicros next = At(series.next[i]);
      const UnixMicros last = At(series.next.back());
      EXPECT_EQ(Shown(cron.LatestUpTo(before, next)), series.next[i]) << series.text;
      EXPECT_EQ(Shown(cron.LatestUpTo(before, next - 1)), "none") << series.text;
      EXPECT_EQ(Shown(cron.LatestUpTo(next, next)), "none") << series.text;
      EXPECT_EQ(Shown(cron.LatestUpTo(next - 1, next)), series.next[i]) << series.text;
      EXPECT_EQ(Shown(cron.LatestUpTo(before, last)), series.next.back()) << series.text;
      EXPECT_EQ(Shown(cron.LatestUpTo(last, before)), "none") << series.text;
    }
  }
}

TEST(Cron, AMinuteMatchesAtItsBeginning) {
  const CronExpression cron = Parsed("* * * * *");
  for (const std::string minute : {"2026-11-24 12:00", "1970-01-01 00:00", "1969-07-20 20:17"}) {
    const UnixMicros time = At(minute);
    EXPECT_EQ(cron.NextAfter(time - 1), time);
    EXPECT_EQ(cron.NextAfter(time), time + kMicrosInMinute);
    EXPECT_EQ(cron.NextAfter(time + 1), time + kMicrosInMinute);
    EXPECT_EQ(cron.LatestUpTo(time - kMicrosInMinute, time - 1), std::nullopt);
    EXPECT_EQ(cron.LatestUpTo(time - kMicrosInMinute, time), time);
    EXPECT_EQ(cron.LatestUpTo(time - 1, time + 1), time);
    EXPECT_EQ(cron.LatestUpTo(time, time + 1), std::nullopt);
  }
}

TEST(Cron, SundayIs0And7) {
  const std::string sunday = "2026-11-29 00:00";
  for (const char* const day :
       {"0", "7", "SUN", "sun", "00", "07", "0,7", "7-7", "0-0", "*/7", "0-7/7", "SUN-SUN"}) {
    const std::string text = std::string("0 0 * * ") + day;
    EXPECT_EQ(Next(text, "2026-11-24 12:00"), sunday) << text;
    EXPECT_EQ(Next(text, sunday), "2026-12-06 00:00") << text;
    EXPECT_EQ(Latest(text, "2026-11-20 00:00", "2026-12-05 23:59"), sunday) << text;
  }
  for (const char* const days : {"0-7", "1-7", "SUN-SAT", "0-6", "7,1-6", "*", "*/1", "7/1"}) {
    const std::string text = std::string("0 0 * * ") + days;
    EXPECT_EQ(Next(text, "2026-11-28 12:00"), sunday) << text;
    EXPECT_EQ(Next(text, sunday), "2026-11-30 00:00") << text;
  }
  // A step to the end does not reach the Sunday after.
  EXPECT_EQ(Next("0 0 * * 1/2", "2026-11-27 00:00"), "2026-11-30 00:00");
  EXPECT_EQ(Next("0 0 * * 1-7/2", "2026-11-27 00:00"), sunday);
}

TEST(Cron, OfTwoRestrictedDayFieldsOneIsEnough) {
  // Friday the 13th: February, March and November of 2026.
  EXPECT_EQ(Next("0 0 13 * 5", "2026-02-06 00:00"), "2026-02-13 00:00");
  EXPECT_EQ(Next("0 0 13 * 5", "2026-03-27 00:00"), "2026-04-03 00:00");
  EXPECT_EQ(Next("0 0 13 4 5", "2026-04-10 00:00"), "2026-04-13 00:00") << "a Monday";
  // All days, but not by a star.
  EXPECT_EQ(Next("0 0 1-31 * 5", "2026-02-06 00:00"), "2026-02-07 00:00");
  EXPECT_EQ(Next("0 0 13 * 0-6", "2026-02-06 00:00"), "2026-02-07 00:00");
  // One begins with a star: both have to match.
  EXPECT_EQ(Next("0 0 13 * *", "2026-02-06 00:00"), "2026-02-13 00:00");
  EXPECT_EQ(Next("0 0 * * 5", "2026-02-06 00:00"), "2026-02-13 00:00");
  EXPECT_EQ(Next("0 0 */12 * 5", "2026-02-06 00:00"), "2026-02-13 00:00");
  EXPECT_EQ(Next("0 0 */12 * 5", "2026-02-13 00:00"), "2026-03-13 00:00");
  EXPECT_EQ(Next("0 0 13 * */5", "2026-03-13 00:00"), "2026-09-13 00:00") << "a Sunday";
  EXPECT_EQ(Next("0 0 *,13 * 5", "2026-02-06 00:00"), "2026-02-13 00:00");
  EXPECT_EQ(Next("0 0 13,* * 5", "2026-02-06 00:00"), "2026-02-07 00:00");
  EXPECT_EQ(Latest("0 0 13 * 5", "2026-04-01 00:00", "2026-04-16 00:00"), "2026-04-13 00:00");
  EXPECT_EQ(Latest("0 0 */12 * 5", "2026-01-01 00:00", "2026-03-12 00:00"), "2026-02-13 00:00");
}

TEST(Cron, KnowsLeapYears) {
  const std::string leap_day = "0 0 29 2 *";
  EXPECT_EQ(Next(leap_day, "2024-02-29 00:00"), "2028-02-29 00:00");
  EXPECT_EQ(Next(leap_day, "1996-02-29 00:00"), "2000-02-29 00:00");
  // 2100 is none: these are the 8 years.
  EXPECT_EQ(Next(leap_day, "2096-02-29 00:00"), "2104-02-29 00:00");
  EXPECT_EQ(Next("59 23 29 2 *", "2096-02-29 23:59"), "2104-02-29 23:59");
  EXPECT_EQ(Latest(leap_day, "2096-02-29 00:00", "2104-02-28 23:59"), "none");
  EXPECT_EQ(Latest(leap_day, "2090-01-01 00:00", "2104-02-28 23:59"), "2096-02-29 00:00");
  EXPECT_EQ(Next("0 0 * * *", "2100-02-28 00:00"), "2100-03-01 00:00");
  EXPECT_EQ(Latest("0 0 * * *", "2100-01-01 00:00", "2100-03-01 00:00"), "2100-03-01 00:00");
}

TEST(Cron, LooksNoFurtherThan8Years) {
  // A 29 February that is a Sunday: 2004, 2032, 2060, 2088, 2128.
  const std::string text = "30 6 29 2 */7";
  EXPECT_EQ(Next(text, "2004-02-29 06:30"), "none");
  EXPECT_EQ(Next(text, "2024-02-29 06:29"), "none");
  EXPECT_EQ(Next(text, "2024-02-29 06:30"), "2032-02-29 06:30");
  EXPECT_EQ(Next(text, "2032-02-29 06:29"), "2032-02-29 06:30");
  // But back to the beginning.
  EXPECT_EQ(Latest(text, "2004-02-29 06:29", "2032-02-29 06:29"), "2004-02-29 06:30");
  EXPECT_EQ(Latest(text, "2004-02-29 06:30", "2032-02-29 06:29"), "none");
  EXPECT_EQ(Latest(text, "1970-01-01 00:00", "2128-02-29 06:29"), "2088-02-29 06:30");
}

TEST(Cron, GoesBackIntoHoursAndDaysBefore) {
  EXPECT_EQ(Latest("59 * * * *", "2026-11-23 12:00", "2026-11-24 12:30"), "2026-11-24 11:59");
  EXPECT_EQ(Latest("1-59 8-9 * * *", "2026-11-23 12:00", "2026-11-24 09:00"), "2026-11-24 08:59");
  EXPECT_EQ(Latest("1-59 8-9 * * *", "2026-11-22 12:00", "2026-11-24 08:00"), "2026-11-23 09:59");
  EXPECT_EQ(Latest("1-59 8-9 * * *", "2026-11-23 12:00", "2026-11-24 08:00"), "none");
}

TEST(Cron, KnowsTheEndsOfMonths) {
  EXPECT_EQ(Next("0 0 31 * *", "2026-03-31 00:00"), "2026-05-31 00:00");
  EXPECT_EQ(Next("0 0 30 2,4 *", "2026-01-01 00:00"), "2026-04-30 00:00");
  EXPECT_EQ(Next("0 0 30,31 2,12 *", "2026-12-31 00:00"), "2027-12-30 00:00");
  EXPECT_EQ(Next("* * * * *", "2026-12-31 23:59"), "2027-01-01 00:00");
  EXPECT_EQ(Latest("0 0 31 * *", "2026-01-01 00:00", "2026-07-30 23:59"), "2026-05-31 00:00");
  EXPECT_EQ(Latest("59 23 * 2 *", "2026-01-01 00:00", "2026-12-31 00:00"), "2026-02-28 23:59");
  EXPECT_EQ(Latest("59 23 * 12 *", "2020-01-01 00:00", "2026-12-31 23:58"), "2026-12-30 23:59");
}

// After years in which nothing ran there is one time to find, not millions to pass by.
TEST(Cron, FindsTheLatestOfAnyGap) {
  EXPECT_EQ(Latest("* * * * *", "2016-11-24 12:00", "2026-11-24 12:00"), "2026-11-24 12:00");
  EXPECT_EQ(Latest("0 0 1 1 *", "2016-11-24 12:00", "2026-11-24 12:00"), "2026-01-01 00:00");
  const UnixMicros until = At("2026-11-24 12:00");
  EXPECT_EQ(Shown(Parsed("* * * * *").LatestUpTo(kFirst, until)), "2026-11-24 12:00");
  EXPECT_EQ(Shown(Parsed("0 0 29 2 */7").LatestUpTo(kFirst, until)), "2004-02-29 00:00");
}

TEST(Cron, EndsWhereTimeEnds) {
  const CronExpression minutes = Parsed("* * * * *");
  const UnixMicros last_minute = kLast / kMicrosInMinute * kMicrosInMinute;
  const UnixMicros first_minute = kFirst / kMicrosInMinute * kMicrosInMinute;
  EXPECT_EQ(minutes.NextAfter(kLast), std::nullopt);
  EXPECT_EQ(minutes.NextAfter(last_minute), std::nullopt);
  EXPECT_EQ(minutes.NextAfter(last_minute - 1), last_minute);
  EXPECT_EQ(minutes.NextAfter(kFirst), first_minute);
  EXPECT_EQ(minutes.LatestUpTo(kFirst, kLast), last_minute);
  EXPECT_EQ(minutes.LatestUpTo(kFirst, first_minute), first_minute);
  EXPECT_EQ(minutes.LatestUpTo(kFirst, first_minute - 1), std::nullopt);
  EXPECT_EQ(minutes.LatestUpTo(kLast, kFirst), std::nullopt);
  EXPECT_EQ(Parsed("@yearly").NextAfter(kLast), std::nullopt);
}

TEST(Cron, MalformedTextIsRefused) {
  const struct {
    std::string text;
    std::string field;  // or what else names the place
    std::string problem;
    std::string limit;
  } cases[] = {
      {"", "0 fields", "has to have 5", "minute hour day-of-month month day-of-week"},
      {" \t ", "0 fields", "has to have 5", "minute hour day-of-month month day-of-week"},
      {"* * * *", "4 fields", "has to have 5", "minute hour day-of-month month day-of-week"},
      {"0 * * * * *", "6 fields", "has to have 5", "minute hour day-of-month month day-of-week"},
      {"*\n* * * *", "4 fields", "has to have 5", "minute hour day-of-month month day-of-week"},
      {"*,\n * * * *", "minute field", "not printable", "0 to 59"},
      {"60 * * * *", "minute field", "\"60\", which is out of range", "0 to 59"},
      {"-1 * * * *", "minute field", "lacks a value", "0 to 59"},
      {"+1 * * * *", "minute field", "\"+1\", which is no value", "0 to 59"},
      {"1,,2 * * * *", "minute field", "lacks a value", "0 to 59"},
      {"*/0 * * * *", "minute field", "has the step \"0\"", "steps of 1 to 60"},
      {"*/61 * * * *", "minute field", "has the step \"61\"", "steps of 1 to 60"},
      {"*/ * * * *", "minute field", "has the step \"\"", "steps of 1 to 60"},
      {"/5 * * * *", "minute field", "lacks a value", "0 to 59"},
      {"1/2/3 * * * *", "minute field", "has the step \"2/3\"", "steps of 1 to 60"},
      {"JAN * * * *", "minute field", "\"JAN\", which is no value", "0 to 59"},
      {"4294967296 * * * *", "minute field", "out of range", "0 to 59"},
      {"99999999999999999999 * * * *", "minute field", "out of range", "0 to 59"},
      {"*-5 * * * *", "minute field", "\"*\", which is no value", "0 to 59"},
      {"** * * * *", "minute field", "\"**\", which is no value", "0 to 59"},
      {"* 24 * * *", "hour field", "\"24\", which is out of range", "0 to 23"},
      {"* 18-6 * * *", "hour field", "\"18-6\", which ends before it begins", "0 to 23"},
      {"* 1-2-3 * * *", "hour field", "\"2-3\", which is no value", "0 to 23"},
      {"* 1.5 * * *", "hour field", "\"1.5\", which is no value", "0 to 23"},
      {"* 0x1 * * *", "hour field", "\"0x1\", which is no value", "0 to 23"},
      {"* */25 * * *", "hour field", "has the step \"25\"", "steps of 1 to 24"},
      {"* * 0 * *", "day-of-month field", "\"0\", which is out of range", "1 to 31"},
      {"* * 32 * *", "day-of-month field", "\"32\", which is out of range", "1 to 31"},
      {"* * L * *", "day-of-month field", "\"L\", which is no value", "1 to 31"},
      {"* * 15W * *", "day-of-month field", "\"15W\", which is no value", "1 to 31"},
      {"* * ? * *", "day-of-month field", "\"?\", which is no value", "1 to 31"},
      {"0 0 31 2 *", "day-of-month field", "is never in the month \"2\"", "28 or 29"},
      {"0 0 30,31 FEB *", "day-of-month field", "is never in the month \"FEB\"", "28 or 29"},
      {"0 0 31 4,6,9,11 */2", "day-of-month field", "is never in the month", "November 30"},
      {"* * * 0 *", "month field", "\"0\", which is out of range", "1 to 12 or JAN to DEC"},
      {"* * * 13 *", "month field", "\"13\", which is out of range", "1 to 12 or JAN to DEC"},
      {"* * * JANUARY *", "month field", "\"JANUARY\", which is no value", "1 to 12 or JAN to DEC"},
      {"* * * MON *", "month field", "\"MON\", which is no value", "1 to 12 or JAN to DEC"},
      {"* * * NOV-FEB *", "month field", "\"NOV-FEB\", which ends before", "1 to 12 or JAN to DEC"},
      {"* * * */13 *", "month field", "has the step \"13\"", "steps of 1 to 12"},
      {"* * * * 8", "day-of-week field", "\"8\", which is out of range", "0 and 7 are Sunday"},
      {"* * * * FRI-SUN", "day-of-week field", "\"FRI-SUN\", which ends before", "SUN to SAT"},
      {"* * * * 7-1", "day-of-week field", "\"7-1\", which ends before", "SUN to SAT"},
      {"* * * * 5#2", "day-of-week field", "\"5#2\", which is no value", "SUN to SAT"},
      {"* * * * 5L", "day-of-week field", "\"5L\", which is no value", "SUN to SAT"},
      {"* * * * */8", "day-of-week field", "has the step \"8\"", "steps of 1 to 7"},
      {"* * * * MAY", "day-of-week field", "\"MAY\", which is no value", "SUN to SAT"},
      {"@reboot", "\"@reboot\"", "the nicknames are", "@hourly"},
      {"@", "\"@\"", "the nicknames are", "@hourly"},
      {"@daily 5", "\"@daily 5\"", "the nicknames are", "alone"},
      {"@daily * * * *", "\"@daily * * * *\"", "the nicknames are", "alone"},
      {"* * * * @daily", "day-of-week field", "\"@daily\", which is no value", "SUN to SAT"},
      {std::string(257, ' '), "257 bytes", "at most 256", "256"},
      {std::string("* * * *\0 *", 10), "month field", "not printable", "1 to 12"},
      {"* * * * \xff", "day-of-week field", "not printable", "SUN to SAT"},
  };
  for (const auto& [text, field, problem, limit] : cases) {
    const absl::Status refused = CronExpression::Parse(text).status();
    ASSERT_THAT(refused, HasReason(ErrorReason::kInvalidSchedule)) << text;
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(MetadataOf(refused, "field"), "cron") << text;
    const std::string message(refused.message());
    EXPECT_THAT(message, AllOf(HasSubstr(field), HasSubstr(problem), HasSubstr(limit))) << text;
  }
  EXPECT_EQ(CronExpression::Parse("0 24 * * *").status().message(),
            "the hour field of the cron expression, \"24\", has \"24\", which is out of range; it "
            "takes *, values of 0 to 23, ranges a-b, steps of 1 to 24 after a slash, and lists of "
            "these with commas");
}

TEST(Cron, WhatLooksWrongButIsNot) {
  for (const std::string text :
       {"0 0 29 2 *", "0 0 31 2 1", "0 0 31 2-3 *", "0 0 */31 2 *", "*/60 */24 */31 */12 */7",
        "000 0000 01 012 007", "5-5 * * * *", "*,* * * * *", "59/60 * * * *"}) {
    EXPECT_THAT(CronExpression::Parse(text), IsOk()) << text;
  }
  EXPECT_THAT(CronExpression::Parse("* * * * *" + std::string(247, ' ')), IsOk());
}

// A random expression, and what it matches as its grammar says, in the order of the fields.
struct Random {
  std::array<std::string, 5> texts;
  std::array<std::set<int>, 5> values;

  std::string text() const { return absl::StrJoin(texts, " "); }

  // `minute` is of all since 1970.
  bool Matches(int64_t minute) const {
    const std::chrono::sys_time<std::chrono::minutes> time{std::chrono::minutes(minute)};
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const int64_t of_day = (time - day).count();
    if (!values[0].contains(static_cast<int>(of_day % 60))) return false;
    if (!values[1].contains(static_cast<int>(of_day / 60))) return false;
    const std::chrono::year_month_day date(day);
    if (!values[3].contains(static_cast<int>(unsigned{date.month()}))) return false;
    const bool by_month = values[2].contains(static_cast<int>(unsigned{date.day()}));
    const bool by_week =
        values[4].contains(static_cast<int>(std::chrono::weekday(day).c_encoding()));
    const bool star = texts[2][0] == '*' || texts[4][0] == '*';
    return star ? by_month && by_week : by_month || by_week;
  }
};

Random RandomExpression(std::mt19937_64& random) {
  const auto below = [&](int count) {
    return static_cast<int>(random() % static_cast<uint64_t>(count));
  };
  constexpr std::pair<int, int> kLimits[] = {{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}};
  Random made;
  for (size_t i = 0; i < 5; ++i) {
    const auto [low, high] = kLimits[i];
    std::vector<std::string> elements;
    do {
      const int first = low + below(high - low + 1);
      const int last = first + below(high - first + 1);
      const int step = 1 + below(high - low + 1);
      // A single minute or hour seldom, or the search is for too little.
      const int kind = i < 2 && below(3) != 0 ? 0 : below(6);
      int from = first;
      int to = last;
      int by = 1;
      std::string element = std::to_string(first);
      if (kind == 0) {
        element = "*";
        from = low;
        to = high;
      } else if (kind == 1) {
        to = first;
      } else if (kind == 2) {
        element += "-" + std::to_string(last);
      } else if (kind == 3) {
        element += "-" + std::to_string(last) + "/" + std::to_string(step);
        by = step;
      } else if (kind == 4) {
        element += "/" + std::to_string(step);
        to = high;
        by = step;
      } else {
        element = "*/" + std::to_string(step);
        from = low;
        to = high;
        by = step;
      }
      elements.push_back(element);
      for (int value = from; value <= to; value += by) made.values[i].insert(value);
    } while (below(4) == 0);
    made.texts[i] = absl::StrJoin(elements, ",");
  }
  return made;
}

TEST(Cron, FindsWhatASearchMinuteByMinuteFinds) {
  const uint64_t seed = test_support::TestSeed();
  STRATA_TRACE_SEED(seed);
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  };
  constexpr int64_t kMinutesInDay = 24 * 60;
  int found = 0;
  for (int i = 0; i < 300; ++i) {
    const Random made = RandomExpression(random);
    const auto parsed = CronExpression::Parse(made.text());
    if (!parsed.ok()) {
      EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("is never in the month"))
          << made.text();
      continue;
    }
    for (int j = 0; j < 4; ++j) {
      // From 1960 to 2110, and for some minutes, days or months.
      const int64_t begin = (below(150 * 365) - 10 * 365) * kMinutesInDay + below(kMinutesInDay);
      const int64_t gap = below(std::array{int64_t{200}, kMinutesInDay * 3,
                                           kMinutesInDay * 120}[static_cast<size_t>(below(3))]);
      const int64_t end = begin + gap;
      std::optional<UnixMicros> first;
      for (int64_t at = begin + 1; at <= end && !first; ++at) {
        if (made.Matches(at)) first = at * kMicrosInMinute;
      }
      std::optional<UnixMicros> last;
      for (int64_t at = end; at > begin && first && !last; --at) {
        if (made.Matches(at)) last = at * kMicrosInMinute;
      }
      if (last) ++found;
      // Somewhere in their minutes.
      const UnixMicros from = begin * kMicrosInMinute + below(kMicrosInMinute);
      const UnixMicros until = end * kMicrosInMinute + below(kMicrosInMinute);
      ASSERT_EQ(Shown(parsed->LatestUpTo(from, until)), Shown(last))
          << made.text() << " from " << from << " until " << until;
      std::optional<UnixMicros> next = parsed->NextAfter(from);
      if (next && *next > end * kMicrosInMinute) next.reset();
      ASSERT_EQ(Shown(next), Shown(first)) << made.text() << " after " << from;
    }
  }
  EXPECT_GT(found, 100) << "too little was searched for";
}

}  // namespace
}  // namespace strata::queue
