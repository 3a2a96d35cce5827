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
  const auto visit = [this](std::string_view key, std::string_view value) { Meet(key, value); };
  RETURN_IF_ERROR(counting->CountOn(environment_->store, kCountedAtOnce, visit).status());
  counted_at_ = environment_->store.LastPosition();
  if (!counting->counted()) return absl::OkStatus();
  if (recount_) tally_ = std::move(recount_);
  looking_through_ = false;
  if (!statistics_asked_) tally_.reset();
  return absl::OkStatus();
}

// Counts the index (anew), and meets each hint by that.
void Dispatcher::StartCount() {
  const UnixMicros now = NowLocked();
  (tally_ ? recount_ : tally_) = std::make_unique<Tally>(incarnation_, now);
  recounted_at_ = environment_->clock.SteadyNow();
  disturbed_ = false;
  looking_through_ = true;
  all_ahead_kept_ = true;
  made_ahead_.clear();
  // What is little is counted at once; a failure is met again by whoever counts on.
  if (!CountSomeLocked().ok()) look_through_ = true;
  const bool counting = recount_ || (tally_ && !tally_->counted());
  if (counting && !std::exchange(counting_, true)) CountLater();
}

// What lies ahead because another clock said so.
void Dispatcher::Meet(std::string_view key, std::string_view value) {
  const HintValue says = HintValue::Decode(value);
  if (says.state == HintState::kDue) return;
  const std::optional<Hint> hint = ParseHintKey(key);
  if (!hint || hint->kind != HintKind::kDue) return;
  const Steady now = environment_->clock.SteadyNow();
  const microseconds left(std::max<UnixMicros>(hint->number - latest_, 0));
  if (says.state == HintState::kReserved && queue_->settings.max_tries != 0) {
    RememberTry(now + left, hint->id);
  }
  if (!looking_through_ || left.count() == 0) return;
  if (says.state == HintState::kAtOnce) {
    all_ahead_kept_ = window_.AddOverdue(*hint, false) && all_ahead_kept_;
    look_again_ = true;
  } else if (says.timeout.count() != 0 && left > says.timeout + kClockTolerance) {
    if (made_ahead_.size() < kReservationsKept) {
      made_ahead_.emplace(now + says.timeout, *hint);
    } else {
      all_ahead_kept_ = false;
    }
  }
}

// Reservations whose own timeouts are over since they were met.
void Dispatcher::TakeOverdue() {
  const Steady now = environment_->clock.SteadyNow();
  while (!made_ahead_.empty() && made_ahead_.begin()->first <= now) {
    all_ahead_kept_ = window_.AddOverdue(made_ahead_.begin()->second, true) && all_ahead_kept_;
    made_ahead_.erase(made_ahead_.begin());
  }
  // Now that there is room for those that were left.
  if (!looking_through_ && !all_ahead_kept_ && made_ahead_.empty() && !window_.HasOverdue()) {
    look_through_ = true;
  }
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
    bool more = false;
    bool met = false;
    {
      const std::lock_guard lock(self->mutex_);
      const bool failed = !self->running_ && !self->CountSomeLocked().ok();
      more = !failed && (self->recount_ || (self->tally_ && !self->tally_->counted()));
      self->counting_ = more;
      if (failed && self->looking_through_) self->look_through_ = true;
      met = self->look_again_;
    }
    if (met) self->Look();
    if (more) self->CountLater();
  });
}

absl::StatusOr<QueueStatistics> Dispatcher::Statistics() {
  QueueStatistics statistics;
  bool count_later = false;
  {
    const std::lock_guard lock(mutex_);
    const UnixMicros now = NowLocked();
    const Steady steady = environment_->clock.SteadyNow();
    statistics_asked_ = true;
    JudgeUntoldLocked(steady);
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
    statistics.exact = counts.exact && !counting && !others_ && !untold_ && !disturbed_;
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
