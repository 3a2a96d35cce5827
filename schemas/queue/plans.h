// The steps of a message's life, as pure functions: the stored state and the request -> the writes
// (draft.h). Each decides all that a guard will decide again. Internal to this folder.
//
// A refused step leaves the draft unchanged. All: RECORD_CORRUPT, STORE_UNAVAILABLE.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/document/content.h"
#include "schemas/queue/draft.h"
#include "schemas/queue/message.h"
#include "schemas/queue/queue_keys.h"
#include "schemas/queue/queue_record.h"

namespace strata::queue {

// Why a message died, for its headers and its reason.
inline constexpr std::string_view kDiedOfTries = "TRIES";
inline constexpr std::string_view kDiedOfAge = "EXPIRED";
inline constexpr std::string_view kDiedRefused = "REFUSED";
inline constexpr std::string_view kDeadLetterQueueHeader = "dead_letter_queue";
inline constexpr std::string_view kDeadLetterReasonHeader = "dead_letter_reason";
inline constexpr std::string_view kDeadLetterTriesHeader = "dead_letter_tries";

// How long a hint without a message is kept for a push in progress.
inline constexpr UnixMicros kPushTakesMax = UnixMicros{60} * 1'000'000;

struct NewMessage {
  MessageId id;
  document::Content payload;
  document::Content headers;
  int32_t priority = 0;
  std::string ordering_key;
  std::optional<int64_t> sequence_number;
  UnixMicros due = 0;
  bool at_once = false;        // and not because of what the clock says
  UnixMicros expire_time = 0;  // 0: never
  std::string request;         // fingerprint; empty: no request id
  std::string pusher;
  bool drawn = false;  // its id was drawn for it: no message has that id yet
};

// The context of a step. All outlive it.
struct Place {
  const QueueRecord& queue;
  // Of the queue's settings; null: it has none, or that one does not exist, so dead messages stay.
  const QueueRecord* dead_letter_queue;
  UnixMicros now;
  bool dead_letters_return = false;  // a chain of dead letter queues leads back here
};

// INVALID_FIELD for a message that would expire before it is due, unless it was pushed before. Of
// messages that are pushed together each is asked for before any is planned.
absl::Status CheckExpiry(Draft& draft, const Place& place, const NewMessage& message);

struct Pushed {
  bool replayed = false;  // the message was pushed before, by the same request
};
// REQUEST_ID_REUSED.
absl::StatusOr<Pushed> PlanPush(Draft& draft, const Place& place, NewMessage pushed);

enum class Meeting : uint8_t {
  kHandedOut,  // RESERVED now, or FINISHED if it was popped
  kDead,       // it died, here or into the dead letter queue
  kStale,      // the hint has no message, or no longer
  kEarly,      // not yet
};
struct HandOut {
  std::chrono::microseconds timeout{0};
  bool pop = false;
  // Its time lies ahead because another clock said so, and is not waited for (window.h).
  bool overdue = false;
};
struct HandedOut {
  Meeting meeting = Meeting::kStale;
  Message message;  // as it is now, with its payload, of kHandedOut
};
// The remains of a message that has ended and is not kept: nothing, or the data that its request id
// needs.
std::optional<Message> Rest(Message message, UnixMicros now);

// Stands for a message that did not arrive: a push in progress begins again from this.
Message TombstoneOf(int64_t queue, UnixMicros now);

// Whether a message that has not gone is one for whoever asks. FINISHED, and remembered by its
// request id, it is for as long as its queue keeps history now; afterwards it is as good as a stub.
bool IsKept(const Message& message, const QueueRecord& queue, UnixMicros now);

// Whether the message is as the hint of its queue says.
bool Says(const Hint& hint, const Message& message);
// Whether a stale entry may belong to a push in progress and must stay. `stored`, `stamp`: the
// message that it names; null and 0 if there is none. A due hint bears its time: a message that has
// not come for kPushTakesMax is no longer awaited, if nothing else has ended the wait before
// (PlanCleaning).
bool MayComeTrue(const Hint& hint, const Message* stored, store::Stamp stamp, UnixMicros now);

// Drops a stale hint of any kind, if it exists. A push in progress then finds a tombstone instead
// of no message, or that the message was written again, and begins anew. On engines with atomic
// batches no hint that is stored is untrue. A hint of a sequence number bears no time: the caller
// has to know that it has waited for kPushTakesMax.
absl::Status PlanCleaning(Draft& draft, const Place& place, const Hint& hint);

// The step for a due hint. A hint whose message will never arrive is dropped if `clean`.
absl::StatusOr<HandedOut> PlanHandOut(Draft& draft, const Place& place, const Hint& hint,
                                      const HandOut& how, bool clean);

// A message whose last reservation has run out and whose tries are used up dies without a consumer.
// False: it is no such message.
absl::StatusOr<bool> PlanBurial(Draft& draft, const Place& place, const MessageId& id);

struct TokenResult {
  bool replayed = false;
};

// All that take a token: MESSAGE_NOT_FOUND, RESERVATION_LOST.

// Finishes the message. `once`: a repetition is refused, ALREADY_ACKNOWLEDGED; else it is OK as
// long as the message is kept.
absl::StatusOr<TokenResult> PlanAcknowledge(Draft& draft, const Place& place, const Token& token,
                                            bool once);

struct Rollback {
  std::optional<std::chrono::microseconds> delay;  // none: by the queue's retry_delay
  bool not_counted = false;                        // the try is taken back
  bool dead = false;                               // it is never handed out again
  std::string reason;
  double jitter = 0;  // -1 to 1: where in the 10 % about the queue's delay
};
absl::StatusOr<TokenResult> PlanRollback(Draft& draft, const Place& place, const Token& token,
                                         const Rollback& how);

// The reservation ends `timeout` from now; at 0 it has expired.
absl::StatusOr<TokenResult> PlanExtend(Draft& draft, const Place& place, const Token& token,
                                       std::chrono::microseconds timeout);

struct Move {
  std::optional<document::Content> payload;  // none: as it is
  std::string mover;                         // whose the payload is
  std::optional<document::Content> headers;
  std::chrono::microseconds delay{0};
};
absl::StatusOr<TokenResult> PlanMove(Draft& draft, const Place& place, const Token& token,
                                     const QueueRecord& target, const Move& how);

// FINISHED or DEAD becomes READY in `target`. False: it is neither, or in another queue.
absl::StatusOr<bool> PlanReplay(Draft& draft, const Place& place, const MessageId& id,
                                const QueueRecord& target);

// Removes the message, in any state, or only in `state` if that is given. False: it does not exist.
absl::StatusOr<bool> PlanPurge(Draft& draft, const Place& place, const MessageId& id,
                               std::optional<State> state);

}  // namespace strata::queue
