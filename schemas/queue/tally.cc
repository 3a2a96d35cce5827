#include "schemas/queue/tally.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "schemas/base/status_macros.h"
#include "schemas/queue/queue_keys.h"

namespace strata::queue {
namespace {

constexpr UnixMicros kSecond = 1'000'000;
constexpr UnixMicros kMicrosPerHour = 3'600 * kSecond;
constexpr UnixMicros kMicrosPerDay = 24 * kMicrosPerHour;
// So many hints of the present second are looked at for one report.
constexpr int64_t kCountedMax = 20'000;

}  // namespace

Tally::Tally(int64_t incarnation, UnixMicros now)
    : incarnation_(incarnation),
      hours_from_((now / kMicrosPerHour + 25) * kMicrosPerHour),
      passed_(""),
      ready_to_(now / kSecond * kSecond) {}

absl::StatusOr<bool> Tally::CountOn(const store::Reader& reader, size_t keys_max,
                                    const Visit& visit) {
  if (!passed_) return false;
  store::Range range = QueueRange(incarnation_);
  if (!passed_->empty()) range.begin = *passed_ + '\0';
  size_t keys = 0;
  const auto cursor = reader.Scan(store::Keyspace::kQueueIndex, range);
  for (; cursor->Valid() && keys < keys_max; cursor->Next(), ++keys) {
    Count(cursor->key(), HintValue::Decode(cursor->value()).state, 1);
    visit(cursor->key(), cursor->value());
    passed_ = cursor->key();
  }
  RETURN_IF_ERROR(cursor->status());
  if (!cursor->Valid()) passed_.reset();
  return passed_.has_value();
}

void Tally::Apply(const IndexChange& change) {
  if (passed_ && change.key > *passed_) return;
  Count(change.key, change.state, change.added ? 1 : -1);
}

void Tally::Count(std::string_view key, HintState state, int64_t by) {
  constexpr size_t kKindAt = 8;
  if (key.size() <= kKindAt) return;
  switch (key[kKindAt]) {
    case static_cast<char>(HintKind::kDue):
      if (state == HintState::kAtOnce) {
        ready_ += by;
      } else if (const std::optional<Hint> hint = ParseHintKey(key)) {
        CountDue(hint->number, state == HintState::kReserved, by);
      }
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
  const auto bucket = buckets.try_emplace(due / (hour ? kMicrosPerHour : kSecond)).first;
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
  if (now < ready_to_) return true;
  return !hours_.empty() && hours_.begin()->first * kMicrosPerHour < now + kMicrosPerDay;
}

// The index as it was before what is under way: a hint that a commit has brought or taken since is
// not told from one that was counted by its number alone.
absl::StatusOr<Tally::Seen> Tally::LookAtPresent(const store::Reader& reader, UnixMicros now,
                                                 const UnderWay& under_way) const {
  absl::flat_hash_set<std::string_view> coming;
  absl::flat_hash_map<std::string_view, bool> leaving;  // whether it is of one that is RESERVED
  for (const std::vector<IndexChange>* changes : under_way.changes) {
    for (const IndexChange& change : *changes) {
      const std::optional<Hint> hint = ParseHintKey(change.key);
      if (!hint || hint->kind != HintKind::kDue) continue;
      if (change.state == HintState::kAtOnce) continue;
      if (hint->number < ready_to_ || hint->number > now) continue;
      if (IncarnationOf(change.key) != incarnation_) continue;
      if (change.added) {
        coming.insert(change.key);
      } else {
        leaving.emplace(change.key, change.state == HintState::kReserved);
      }
    }
  }
  Seen seen;
  int64_t looked_at = 0;
  for (int32_t priority = 0; priority <= kPriorityMax; ++priority) {
    const store::Range range{DueBegin(incarnation_, priority, ready_to_),
                             DueBegin(incarnation_, priority, now + 1)};
    const auto cursor = reader.Scan(store::Keyspace::kQueueIndex, range);
    for (; cursor->Valid() && looked_at < kCountedMax; cursor->Next(), ++looked_at) {
      const HintState state = HintValue::Decode(cursor->value()).state;
      if (state == HintState::kAtOnce) continue;
      leaving.erase(cursor->key());
      if (coming.contains(cursor->key())) continue;
      if (under_way.after != 0 && cursor->position() > under_way.after) continue;
      ++(state == HintState::kReserved ? seen.due.reserved : seen.due.open);
    }
    RETURN_IF_ERROR(cursor->status());
  }
  for (const auto& [key, reserved] : leaving) {
    // What comes and goes with the same commit was never there.
    if (!coming.contains(key)) ++(reserved ? seen.due.reserved : seen.due.open);
  }
  seen.all = looked_at < kCountedMax;
  return seen;
}

absl::StatusOr<Tally::Counts> Tally::Report(const store::Reader& reader, UnixMicros now,
                                            const UnderWay& under_way) {
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
  if (const auto present = seconds_.find(now / kSecond); present != seconds_.end()) {
    ASSIGN_OR_RETURN(const Seen seen, LookAtPresent(reader, now, under_way));
    // No more than were counted: what others commit is not known to be under way.
    const int64_t open =
        std::clamp<int64_t>(seen.due.open, 0, std::max<int64_t>(present->second.open, 0));
    const int64_t reserved =
        std::clamp<int64_t>(seen.due.reserved, 0, std::max<int64_t>(present->second.reserved, 0));
    counts.scheduled -= open;
    counts.reserved -= reserved;
    counts.ready += open + reserved;
    counts.exact = counts.exact && seen.all;
  }
  // While it counts, and where another server has taken what was not counted, a difference may be
  // below nothing.
  for (int64_t* count :
       {&counts.ready, &counts.scheduled, &counts.reserved, &counts.waiting, &counts.dead}) {
    counts.exact = counts.exact && *count >= 0;
    *count = std::max<int64_t>(*count, 0);
  }
  return counts;
}

}  // namespace strata::queue
