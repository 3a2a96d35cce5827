// The keys of queues and messages, whose order is the order of what they name.
//
//   messages    = id                       a message
//                 id "p" base              its payload, if that is a large one
//   queue_index = incarnation "d" rank due id base       look at this message at that time
//                 incarnation "f" end id base            a finished message
//                 incarnation "x" end id base            a dead one
//                 incarnation "s" sequence id base       an unfinished or dead one with a number
//                 incarnation "k" key 0x00 number id     an unfinished one of an ordering key
//                 incarnation "o" key 0x00               the head and tail of an ordering key
//   queues      = name                     a queue
//                 name 0x00 schedule       one of its schedules
//                 0x00 name 0x00 incarnation
//                                          the tombstone of a queue whose name another has now
//
//   incarnation, due, end, number, base = 8 bytes, big-endian
//   sequence                            = the same with the sign turned round, so that negative
//                                         numbers come first
//   rank                                = 1 byte: 9 less the priority
//   base                                = the stamp that the step was planned from that wrote it;
//                                         0: the message's first
//
// Hints ("d", "f", "x", "s") say where to look; what they say may be over. Ordering keys and names
// hold no control characters, so 0x00 ends them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schemas/base/clock.h"
#include "schemas/queue/message.h"
#include "schemas/store/store.h"

namespace strata::queue {

enum class HintKind : char { kDue = 'd', kFinished = 'f', kDead = 'x', kSequence = 's' };

// What a hint says.
struct Hint {
  HintKind kind = HintKind::kDue;
  int32_t priority = 0;  // of kDue
  int64_t number = 0;    // of kSequence: the sequence number; else a time
  MessageId id;
  store::Stamp base = 0;

  friend bool operator==(const Hint&, const Hint&) = default;
};

std::string HintKey(int64_t incarnation, const Hint& hint);
// Nothing if the bytes are no such key.
std::optional<Hint> ParseHintKey(std::string_view key);

// From a time on, and before another; none: without that bound.
struct HintTimes {
  std::optional<UnixMicros> from{};
  std::optional<UnixMicros> before{};
};

// The hints of one kind; with times, which are for kFinished and kDead, those of these.
store::Range HintRange(int64_t incarnation, HintKind kind, const HintTimes& times = {});
// Those of one priority whose key is after `after_key` (empty: from the first).
store::Range DueRange(int64_t incarnation, int32_t priority, std::string_view after_key);
store::Range DueRange(int64_t incarnation, int32_t priority, const HintTimes& times);
// The first key of a due hint of that priority and time.
std::string DueBegin(int64_t incarnation, int32_t priority, UnixMicros due);

std::string MemberKey(int64_t incarnation, std::string_view ordering_key, int64_t number,
                      const MessageId& id);
struct Member {
  std::string ordering_key;
  int64_t number = 0;
  MessageId id;
};
std::optional<Member> ParseMemberKey(std::string_view key);
// The members of one ordering key with a number greater than `after`.
store::Range MemberRange(int64_t incarnation, std::string_view ordering_key, int64_t after);
// The members of all ordering keys.
store::Range AllMembers(int64_t incarnation);

std::string OrderKey(int64_t incarnation, std::string_view ordering_key);

std::string PayloadKey(const MessageId& id, store::Stamp base);

// What the index has of one queue.
store::Range QueueRange(int64_t incarnation);
// Whose a key of the index is; nothing if it is too short.
std::optional<int64_t> IncarnationOf(std::string_view key);

std::string ScheduleKey(std::string_view queue, std::string_view schedule);
// Every schedule of a queue after `after_schedule` (empty: from the first).
store::Range ScheduleRange(std::string_view queue, std::string_view after_schedule);
std::string FormerQueueKey(std::string_view queue, int64_t incarnation);
// The keys of all tombstones of that kind.
store::Range FormerQueues();
// The name in such a key.
std::string_view FormerNameOf(std::string_view key);

// What a key of `queues` is about.
enum class QueueKeyKind : uint8_t { kQueue, kSchedule, kFormerQueue };
QueueKeyKind KindOfQueueKey(std::string_view key);

}  // namespace strata::queue
