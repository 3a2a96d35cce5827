// The records of queues.
//
//   queues record (key: name) =
//     { incarnation: int64, created: int64, timeout, retry, retry_max: int64, tries: int32,
//       dead_letter: string, history, lifetime: int64, paused: bool, sink: string (collection),
//       sink_set: string, sink_flight: int32, owner: string, closing: bool, deleted: int64 }
//   queues record (key: name 0x00 schedule) =
//     { queue: int64 (incarnation), next: int64, every: int64 | cron: string, priority: int32,
//       key: string, sequence: int64, pusher: string, headers, payload: document }
//
// Times in microseconds. Members that are 0, empty or false are left out. A deleted queue's record
// stays for a while as a tombstone (queues.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"

namespace strata::queue {

inline constexpr std::chrono::microseconds kTimeoutMin = std::chrono::seconds(1);
inline constexpr std::chrono::microseconds kTimeoutMax = std::chrono::hours(12);
inline constexpr std::chrono::microseconds kRetryDelayMax = std::chrono::hours(24 * 30);
inline constexpr std::chrono::microseconds kRetentionMin = std::chrono::minutes(1);
inline constexpr std::chrono::microseconds kRetentionMax = std::chrono::hours(24 * 3653);

// The queue's messages are enrollments, which the server itself applies.
struct EnrollmentSink {
  static constexpr int32_t kInFlightMax = 1'000;

  std::string collection;
  std::string set;
  int32_t max_in_flight = 64;

  friend bool operator==(const EnrollmentSink&, const EnrollmentSink&) = default;
};

struct QueueSettings {
  std::chrono::microseconds reservation_timeout = std::chrono::seconds(30);
  int32_t max_tries = 0;          // 0: no limit
  std::string dead_letter_queue;  // empty: what dies stays, DEAD
  std::chrono::microseconds retry_delay = std::chrono::seconds(1);
  std::chrono::microseconds retry_delay_max = std::chrono::hours(1);
  std::chrono::microseconds history_retention{0};  // 0: none
  std::chrono::microseconds message_lifetime{0};   // 0: no limit
  bool paused = false;                             // nothing is handed out
  std::optional<EnrollmentSink> enrollments;
  // Who answers for what the queue writes by itself: who changed the settings last. Empty: that
  // principal was not known.
  std::string owner;

  friend bool operator==(const QueueSettings&, const QueueSettings&) = default;
};

// INVALID_FIELD: of each member alone.
absl::Status CheckRanges(const QueueSettings& settings);
// INVALID_FIELD, INVALID_NAME, naming "settings.…" of queue `name`.
absl::Status Validate(std::string_view name, const QueueSettings& settings);

struct QueueRecord {
  std::string name;
  int64_t incarnation = 0;  // drawn at random, so never that of another queue
  QueueSettings settings;
  UnixMicros create_time = 0;
  // Somebody is about to delete it if it is empty. Whoever would use it takes this back first, so
  // that the deletion loses its race.
  bool closing = false;
  std::optional<UnixMicros> delete_time;  // it is a tombstone
  store::Stamp stamp = 0;                 // as read; not part of the value

  std::string Encode() const;
  // RECORD_CORRUPT.
  static absl::StatusOr<QueueRecord> Decode(std::string_view name, const store::Record& record);
};

// Tombstones too; nothing if there is no record. RECORD_CORRUPT, STORE_UNAVAILABLE.
absl::StatusOr<std::optional<QueueRecord>> ReadQueue(const store::Reader& reader,
                                                     std::string_view name);

}  // namespace strata::queue
