#include "schemas/queue/queue_keys.h"

#include <algorithm>
#include <utility>

#include "schemas/store/key_codec.h"

namespace strata::queue {
namespace {

constexpr size_t kNumberBytes = 8;
constexpr size_t kPrefixBytes = kNumberBytes + 1;
constexpr char kMemberKind = 'k';
constexpr char kOrderKind = 'o';
constexpr uint64_t kSign = uint64_t{1} << 63;

void AppendNumber(uint64_t number, std::string& key) {
  for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(number >> shift);
}

uint64_t ReadNumber(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < kNumberBytes; ++i) {
    number = number << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return number;
}

std::string Prefix(int64_t incarnation, char kind, size_t room = 0) {
  std::string key;
  key.reserve(kPrefixBytes + room);
  AppendNumber(static_cast<uint64_t>(incarnation), key);
  key += kind;
  return key;
}

store::Range WithPrefix(std::string prefix) {
  std::string end = store::PrefixEnd(prefix);
  return {std::move(prefix), std::move(end)};
}

store::Range WithTimes(std::string prefix, const HintTimes& times) {
  store::Range range{prefix, ""};
  if (times.from) AppendNumber(static_cast<uint64_t>(*times.from), range.begin);
  if (times.before) {
    AppendNumber(static_cast<uint64_t>(*times.before), prefix);
    range.end = std::max(std::move(prefix), range.begin);
  } else {
    range.end = store::PrefixEnd(prefix);
  }
  return range;
}

std::string KeyPrefix(int64_t incarnation, char kind, std::string_view ordering_key, size_t room) {
  std::string key = Prefix(incarnation, kind, ordering_key.size() + 1 + room);
  key += ordering_key;
  key += '\0';
  return key;
}

char Rank(int32_t priority) { return static_cast<char>(kPriorityMax - priority); }

constexpr size_t kHintTail = kNumberBytes + MessageId::kBytes + kNumberBytes;

}  // namespace

std::string HintKey(int64_t incarnation, const Hint& hint) {
  std::string key = Prefix(incarnation, static_cast<char>(hint.kind), 1 + kHintTail);
  if (hint.kind == HintKind::kDue) key += Rank(hint.priority);
  const auto number = static_cast<uint64_t>(hint.number);
  AppendNumber(hint.kind == HintKind::kSequence ? number ^ kSign : number, key);
  key += hint.id.bytes();
  AppendNumber(static_cast<uint64_t>(hint.base), key);
  return key;
}

std::optional<Hint> ParseHintKey(std::string_view key) {
  if (key.size() < kPrefixBytes) return std::nullopt;
  Hint hint;
  hint.kind = static_cast<HintKind>(key[kNumberBytes]);
  std::string_view rest = key.substr(kPrefixBytes);
  switch (hint.kind) {
    case HintKind::kDue:
      if (rest.empty() || rest[0] < 0 || rest[0] > kPriorityMax) return std::nullopt;
      hint.priority = kPriorityMax - rest[0];
      rest.remove_prefix(1);
      break;
    case HintKind::kFinished:
    case HintKind::kDead:
    case HintKind::kSequence:
      break;
    default:
      return std::nullopt;
  }
  if (rest.size() != kHintTail) return std::nullopt;
  const uint64_t number = ReadNumber(rest);
  hint.number = static_cast<int64_t>(hint.kind == HintKind::kSequence ? number ^ kSign : number);
  hint.id = *MessageId::FromBytes(rest.substr(kNumberBytes, MessageId::kBytes));
  hint.base = static_cast<int64_t>(ReadNumber(rest.substr(kNumberBytes + MessageId::kBytes)));
  return hint;
}

store::Range HintRange(int64_t incarnation, HintKind kind, const HintTimes& times) {
  return WithTimes(Prefix(incarnation, static_cast<char>(kind), kNumberBytes), times);
}

store::Range DueRange(int64_t incarnation, int32_t priority, std::string_view after_key) {
  store::Range range =
      WithPrefix(Prefix(incarnation, static_cast<char>(HintKind::kDue), 1) + Rank(priority));
  if (!after_key.empty()) range.begin = std::string(after_key) + '\0';
  return range;
}

store::Range DueRange(int64_t incarnation, int32_t priority, const HintTimes& times) {
  std::string prefix = Prefix(incarnation, static_cast<char>(HintKind::kDue), 1 + kNumberBytes);
  prefix += Rank(priority);
  return WithTimes(std::move(prefix), times);
}

std::string DueBegin(int64_t incarnation, int32_t priority, UnixMicros due) {
  std::string key = Prefix(incarnation, static_cast<char>(HintKind::kDue), 1 + kNumberBytes);
  key += Rank(priority);
  AppendNumber(static_cast<uint64_t>(due), key);
  return key;
}

std::string MemberKey(int64_t incarnation, std::string_view ordering_key, int64_t number,
                      const MessageId& id) {
  std::string key =
      KeyPrefix(incarnation, kMemberKind, ordering_key, kNumberBytes + MessageId::kBytes);
  AppendNumber(static_cast<uint64_t>(number), key);
  key += id.bytes();
  return key;
}

std::optional<Member> ParseMemberKey(std::string_view key) {
  constexpr size_t kTail = 1 + kNumberBytes + MessageId::kBytes;
  if (key.size() <= kPrefixBytes + kTail || key[kNumberBytes] != kMemberKind) return std::nullopt;
  const std::string_view ordering_key = key.substr(kPrefixBytes, key.size() - kPrefixBytes - kTail);
  const std::string_view tail = key.substr(kPrefixBytes + ordering_key.size());
  if (tail.front() != '\0' || ordering_key.find('\0') != ordering_key.npos) return std::nullopt;
  return Member{std::string(ordering_key), static_cast<int64_t>(ReadNumber(tail.substr(1))),
                *MessageId::FromBytes(tail.substr(1 + kNumberBytes))};
}

store::Range MemberRange(int64_t incarnation, std::string_view ordering_key, int64_t after) {
  store::Range range = WithPrefix(KeyPrefix(incarnation, kMemberKind, ordering_key, 0));
  AppendNumber(static_cast<uint64_t>(after) + 1, range.begin);
  return range;
}

store::Range AllMembers(int64_t incarnation) {
  return WithPrefix(Prefix(incarnation, kMemberKind));
}

std::string OrderKey(int64_t incarnation, std::string_view ordering_key) {
  return KeyPrefix(incarnation, kOrderKind, ordering_key, 0);
}

std::string PayloadKey(const MessageId& id, store::Stamp base) {
  std::string key;
  key.reserve(MessageId::kBytes + 1 + kNumberBytes);
  key += id.bytes();
  key += 'p';
  AppendNumber(static_cast<uint64_t>(base), key);
  return key;
}

store::Range QueueRange(int64_t incarnation) {
  std::string prefix;
  AppendNumber(static_cast<uint64_t>(incarnation), prefix);
  return WithPrefix(std::move(prefix));
}

std::optional<int64_t> IncarnationOf(std::string_view key) {
  if (key.size() < kPrefixBytes) return std::nullopt;
  return static_cast<int64_t>(ReadNumber(key));
}

std::string ScheduleKey(std::string_view queue, std::string_view schedule) {
  std::string key(queue);
  key += '\0';
  key += schedule;
  return key;
}

std::string FormerQueueKey(std::string_view queue, int64_t incarnation) {
  std::string key(1, '\0');
  key += queue;
  key += '\0';
  AppendNumber(static_cast<uint64_t>(incarnation), key);
  return key;
}

store::Range FormerQueues() { return WithPrefix(std::string(1, '\0')); }

std::string_view FormerNameOf(std::string_view key) {
  const std::string_view rest = key.substr(1);
  return rest.substr(0, rest.find('\0'));
}

QueueKeyKind KindOfQueueKey(std::string_view key) {
  const size_t zero = key.find('\0');
  if (zero == key.npos) return QueueKeyKind::kQueue;
  return zero == 0 ? QueueKeyKind::kFormerQueue : QueueKeyKind::kSchedule;
}

store::Range ScheduleRange(std::string_view queue, std::string_view after_schedule) {
  store::Range range = WithPrefix(ScheduleKey(queue, ""));
  if (!after_schedule.empty()) range.begin = ScheduleKey(queue, after_schedule) + '\0';
  return range;
}

}  // namespace strata::queue
