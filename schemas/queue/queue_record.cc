#include "schemas/queue/queue_record.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/names.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/document/bson_builder.h"
#include "schemas/enrollment/sequence_guard.h"
#include "schemas/queue/queue_errors.h"

namespace strata::queue {
namespace {

using document::BsonBuilder;
using document::BsonReader;
using std::chrono::microseconds;

absl::Status CorruptQueue() {
  return Error(ErrorReason::kRecordCorrupt, "queue record").With("record", "queue record");
}

}  // namespace

absl::Status CheckRanges(const QueueSettings& settings) {
  constexpr microseconds kNone{0};
  RETURN_IF_ERROR(CheckRange("settings.reservation_timeout", settings.reservation_timeout,
                             kTimeoutMin, kTimeoutMax));
  if (settings.max_tries != 0) {
    RETURN_IF_ERROR(
        CheckLeast("settings.max_tries", settings.max_tries, 1, "; leave it unset for no limit"));
  }
  RETURN_IF_ERROR(CheckRange("settings.retry_delay", settings.retry_delay, kNone, kRetryDelayMax));
  RETURN_IF_ERROR(
      CheckRange("settings.retry_delay_max", settings.retry_delay_max, kNone, kRetryDelayMax));
  if (settings.history_retention != kNone) {
    RETURN_IF_ERROR(CheckRange("settings.history_retention", settings.history_retention,
                               kRetentionMin, kRetentionMax));
  }
  if (settings.message_lifetime != kNone) {
    RETURN_IF_ERROR(CheckRange("settings.message_lifetime", settings.message_lifetime, kTimeoutMin,
                               kRetentionMax));
  }
  if (!settings.enrollments) return absl::OkStatus();
  return CheckRange("settings.enrollments.max_in_flight", settings.enrollments->max_in_flight, 1,
                    EnrollmentSink::kInFlightMax);
}

absl::Status Validate(std::string_view name, const QueueSettings& settings) {
  RETURN_IF_ERROR(CheckRanges(settings));
  if (!settings.dead_letter_queue.empty()) {
    RETURN_IF_ERROR(ValidateName("settings.dead_letter_queue", settings.dead_letter_queue));
    if (settings.dead_letter_queue == name) {
      return FieldError("settings.dead_letter_queue",
                        "is the queue itself; dead messages would come back");
    }
  }
  if (settings.retry_delay > settings.retry_delay_max) {
    return FieldError("settings.retry_delay", absl::StrCat("is ", Seconds(settings.retry_delay),
                                                           ", more than settings.retry_delay_max, ",
                                                           Seconds(settings.retry_delay_max)));
  }
  if (!settings.enrollments) return absl::OkStatus();
  RETURN_IF_ERROR(
      ValidateName("settings.enrollments.collection", settings.enrollments->collection));
  return InField(enrollment::ValidateSet(settings.enrollments->set), "settings.enrollments");
}

std::string QueueRecord::Encode() const {
  BsonBuilder builder;
  builder.Int64("incarnation", incarnation).Int64("created", create_time);
  builder.Int64("timeout", settings.reservation_timeout.count());
  builder.Int64("retry", settings.retry_delay.count());
  builder.Int64("retry_max", settings.retry_delay_max.count());
  if (settings.max_tries != 0) builder.Int32("tries", settings.max_tries);
  if (!settings.dead_letter_queue.empty()) {
    builder.String("dead_letter", settings.dead_letter_queue);
  }
  if (settings.history_retention.count() != 0) {
    builder.Int64("history", settings.history_retention.count());
  }
  if (settings.message_lifetime.count() != 0) {
    builder.Int64("lifetime", settings.message_lifetime.count());
  }
  if (settings.paused) builder.Bool("paused", true);
  if (settings.enrollments) {
    builder.String("sink", settings.enrollments->collection);
    builder.String("sink_set", settings.enrollments->set);
    builder.Int32("sink_flight", settings.enrollments->max_in_flight);
  }
  if (!settings.owner.empty()) builder.String("owner", settings.owner);
  if (closing) builder.Bool("closing", true);
  if (delete_time) builder.Int64("deleted", *delete_time);
  return builder.Take();
}

absl::StatusOr<QueueRecord> QueueRecord::Decode(std::string_view name,
                                                const store::Record& record) {
  QueueRecord queue;
  queue.name = name;
  queue.stamp = record.stamp;
  QueueSettings& settings = queue.settings;
  const auto sink = [&]() -> EnrollmentSink& {
    if (!settings.enrollments) settings.enrollments.emplace();
    return *settings.enrollments;
  };
  BsonReader reader(record.value);
  while (reader.Next()) {
    const std::string_view member = reader.name();
    if (member == "incarnation") {
      queue.incarnation = reader.Int64();
    } else if (member == "created") {
      queue.create_time = reader.Int64();
    } else if (member == "timeout") {
      settings.reservation_timeout = microseconds(reader.Int64());
    } else if (member == "retry") {
      settings.retry_delay = microseconds(reader.Int64());
    } else if (member == "retry_max") {
      settings.retry_delay_max = microseconds(reader.Int64());
    } else if (member == "tries") {
      settings.max_tries = static_cast<int32_t>(reader.Int64());
    } else if (member == "dead_letter") {
      settings.dead_letter_queue = reader.String();
    } else if (member == "history") {
      settings.history_retention = microseconds(reader.Int64());
    } else if (member == "lifetime") {
      settings.message_lifetime = microseconds(reader.Int64());
    } else if (member == "paused") {
      settings.paused = reader.Bool();
    } else if (member == "sink") {
      sink().collection = reader.String();
    } else if (member == "sink_set") {
      sink().set = reader.String();
    } else if (member == "sink_flight") {
      sink().max_in_flight = static_cast<int32_t>(reader.Int64());
    } else if (member == "owner") {
      settings.owner = reader.String();
    } else if (member == "closing") {
      queue.closing = reader.Bool();
    } else if (member == "deleted") {
      queue.delete_time = reader.Int64();
    } else {
      return CorruptQueue();
    }
  }
  if (reader.corrupt() || queue.incarnation <= 0) return CorruptQueue();
  return queue;
}

absl::StatusOr<std::optional<QueueRecord>> ReadQueue(const store::Reader& reader,
                                                     std::string_view name) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(store::Keyspace::kQueues, name));
  if (!record) return std::nullopt;
  return QueueRecord::Decode(name, *record);
}

}  // namespace strata::queue
