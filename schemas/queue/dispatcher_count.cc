// How a dispatcher counts its queue's messages.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "schemas/base/status_macros.h"
#include "schemas/queue/dispatcher_round.h"

namespace strata::queue {
namespace {

using std::chrono::microseconds;

// Keys counted between two rounds.
constexpr size_t kCountedAtOnce = 1'024;
// Between two counts of a queue on which another server works too.
constexpr microseconds kCountInterval = std::chrono::minutes(1);

}  // namespace

// Where no commit of this process is in flight, so that what is counted stands still.
absl::Status Dispatcher::CountSomeLocked() {
  Tally* const counting = recount_ ? recount_.get() : tally_.get();
  if (counting == nullptr || counting->counted()) return absl::OkStatus();
  RETURN_IF_ERROR(counting->CountOn(environment_->store, kCountedAtOnce).status());
  counted_at_ = environment_->store.LastPosition();
  if (recount_ && recount_->counted()) tally_ = std::move(recount_);
  return absl::OkStatus();
}

void Dispatcher::CountOn() {
  const std::lock_guard lock(mutex_);
  (void)CountSomeLocked();  // whoever asks for the count finds out
}

// In the background, while nobody runs; else the rounds do it.
void Dispatcher::CountLater() {
  constexpr microseconds kPause = std::chrono::milliseconds(1);
  environment_->executor.Schedule(kPause, [weak = weak_from_this()] {
    const std::shared_ptr<Dispatcher> self = weak.lock();
    if (self == nullptr) return;
    const Doors::Visit visit(self->environment_->doors);
    if (!visit.let_in()) return;
    {
      const std::lock_guard lock(self->mutex_);
      const bool failed = !self->running_ && !self->CountSomeLocked().ok();
      const Tally& counting = self->recount_ ? *self->recount_ : *self->tally_;
      if (failed || counting.counted()) {
        self->counting_ = false;
        return;
      }
    }
    self->CountLater();
  });
}

absl::StatusOr<QueueStatistics> Dispatcher::Statistics() {
  QueueStatistics statistics;
  bool count_later = false;
  {
    const std::lock_guard lock(mutex_);
    const UnixMicros now = NowLocked();
    const Steady steady = environment_->clock.SteadyNow();
    if (!tally_) {
      tally_ = std::make_unique<Tally>(incarnation_, now);
      recounted_at_ = steady;
    } else if (tally_->counted() && !recount_) {
      const bool again = others_ && steady - recounted_at_ >= kCountInterval;
      if (again || disturbed_ || tally_->stale(now)) {
        recount_ = std::make_unique<Tally>(incarnation_, now);
        recounted_at_ = steady;
        disturbed_ = false;
      }
    }
    // What is little is counted at once.
    if (!running_) RETURN_IF_ERROR(CountSomeLocked());
    Tally::UnderWay under_way;
    std::vector<GroupPtr> groups;
    for (const std::weak_ptr<Group>& weak : in_flight_) {
      const GroupPtr group = weak.lock();
      if (group == nullptr) continue;
      under_way.changes.push_back(&group->changes.index);
      groups.push_back(group);
    }
    under_way.after = std::max(applied_at_, counted_at_);
    ASSIGN_OR_RETURN(const Tally::Counts counts,
                     tally_->Report(environment_->store, now, under_way));
    statistics.ready = counts.ready;
    statistics.scheduled = counts.scheduled;
    statistics.reserved = counts.reserved;
    statistics.waiting = counts.waiting;
    statistics.dead = counts.dead;
    const bool counting = recount_ != nullptr || !tally_->counted();
    statistics.exact = counts.exact && !counting && !others_ && !disturbed_;
    if (!running_) RETURN_IF_ERROR(window_.Fill(environment_->store, now));
    if (const std::optional<UnixMicros> oldest = window_.Oldest(); oldest && *oldest < now) {
      statistics.oldest_ready_age = microseconds(now - *oldest);
    }
    count_later = counting && !std::exchange(counting_, true);
  }
  if (count_later) CountLater();
  return statistics;
}

}  // namespace strata::queue
