#include "schemas/queue/queue_admin.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/plans.h"
#include "schemas/queue/queue_cursor.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/queue/schedule.h"

namespace strata::queue {
namespace {

using store::CommitResult;
using store::Keyspace;
using store::WriteBatch;

constexpr UnixMicros kQueueTombstoneKept = UnixMicros{24} * 3600 * 1'000'000;
// With atomic batches nothing can come into a queue that is deleted. Then its tombstone tells other
// servers, whose turns are some seconds apart, until another queue has the name.
constexpr UnixMicros kQueueTombstoneTold = UnixMicros{60} * 1'000'000;
// Of one turn of the sweeper.
constexpr size_t kSweptAtOnce = 500;

int64_t DrawIncarnation(Entropy& entropy) {
  const std::string bytes = entropy.Bytes(8);
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return static_cast<int64_t>((number >> 2) | 1);
}

bool IsLive(const std::optional<QueueRecord>& stored) { return stored && !stored->delete_time; }

}  // namespace

Queue ToQueue(const QueueRecord& record) {
  return {record.name, record.settings, record.create_time};
}

void QueueAdmin::Write(std::string name, Change change, Deadline deadline, RecordCallback done) {
  store::Race race{"queue " + name, deadline};
  store::CommitGuarded(
      environment_->GroundOf(shared_from_this()), std::move(race),
      [this, name, change = std::move(change),
       deadline](WriteBatch& batch) -> absl::StatusOr<QueueRecord> {
        ASSIGN_OR_RETURN(const std::optional<QueueRecord> stored,
                         ReadQueue(environment_->store, name));
        ASSIGN_OR_RETURN(QueueRecord wanted, change(stored));
        if (stored) {
          if (stored->incarnation != wanted.incarnation) {
            // What the one before has left is still to be swept.
            batch.Put(Keyspace::kQueues, FormerQueueKey(name, stored->incarnation),
                      stored->Encode());
          }
          batch.Replace(Keyspace::kQueues, name, wanted.Encode(), stored->stamp);
          batch.MarkCommitPoint();
        } else {
          batch.Insert(Keyspace::kQueues, name, wanted.Encode());
        }
        const bool closes = wanted.closing || (stored && stored->closing);
        if (closes || wanted.delete_time) batch.MarkAsRemoval();
        // To take a mark back is never too late.
        if (deadline == kNoDeadline && closes) batch.MarkAsBackground();
        return wanted;
      },
      [this, name, done = std::move(done)](absl::StatusOr<QueueRecord> written,
                                           store::CommitPosition position) {
        const Doors::Visit visit(environment_->doors);
        if (!visit.let_in()) return;
        if (!written.ok()) return done(written.status());
        // With its stamp, which only the store knows where commits have no positions.
        written->stamp = position;
        if (position == 0) {
          absl::StatusOr<std::optional<QueueRecord>> anew = ReadQueue(environment_->store, name);
          if (!anew.ok()) return done(anew.status());
          // Another server may have been there since.
          const bool still = *anew && (*anew)->Encode() == written->Encode();
          written->stamp = still ? (*anew)->stamp : 0;
          if (!still) {
            if (*anew) directory_.Know(**anew);
            return done(std::move(written));
          }
        }
        directory_.Know(*written);
        done(std::move(written));
      });
}

absl::Status QueueAdmin::Admit() {
  const std::lock_guard lock(mutex_);
  // Other servers make and delete queues too.
  if (!count_ || *count_ >= queues_max_) {
    int64_t count = 0;
    QueueCursor cursor = QueueCursor::OfNames(environment_->store, "");
    for (; cursor.Valid(); cursor.Next()) {
      ASSIGN_OR_RETURN(const QueueRecord queue, cursor.Decode());
      count += queue.delete_time ? 0 : 1;
    }
    RETURN_IF_ERROR(cursor.status());
    count_ = count;
  }
  if (*count_ >= queues_max_) {
    return Error(ErrorReason::kQueueLimit,
                 "there are " + std::to_string(queues_max_) + " queues already")
        .With("limit", queues_max_);
  }
  ++*count_;
  return absl::OkStatus();
}

void QueueAdmin::Create(std::string name, QueueSettings settings, Deadline deadline,
                        QueueCallback done) {
  if (const absl::Status admitted = Admit(); !admitted.ok()) return done(admitted);
  Write(
      name,
      [name, settings = std::move(settings), &environment = *environment_](
          const std::optional<QueueRecord>& stored) -> absl::StatusOr<QueueRecord> {
        if (IsLive(stored)) return QueueExists(name);
        QueueRecord queue;
        queue.name = name;
        queue.incarnation = DrawIncarnation(environment.entropy);
        queue.settings = settings;
        queue.create_time = environment.clock.Now();
        return queue;
      },
      deadline,
      [self = shared_from_this(), done = std::move(done)](absl::StatusOr<QueueRecord> made) {
        if (made.ok()) return done(ToQueue(*made));
        {
          const std::lock_guard lock(self->mutex_);
          --*self->count_;
        }
        done(made.status());
      });
}

void QueueAdmin::Update(std::string name, std::function<absl::Status(QueueSettings&)> change,
                        Deadline deadline, QueueCallback done) {
  Write(
      name,
      [name, change = std::move(change)](
          const std::optional<QueueRecord>& stored) -> absl::StatusOr<QueueRecord> {
        if (!IsLive(stored)) return QueueNotFound(name);
        QueueRecord queue = *stored;
        RETURN_IF_ERROR(change(queue.settings));
        RETURN_IF_ERROR(Validate(name, queue.settings));
        queue.closing = false;
        return queue;
      },
      deadline,
      [done = std::move(done)](absl::StatusOr<QueueRecord> changed) {
        if (!changed.ok()) return done(changed.status());
        done(ToQueue(*changed));
      });
}

void QueueAdmin::Delete(std::string name, bool force, Deadline deadline,
                        std::function<void(absl::Status)> done) {
  const auto ended = [self = shared_from_this(), done = std::move(done)](absl::Status status) {
    if (status.ok()) {
      const std::lock_guard lock(self->mutex_);
      if (self->count_) --*self->count_;
    }
    done(status);
  };
  if (!force) return DeleteEmpty(std::move(name), deadline, 0, ended);
  Write(
      name,
      [name, &environment = *environment_](
          const std::optional<QueueRecord>& stored) -> absl::StatusOr<QueueRecord> {
        if (!IsLive(stored)) return QueueNotFound(name);
        QueueRecord queue = *stored;
        queue.delete_time = environment.clock.Now();
        return queue;
      },
      deadline, [ended](const absl::StatusOr<QueueRecord>& deleted) { ended(deleted.status()); });
}

void QueueAdmin::DeleteEmpty(std::string name, Deadline deadline, int attempts,
                             std::function<void(absl::Status)> done) {
  const auto mark =
      [name](const std::optional<QueueRecord>& stored) -> absl::StatusOr<QueueRecord> {
    if (!IsLive(stored)) return QueueNotFound(name);
    QueueRecord queue = *stored;
    queue.closing = true;
    return queue;
  };
  Write(name, mark, deadline,
        [self = shared_from_this(), name, deadline, attempts,
         done = std::move(done)](absl::StatusOr<QueueRecord> marked) mutable {
          if (!marked.ok()) return done(marked.status());
          const store::Stamp stamp = marked->stamp;
          UntrueHints untrue;
          const absl::StatusOr<bool> used = self->IsUsed(*marked, untrue);
          absl::StatusOr<bool> empty = used;
          if (used.ok()) empty = !*used && untrue.empty();
          if (used.ok() && !*used && !untrue.empty() && attempts + 1 < store::kAttemptsMax) {
            // What writers that died have left does not hold the queue.
            self->directory_.Clean(
                name, std::move(untrue),
                [self, name, deadline, attempts, done = std::move(done)]() mutable {
                  self->DeleteEmpty(name, deadline, attempts + 1, std::move(done));
                });
            return;
          }
          // Whoever used it meanwhile has taken the mark back, and with it this stamp.
          const auto end =
              [name, stamp, &environment = *self->environment_, remove = empty.ok() && *empty](
                  const std::optional<QueueRecord>& stored) -> absl::StatusOr<QueueRecord> {
            if (!IsLive(stored)) return QueueNotFound(name);
            QueueRecord queue = *stored;
            if (stored->stamp != stamp) return queue;  // decided anew, on what is there then
            queue.closing = false;
            if (remove) queue.delete_time = environment.clock.Now();
            return queue;
          };
          const bool removes = empty.ok() && *empty;
          self->Write(name, end, removes ? deadline : kNoDeadline,
                      [self, name, deadline, attempts, empty = std::move(empty),
                       done = std::move(done)](absl::StatusOr<QueueRecord> ended) mutable {
                        if (!empty.ok()) return done(empty.status());
                        if (!ended.ok()) return done(ended.status());
                        if (ended->delete_time) return done(absl::OkStatus());
                        if (!*empty || attempts + 1 >= store::kAttemptsMax) {
                          return done(QueueNotEmpty(name));
                        }
                        self->DeleteEmpty(name, deadline, attempts + 1, std::move(done));
                      });
        });
}

absl::StatusOr<bool> QueueAdmin::IsUsed(const QueueRecord& queue, UntrueHints& untrue) const {
  return HoldsMessages(environment_->store, queue, environment_->clock.Now(), untrue);
}

void QueueAdmin::Commit(WriteBatch batch) {
  if (batch.writes().empty()) return;
  batch.MarkAsBackground();
  // What fails, or was changed meanwhile, is found again by the next turn.
  environment_->store.Commit(std::move(batch), [](const CommitResult&) {});
}

absl::StatusOr<bool> QueueAdmin::SweepSchedules(const QueueRecord& queue) {
  WriteBatch batch;
  batch.MarkAsRemoval();
  size_t swept = 0;
  const auto cursor = environment_->store.Scan(Keyspace::kQueues, ScheduleRange(queue.name, ""));
  for (; cursor->Valid() && swept < kSweptAtOnce; cursor->Next()) {
    const absl::StatusOr<ScheduleHead> schedule = ScheduleHead::Decode(cursor->value());
    // Damaged, or of a queue of this name that was made since the tombstone was read.
    if (!schedule.ok() || schedule->incarnation != queue.incarnation) continue;
    batch.DeleteIf(Keyspace::kQueues, std::string(cursor->key()), cursor->stamp());
    ++swept;
  }
  RETURN_IF_ERROR(cursor->status());
  Commit(std::move(batch));
  return swept > 0;
}

// Its messages, as its index leads to them, and then the index. What may still come true, of
// somebody who looked for the queue before it was deleted by force, is left until it has or can no
// more: a message without its hint would never be found.
absl::StatusOr<bool> QueueAdmin::SweepQueue(const QueueRecord& queue) {
  const UnixMicros now = environment_->clock.Now();
  const bool pushes_over = *queue.delete_time + kPushTakesMax <= now;
  const bool all_over = *queue.delete_time + kQueueTombstoneKept <= now;
  const auto cursor =
      environment_->store.Scan(Keyspace::kQueueIndex, QueueRange(queue.incarnation));
  size_t swept = 0;
  absl::flat_hash_set<MessageId> removed;  // which may still be seen
  for (; cursor->Valid() && swept < kSweptAtOnce; cursor->Next()) {
    WriteBatch batch;
    batch.MarkAsRemoval();
    std::optional<MessageId> id;
    const std::optional<Hint> hint = ParseHintKey(cursor->key());
    if (hint) {
      id = hint->id;
    } else if (const std::optional<Member> member = ParseMemberKey(cursor->key())) {
      id = member->id;
    }
    if (id && !removed.contains(*id)) {
      ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                       environment_->store.Get(Keyspace::kMessages, id->bytes()));
      bool here = false;
      if (record) {
        ASSIGN_OR_RETURN(const Message message, Message::Decode(record->value));
        here = message.queue == queue.incarnation && message.stage != Stage::kTombstone &&
               message.stage != Stage::kStub;
        if (here) {
          removed.insert(*id);
          // It may have been pushed to another queue, which remembers its request.
          if (std::optional<Message> left = Rest(message, now)) {
            left->delivery = 0;
            batch
                .Replace(Keyspace::kMessages, std::string(id->bytes()), left->Encode(),
                         record->stamp)
                .expire_time = left->forget_time;
          } else {
            batch.DeleteIf(Keyspace::kMessages, std::string(id->bytes()), record->stamp);
          }
          if (message.payload_base) {
            batch.Delete(Keyspace::kMessages, PayloadKey(*id, *message.payload_base));
          }
        }
      }
      if (!here && hint && !environment_->capabilities.atomic_batches && !all_over) {
        const bool under_way = record ? record->stamp <= hint->base : hint->base == 0;
        if (!record && hint->base == 0 && pushes_over) {
          const Message tombstone = TombstoneOf(queue.incarnation, now);
          batch.Insert(Keyspace::kMessages, std::string(id->bytes()), tombstone.Encode())
              .expire_time = tombstone.forget_time;
        } else if (under_way) {
          continue;
        }
      }
    }
    batch.Delete(Keyspace::kQueueIndex, std::string(cursor->key()));
    Commit(std::move(batch));
    ++swept;
  }
  RETURN_IF_ERROR(cursor->status());
  return swept > 0;
}

// How long the tombstone is still needed, once nothing is left of the queue.
UnixMicros QueueAdmin::KeptFor(const QueueRecord& tombstone, bool former) const {
  UnixMicros kept = kQueueTombstoneKept;
  if (environment_->capabilities.atomic_batches) kept = former ? 0 : kQueueTombstoneTold;
  return *tombstone.delete_time + kept - environment_->clock.Now();
}

absl::StatusOr<bool> QueueAdmin::Sweep() {
  bool more = false;
  QueueCursor cursor = QueueCursor::OfAll(environment_->store);
  for (; cursor.Valid(); cursor.Next()) {
    ASSIGN_OR_RETURN(const QueueRecord queue, cursor.Decode());
    // What other servers have made of it.
    if (!cursor.former()) directory_.Meet(queue);
    if (!queue.delete_time) {
      ASSIGN_OR_RETURN(const bool history, history_.Sweep(queue));
      more = more || history;
      continue;
    }
    ASSIGN_OR_RETURN(const bool schedules, SweepSchedules(queue));
    ASSIGN_OR_RETURN(const bool messages, SweepQueue(queue));
    more = more || schedules || messages;
    if (schedules || messages || KeptFor(queue, cursor.former()) > 0) continue;
    WriteBatch batch;
    batch.DeleteIf(Keyspace::kQueues, std::string(cursor.key()), queue.stamp);
    Commit(std::move(batch));
  }
  RETURN_IF_ERROR(cursor.status());
  return more;
}

}  // namespace strata::queue
