// Messages of queues: their records, states and tokens.
//
//   messages record (key: message id) =
//     { queue: int64 (incarnation), stage: int32, time: int64 (microseconds), at_once: bool,
//       timeout: int64 (microseconds), hint: int64, priority: int32, key: string, number: int64,
//       sequence: int64, sequence_hint: int64, pushed: int64, expires: int64, forget: int64,
//       delivery: int64, tries: int32, reason: string, request: binary(8), pusher: string,
//       payload_at: int64, headers: document, payload: document }
//   messages record (key: message id "p" base) = the payload alone, where it is a large one
//
// Members that are 0 or empty are left out, but for queue, stage and time; so is `sequence` where
// there is none, and the payload where it lies beside. `time`, `hint` and `sequence_hint` make the
// keys of the message's hints (queue_keys.h), `payload_at` is the base of its payload's record.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/document/content.h"
#include "schemas/queue/message_id.h"
#include "schemas/store/record.h"

namespace strata::queue {

inline constexpr int32_t kPriorityMax = 9;
inline constexpr size_t kPayloadBytesMax = size_t{1} << 20;
// A payload of more bytes lies beside its message's record, which is written at every step.
inline constexpr size_t kPayloadInlineBytesMax = 4096;
inline constexpr size_t kHeadersMax = 32;
// How long a push is remembered by its request id, from the push on.
inline constexpr UnixMicros kPushRememberedFor = UnixMicros{24} * 3600 * 1'000'000;

// What a record says; the numbers are part of the stored form.
enum class Stage : uint8_t {
  kOpen = 1,      // to be handed out from `time` on, or at once
  kReserved = 2,  // handed out; from `time` on as kOpen
  kWaiting = 3,   // after another message of its ordering key; then as kOpen
  kDead = 4,      // since `time`
  kFinished = 5,  // since `time`; gone from `forget` on
  kStub = 6,      // finished since `time`, and kept for its request id alone
  kTombstone = 7  // no message: whoever was about to push it begins again from this
};

// How a message looks from outside.
enum class State : uint8_t { kScheduled, kReady, kReserved, kWaiting, kDead, kFinished };

using Headers = std::map<std::string, std::string>;

struct Message {
  int64_t queue = 0;  // the queue's incarnation
  Stage stage = Stage::kOpen;
  UnixMicros time = 0;
  // Of kOpen and kWaiting: it is ready under any clock, and `time` only orders it. So no message
  // waits because a clock was ahead for a while.
  bool at_once = false;
  // Of kReserved: how long before `time` that was set; 0: a build that did not keep it has.
  std::chrono::microseconds timeout{0};
  store::Stamp hint_base = 0;
  int32_t priority = 0;
  std::string ordering_key;  // empty: none
  int64_t number = 0;        // its place in its ordering key, from 1
  std::optional<int64_t> sequence_number;
  store::Stamp sequence_base = 0;
  UnixMicros push_time = 0;
  UnixMicros expire_time = 0;  // 0: never
  UnixMicros forget_time = 0;  // 0: never
  int64_t delivery = 0;        // how often it was handed out, ever
  int32_t tries = 0;           // and since it was pushed, moved or replayed
  std::string reason;          // why it was rolled back or died; empty: nobody said
  std::string request;         // fingerprint of its push; empty: that had no request id
  std::string pusher;          // the principal whose payload it is; empty: not known
  document::Content headers;   // members are strings; see ToHeaders
  document::Content payload;   // empty unless read, where it lies beside
  std::optional<store::Stamp> payload_base;  // it lies beside, under that base

  // Neither finished nor dead.
  bool live() const {
    return stage == Stage::kOpen || stage == Stage::kReserved || stage == Stage::kWaiting;
  }
  // Its time has come.
  bool due(UnixMicros now) const {
    return time <= now || (at_once && (stage == Stage::kOpen || stage == Stage::kWaiting));
  }
  // The reservation ends later than any that was made by now: another clock said when.
  bool made_ahead(UnixMicros now) const {
    return stage == Stage::kReserved && timeout.count() != 0 &&
           time > now + (timeout + kClockTolerance).count();
  }
  // Handed out again without a word from whoever had it.
  bool suspect() const { return stage == Stage::kReserved; }
  // There is none any more for whoever asks.
  bool gone(UnixMicros now) const {
    return stage == Stage::kTombstone || (forget_time != 0 && forget_time <= now);
  }
  // REQUIRES: neither a stub nor a tombstone.
  State StateAt(UnixMicros now) const;

  std::string Encode() const;
  // The contents share the record's bytes. RECORD_CORRUPT.
  static absl::StatusOr<Message> Decode(const Bytes& record);
};

document::Content ToContent(const Headers& headers);
// RECORD_CORRUPT.
absl::StatusOr<Headers> ToHeaders(const document::Content& content);

// Proves one delivery of one message.
struct Token {
  std::string queue;
  MessageId message;
  int64_t delivery = 0;
  int64_t timeline = 0;  // how often the store was restored

  // Opaque: letters, digits, "-" and "_".
  std::string ToText() const;
  // INVALID_FIELD, naming `field`, for a text that ToText does not make.
  static absl::StatusOr<Token> FromText(std::string_view field, std::string_view text);
};

}  // namespace strata::queue
