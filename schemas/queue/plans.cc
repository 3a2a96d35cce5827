#include "schemas/queue/plans.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "schemas/base/status_macros.h"
#include "schemas/base/strings.h"
#include "schemas/queue/queue_errors.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;

// A tombstone stays as long as a request is remembered: no push takes longer.
constexpr UnixMicros kTombstoneKept = kPushRememberedFor;

// What becomes of an ordering key when a message comes into it or leaves it. Planned before
// anything is changed.
struct OrderStep {
  bool needed = false;
  std::string key;
  std::optional<Order> order;  // none: the key has no unfinished message any more
  struct Promoted {
    MessageId id;
    Message message;
  };
  std::optional<Promoted> promoted;
};

absl::StatusOr<OrderStep> PlanLeave(Draft& draft, const MessageId& id, const Message& message) {
  OrderStep step;
  if (message.ordering_key.empty() || !message.live()) return step;
  step.needed = true;
  step.key = message.ordering_key;
  ASSIGN_OR_RETURN(const Order* stored, draft.FindOrder(message.queue, message.ordering_key));
  if (stored == nullptr) return step;
  step.order = *stored;
  // The key's record is replaced all the same: whoever plans on the message's being there loses.
  if (stored->head != id) return step;
  ASSIGN_OR_RETURN(const std::optional<MessageId> next,
                   draft.FindMember(message.queue, message.ordering_key, message.number));
  if (!next) {
    step.order.reset();
    return step;
  }
  ASSIGN_OR_RETURN(const Message* follower, draft.Find(*next));
  step.promoted = {*next, *follower};
  step.promoted->message.stage = Stage::kOpen;
  step.order->head = *next;
  return step;
}

void Apply(Draft& draft, int64_t queue, OrderStep step) {
  if (!step.needed) return;
  if (step.order) {
    draft.SetOrder(queue, step.key, *step.order);
  } else {
    draft.RemoveOrder(queue, step.key);
  }
  if (step.promoted) draft.Set(step.promoted->id, std::move(step.promoted->message));
}

// The message comes last of its ordering key: as its head, or WAITING.
absl::Status Enter(Draft& draft, const MessageId& id, Message& message) {
  if (message.ordering_key.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Order* stored, draft.FindOrder(message.queue, message.ordering_key));
  Order order = stored != nullptr ? *stored : Order{id, 0};
  if (stored != nullptr) message.stage = Stage::kWaiting;
  message.number = ++order.tail;
  draft.SetOrder(message.queue, message.ordering_key, order);
  return absl::OkStatus();
}

bool HasRequest(const Message& message) { return !message.request.empty(); }

void Put(Draft& draft, const MessageId& id, std::optional<Message> message) {
  if (message) {
    draft.Set(id, *std::move(message));
  } else {
    draft.Remove(id);
  }
}

absl::Status Finish(Draft& draft, const Place& place, const MessageId& id, Message message) {
  ASSIGN_OR_RETURN(OrderStep leave, PlanLeave(draft, id, message));
  const microseconds retention = place.queue.settings.history_retention;
  std::optional<Message> left;
  if (retention.count() == 0) {
    left = Rest(std::move(message), place.now);
  } else {
    // What lies beside goes with the message, so it is written again with the time of that.
    if (message.payload_base) {
      ASSIGN_OR_RETURN(const std::optional<Message> whole, draft.WithPayload(id));
      if (whole) message.payload = whole->payload;
      message.payload_base.reset();
    }
    message.stage = Stage::kFinished;
    message.time = place.now;
    message.forget_time = place.now + retention.count();
    if (HasRequest(message)) {
      message.forget_time = std::max(message.forget_time, message.push_time + kPushRememberedFor);
    }
    left = std::move(message);
  }
  Put(draft, id, std::move(left));
  Apply(draft, place.queue.incarnation, std::move(leave));
  return absl::OkStatus();
}

void ComeAfter(microseconds delay, const Place& place, Message& message) {
  message.at_once = delay.count() == 0;
  message.time = place.now + delay.count();
}

// READY or SCHEDULED (or WAITING) in the queue, as if it were pushed now; its deliveries go on.
absl::Status Arrive(Draft& draft, const Place& place, const QueueRecord& queue, const MessageId& id,
                    microseconds delay, Message message, OrderStep leave) {
  draft.Require(queue);
  const int64_t from = message.queue;
  // Before the arrival, which may be into the same queue.
  Apply(draft, from, std::move(leave));
  message.queue = queue.incarnation;
  message.stage = Stage::kOpen;
  ComeAfter(delay, place, message);
  message.tries = 0;
  message.number = 0;
  message.forget_time = 0;
  RETURN_IF_ERROR(Enter(draft, id, message));
  draft.Set(id, std::move(message));
  return absl::OkStatus();
}

// So that nothing fails any more once the draft has been changed.
absl::Status ReadOrder(Draft& draft, const QueueRecord& queue, const Message& message) {
  if (message.ordering_key.empty()) return absl::OkStatus();
  return draft.FindOrder(queue.incarnation, message.ordering_key).status();
}

absl::Status Die(Draft& draft, const Place& place, const MessageId& id, Message message,
                 std::string_view cause, std::string reason) {
  ASSIGN_OR_RETURN(Headers headers, ToHeaders(message.headers));
  ASSIGN_OR_RETURN(OrderStep leave, PlanLeave(draft, id, message));
  // From queue to queue, in a ring, it would die for ever.
  const bool has_died = headers.contains(std::string(kDeadLetterQueueHeader));
  if (place.dead_letter_queue == nullptr || (place.dead_letters_return && has_died)) {
    message.stage = Stage::kDead;
    message.time = place.now;
    if (!reason.empty()) {
      message.reason = std::move(reason);
    } else {
      // What was said last stands behind.
      message.reason = message.reason.empty() ? std::string(cause)
                                              : absl::StrCat(ToAbsl(cause), ": ", message.reason);
    }
    draft.Set(id, std::move(message));
    Apply(draft, place.queue.incarnation, std::move(leave));
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(ReadOrder(draft, *place.dead_letter_queue, message));
  headers[std::string(kDeadLetterQueueHeader)] = place.queue.name;
  headers[std::string(kDeadLetterReasonHeader)] = cause;
  headers[std::string(kDeadLetterTriesHeader)] = std::to_string(message.tries);
  message.headers = ToContent(headers);
  // Of one whose tries are used up it stays what was said last.
  if (!reason.empty()) message.reason = std::move(reason);
  // It has died of its age once, and is not to die of it again.
  if (cause == kDiedOfAge) message.expire_time = 0;
  return Arrive(draft, place, *place.dead_letter_queue, id, microseconds(0), std::move(message),
                std::move(leave));
}

// The message that the token holds; null: the very delivery is finished.
absl::StatusOr<const Message*> FindHeld(Draft& draft, const Place& place, const Token& token) {
  ASSIGN_OR_RETURN(const Message* message, draft.Find(token.message));
  if (message == nullptr || message->gone(place.now)) return MessageNotFound(token.message);
  const bool here = message->queue == place.queue.incarnation;
  if (here && message->delivery == token.delivery) {
    if (message->stage == Stage::kReserved) return message;
    if (message->stage == Stage::kFinished || message->stage == Stage::kStub) return nullptr;
  }
  // It was purged, and what is left says nothing of deliveries.
  if (message->stage == Stage::kStub && message->delivery == 0) {
    return MessageNotFound(token.message);
  }
  return ReservationLost(token, *message);
}

// As FindHeld, where there is nothing to do for a message that is finished.
absl::StatusOr<const Message*> RequireHeld(Draft& draft, const Place& place, const Token& token) {
  ASSIGN_OR_RETURN(const Message* message, FindHeld(draft, place, token));
  if (message != nullptr) return message;
  ASSIGN_OR_RETURN(message, draft.Find(token.message));
  return ReservationLost(token, *message);
}

microseconds RetryDelay(const QueueSettings& settings, const Message& message, double jitter) {
  const int doublings = std::clamp(message.tries - 1, 0, 62);
  const double delay = std::ldexp(static_cast<double>(settings.retry_delay.count()), doublings);
  // Shortened before it is spread too, or all that have waited longest would come at once.
  const auto longest = static_cast<double>(settings.retry_delay_max.count());
  const double spread = std::min(std::min(delay, longest) * (1 + 0.1 * jitter), longest);
  return microseconds(static_cast<int64_t>(spread));
}

// A hint that says nothing true.
absl::Status DropUntrue(Draft& draft, const Place& place, const Hint& hint, const Message* stored) {
  const store::Stamp stamp = draft.StoredStamp(hint.id);
  const bool waited_for = hint.kind == HintKind::kSequence && stored == nullptr;
  if (!waited_for && MayComeTrue(hint, stored, stamp, place.now)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool there, draft.DropHint(HintKey(place.queue.incarnation, hint)));
  if (!there) return absl::OkStatus();
  if (stored == nullptr && hint.base == 0) {
    draft.Set(hint.id, TombstoneOf(place.queue.incarnation, place.now));
  } else if (stored != nullptr && stamp <= hint.base) {
    draft.Set(hint.id, *stored);
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<Message> Rest(Message message, UnixMicros now) {
  const UnixMicros forget = message.push_time + kPushRememberedFor;
  if (!HasRequest(message) || forget <= now) return std::nullopt;
  message.stage = Stage::kStub;
  message.time = now;
  message.forget_time = forget;
  message.payload = {};
  message.payload_base.reset();
  message.headers = {};
  message.reason.clear();
  return message;
}

bool IsKept(const Message& message, const QueueRecord& queue, UnixMicros now) {
  if (message.stage == Stage::kStub || message.stage == Stage::kTombstone) return false;
  if (message.stage != Stage::kFinished || !HasRequest(message)) return true;
  return message.time + queue.settings.history_retention.count() > now;
}

Message TombstoneOf(int64_t queue, UnixMicros now) {
  Message tombstone;
  tombstone.queue = queue;
  tombstone.stage = Stage::kTombstone;
  tombstone.time = now;
  tombstone.forget_time = now + kTombstoneKept;
  return tombstone;
}

bool Says(const Hint& hint, const Message& message) {
  if (hint.kind == HintKind::kSequence) {
    return (message.live() || message.stage == Stage::kDead) &&
           message.sequence_number == hint.number && message.sequence_base == hint.base;
  }
  if (message.time != hint.number || message.hint_base != hint.base) return false;
  switch (message.stage) {
    case Stage::kOpen:
    case Stage::kReserved:
      return hint.kind == HintKind::kDue && message.priority == hint.priority;
    case Stage::kDead:
      return hint.kind == HintKind::kDead;
    case Stage::kFinished:
      return hint.kind == HintKind::kFinished;
    case Stage::kWaiting:
    case Stage::kStub:
    case Stage::kTombstone:
      break;
  }
  return false;
}

bool MayComeTrue(const Hint& hint, const Message* stored, store::Stamp stamp, UnixMicros now) {
  // The step that wrote it replaces the message of that stamp, and one that lives is replaced soon
  // by whoever is handed it.
  if (stamp > hint.base || (stored == nullptr && hint.base != 0)) return false;
  if (stored != nullptr && stored->live()) return true;
  return hint.kind != HintKind::kDue || hint.number > now - kPushTakesMax;
}

absl::Status PlanCleaning(Draft& draft, const Place& place, const Hint& hint) {
  ASSIGN_OR_RETURN(const Message* stored, draft.Find(hint.id));
  const bool true_now =
      stored != nullptr && stored->queue == place.queue.incarnation && Says(hint, *stored);
  return true_now ? absl::OkStatus() : DropUntrue(draft, place, hint, stored);
}

absl::Status CheckExpiry(Draft& draft, const Place& place, const NewMessage& message) {
  if (message.expire_time == 0 || message.expire_time > message.due) return absl::OkStatus();
  if (message.drawn) return ExpiresTooEarly();
  ASSIGN_OR_RETURN(const Message* stored, draft.Find(message.id));
  const bool free = stored == nullptr || stored->gone(place.now);
  return free ? ExpiresTooEarly() : absl::OkStatus();
}

absl::StatusOr<Pushed> PlanPush(Draft& draft, const Place& place, NewMessage pushed) {
  if (pushed.drawn) draft.KnowAbsent(pushed.id);
  ASSIGN_OR_RETURN(const Message* stored, draft.Find(pushed.id));
  const bool free = stored == nullptr || stored->gone(place.now);
  if (!free) {
    if (stored->request != pushed.request) return PushReused(place.queue.name);
    return Pushed{true};
  }
  Message message;
  message.queue = place.queue.incarnation;
  message.time = pushed.due;
  message.at_once = pushed.at_once;
  message.priority = pushed.priority;
  message.ordering_key = std::move(pushed.ordering_key);
  message.sequence_number = pushed.sequence_number;
  message.push_time = place.now;
  message.expire_time = pushed.expire_time;
  message.request = std::move(pushed.request);
  message.pusher = std::move(pushed.pusher);
  message.headers = std::move(pushed.headers);
  message.payload = std::move(pushed.payload);
  RETURN_IF_ERROR(Enter(draft, pushed.id, message));
  draft.Set(pushed.id, std::move(message));
  return Pushed{};
}

absl::StatusOr<HandedOut> PlanHandOut(Draft& draft, const Place& place, const Hint& hint,
                                      const HandOut& how, bool clean) {
  ASSIGN_OR_RETURN(const Message* stored, draft.Find(hint.id));
  if (stored == nullptr || stored->queue != place.queue.incarnation || !Says(hint, *stored)) {
    if (clean) RETURN_IF_ERROR(DropUntrue(draft, place, hint, stored));
    return HandedOut{};
  }
  // It may have been paused since somebody began to look for something.
  const bool due = stored->due(place.now) || how.overdue;
  if (!due || place.queue.settings.paused) {
    return HandedOut{Meeting::kEarly, {}};
  }
  const QueueSettings& settings = place.queue.settings;
  if (stored->expire_time != 0 && stored->expire_time <= place.now) {
    RETURN_IF_ERROR(Die(draft, place, hint.id, *stored, kDiedOfAge, ""));
    return HandedOut{Meeting::kDead, {}};
  }
  if (settings.max_tries != 0 && stored->tries >= settings.max_tries) {
    RETURN_IF_ERROR(Die(draft, place, hint.id, *stored, kDiedOfTries, ""));
    return HandedOut{Meeting::kDead, {}};
  }
  ASSIGN_OR_RETURN(std::optional<Message> answer, draft.WithPayload(hint.id));
  if (!answer) return HandedOut{};
  Message message = *stored;
  const auto hand_out = [&](Message& handed) {
    handed.stage = Stage::kReserved;
    handed.time = place.now + how.timeout.count();
    handed.timeout = how.timeout;
    ++handed.delivery;
    ++handed.tries;
  };
  hand_out(*answer);
  hand_out(message);
  if (how.pop) {
    // It was handed out and is finished in one.
    RETURN_IF_ERROR(Finish(draft, place, hint.id, std::move(message)));
  } else {
    draft.Set(hint.id, std::move(message));
  }
  return HandedOut{Meeting::kHandedOut, *std::move(answer)};
}

absl::StatusOr<bool> PlanBurial(Draft& draft, const Place& place, const MessageId& id) {
  ASSIGN_OR_RETURN(const Message* stored, draft.Find(id));
  const int32_t tries_max = place.queue.settings.max_tries;
  if (stored == nullptr || stored->queue != place.queue.incarnation ||
      stored->stage != Stage::kReserved || !stored->due(place.now) || tries_max == 0 ||
      stored->tries < tries_max) {
    return false;
  }
  RETURN_IF_ERROR(Die(draft, place, id, *stored, kDiedOfTries, ""));
  return true;
}

absl::StatusOr<TokenResult> PlanAcknowledge(Draft& draft, const Place& place, const Token& token,
                                            bool once) {
  ASSIGN_OR_RETURN(const Message* message, FindHeld(draft, place, token));
  if (message == nullptr) {
    if (once) return AlreadyAcknowledged(token);
    return TokenResult{true};
  }
  RETURN_IF_ERROR(Finish(draft, place, token.message, *message));
  return TokenResult{};
}

absl::StatusOr<TokenResult> PlanRollback(Draft& draft, const Place& place, const Token& token,
                                         const Rollback& how) {
  ASSIGN_OR_RETURN(const Message* held, RequireHeld(draft, place, token));
  Message message = *held;
  if (how.dead) {
    RETURN_IF_ERROR(Die(draft, place, token.message, std::move(message), kDiedRefused, how.reason));
    return TokenResult{};
  }
  const int32_t tries_max = place.queue.settings.max_tries;
  if (!how.not_counted && tries_max != 0 && message.tries >= tries_max) {
    message.reason = how.reason;
    RETURN_IF_ERROR(Die(draft, place, token.message, std::move(message), kDiedOfTries, ""));
    return TokenResult{};
  }
  message.stage = Stage::kOpen;
  ComeAfter(how.delay ? *how.delay : RetryDelay(place.queue.settings, message, how.jitter), place,
            message);
  if (how.not_counted && message.tries > 0) --message.tries;
  // Handed back without having been tried, it has the reason that it had.
  if (!how.not_counted || !how.reason.empty()) message.reason = how.reason;
  draft.Set(token.message, std::move(message));
  return TokenResult{};
}

absl::StatusOr<TokenResult> PlanExtend(Draft& draft, const Place& place, const Token& token,
                                       microseconds timeout) {
  ASSIGN_OR_RETURN(const Message* held, RequireHeld(draft, place, token));
  Message message = *held;
  message.time = place.now + timeout.count();
  message.timeout = timeout;
  draft.Set(token.message, std::move(message));
  return TokenResult{};
}

absl::StatusOr<TokenResult> PlanMove(Draft& draft, const Place& place, const Token& token,
                                     const QueueRecord& target, const Move& how) {
  ASSIGN_OR_RETURN(const Message* held, RequireHeld(draft, place, token));
  Message message = *held;
  RETURN_IF_ERROR(ReadOrder(draft, target, message));
  ASSIGN_OR_RETURN(OrderStep leave, PlanLeave(draft, token.message, message));
  if (how.payload) {
    message.payload = *how.payload;
    message.payload_base.reset();
    message.pusher = how.mover;
  }
  if (how.headers) message.headers = *how.headers;
  message.reason.clear();
  RETURN_IF_ERROR(
      Arrive(draft, place, target, token.message, how.delay, std::move(message), std::move(leave)));
  return TokenResult{};
}

absl::StatusOr<bool> PlanReplay(Draft& draft, const Place& place, const MessageId& id,
                                const QueueRecord& target) {
  ASSIGN_OR_RETURN(const Message* stored, draft.Find(id));
  if (stored == nullptr || stored->gone(place.now)) return false;
  if (stored->queue != place.queue.incarnation) return false;
  if (stored->stage != Stage::kDead && stored->stage != Stage::kFinished) return false;
  if (!IsKept(*stored, place.queue, place.now)) return false;
  Message message = *stored;
  if (message.forget_time != 0) {
    // What lies beside a finished one would go by itself.
    ASSIGN_OR_RETURN(std::optional<Message> whole, draft.WithPayload(id));
    if (!whole) return false;
    message = *std::move(whole);
    message.payload_base.reset();
  }
  RETURN_IF_ERROR(ReadOrder(draft, target, message));
  message.reason.clear();
  if (message.expire_time <= place.now) message.expire_time = 0;
  RETURN_IF_ERROR(Arrive(draft, place, target, id, microseconds(0), std::move(message), {}));
  return true;
}

absl::StatusOr<bool> PlanPurge(Draft& draft, const Place& place, const MessageId& id,
                               std::optional<State> state) {
  ASSIGN_OR_RETURN(const Message* stored, draft.Find(id));
  if (stored == nullptr || stored->gone(place.now)) return false;
  if (stored->queue != place.queue.incarnation) return false;
  if (!IsKept(*stored, place.queue, place.now)) return false;
  if (state && stored->StateAt(place.now) != *state) return false;
  Message message = *stored;
  ASSIGN_OR_RETURN(OrderStep leave, PlanLeave(draft, id, message));
  message.delivery = 0;  // nobody's token is to take it for acknowledged
  Put(draft, id, Rest(std::move(message), place.now));
  Apply(draft, place.queue.incarnation, std::move(leave));
  return true;
}

}  // namespace strata::queue
