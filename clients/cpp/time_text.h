// Times as a person types and reads them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace strata::client {

// A point in time: seconds since 1970-01-01T00:00Z and nanoseconds onward from there, 0 to
// 999,999,999, as google.protobuf.Timestamp has it.
struct Instant {
  int64_t seconds = 0;
  int32_t nanos = 0;
  friend bool operator==(const Instant&, const Instant&) = default;
};

// Reads RFC 3339 and its shorter forms: "2026-01-31", "2026-01-31T12:00", "2026-01-31 12:00:07.5",
// each with or without a zone ("Z", "+02:00"). Without a zone the time is UTC; without a time of
// day it is midnight. Years 0001 to 9999. INVALID_ARGUMENT for everything else, dates that no
// calendar has included.
absl::StatusOr<Instant> ParseTime(std::string_view text);

// As ParseTime, and times that are counted from `now`: "now", "5m ago", "1h 30m ago", "2 days ago",
// "in 90s". Units: ms, s, m, h, d, w, and their names in words; at most ten years (of 366 days).
absl::StatusOr<Instant> ParseTimeFrom(std::string_view text, Instant now);

// "2026-01-31T12:00:07Z"; a fraction has 3, 6 or 9 digits and is left out if zero.
std::string FormatTime(Instant time);

// "2026-01-31 12:00:07": for tables, to the second, UTC.
std::string FormatTimeShort(Instant time);

// "2026-01-31 12:00:07.250000": to the microsecond, UTC. ParseTime reads it.
std::string FormatTimeMicros(Instant time);

// Reads a duration: "90", "90s", "1.5m", "2h", "250ms"; a number alone counts seconds. Answers
// milliseconds, 1 to 10^9; INVALID_ARGUMENT for everything else.
absl::StatusOr<int64_t> ParseDurationMs(std::string_view text);

// As ParseDurationMs, but 0 to ten years (of 366 days), and with days too: "30d".
absl::StatusOr<int64_t> ParseLongDurationMs(std::string_view text);

}  // namespace strata::client
