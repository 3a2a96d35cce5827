#include "schemas/queue/draft.h"

#include <algorithm>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"

namespace strata::queue {
namespace {

using document::BsonBuilder;
using document::BsonReader;
using store::Keyspace;
using store::WriteBatch;

// The empty document.
constexpr std::string_view kPlain("\x05\0\0\0\0", 5);

struct Key {
  std::string key;
  std::string value{kPlain};
  UnixMicros expire_time = 0;
  HintState state = HintState::kDue;

  friend bool operator==(const Key&, const Key&) = default;
};

std::optional<Hint> StageHint(const MessageId& id, const Message& message) {
  Hint hint{HintKind::kDue, 0, message.time, id, message.hint_base};
  switch (message.stage) {
    case Stage::kOpen:
    case Stage::kReserved:
      hint.priority = message.priority;
      return hint;
    case Stage::kDead:
      hint.kind = HintKind::kDead;
      return hint;
    case Stage::kFinished:
      hint.kind = HintKind::kFinished;
      return hint;
    case Stage::kWaiting:
    case Stage::kStub:
    case Stage::kTombstone:
      break;
  }
  return std::nullopt;
}

bool IsThere(const Message& message) { return message.live() || message.stage == Stage::kDead; }

bool IsCounted(const Message& message) { return message.sequence_number && IsThere(message); }

// Whether the message was not in the queue before, or not as one that a deletion heeds.
bool Arrives(const std::optional<Message>& before, const std::optional<Message>& after) {
  if (!after || !IsThere(*after)) return false;
  return !before || before->queue != after->queue || !IsThere(*before);
}

// Every key of queue_index that the message's state asks for.
std::vector<Key> IndexKeys(const MessageId& id, const std::optional<Message>& message) {
  std::vector<Key> keys;
  if (!message) return keys;
  if (const std::optional<Hint> hint = StageHint(id, *message)) {
    Key key{HintKey(message->queue, *hint)};
    if (hint->kind == HintKind::kDue) {
      const HintValue value = HintValue::Of(*message);
      key.value = value.Encode();
      key.state = value.state;
    }
    if (message->stage == Stage::kFinished) key.expire_time = message->forget_time;
    keys.push_back(std::move(key));
  }
  if (IsCounted(*message)) {
    const Hint hint{HintKind::kSequence, 0, *message->sequence_number, id, message->sequence_base};
    keys.push_back({HintKey(message->queue, hint)});
  }
  if (message->live() && !message->ordering_key.empty()) {
    keys.push_back({MemberKey(message->queue, message->ordering_key, message->number, id)});
  }
  return keys;
}

bool Contains(const std::vector<Key>& keys, const Key& key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

}  // namespace

HintValue HintValue::Of(const Message& message) {
  if (message.stage == Stage::kReserved) return {HintState::kReserved, message.timeout};
  return {message.at_once ? HintState::kAtOnce : HintState::kDue};
}

// { }, { a: true }, { r: milliseconds }; { r: true } of a build that kept no timeouts.
std::string HintValue::Encode() const {
  using std::chrono::ceil;
  using std::chrono::milliseconds;
  switch (state) {
    case HintState::kDue:
      break;
    case HintState::kAtOnce:
      return BsonBuilder().Bool("a", true).Take();
    case HintState::kReserved:
      if (timeout.count() == 0) return BsonBuilder().Bool("r", true).Take();
      return BsonBuilder()
          .Int32("r", static_cast<int32_t>(ceil<milliseconds>(timeout).count()))
          .Take();
  }
  return std::string(kPlain);
}

HintValue HintValue::Decode(std::string_view value) {
  if (value == kPlain) return {};
  HintValue decoded;
  BsonReader reader(value);
  while (reader.Next()) {
    if (reader.name() == "a") {
      decoded.state = HintState::kAtOnce;
    } else if (reader.name() == "r") {
      decoded.state = HintState::kReserved;
      decoded.timeout = std::chrono::milliseconds(reader.Int64());  // 0 of { r: true }
    }
  }
  return decoded;
}

std::string Order::Encode() const {
  return BsonBuilder().Binary("head", head.bytes()).Int64("tail", tail).Take();
}

absl::StatusOr<Order> Order::Decode(std::string_view value) {
  Order order;
  std::optional<MessageId> head;
  BsonReader reader(value);
  while (reader.Next()) {
    if (reader.name() == "head") {
      head = MessageId::FromBytes(reader.Binary());
    } else if (reader.name() == "tail") {
      order.tail = reader.Int64();
    }
  }
  if (reader.corrupt() || !head || order.tail <= 0) {
    return Error(ErrorReason::kRecordCorrupt, "record of an ordering key")
        .With("record", "ordering key");
  }
  order.head = *head;
  return order;
}

void Draft::Know(const MessageId& id, Message message, store::Stamp stamp) {
  const auto [place, fresh] = messages_.try_emplace(id);
  if (!fresh) return;
  Entry& entry = place->second;
  entry.stored = std::move(message);
  entry.stamp = stamp;
  entry.drafted = entry.stored;
  entry.known = true;
}

absl::StatusOr<bool> Draft::Verify(const MessageId& id) {
  const auto found = messages_.find(id);
  if (found == messages_.end() || !found->second.known || found->second.changed) return false;
  Entry read;
  RETURN_IF_ERROR(Load(id, read));
  const bool otherwise = read.stamp != found->second.stamp;
  found->second = std::move(read);
  return otherwise;
}

absl::Status Draft::Load(const MessageId& id, Entry& entry) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader_.Get(Keyspace::kMessages, id.bytes()));
  if (!record) return absl::OkStatus();
  ASSIGN_OR_RETURN(Message message, Message::Decode(record->value));
  if (message.forget_time != 0 && message.forget_time <= forgotten_) return absl::OkStatus();
  entry.stored = std::move(message);
  entry.stamp = record->stamp;
  entry.drafted = entry.stored;
  return absl::OkStatus();
}

absl::StatusOr<const Message*> Draft::Find(const MessageId& id) {
  auto found = messages_.find(id);
  if (found == messages_.end()) {
    Entry entry;
    RETURN_IF_ERROR(Load(id, entry));
    found = messages_.emplace(id, std::move(entry)).first;
  }
  const std::optional<Message>& message = found->second.drafted;
  return message ? &*message : nullptr;
}

absl::StatusOr<std::optional<Message>> Draft::WithPayload(const MessageId& id) {
  const Entry& entry = messages_.at(id);
  Message message = *entry.drafted;
  if (!message.payload_base || entry.new_payload) return message;
  ASSIGN_OR_RETURN(const std::optional<store::Record> payload,
                   reader_.Get(Keyspace::kMessages, PayloadKey(id, *message.payload_base)));
  if (!payload) {
    Entry now;
    RETURN_IF_ERROR(Load(id, now));
    if (now.stamp != entry.stamp) return std::nullopt;
    return Error(ErrorReason::kRecordCorrupt, "the payload of a message is missing")
        .With("record", "message payload");
  }
  message.payload = document::Content::FromTrusted(payload->value, payload->value);
  return message;
}

void Draft::Set(const MessageId& id, Message message) {
  Entry& entry = messages_.at(id);
  if (!entry.changed) in_order_.push_back(id);
  entry.changed = true;
  if (message.stage != Stage::kReserved) message.timeout = {};
  if (message.stage != Stage::kOpen && message.stage != Stage::kWaiting) message.at_once = false;
  // Whoever changes a payload that lies beside takes away its base.
  const bool beside = entry.drafted && entry.drafted->payload_base && !entry.new_payload;
  const bool kept = beside && message.payload_base == entry.drafted->payload_base;
  if (!kept) {
    message.payload_base.reset();
    entry.new_payload = message.payload.size() > kPayloadInlineBytesMax;
    if (entry.new_payload) {
      message.payload_base = PayloadBase(entry);
      payload_bytes_ += message.payload.size();
    }
  }
  entry.drafted = std::move(message);
}

void Draft::Remove(const MessageId& id) {
  Entry& entry = messages_.at(id);
  if (!entry.changed) in_order_.push_back(id);
  entry.changed = true;
  entry.new_payload = false;
  entry.drafted.reset();
}

absl::StatusOr<const Order*> Draft::FindOrder(int64_t queue, std::string_view ordering_key) {
  auto place = std::make_pair(queue, std::string(ordering_key));
  auto found = orders_.find(place);
  if (found == orders_.end()) {
    OrderEntry entry;
    ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                     reader_.Get(Keyspace::kQueueIndex, OrderKey(queue, ordering_key)));
    if (record) {
      ASSIGN_OR_RETURN(entry.stored, Order::Decode(record->value));
      entry.stamp = record->stamp;
      entry.drafted = entry.stored;
    }
    found = orders_.emplace(std::move(place), std::move(entry)).first;
  }
  const std::optional<Order>& order = found->second.drafted;
  return order ? &*order : nullptr;
}

void Draft::SetOrder(int64_t queue, std::string_view ordering_key, Order order) {
  OrderEntry& entry = orders_.at({queue, std::string(ordering_key)});
  entry.drafted = order;
  entry.changed = true;
}

void Draft::RemoveOrder(int64_t queue, std::string_view ordering_key) {
  OrderEntry& entry = orders_.at({queue, std::string(ordering_key)});
  entry.drafted.reset();
  entry.changed = true;
}

absl::StatusOr<std::optional<MessageId>> Draft::FindMember(int64_t queue,
                                                           std::string_view ordering_key,
                                                           int64_t after) {
  // What the draft itself brings or changes, which the store does not show.
  std::optional<std::pair<int64_t, MessageId>> first;
  for (const MessageId& id : in_order_) {
    const std::optional<Message>& message = messages_.at(id).drafted;
    if (!message || message->queue != queue || !message->live() ||
        message->ordering_key != ordering_key || message->number <= after) {
      continue;
    }
    const std::pair<int64_t, MessageId> member{message->number, id};
    if (!first || member < *first) first = member;
  }
  const auto cursor = reader_.Scan(Keyspace::kQueueIndex, MemberRange(queue, ordering_key, after));
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<Member> member = ParseMemberKey(cursor->key());
    if (!member) continue;
    if (first && first->first <= member->number) break;
    ASSIGN_OR_RETURN(const Message* message, Find(member->id));
    if (message == nullptr || message->queue != queue || !message->live() ||
        message->ordering_key != ordering_key || message->number != member->number) {
      continue;
    }
    first = {member->number, member->id};
    break;
  }
  RETURN_IF_ERROR(cursor->status());
  if (!first) return std::nullopt;
  return first->second;
}

void Draft::Require(const QueueRecord& queue) { required_.try_emplace(queue.name, queue); }

std::vector<Hint> Draft::Ready(int64_t queue, UnixMicros now) const {
  std::vector<Hint> ready;
  for (const MessageId& id : in_order_) {
    const std::optional<Message>& message = messages_.at(id).drafted;
    if (!message || message->queue != queue || message->stage != Stage::kOpen ||
        !message->due(now)) {
      continue;
    }
    ready.push_back({HintKind::kDue, message->priority, message->time, id, message->hint_base});
  }
  return ready;
}

bool Draft::Join(Keyspace keyspace, std::string key, std::string value, store::Stamp stamp) {
  for (const store::Write& write : joined_.writes()) {
    if (write.keyspace == keyspace && write.key == key) return false;
  }
  joined_.Replace(keyspace, std::move(key), std::move(value), stamp);
  return true;
}

// Under its stamp, so that of those who meet it at the same time one drops it and counts it.
absl::StatusOr<bool> Draft::DropHint(std::string key) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> hint,
                   reader_.Get(Keyspace::kQueueIndex, key));
  if (!hint) return false;
  dropped_.push_back({std::move(key), hint->stamp, HintValue::Decode(hint->value).state});
  return true;
}

bool Draft::changes() const {
  const auto changed = [](const auto& entry) { return entry.second.changed; };
  return !in_order_.empty() || !dropped_.empty() || !joined_.writes().empty() ||
         std::any_of(orders_.begin(), orders_.end(), changed);
}

// A hint whose key would be another than the one that is stored gets the stamp as its base that the
// step is planned from: whoever drops an older one never drops this one.
void Draft::PlaceHints(Entry& entry) {
  if (!entry.drafted) return;
  Message& after = *entry.drafted;
  const Message* before = entry.stored ? &*entry.stored : nullptr;
  const bool same_hint = before != nullptr && before->queue == after.queue &&
                         before->stage == after.stage && before->time == after.time &&
                         before->at_once == after.at_once && before->timeout == after.timeout &&
                         before->priority == after.priority &&
                         before->forget_time == after.forget_time;
  after.hint_base = same_hint ? before->hint_base : entry.stamp;
  const bool same_count = before != nullptr && before->queue == after.queue && IsCounted(*before) &&
                          before->sequence_number == after.sequence_number;
  after.sequence_base = same_count ? before->sequence_base : IsCounted(after) ? entry.stamp : 0;
}

void Draft::WriteMessage(const MessageId& id, Entry entry, const Parts& parts,
                         Planned& planned) const {
  WriteBatch& batch = parts.messages;
  std::vector<Key> before = IndexKeys(id, entry.stored);
  std::vector<Key> after = IndexKeys(id, entry.drafted);
  if (entry.new_payload) {
    std::string key = PayloadKey(id, *entry.drafted->payload_base);
    if (!atomic_) planned.payloads.push_back(key);
    batch.Put(Keyspace::kMessages, std::move(key), std::string(entry.drafted->payload.bytes()))
        .expire_time = entry.drafted->forget_time;
  }
  const bool announced = !atomic_ && Arrives(entry.stored, entry.drafted);
  if (announced) {
    for (const auto& queue : planned.queues) {
      if (queue.second == entry.drafted->queue) planned.entered.push_back(queue);
    }
  }
  WriteBatch& hints = announced ? planned.announcement : parts.hints;
  for (const Key& key : after) {
    if (Contains(before, key)) continue;
    hints.Put(Keyspace::kQueueIndex, key.key, key.value).expire_time = key.expire_time;
    planned.index.push_back({key.key, true, key.state});
  }
  // What was never stored and is gone again leaves nothing to write.
  if (entry.drafted) {
    store::Write& write = entry.stored ? batch.Replace(Keyspace::kMessages, std::string(id.bytes()),
                                                       entry.drafted->Encode(), entry.stamp)
                                       : batch.Insert(Keyspace::kMessages, std::string(id.bytes()),
                                                      entry.drafted->Encode());
    write.expire_time = entry.drafted->forget_time;
    batch.MarkCommitPoint();
  } else if (entry.stored) {
    batch.DeleteIf(Keyspace::kMessages, std::string(id.bytes()), entry.stamp);
    batch.MarkCommitPoint();
  } else {
    return;
  }
  for (Key& key : before) {
    if (Contains(after, key)) continue;
    parts.drops.Delete(Keyspace::kQueueIndex, key.key);
    planned.index.push_back({std::move(key.key), false, key.state});
  }
  const std::optional<store::Stamp> old_payload =
      entry.stored ? entry.stored->payload_base : std::nullopt;
  if (old_payload && (!entry.drafted || entry.drafted->payload_base != old_payload)) {
    parts.drops.Delete(Keyspace::kMessages, PayloadKey(id, *old_payload));
  }
  planned.written.push_back({id, std::move(entry.drafted)});
}

Draft::Planned Draft::Take() {
  Planned planned;
  planned.written.reserve(in_order_.size());
  WriteBatch& batch = planned.batch;
  for (auto& [name, queue] : required_) {
    planned.queues.emplace_back(name, queue.incarnation);
    if (!atomic_) continue;
    if (queue.closing) {
      // Whoever is about to delete it finds out that it is used.
      queue.closing = false;
      batch.Replace(Keyspace::kQueues, name, queue.Encode(), queue.stamp);
    } else {
      batch.Check(Keyspace::kQueues, name, queue.stamp);
    }
  }
  // Where nothing of the batch is seen before all is, what lies side by side is written one after
  // the other: the engine then finds the place of each from that of the last one.
  WriteBatch messages;
  WriteBatch drops;
  const Parts parts{batch, atomic_ ? messages : batch, atomic_ ? drops : batch};
  for (const MessageId& id : in_order_) {
    Entry& entry = messages_.at(id);
    PlaceHints(entry);
    WriteMessage(id, std::move(entry), parts, planned);
  }
  batch.Append(std::move(messages));
  batch.Append(std::move(drops));
  for (const auto& [place, entry] : orders_) {
    if (!entry.changed) continue;
    std::string key = OrderKey(place.first, place.second);
    if (entry.stored.has_value() != entry.drafted.has_value()) {
      planned.index.push_back({key, entry.drafted.has_value()});
    }
    if (!entry.stored && entry.drafted) {
      batch.Insert(Keyspace::kQueueIndex, std::move(key), entry.drafted->Encode());
    } else if (entry.drafted) {
      batch.Replace(Keyspace::kQueueIndex, std::move(key), entry.drafted->Encode(), entry.stamp);
    } else if (entry.stored) {
      batch.DeleteIf(Keyspace::kQueueIndex, std::move(key), entry.stamp);
    } else {
      batch.CheckAbsent(Keyspace::kQueueIndex, std::move(key));
    }
  }
  for (Dropped& hint : dropped_) {
    planned.index.push_back({hint.key, false, hint.state});
    batch.DeleteIf(Keyspace::kQueueIndex, std::move(hint.key), hint.stamp);
  }
  batch.Append(std::move(joined_));
  return planned;
}

}  // namespace strata::queue
