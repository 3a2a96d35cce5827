#include "schemas/queue/schedule.h"

#include <limits>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/queue/cron.h"
#include "schemas/queue/queue_keys.h"

namespace strata::queue {
namespace {

using document::BsonBuilder;
using document::BsonReader;

constexpr UnixMicros kNever = std::numeric_limits<UnixMicros>::max();

absl::Status CorruptSchedule() {
  return Error(ErrorReason::kRecordCorrupt, "schedule record").With("record", "schedule record");
}

absl::Status Invalid(std::string_view field, std::string_view problem) {
  return Error(ErrorReason::kInvalidSchedule, problem).With("field", field);
}

}  // namespace

std::string ScheduleRecord::Encode() const {
  BsonBuilder builder;
  const PushedMessage& message = schedule.message;
  builder.Int64("queue", incarnation).Int64("next", schedule.next_time);
  if (schedule.cron.empty()) {
    builder.Int64("every", schedule.every.count());
  } else {
    builder.String("cron", schedule.cron);
  }
  if (message.priority != 0) builder.Int32("priority", message.priority);
  if (!message.ordering_key.empty()) builder.String("key", message.ordering_key);
  if (message.sequence_number) builder.Int64("sequence", *message.sequence_number);
  if (!message.pusher.empty()) builder.String("pusher", message.pusher);
  builder.Document("headers", ToContent(message.headers).bytes());
  builder.Document("payload", message.payload.bytes());
  return builder.Take();
}

absl::StatusOr<ScheduleRecord> ScheduleRecord::Decode(std::string_view key,
                                                      const store::Record& record) {
  const size_t end = key.find('\0');
  if (end == key.npos) return CorruptSchedule();
  ScheduleRecord decoded;
  decoded.stamp = record.stamp;
  Schedule& schedule = decoded.schedule;
  schedule.queue = key.substr(0, end);
  schedule.name = key.substr(end + 1);
  BsonReader reader(record.value);
  while (reader.Next()) {
    const std::string_view name = reader.name();
    if (name == "queue") {
      decoded.incarnation = reader.Int64();
    } else if (name == "next") {
      schedule.next_time = reader.Int64();
    } else if (name == "every") {
      schedule.every = std::chrono::microseconds(reader.Int64());
    } else if (name == "cron") {
      schedule.cron = reader.String();
    } else if (name == "priority") {
      schedule.message.priority = static_cast<int32_t>(reader.Int64());
    } else if (name == "key") {
      schedule.message.ordering_key = reader.String();
    } else if (name == "sequence") {
      schedule.message.sequence_number = reader.Int64();
    } else if (name == "pusher") {
      schedule.message.pusher = reader.String();
    } else if (name == "headers") {
      const std::string_view headers = reader.Document();
      if (reader.corrupt()) return CorruptSchedule();
      ASSIGN_OR_RETURN(schedule.message.headers,
                       ToHeaders(document::Content::FromTrusted(std::string(headers))));
    } else if (name == "payload") {
      schedule.message.payload = document::Content::FromTrusted(std::string(reader.Document()));
    } else {
      return CorruptSchedule();
    }
  }
  if (reader.corrupt() || schedule.cron.empty() == (schedule.every.count() == 0))
    return CorruptSchedule();
  return decoded;
}

absl::StatusOr<ScheduleHead> ScheduleHead::Decode(std::string_view value) {
  ScheduleHead head;
  int found = 0;
  BsonReader reader(value);
  while (found < 3 && reader.Next()) {
    const std::string_view name = reader.name();
    if (name == "queue") {
      head.incarnation = reader.Int64();
    } else if (name == "next") {
      head.times.next_time = reader.Int64();
    } else if (name == "every") {
      head.times.every = std::chrono::microseconds(reader.Int64());
    } else if (name == "cron") {
      head.times.cron = reader.String();
    } else {
      continue;
    }
    ++found;
  }
  if (reader.corrupt() || found < 3) return CorruptSchedule();
  return head;
}

absl::Status ValidateTimes(const Schedule& schedule) {
  if (schedule.cron.empty() == (schedule.every.count() == 0)) {
    return Invalid("cron", "exactly one of cron and every is needed");
  }
  if (!schedule.cron.empty()) return CronExpression::Parse(schedule.cron).status();
  if (schedule.every < kEveryMin || schedule.every > kEveryMax) {
    return Invalid("every",
                   "is " + std::to_string(schedule.every.count()) + " us; may be 1 s to 30 days");
  }
  return absl::OkStatus();
}

UnixMicros FirstTime(const Schedule& schedule, UnixMicros now) {
  if (schedule.cron.empty()) return now + schedule.every.count();
  const absl::StatusOr<CronExpression> cron = CronExpression::Parse(schedule.cron);
  return cron.ok() ? cron->NextAfter(now).value_or(kNever) : kNever;
}

bool IsAhead(const Schedule& schedule, UnixMicros now) {
  return schedule.next_time > now &&
         schedule.next_time > FirstTime(schedule, now + kClockTolerance.count());
}

std::optional<Firing> FiringAt(const Schedule& schedule, UnixMicros now) {
  if (schedule.next_time > now) return std::nullopt;
  if (schedule.cron.empty()) {
    const UnixMicros every = schedule.every.count();
    const UnixMicros time = schedule.next_time + (now - schedule.next_time) / every * every;
    return Firing{time, time + every};
  }
  const absl::StatusOr<CronExpression> cron = CronExpression::Parse(schedule.cron);
  if (!cron.ok()) return std::nullopt;
  const UnixMicros time = cron->LatestUpTo(schedule.next_time, now).value_or(schedule.next_time);
  return Firing{time, cron->NextAfter(now).value_or(kNever)};
}

}  // namespace strata::queue
