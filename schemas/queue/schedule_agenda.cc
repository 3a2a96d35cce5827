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

// Once a record: the next look meets it again.
void ScheduleAgenda::Report(std::string_view key, const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    if (!damaged_.emplace(key).second) return;
  }
  const size_t end = key.find('\0');
  if (report_ != nullptr) report_(key.substr(0, end), key.substr(end + 1), status);
}

absl::StatusOr<ScheduleAgenda::Entries> ScheduleAgenda::ReadAll() {
  Entries all;
  const UnixMicros now = clock_.Now();
  const auto cursor = store_.Scan(Keyspace::kQueues, {});
  for (; cursor->Valid(); cursor->Next()) {
    if (KindOfQueueKey(cursor->key()) != QueueKeyKind::kSchedule) continue;
    const absl::StatusOr<ScheduleHead> head = ScheduleHead::Decode(cursor->value());
    if (!head.ok()) {
      Report(cursor->key(), head.status());
      continue;
    }
    const UnixMicros next = IsAhead(head->times, now) ? 0 : head->times.next_time;
    all.emplace(cursor->key(), Entry{head->incarnation, next, 0});
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
    absl::StatusOr<ScheduleRecord> decoded = ScheduleRecord::Decode(key, *record);
    if (decoded.ok()) {
      schedule = *std::move(decoded);
    } else {
      Report(key, decoded.status());
    }
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
