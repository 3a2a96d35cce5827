// The records of schedules (queue_record.h), and when they fire. Internal to this folder.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/queue/queues.h"
#include "schemas/store/store.h"

namespace strata::queue {

// A schedule as it is stored.
struct ScheduleRecord {
  Schedule schedule;
  int64_t incarnation = 0;  // its queue's
  store::Stamp stamp = 0;   // as read; not part of the value

  std::string Encode() const;
  // RECORD_CORRUPT.
  static absl::StatusOr<ScheduleRecord> Decode(std::string_view key, const store::Record& record);
};

// What is to be known of a stored schedule before it fires. Its payload is not looked at.
struct ScheduleHead {
  int64_t incarnation = 0;
  Schedule times;  // its times alone

  // RECORD_CORRUPT.
  static absl::StatusOr<ScheduleHead> Decode(std::string_view value);
};

// INVALID_SCHEDULE, INVALID_FIELD: neither or both of cron and every, or one of them is wrong.
absl::Status ValidateTimes(const Schedule& schedule);

// The first time after `now`. REQUIRES: ValidateTimes.
UnixMicros FirstTime(const Schedule& schedule, UnixMicros now);

// Whether it waits for a time which only a clock that was ahead can have given it: right is
// FirstTime.
bool IsAhead(const Schedule& schedule, UnixMicros now);

struct Firing {
  UnixMicros time = 0;       // of what fires now: those missed before it do not
  UnixMicros next_time = 0;  // after `now`
};
// Nothing: its time has not come.
std::optional<Firing> FiringAt(const Schedule& schedule, UnixMicros now);

}  // namespace strata::queue
