#include "schemas/queue/schedule_agenda.h"

#include <algorithm>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/queue/queue_keys.h"

namespace strata::queue {
namespace {

using store::Keyspace;

constexpr std::chrono::microseconds kLoadInterval = std::chrono::minutes(1);

}  // namespace

absl::StatusOr<ScheduleAgenda::Entries> ScheduleAgenda::ReadAll() const {
  Entries all;
  const auto cursor = store_.Scan(Keyspace::kQueues, {});
  for (; cursor->Valid(); cursor->Next()) {
    if (KindOfQueueKey(cursor->key()) != QueueKeyKind::kSchedule) continue;
    ASSIGN_OR_RETURN(const ScheduleHead head, ScheduleHead::Decode(cursor->value()));
    all.emplace(cursor->key(), Entry{head.incarnation, head.next_time, 0});
  }
  RETURN_IF_ERROR(cursor->status());
  return all;
}

absl::Status ScheduleAgenda::Load(bool anyway) {
  uint64_t changes_before = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto now = clock_.SteadyNow();
    if (!anyway && loaded_at_ && now - *loaded_at_ < kLoadInterval) return absl::OkStatus();
    changes_before = changes_;
  }
  ASSIGN_OR_RETURN(Entries all, ReadAll());
  const std::lock_guard lock(mutex_);
  for (auto& [key, entry] : entries_) {
    // The scan may have passed it before.
    if (entry.change > changes_before) all.insert_or_assign(key, entry);
  }
  entries_ = std::move(all);
  loaded_at_ = clock_.SteadyNow();
  return absl::OkStatus();
}

void ScheduleAgenda::Mark(const std::string& key, int64_t incarnation) {
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(key, Entry{incarnation, 0, ++changes_});
}

size_t ScheduleAgenda::CountOf(std::string_view queue, int64_t incarnation) const {
  const store::Range range = ScheduleRange(queue, "");
  const std::lock_guard lock(mutex_);
  const auto end = entries_.lower_bound(range.end);
  return static_cast<size_t>(
      std::count_if(entries_.lower_bound(range.begin), end,
                    [&](const auto& entry) { return entry.second.incarnation == incarnation; }));
}

std::vector<std::string> ScheduleAgenda::ToLookAt(UnixMicros now) const {
  std::vector<std::string> keys;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    if (entry.next_time <= now) keys.push_back(key);
  }
  return keys;
}

absl::StatusOr<std::optional<ScheduleRecord>> ScheduleAgenda::Read(const std::string& key) {
  uint64_t change = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(key);
    if (found != entries_.end()) change = found->second.change;
  }
  ASSIGN_OR_RETURN(const std::optional<store::Record> record, store_.Get(Keyspace::kQueues, key));
  std::optional<ScheduleRecord> schedule;
  if (record) {
    ASSIGN_OR_RETURN(schedule, ScheduleRecord::Decode(key, *record));
  }
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  // Else it has changed since it was read.
  if (found != entries_.end() && found->second.change == change) {
    if (schedule) {
      found->second.incarnation = schedule->incarnation;
      found->second.next_time = schedule->schedule.next_time;
    } else {
      entries_.erase(found);
    }
  }
  return schedule;
}

std::optional<UnixMicros> ScheduleAgenda::NextTime(UnixMicros now) const {
  std::optional<UnixMicros> next;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    if (entry.next_time > now && (!next || entry.next_time < *next)) next = entry.next_time;
  }
  return next;
}

}  // namespace strata::queue
