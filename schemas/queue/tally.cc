#include "schemas/queue/tally.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/queue_keys.h"

namespace strata::queue {
namespace {

constexpr UnixMicros kSecond = 1'000'000;
constexpr UnixMicros kHour = 3'600 * kSecond;
constexpr UnixMicros kDay = 24 * kHour;
// So many hints of the present second are looked at for one report.
constexpr int64_t kLookedAtMax = 20'000;

}  // namespace

Tally::Tally(int64_t incarnation, UnixMicros now)
    : incarnation_(incarnation),
      hours_from_((now / kHour + 25) * kHour),
      passed_(""),
      ready_to_(now / kSecond * kSecond) {}

absl::StatusOr<bool> Tally::CountOn(const store::Reader& reader, size_t keys_max) {
  if (!passed_) return false;
  store::Range range = QueueRange(incarnation_);
  if (!passed_->empty()) range.begin = *passed_ + '\0';
  size_t keys = 0;
  const auto cursor = reader.Scan(store::Keyspace::kQueueIndex, range);
  for (; cursor->Valid() && keys < keys_max; cursor->Next(), ++keys) {
    Count(cursor->key(), IsReserved(cursor->value()), 1);
    passed_ = cursor->key();
  }
  RETURN_IF_ERROR(cursor->status());
  if (!cursor->Valid()) passed_.reset();
  return passed_.has_value();
}

void Tally::Apply(const IndexChange& change) {
  if (passed_ && change.key > *passed_) return;
  Count(change.key, change.reserved, change.added ? 1 : -1);
}

void Tally::Count(std::string_view key, bool reserved, int64_t by) {
  constexpr size_t kKindAt = 8;
  if (key.size() <= kKindAt) return;
  switch (key[kKindAt]) {
    case static_cast<char>(HintKind::kDue):
      if (const std::optional<Hint> hint = ParseHintKey(key)) CountDue(hint->number, reserved, by);
      break;
    case static_cast<char>(HintKind::kDead):
      dead_ += by;
      break;
    case 'k':
      members_ += by;
      break;
    case 'o':
      orders_ += by;
      break;
    default:
      break;
  }
}

void Tally::CountDue(UnixMicros due, bool reserved, int64_t by) {
  if (due < ready_to_) {
    ready_ += by;
    return;
  }
  const bool hour = due >= hours_from_;
  auto& buckets = hour ? hours_ : seconds_;
  const auto bucket = buckets.try_emplace(due / (hour ? kHour : kSecond)).first;
  (reserved ? bucket->second.reserved : bucket->second.open) += by;
  if (bucket->second.open == 0 && bucket->second.reserved == 0) buckets.erase(bucket);
}

void Tally::Advance(UnixMicros now) {
  ready_to_ = std::max(ready_to_, now / kSecond * kSecond);
  while (!seconds_.empty() && seconds_.begin()->first < ready_to_ / kSecond) {
    ready_ += seconds_.begin()->second.open + seconds_.begin()->second.reserved;
    seconds_.erase(seconds_.begin());
  }
}

bool Tally::stale(UnixMicros now) const {
  return !hours_.empty() && hours_.begin()->first * kHour < now + kDay;
}

absl::StatusOr<Tally::Counts> Tally::Report(const store::Reader& reader, UnixMicros now) {
  Advance(now);
  Counts counts;
  counts.ready = ready_;
  counts.waiting = members_ - orders_;
  counts.dead = dead_;
  counts.exact = counted();
  for (const auto* buckets : {&seconds_, &hours_}) {
    for (const auto& [time, bucket] : *buckets) {
      counts.scheduled += bucket.open;
      counts.reserved += bucket.reserved;
    }
  }
  const auto present = seconds_.find(now / kSecond);
  if (present == seconds_.end()) return counts;
  int64_t looked_at = 0;
  for (int32_t priority = 0; priority <= kPriorityMax; ++priority) {
    store::Range range{DueBegin(incarnation_, priority, ready_to_),
                       DueBegin(incarnation_, priority, now + 1)};
    const auto cursor = reader.Scan(store::Keyspace::kQueueIndex, range);
    for (; cursor->Valid() && looked_at < kLookedAtMax; cursor->Next(), ++looked_at) {
      --(IsReserved(cursor->value()) ? counts.reserved : counts.scheduled);
      ++counts.ready;
    }
    RETURN_IF_ERROR(cursor->status());
  }
  if (looked_at == kLookedAtMax) counts.exact = false;
  return counts;
}

}  // namespace strata::queue
