// The messages that some steps change: each is read once, changed in memory by each step, and
// written in one batch. Internal to this folder.
//
// Here, and nowhere else, hints follow from messages: the batch first puts the hints that the new
// state needs, then replaces the message (the commit point), then deletes those that only the old
// state needed. So an unfinished message has its hint at every moment, on engines without atomic
// batches too, where each step is a draft of its own.
//
// There a message that comes into a queue (pushed, moved, dead or replayed) is announced: its hints
// are committed first, then the queue is looked for once more, and only then the message comes. A
// deletion of an empty queue marks the queue, looks for hints and deletes under its mark. So either
// it meets the hint, or the mark is met, and taken back, before the message is there.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/queue/queue_record.h"
#include "schemas/store/store.h"

namespace strata::queue {

// What the value of a due hint says of its message, so that it need not be read.
enum class HintState : uint8_t {
  kDue,      // READY from its time on
  kAtOnce,   // READY, under any clock
  kReserved  // RESERVED until its time
};
struct HintValue {
  HintState state = HintState::kDue;
  // Of kReserved: how long the reservation is; 0: it is not known.
  std::chrono::microseconds timeout{0};

  static HintValue Of(const Message& message);
  static HintValue Decode(std::string_view value);
  std::string Encode() const;
};

// A key of queue_index that came or went with a commit.
struct IndexChange {
  std::string key;
  bool added = false;
  HintState state = HintState::kDue;  // of a due hint
};

// A message's record after a commit.
struct Written {
  MessageId id;
  std::optional<Message> message;  // none: it was deleted
};

// An ordering key that has unfinished messages. Its record is replaced under its stamp by each push
// and each end of a message of the key, so that no two of them miss each other.
//
//   queue_index "o" record = { head: binary(16), tail: int64 }
struct Order {
  MessageId head;    // the only one that is not WAITING
  int64_t tail = 0;  // the number of the last one

  std::string Encode() const;
  // RECORD_CORRUPT.
  static absl::StatusOr<Order> Decode(std::string_view value);

  friend bool operator==(const Order&, const Order&) = default;
};

// Not thread-safe. The reader must outlive it. A message is looked for before it is set or removed;
// so steps that read all that they need before they change anything leave nothing half done.
class Draft {
 public:
  // `atomic`: the whole batch is applied or nothing of it. Else `step` is a number that no other
  // draft has, of whatever process.
  Draft(const store::Reader& reader, bool atomic, int64_t step = 0)
      : reader_(reader), atomic_(atomic), step_(step) {}

  // A record that was to be forgotten by `now` counts as absent; by the engine's clock it may not
  // be yet, and then an insertion loses its race. So a second attempt passes `attempt` 1, and so
  // on: every other attempt takes such a record as it is stored.
  void Forget(UnixMicros now, int attempt) {
    forgotten_ = attempt % 2 == 0 ? now : 0;
    attempt_ = attempt;
  }

  // The approximate number of messages that will be looked for.
  void Reserve(size_t messages) { messages_.reserve(messages); }

  // Saves reading the message: it was stored so, under that stamp. A writer learns from its guard
  // whether it still is; a step that is refused because of it has to Verify it.
  void Know(const MessageId& id, Message message, store::Stamp stamp);
  // The same of a message that is new: it is not stored. Where the guard has refused it once it is
  // read.
  void KnowAbsent(const MessageId& id) {
    if (attempt_ == 0) messages_.try_emplace(id);
  }
  // Reads a message that was only known; whether it is stored otherwise by now.
  absl::StatusOr<bool> Verify(const MessageId& id);

  // The message as the draft has it, null if there is none; a tombstone is one. A payload that lies
  // beside is not read. RECORD_CORRUPT, STORE_UNAVAILABLE.
  absl::StatusOr<const Message*> Find(const MessageId& id);
  // Its stamp as it is stored; 0 if it is not. REQUIRES: it was looked for.
  store::Stamp StoredStamp(const MessageId& id) const { return messages_.at(id).stamp; }
  // With the payload that lies beside. Nothing: the message was changed since it was looked for, so
  // that what is planned on it will lose its race. REQUIRES: Find found it. RECORD_CORRUPT,
  // STORE_UNAVAILABLE.
  absl::StatusOr<std::optional<Message>> WithPayload(const MessageId& id);

  // What belongs to the draft itself (the bases of hints, where the payload lies) is set by it, and
  // what belongs to other stages is left out.
  void Set(const MessageId& id, Message message);
  void Remove(const MessageId& id);

  // Null: the key has no unfinished message.
  absl::StatusOr<const Order*> FindOrder(int64_t queue, std::string_view ordering_key);
  void SetOrder(int64_t queue, std::string_view ordering_key, Order order);
  void RemoveOrder(int64_t queue, std::string_view ordering_key);
  // The first unfinished member of the key with a number greater than `after`.
  absl::StatusOr<std::optional<MessageId>> FindMember(int64_t queue, std::string_view ordering_key,
                                                      int64_t after);

  // The batch commits only while the queue is as it was read. Without atomic batches there is no
  // such guard; then the committer has to look for the queues before it answers.
  void Require(const QueueRecord& queue);
  // Deletes a hint whose message will never arrive, if it is still unchanged; whether it was.
  absl::StatusOr<bool> DropHint(std::string key);
  // A record that is replaced with the rest. False, and it is not: it is joined already.
  bool Join(store::Keyspace keyspace, std::string key, std::string value, store::Stamp stamp);

  // Of payloads that it writes beside their messages.
  size_t payload_bytes() const { return payload_bytes_; }

  // The hints of messages of the queue which the draft has changed and that may be handed out now.
  std::vector<Hint> Ready(int64_t queue, UnixMicros now) const;

  // Whether anything is to be written. A check is nothing.
  bool changes() const;

  struct Planned {
    // To be committed first, if it is not empty; the batch follows, unless a target queue was
    // deleted. With atomic batches it is empty.
    store::WriteBatch announcement;
    std::vector<std::pair<std::string, int64_t>> entered;  // names and incarnations
    store::WriteBatch batch;
    std::vector<IndexChange> index;  // what becomes of queue_index with it
    std::vector<Written> written;
    std::vector<std::pair<std::string, int64_t>> queues;  // required: names and incarnations
    // Records of payloads that become garbage if the batch fails. With atomic batches there are
    // none then.
    std::vector<std::string> payloads;
  };
  // REQUIRES: called once, last.
  Planned Take();

 private:
  struct Entry {
    std::optional<Message> stored;
    store::Stamp stamp = 0;
    std::optional<Message> drafted;
    bool changed = false;
    bool known = false;        // and not read
    bool new_payload = false;  // that lies beside
  };
  struct OrderEntry {
    std::optional<Order> stored;
    store::Stamp stamp = 0;
    std::optional<Order> drafted;
    bool changed = false;
  };

  absl::Status Load(const MessageId& id, Entry& entry);
  static void PlaceHints(Entry& entry);
  // Where what is written of a message goes, in this order.
  struct Parts {
    store::WriteBatch& hints;
    store::WriteBatch& messages;
    store::WriteBatch& drops;
  };
  void WriteMessage(const MessageId& id, Entry entry, const Parts& parts, Planned& planned) const;
  // Where a new payload of the entry's message lies. Two steps planned from the same state must not
  // write to the same place, or one that loses its race changes what the other has answered for.
  store::Stamp PayloadBase(const Entry& entry) const { return atomic_ ? entry.stamp : step_; }

  const store::Reader& reader_;
  const bool atomic_;
  const int64_t step_;
  size_t payload_bytes_ = 0;
  UnixMicros forgotten_ = 0;  // what was to be forgotten by then is not there
  int attempt_ = 0;
  absl::flat_hash_map<MessageId, Entry> messages_;
  std::vector<MessageId> in_order_;  // of their first change
  std::map<std::pair<int64_t, std::string>, OrderEntry> orders_;
  std::map<std::string, QueueRecord> required_;
  struct Dropped {
    std::string key;
    store::Stamp stamp = 0;
    HintState state = HintState::kDue;
  };
  std::vector<Dropped> dropped_;
  store::WriteBatch joined_;
};

}  // namespace strata::queue
