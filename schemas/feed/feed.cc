#include "schemas/feed/feed.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"

namespace strata::feed {

Watch::~Watch() { feed_.Close(*reader_, counted_); }

Feed::Feed(store::Store& store, versioning::Documents& documents, const Clock& clock,
           Executor& executor, const FeedOptions& options)
    : store_(store),
      clock_(clock),
      executor_(executor),
      options_(options),
      tail_(store, clock, executor, options.ring),
      workshop_{
          store,     documents,
          clock,     tail_,
          counters_, [this](std::shared_ptr<Reader> reader) { Schedule(std::move(reader)); }} {}

Feed::~Feed() = default;

absl::StatusOr<std::unique_ptr<Watch>> Feed::Open(WatchQuery query, std::shared_ptr<Sink> sink) {
  if (!store_.capabilities().commit_positions) {
    return versioning::NoLedger("there is no feed of its changes");
  }
  if (const auto* start = std::get_if<FromTime>(&query.start);
      start && start->time > clock_.Now()) {
    return FieldError("start_time", "lies in the future; leave the start out to begin now");
  }
  if (watchers_.fetch_add(1) >= options_.watchers_max) {
    --watchers_;
    return Error(ErrorReason::kOverloaded,
                 "there are " + std::to_string(options_.watchers_max) + " watchers, the maximum")
        .With("limit", options_.watchers_max);
  }
  return Begin(std::move(query), std::move(sink), /*counted=*/true);
}

std::unique_ptr<Watch> Feed::Follow(WatchQuery query, std::shared_ptr<Sink> sink) {
  return Begin(std::move(query), std::move(sink), /*counted=*/false);
}

std::unique_ptr<Watch> Feed::Begin(WatchQuery query, std::shared_ptr<Sink> sink, bool counted) {
  tail_.Join();
  auto reader = std::make_shared<Reader>(workshop_, std::move(query), std::move(sink));
  return std::unique_ptr<Watch>(new Watch(*this, std::move(reader), counted));
}

void Feed::Close(Reader& reader, bool counted) {
  reader.Close();
  tail_.Leave();
  if (counted) --watchers_;
}

absl::StatusOr<FeedState> Feed::GetState() const {
  if (!store_.capabilities().commit_positions) {
    return versioning::NoLedger("there is no feed of its changes");
  }
  FeedState state;
  state.last_position = store_.LastPosition();
  ASSIGN_OR_RETURN(state.oldest_position, OldestPosition(store_));
  state.watchers = watchers_;
  state.parked_watchers = static_cast<int64_t>(tail_.parked());
  state.events_sent = counters_.events_sent;
  state.catch_up_reads = counters_.catch_up_reads;
  state.retention = options_.retention;
  if (options_.floor_holders != nullptr) {
    ASSIGN_OR_RETURN(state.held_by, options_.floor_holders->Lowest(store_));
  }
  return state;
}

void Feed::Schedule(std::shared_ptr<Reader> reader) {
  {
    const std::lock_guard lock(mutex_);
    (reader->brief ? brief_ : lengthy_).Add(std::move(reader));
    if (running_ == options_.turns_max) return;
    ++running_;
  }
  executor_.Schedule([this] { RunTurn(); });
}

bool Feed::HasLong() const {
  return !lengthy_.empty() && long_running_ < std::max(options_.turns_max - 1, 1);
}

bool Feed::HasNext() const { return !brief_.empty() || HasLong(); }

// One turn, so that whatever else the executor has to do comes in between. Where nothing is left
// but long ones, and as many of these run as may, whoever runs them goes on.
void Feed::RunTurn() {
  std::unique_lock lock(mutex_);
  if (!HasNext()) {
    --running_;
    return;
  }
  const bool has_long = HasLong();
  const bool lengthy = has_long && (brief_.empty() || long_next_);
  if (has_long) long_next_ = !long_next_;
  const std::shared_ptr<Reader> reader = lengthy ? lengthy_.Take() : brief_.Take();
  if (lengthy) ++long_running_;
  lock.unlock();
  const auto begun = clock_.SteadyNow();
  const Reader::Effort effort = reader->Turn();
  const bool was_long = clock_.SteadyNow() - begun >= kTurnTimeMax;
  lock.lock();
  if (lengthy) --long_running_;
  // One that has looked at nothing yet may come to need long, and says nothing by being idle.
  if (effort != Reader::Effort::kNothing) {
    reader->brief = effort == Reader::Effort::kLooked && !was_long;
  }
  if (!HasNext()) {
    --running_;
    return;
  }
  lock.unlock();
  executor_.Schedule([this] { RunTurn(); });
}

}  // namespace strata::feed
