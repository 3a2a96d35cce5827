#include "schemas/queue/message_reads.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/plans.h"
#include "schemas/queue/queue_errors.h"
#include "schemas/queue/queue_keys.h"

namespace strata::queue {
namespace {

using store::Keyspace;

// Keys looked at for one page, and bytes of payloads in it.
constexpr int64_t kLookedAtMax = 10'000;
constexpr size_t kPageBytesMax = size_t{3} << 20;
// Of up to 1 MiB each.
constexpr size_t kFoundLargeMax = 8;

struct Stored {
  std::optional<Message> message;
  store::Stamp stamp = 0;

  // Whether a step that begins from this may be about to make the hint true.
  bool MayMake(const Hint& hint, UnixMicros now) const {
    return MayComeTrue(hint, message ? &*message : nullptr, stamp, now);
  }
};

absl::StatusOr<Stored> Read(const store::Reader& reader, const MessageId& id) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(Keyspace::kMessages, id.bytes()));
  if (!record) return Stored{};
  ASSIGN_OR_RETURN(Message message, Message::Decode(record->value));
  return Stored{std::move(message), record->stamp};
}

void Meet(const Hint& hint, const Stored& stored, UnixMicros now, UntrueHints& untrue) {
  if (untrue.size() < kUntrueMax && !stored.MayMake(hint, now)) untrue.push_back(hint);
}

bool IsVisible(const Message& message, const QueueRecord& queue, UnixMicros now) {
  return message.queue == queue.incarnation && !message.gone(now) && IsKept(message, queue, now);
}

// Which message a key of the index leads to.
struct Lead {
  MessageId id;
  std::optional<Hint> hint;
  int64_t number = 0;  // of a member of an ordering key

  bool holds(const Message& message) const {
    if (hint) return Says(*hint, message);
    return message.stage == Stage::kWaiting && message.number == number;
  }
};

std::optional<Lead> LeadOf(std::string_view key) {
  if (const std::optional<Member> member = ParseMemberKey(key)) {
    return Lead{member->id, std::nullopt, member->number};
  }
  const std::optional<Hint> hint = ParseHintKey(key);
  if (!hint || hint->kind == HintKind::kSequence) return std::nullopt;
  return Lead{hint->id, *hint, 0};
}

// The ranges of the index, in order, whose keys lead to messages in that state, and hardly to
// others: those that have ended by when they did, the others by what they are due at. Of no state:
// to all that are not finished.
std::vector<store::Range> RangesOf(int64_t incarnation, std::optional<State> state, UnixMicros now,
                                   const HintTimes& ended = {}) {
  if (!state) {
    return {HintRange(incarnation, HintKind::kDue), AllMembers(incarnation),
            HintRange(incarnation, HintKind::kDead)};
  }
  switch (*state) {
    case State::kDead:
      return {HintRange(incarnation, HintKind::kDead, ended)};
    case State::kFinished:
      return {HintRange(incarnation, HintKind::kFinished, ended)};
    case State::kWaiting:
      return {AllMembers(incarnation)};
    case State::kScheduled:
    case State::kReady:
    case State::kReserved:
      break;
  }
  HintTimes due;
  (*state == State::kReady ? due.before : due.from) = now + 1;
  std::vector<store::Range> ranges;
  for (int32_t priority = kPriorityMax; priority >= 0; --priority) {
    ranges.push_back(DueRange(incarnation, priority, due));
  }
  return ranges;
}

absl::Status LoadPayload(const store::Reader& reader, const MessageId& id, Message& message) {
  if (!message.payload_base) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::optional<store::Record> payload,
                   reader.Get(Keyspace::kMessages, PayloadKey(id, *message.payload_base)));
  // It was finished or moved since the message was read.
  if (!payload) return MessageNotFound(id);
  message.payload = document::Content::FromTrusted(payload->value, payload->value);
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
                  UnixMicros now, UntrueHints& untrue,
                  const std::function<absl::StatusOr<bool>(std::string_view key, const MessageId&,
                                                           std::optional<Message>)>& take) {
  const auto cursor = reader.Scan(Keyspace::kQueueIndex, range);
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<Lead> lead = LeadOf(cursor->key());
    if (!lead) continue;
    ASSIGN_OR_RETURN(Stored stored, Read(reader, lead->id));
    std::optional<Message>& message = stored.message;
    const bool here = message && message->queue == queue.incarnation && lead->holds(*message);
    if (!here && lead->hint) Meet(*lead->hint, stored, now, untrue);
    if (message && (!here || !IsVisible(*message, queue, now))) message.reset();
    ASSIGN_OR_RETURN(const bool more, take(cursor->key(), lead->id, std::move(message)));
    if (!more) return absl::OkStatus();
  }
  return cursor->status();
}

}  // namespace

absl::StatusOr<MessageView> ReadMessage(const store::Reader& reader, const QueueRecord& queue,
                                        const MessageId& id, UnixMicros now) {
  ASSIGN_OR_RETURN(Stored stored, Read(reader, id));
  std::optional<Message>& message = stored.message;
  if (!message || !IsVisible(*message, queue, now)) return MessageNotFound(id);
  RETURN_IF_ERROR(LoadPayload(reader, id, *message));
  return ViewOf(queue, id, *std::move(message), now);
}

absl::StatusOr<MessagePage> ListMessages(const store::Reader& reader, const QueueRecord& queue,
                                         const MessageQuery& query, UnixMicros now, size_t most,
                                         UntrueHints& untrue) {
  MessagePage page;
  int64_t looked_at = 0;
  size_t bytes = 0;
  for (store::Range range : RangesOf(queue.incarnation, query.state, now)) {
    if (page.resume_after) break;
    if (!query.after.empty()) {
      if (query.after >= range.end) continue;
      range.begin = std::max(range.begin, query.after + '\0');
    }
    RETURN_IF_ERROR(Walk(reader, queue, range, now, untrue,
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

absl::StatusOr<FoundMessages> FindMessages(const store::Reader& reader, const QueueRecord& queue,
                                           const std::vector<State>& states, const HintTimes& ended,
                                           const StopCheck& stopped, UnixMicros now, size_t most,
                                           UntrueHints& untrue) {
  FoundMessages found;
  size_t large = 0;
  for (const State state : states) {
    for (const store::Range& range : RangesOf(queue.incarnation, state, now, ended)) {
      if (found.more) return found;
      RETURN_IF_ERROR(Walk(reader, queue, range, now, untrue,
                           [&](std::string_view /*key*/, const MessageId& id,
                               const std::optional<Message>& message) -> absl::StatusOr<bool> {
                             if (Stopped(stopped)) return StoppedError();
                             if (!message || message->StateAt(now) != state) return true;
                             found.ids.push_back(id);
                             // Replayed, such a one is written again with what lies beside it.
                             if (message->payload_base && message->forget_time != 0) ++large;
                             found.more = found.ids.size() >= most || large >= kFoundLargeMax;
                             return !found.more;
                           }));
    }
  }
  return found;
}

absl::StatusOr<Watermark> ReadWatermark(const store::Reader& reader, const QueueRecord& queue,
                                        UntrueHints& untrue) {
  const auto cursor =
      reader.Scan(Keyspace::kQueueIndex, HintRange(queue.incarnation, HintKind::kSequence));
  for (; cursor->Valid(); cursor->Next()) {
    const std::optional<Hint> hint = ParseHintKey(cursor->key());
    if (!hint) continue;
    ASSIGN_OR_RETURN(const Stored stored, Read(reader, hint->id));
    const std::optional<Message>& message = stored.message;
    const bool open = message && (message->live() || message->stage == Stage::kDead);
    const bool here =
        open && message->queue == queue.incarnation && message->sequence_number == hint->number;
    if (here) {
      // One that it had before it was in another queue for a while is untrue all the same.
      if (!Says(*hint, *message)) Meet(*hint, stored, 0, untrue);
      return Watermark{hint->number, std::nullopt};
    }
    // Without a message: somebody may be about to push it, unless the hint is of a later step. One
    // that was finished since, or that is no more than a tombstone, does not count.
    if (!message && hint->base == 0) return Watermark{hint->number, *hint};
    Meet(*hint, stored, 0, untrue);
  }
  RETURN_IF_ERROR(cursor->status());
  return Watermark{};
}

absl::StatusOr<bool> HoldsMessages(const store::Reader& reader, const QueueRecord& queue,
                                   UnixMicros now, UntrueHints& untrue) {
  for (const store::Range& range : RangesOf(queue.incarnation, std::nullopt, now)) {
    const auto cursor = reader.Scan(Keyspace::kQueueIndex, range);
    for (; cursor->Valid(); cursor->Next()) {
      const std::optional<Hint> hint = ParseHintKey(cursor->key());
      if (!hint) return true;
      ASSIGN_OR_RETURN(const Stored stored, Read(reader, hint->id));
      const bool here = stored.message && stored.message->queue == queue.incarnation &&
                        Says(*hint, *stored.message);
      if (here || stored.MayMake(*hint, now)) return true;
      untrue.push_back(*hint);
      if (untrue.size() >= kUntrueMax) return false;
    }
    RETURN_IF_ERROR(cursor->status());
  }
  return false;
}

}  // namespace strata::queue
