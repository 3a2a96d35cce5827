#include "schemas/queue/message_reads.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_keys.h"

namespace strata::queue {
namespace {

using store::Keyspace;

// Keys looked at for one page, and bytes of payloads in it.
constexpr int64_t kLookedAtMax = 10'000;
constexpr size_t kPageBytesMax = size_t{3} << 20;

absl::StatusOr<std::optional<Message>> Read(const store::Reader& reader, const MessageId& id) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(Keyspace::kMessages, id.bytes()));
  if (!record) return std::nullopt;
  ASSIGN_OR_RETURN(Message message, Message::Decode(record->value));
  return message;
}

bool IsVisible(const Message& message, const QueueRecord& queue, UnixMicros now) {
  return message.queue == queue.incarnation && message.stage != Stage::kStub && !message.gone(now);
}

// Which message a key of the index leads to, and whether it leads there now.
struct Lead {
  MessageId id;
  std::function<bool(const Message&)> holds;
};

std::optional<Lead> LeadOf(std::string_view key) {
  if (const std::optional<Member> member = ParseMemberKey(key)) {
    return Lead{member->id, [number = member->number](const Message& message) {
                  return message.stage == Stage::kWaiting && message.number == number;
                }};
  }
  const std::optional<Hint> hint = ParseHintKey(key);
  if (!hint || hint->kind == HintKind::kSequence) return std::nullopt;
  return Lead{hint->id, [hint = *hint](const Message& message) {
                const bool due = message.stage == Stage::kOpen || message.stage == Stage::kReserved;
                const bool of_kind = hint.kind == HintKind::kDue ? due
                                     : hint.kind == HintKind::kDead
                                         ? message.stage == Stage::kDead
                                         : message.stage == Stage::kFinished;
                return of_kind && message.time == hint.number && message.hint_base == hint.base;
              }};
}

// The ranges of the index whose keys lead to messages in that state; of no state to all that are
// not finished.
std::vector<store::Range> RangesOf(int64_t incarnation, std::optional<State> state) {
  const store::Range due = HintRange(incarnation, HintKind::kDue);
  const store::Range dead = HintRange(incarnation, HintKind::kDead);
  if (!state) return {due, AllMembers(incarnation), dead};
  switch (*state) {
    case State::kDead:
      return {dead};
    case State::kFinished:
      return {HintRange(incarnation, HintKind::kFinished)};
    case State::kWaiting:
      return {AllMembers(incarnation)};
    case State::kScheduled:
    case State::kReady:
    case State::kReserved:
      break;
  }
  return {due};
}

absl::Status LoadPayload(const store::Reader& reader, const MessageId& id, Message& message) {
  if (!message.payload_base) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<store::Record> payload,
                   reader.Get(Keyspace::kMessages, PayloadKey(id, *message.payload_base)));
  // It was finished or moved since the message was read.
  if (!payload) return MessageNotFound(id);
  message.payload = document::Content::FromTrusted(payload->value.shared(), payload->value);
  return absl::OkStatus();
}

MessageView ViewOf(const QueueRecord& queue, const MessageId& id, Message message, UnixMicros now) {
  MessageView view;
  view.queue = queue.name;
  view.id = id;
  view.state = message.StateAt(now);
  view.message = std::move(message);
  return view;
}

// Calls `take` with each message that a key of the range leads to, until it answers false.
absl::Status Walk(const store::Reader& reader, const QueueRecord& queue, const store::Range& range,
                  UnixMicros now,
                  const std::function<absl::StatusOr<bool>(std::string_view key, const MessageId&,
                                                           std::optional<Message>)>& take) {
  const auto cursor = reader.Scan(Keyspace::kQueueIndex, range);
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<Lead> lead = LeadOf(cursor->key());
    if (!lead) continue;
    ASSIGN_OR_RETURN(std::optional<Message> message, Read(reader, lead->id));
    if (message && (!IsVisible(*message, queue, now) || !lead->holds(*message))) message.reset();
    ASSIGN_OR_RETURN(const bool more, take(cursor->key(), lead->id, std::move(message)));
    if (!more) return absl::OkStatus();
  }
  return cursor->status();
}

}  // namespace

absl::StatusOr<MessageView> ReadMessage(const store::Reader& reader, const QueueRecord& queue,
                                        const MessageId& id, UnixMicros now) {
  ASSIGN_OR_RETURN(std::optional<Message> message, Read(reader, id));
  if (!message || !IsVisible(*message, queue, now)) return MessageNotFound(id);
  RETURN_IF_ERROR(LoadPayload(reader, id, *message));
  return ViewOf(queue, id, *std::move(message), now);
}

absl::StatusOr<MessagePage> ListMessages(const store::Reader& reader, const QueueRecord& queue,
                                         const MessageQuery& query, UnixMicros now, size_t most) {
  MessagePage page;
  int64_t looked_at = 0;
  size_t bytes = 0;
  for (store::Range range : RangesOf(queue.incarnation, query.state)) {
    if (page.resume_after) break;
    if (!query.after.empty()) {
      if (query.after >= range.end) continue;
      range.begin = std::max(range.begin, query.after + '\0');
    }
    RETURN_IF_ERROR(Walk(reader, queue, range, now,
                         [&](std::string_view key, const MessageId& id,
                             std::optional<Message> message) -> absl::StatusOr<bool> {
                           if (Stopped(query.stopped)) return StoppedError();
                           if (message && (!query.state || message->StateAt(now) == *query.state)) {
                             const absl::Status loaded = LoadPayload(reader, id, *message);
                             if (loaded.ok()) {
                               bytes += message->payload.size();
                               page.messages.push_back(ViewOf(queue, id, *std::move(message), now));
                             } else if (ReasonOf(loaded) != ErrorReason::kMessageNotFound) {
                               return loaded;
                             }
                           }
                           if (page.messages.size() < most && bytes < kPageBytesMax &&
                               ++looked_at < kLookedAtMax) {
                             return true;
                           }
                           page.resume_after = key;
                           return false;
                         }));
  }
  return page;
}

absl::StatusOr<std::vector<MessageId>> FindMessages(
    const store::Reader& reader, const QueueRecord& queue, const std::vector<State>& states,
    std::optional<UnixMicros> start, std::optional<UnixMicros> end, UnixMicros now, size_t most) {
  std::vector<MessageId> ids;
  for (const State state : states) {
    for (const store::Range& range : RangesOf(queue.incarnation, state)) {
      if (ids.size() >= most) return ids;
      RETURN_IF_ERROR(Walk(reader, queue, range, now,
                           [&](std::string_view /*key*/, const MessageId& id,
                               const std::optional<Message>& message) -> absl::StatusOr<bool> {
                             if (!message || message->StateAt(now) != state) return true;
                             if (start && message->time < *start) return true;
                             if (end && message->time >= *end) return true;
                             ids.push_back(id);
                             return ids.size() < most;
                           }));
    }
  }
  return ids;
}

absl::StatusOr<std::optional<int64_t>> ReadWatermark(const store::Reader& reader,
                                                     const QueueRecord& queue) {
  const auto cursor =
      reader.Scan(Keyspace::kQueueIndex, HintRange(queue.incarnation, HintKind::kSequence));
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<Hint> hint = ParseHintKey(cursor->key());
    if (!hint) continue;
    ASSIGN_OR_RETURN(const std::optional<Message> message, Read(reader, hint->id));
    // Without a message: somebody may be about to push it. One that was finished since, or that is
    // no more than a tombstone, does not count.
    const bool open = message && (message->live() || message->stage == Stage::kDead);
    const bool here =
        open && message->queue == queue.incarnation && message->sequence_number == hint->number;
    if (!message || here) return hint->number;
  }
  RETURN_IF_ERROR(cursor->status());
  return std::nullopt;
}

}  // namespace strata::queue
