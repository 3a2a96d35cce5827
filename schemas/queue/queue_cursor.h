// The records of queues, without the schedules that lie between them. Internal to this folder.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/queue/queue_record.h"
#include "schemas/store/store.h"

namespace strata::queue {

// A schedule holds a payload, and a queue many schedules: they are passed over by a seek. Not
// thread-safe; the reader must outlive it.
class QueueCursor {
 public:
  // One for each name after `after_name` (empty: from the first).
  static QueueCursor OfNames(const store::Reader& reader, std::string_view after_name) {
    return {reader, after_name.empty() ? FormerQueues().end : std::string(after_name) + '\0'};
  }
  // Those of former queues too (queue_keys.h), which come first.
  static QueueCursor OfAll(const store::Reader& reader) { return {reader, ""}; }

  bool Valid() const { return cursor_->Valid(); }
  void Next() {
    cursor_->Next();
    PassSchedules();
  }
  absl::Status status() const { return cursor_->status(); }

  // REQUIRES: Valid().
  std::string_view key() const { return cursor_->key(); }
  bool former() const { return KindOfQueueKey(key()) == QueueKeyKind::kFormerQueue; }
  // RECORD_CORRUPT.
  absl::StatusOr<QueueRecord> Decode() const {
    return QueueRecord::Decode(former() ? FormerNameOf(key()) : key(),
                               {Bytes(cursor_->value()), cursor_->stamp(), cursor_->position()});
  }

 private:
  QueueCursor(const store::Reader& reader, std::string begin) : reader_(reader) {
    cursor_ = reader_.Scan(store::Keyspace::kQueues, {.begin = std::move(begin), .end = ""});
    PassSchedules();
  }

  void PassSchedules() {
    while (cursor_->Valid() && KindOfQueueKey(key()) == QueueKeyKind::kSchedule) {
      const std::string_view queue = key().substr(0, key().find('\0'));
      store::Range behind;
      behind.begin = ScheduleRange(queue, "").end;
      cursor_ = reader_.Scan(store::Keyspace::kQueues, behind);
    }
  }

  const store::Reader& reader_;
  std::unique_ptr<store::Cursor> cursor_;
};

}  // namespace strata::queue
