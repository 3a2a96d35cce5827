// A store between queues and an engine that breaks one of the rules of their writes.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/queue/message.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/queue/queue_record.h"
#include "schemas/store/forwarding_store.h"

namespace strata::queue::testing {

enum class Fault {
  kNone,
  kTokenWithoutDelivery,     // an acknowledgement matches the message's id alone
  kHintAfterMessage,         // the message is written first
  kEagerCleanUp,             // a hint that does not match is dropped, though it can come true
  kOrphanDropped,            // a hint without its message is dropped without a tombstone
  kDeadLetterOnRollback,     // tries are looked at in a roll back, not when handing out
  kKeyWithoutGuard,          // the record of an ordering key is written blindly
  kMoveKeepsTime,            // a moved message stands where its reservation would have ended
  kReservationWithoutGuard,  // a message is written blindly
  kLookBeforeHint,  // the queue that a message comes into is looked for before it is announced
  kMarkNotHeeded    // and whether it is about to be deleted does not matter
};

// A batch of other writes with what else the batch says.
inline store::WriteBatch WithWrites(const store::WriteBatch& batch,
                                    std::vector<store::Write> writes,
                                    std::optional<size_t> commit_point) {
  store::WriteBatch changed;
  for (size_t i = 0; i < writes.size(); ++i) {
    changed.Put(writes[i].keyspace, "", "") = std::move(writes[i]);
    if (i == commit_point) changed.MarkCommitPoint();
  }
  for (const store::LedgerEntry& entry : batch.ledger()) changed.AppendToLedger(entry);
  changed.set_deadline(batch.deadline());
  if (batch.removal()) changed.MarkAsRemoval();
  return changed;
}

class FaultyStore final : public store::ForwardingStore {
 public:
  FaultyStore(store::Store& inner, Fault fault) : ForwardingStore(inner), fault_(fault) {}

  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override {
    auto record = ForwardingStore::Get(keyspace, key);
    if (!record.ok() || !*record) return record;
    if (fault_ == Fault::kEagerCleanUp && keyspace == store::Keyspace::kMessages) {
      DropWhatDoesNotMatch(key, **record);
    }
    if (fault_ == Fault::kDeadLetterOnRollback && keyspace == store::Keyspace::kQueues) {
      auto queue = QueueRecord::Decode(key, **record);
      if (!queue.ok()) return record;
      queue->settings.max_tries = 0;
      (*record)->value = Bytes(queue->Encode());
    }
    if (fault_ == Fault::kMarkNotHeeded && !deletes_ && keyspace == store::Keyspace::kQueues) {
      auto queue = QueueRecord::Decode(key, **record);
      if (!queue.ok()) return record;
      queue->closing = false;
      (*record)->value = Bytes(queue->Encode());
    }
    return record;
  }
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override {
    return Reader::GetMany(keys);
  }

  void Commit(store::WriteBatch batch, store::CommitCallback done) override {
    for (const store::Write& write : batch.writes()) {
      if (write.keyspace != store::Keyspace::kQueues || write.kind != store::WriteKind::kPut)
        continue;
      const auto queue = QueueRecord::Decode(write.key, {Bytes(write.value), 1, 0});
      deletes_ = queue.ok() && queue->closing;
    }
    if (fault_ == Fault::kLookBeforeHint) {
      const std::vector<store::Write>& writes = batch.writes();
      if (std::all_of(writes.begin(), writes.end(), IsHintPut)) {
        announced_.insert_or_assign(ParseHintKey(writes.front().key)->id, writes);
        store::CommitResult result;
        result.committed = true;
        result.applied = writes.size();
        return done(result);
      }
      batch = WithAnnouncement(batch);
    }
    inner().Commit(Spoil(std::move(batch)), std::move(done));
  }

 private:
  static bool IsMessage(const store::Write& write) {
    return write.keyspace == store::Keyspace::kMessages && write.key.size() == MessageId::kBytes;
  }
  static bool IsHintPut(const store::Write& write) {
    return write.keyspace == store::Keyspace::kQueueIndex && write.kind == store::WriteKind::kPut &&
           ParseHintKey(write.key).has_value();
  }
  static bool IsOrder(const store::Write& write) {
    constexpr size_t kKindAt = 8;
    return write.keyspace == store::Keyspace::kQueueIndex && write.key.size() > kKindAt &&
           write.key[kKindAt] == 'o';
  }

  store::WriteBatch Spoil(store::WriteBatch batch) const {
    std::vector<store::Write> writes = batch.writes();
    std::optional<size_t> point = batch.commit_point();
    switch (fault_) {
      case Fault::kHintAfterMessage: {
        const store::Write committing = writes[batch.commit_point()];
        std::stable_partition(writes.begin(), writes.end(),
                              [](const store::Write& write) { return !IsHintPut(write); });
        const auto is_point = [&](const store::Write& write) {
          return write.keyspace == committing.keyspace && write.key == committing.key;
        };
        point = static_cast<size_t>(std::find_if(writes.begin(), writes.end(), is_point) -
                                    writes.begin());
        break;
      }
      case Fault::kOrphanDropped:
        if (!std::any_of(writes.begin(), writes.end(), IsTombstone)) return batch;
        std::erase_if(writes, IsTombstone);
        point.reset();
        break;
      case Fault::kKeyWithoutGuard:
        std::erase_if(writes, [](const store::Write& write) {
          return IsOrder(write) && write.kind == store::WriteKind::kCheck;
        });
        for (store::Write& write : writes) {
          if (IsOrder(write)) write.guard = store::Guard::kAny;
        }
        point.reset();
        break;
      case Fault::kReservationWithoutGuard:
        for (store::Write& write : writes) {
          if (IsMessage(write) && write.guard == store::Guard::kStamp) {
            write.guard = store::Guard::kAny;
          }
        }
        break;
      case Fault::kMoveKeepsTime:
        KeepTimes(writes);
        break;
      case Fault::kNone:
      case Fault::kTokenWithoutDelivery:
      case Fault::kEagerCleanUp:
      case Fault::kDeadLetterOnRollback:
      case Fault::kLookBeforeHint:
      case Fault::kMarkNotHeeded:
        return batch;
    }
    return WithWrites(batch, std::move(writes), point);
  }

  // With what was to be written before it.
  store::WriteBatch WithAnnouncement(const store::WriteBatch& batch) {
    std::vector<store::Write> writes = batch.writes();
    size_t point = batch.commit_point();
    const auto message = std::find_if(writes.begin(), writes.end(), IsMessage);
    if (message == writes.end()) return batch;
    const auto hints = announced_.extract(*MessageId::FromBytes(message->key));
    if (!hints) return batch;
    point += hints.mapped().size();
    writes.insert(writes.begin(), hints.mapped().begin(), hints.mapped().end());
    return WithWrites(batch, std::move(writes), point);
  }

  static bool IsTombstone(const store::Write& write) {
    if (!IsMessage(write) || write.kind != store::WriteKind::kPut) return false;
    const auto message = Message::Decode(Bytes(write.value));
    return message.ok() && message->stage == Stage::kTombstone;
  }

  // Of messages that leave their queue while they are out.
  void KeepTimes(std::vector<store::Write>& writes) const {
    for (store::Write& write : writes) {
      if (!IsMessage(write) || write.kind != store::WriteKind::kPut) continue;
      const auto record = ForwardingStore::Get(write.keyspace, write.key);
      if (!record.ok() || !*record) continue;
      const auto before = Message::Decode((*record)->value);
      auto after = Message::Decode(Bytes(write.value));
      if (!before.ok() || !after.ok() || before->stage != Stage::kReserved ||
          before->queue == after->queue) {
        continue;
      }
      const MessageId id = *MessageId::FromBytes(write.key);
      const auto key_of = [&id](const Message& message) {
        return HintKey(message.queue,
                       {HintKind::kDue, message.priority, message.time, id, message.hint_base});
      };
      const std::string planned = key_of(*after);
      after->time = before->time;
      write.value = after->Encode();
      for (store::Write& other : writes) {
        if (other.keyspace == store::Keyspace::kQueueIndex && other.key == planned) {
          other.key = key_of(*after);
        }
      }
    }
  }

  void DropWhatDoesNotMatch(std::string_view key, const store::Record& record) const {
    const auto id = MessageId::FromBytes(key);
    const auto message = Message::Decode(record.value);
    if (!id || !message.ok()) return;
    const auto cursor = Scan(store::Keyspace::kQueueIndex, {});
    for (; cursor->Valid(); cursor->Next()) {
      const auto hint = ParseHintKey(cursor->key());
      if (!hint || hint->kind != HintKind::kDue || hint->id != *id) continue;
      if (hint->number == message->time && hint->base == message->hint_base) continue;
      store::WriteBatch drop;
      drop.Delete(store::Keyspace::kQueueIndex, std::string(cursor->key()));
      inner().Commit(std::move(drop), [](const store::CommitResult&) {});
    }
  }

  const Fault fault_;
  std::map<MessageId, std::vector<store::Write>> announced_;
  bool deletes_ = false;  // its own mark stands
};

}  // namespace strata::queue::testing
