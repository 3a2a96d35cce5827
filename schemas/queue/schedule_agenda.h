// When the schedules of all queues fire next, in memory. Internal to this folder.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/queue/schedule.h"
#include "schemas/store/store.h"

namespace strata::queue {

// A schedule holds a payload, so that reading all of them is much: they are read once a minute, for
// what other servers have made, and one by one when something has become of them here or their time
// has come. One whose record is damaged is reported once, and passed over. Thread-safe.
class ScheduleAgenda {
 public:
  // Store and clock outlive it.
  ScheduleAgenda(const store::Store& store, const Clock& clock, DamagedSchedule report)
      : store_(store), clock_(clock), report_(std::move(report)) {}

  // Reads all schedules unless that was less than a minute ago, or anyway. STORE_UNAVAILABLE.
  absl::Status Load(bool anyway);

  // Something has become of the schedule (queue_keys.h) of that queue: it is read again.
  void Mark(const std::string& key, int64_t incarnation);

  // Of the queue, as far as they are known here.
  size_t CountOf(std::string_view queue, int64_t incarnation) const;

  // Those whose time has come, that wait for a time of a clock that was ahead when they were read,
  // or that are to be read again.
  std::vector<std::string> ToLookAt(UnixMicros now) const;
  // The schedule as it is stored; none also where its record is damaged. STORE_UNAVAILABLE.
  absl::StatusOr<std::optional<ScheduleRecord>> Read(const std::string& key);
  // When the first of the others comes; none: there are none.
  std::optional<UnixMicros> NextTime(UnixMicros now) const;

 private:
  struct Entry {
    int64_t incarnation = 0;
    UnixMicros next_time = 0;  // 0: it is to be read whole
    uint64_t change = 0;       // which Mark was the last
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  absl::StatusOr<Entries> ReadAll();
  void Report(std::string_view key, const absl::Status& status);

  const store::Store& store_;
  const Clock& clock_;
  const DamagedSchedule report_;
  mutable std::mutex mutex_;  // guards what follows
  Entries entries_;
  std::set<std::string, std::less<>> damaged_;  // those that were reported
  uint64_t changes_ = 0;
  std::optional<std::chrono::steady_clock::time_point> loaded_at_;
};

}  // namespace strata::queue
