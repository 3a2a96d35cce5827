#include "schemas/queue/history_sweep.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/queue/plans.h"
#include "schemas/queue/queue_keys.h"

namespace strata::queue {
namespace {

using store::Keyspace;

constexpr size_t kVersionsAtOnce = 500;
// Of a queue in which nothing is finished.
constexpr UnixMicros kSweepInterval = UnixMicros{60} * 1'000'000;
// From the first hint on: by then another server's, whose clock is behind, stands before the place.
constexpr UnixMicros kSweepAnewInterval = UnixMicros{3'600} * 1'000'000;
// Places of queues that were deleted meanwhile are worth no more than this.
constexpr size_t kPlacesMax = 20'000;

}  // namespace

absl::StatusOr<bool> HistorySweep::Sweep(const QueueRecord& queue) {
  const UnixMicros now = environment_->clock.Now();
  const std::chrono::microseconds retention = queue.settings.history_retention;
  if (places_.size() >= kPlacesMax && !places_.contains(queue.incarnation)) places_.clear();
  Place& place = places_[queue.incarnation];
  if (place.retention != retention || place.anew_from == 0 ||
      now >= place.anew_from + kSweepAnewInterval) {
    place = {retention, "", 0, now};
  }
  if (place.look_at > now) return false;
  store::Range range = HintRange(queue.incarnation, HintKind::kFinished);
  if (!place.after.empty()) range.begin = place.after + '\0';
  const auto cursor = environment_->store.Scan(Keyspace::kQueueIndex, range);
  for (size_t looked_at = 0; cursor->Valid(); cursor->Next(), ++looked_at) {
    if (looked_at >= kVersionsAtOnce) return true;
    const std::optional<Hint> hint = ParseHintKey(cursor->key());
    if (hint && hint->number + retention.count() > now) {
      place.look_at = hint->number + retention.count();
      return false;
    }
    if (hint) RETURN_IF_ERROR(SweepOne(queue, *hint, cursor->key(), now));
    place.after = cursor->key();
  }
  RETURN_IF_ERROR(cursor->status());
  // What finishes from now on is kept for so long at least.
  place.look_at = now + std::max<UnixMicros>(kSweepInterval, retention.count());
  return false;
}

absl::Status HistorySweep::SweepOne(const QueueRecord& queue, const Hint& hint,
                                    std::string_view key, UnixMicros now) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   environment_->store.Get(Keyspace::kMessages, hint.id.bytes()));
  if (!record) return absl::OkStatus();
  ASSIGN_OR_RETURN(const Message message, Message::Decode(record->value));
  // What is not remembered goes by itself, and hints that say nothing true are not left by it.
  if (message.queue != queue.incarnation || !Says(hint, message) || message.gone(now) ||
      IsKept(message, queue, now)) {
    return absl::OkStatus();
  }
  store::WriteBatch batch;
  batch.MarkAsBackground();
  batch.MarkAsRemoval();
  if (const std::optional<Message> stub = Rest(message, now)) {
    batch.Replace(Keyspace::kMessages, std::string(hint.id.bytes()), stub->Encode(), record->stamp)
        .expire_time = stub->forget_time;
  } else {
    batch.DeleteIf(Keyspace::kMessages, std::string(hint.id.bytes()), record->stamp);
  }
  batch.MarkCommitPoint();
  if (message.payload_base) {
    batch.Delete(Keyspace::kMessages, PayloadKey(hint.id, *message.payload_base));
  }
  batch.Delete(Keyspace::kQueueIndex, std::string(key));
  // What fails is not shown any more, and found again by the next look from the first hint on.
  environment_->store.Commit(std::move(batch), [](const store::CommitResult&) {});
  return absl::OkStatus();
}

}  // namespace strata::queue
