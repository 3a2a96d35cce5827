// What of a partition fails: counted, tried again, and in the end parked.
#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/feed/partition.h"

namespace strata::feed {

using lease::HeldState;
using lease::HeldWrite;
using std::chrono::microseconds;
using store::Keyspace;
using store::WriteBatch;

absl::Status Partition::Nack(const lease::Place& place, std::string_view reason, bool park) {
  return Judge(place, reason, park, /*looked=*/false);
}

// `looked`: at the stored place, since the consumer said so.
absl::Status Partition::Judge(const lease::Place& place, std::string_view reason, bool park,
                              bool looked) {
  bool replayed = false;
  bool later = false;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kEnding || phase_ == Phase::kEnded || end_asked_) return absl::OkStatus();
    if (replay_ && replay_->delivered && replay_->place == place) {
      replayed = true;
    } else if (window_ && place <= window_->done()) {
      // Its effect was written after all, and that was met before this: it does not come again.
      setup_->stream->Tell([partition = partition_, done = window_->done()](ConsumerSink& sink) {
        sink.Acknowledged(partition, done);
      });
    } else {
      if (!window_ || !window_->IsOpen(place)) {
        if (place <= stale_ || place == last_replay_) return absl::OkStatus();
        return NotDelivered("nack", place, "is not delivered to this consumer");
      }
      later = window_->first().place != place;
      if (later && looked) {
        return NotDelivered("nack", place, "follows events that are not acknowledged");
      }
      if (!later) {
        Failure failure;
        failure.event = window_->first();
        failure.reason = reason;
        failure.park = park;
        Fail(std::move(failure));
      }
    }
  }
  if (replayed) ReplayFailed(reason);
  if (later) {
    // A write that was the effect of those before may have moved the place, which nobody tells.
    LookAtPlace([self = shared_from_this(), place, reason = std::string(reason), park] {
      const absl::Status judged = self->Judge(place, reason, park, /*looked=*/true);
      if (!judged.ok()) return self->setup_->failed(judged);
      self->Resume();
    });
  }
  return absl::OkStatus();
}

// With the lock held. What is delivered is void: it begins anew when the failure is written down.
void Partition::Fail(Failure failure) {
  failing_ = true;
  // The consumer does not know yet, and may acknowledge what it has.
  if (failure.release) stale_ = std::max(stale_, highest_);
  window_->Void();
  Retire();
  workshop().Later([self = shared_from_this(), shared = std::make_shared<Failure>(std::move(
                                                   failure))] { self->WriteFailure(shared); });
}

microseconds Partition::Backoff(int32_t attempts) const {
  microseconds backoff = subscription().backoff_first;
  for (int32_t i = 1; i < attempts && backoff < subscription().backoff_max; ++i) backoff *= 2;
  return std::min(backoff, subscription().backoff_max);
}

void Partition::WriteFailure(const std::shared_ptr<Failure>& failure) {
  {
    const std::lock_guard lock(mutex_);
    const bool before = failed_.failed == failure->event.place;
    PartitionData& next = failure->next;
    next.failed = failure->event.place;
    next.attempts = (before ? failed_.attempts : 0) + (failure->again ? 0 : 1);
    next.reason = failure->reason;
    bool often = next.attempts >= subscription().max_attempts;
    if (failure->uncertain && next.attempts == 1) often = false;
    if (failure->park || often) {
      failure->parks = failure->event.type == EventType::kVersion &&
                       parked_.size() < static_cast<size_t>(workshop().options.parked_max);
      next.blocked = !failure->parks;
    }
    next.retry_time = workshop().clock.Now() + Backoff(next.attempts).count();
  }
  Worker::Write write;
  write.change = [failure, self = shared_from_this()](lease::State& state) {
    // The write that was its effect came after all.
    if (state.place >= failure->event.place) return false;
    const std::lock_guard lock(self->mutex_);
    state.place = std::max(state.place, self->window_->done());
    if (failure->parks) state.place = failure->event.place;
    state.data = failure->parks ? "" : failure->next.Encode();
    return true;
  };
  if (failure->parks) {
    write.joined = [failure, self = shared_from_this()](const store::Reader& reader,
                                                        WriteBatch& batch) {
      return self->Park(*failure, reader, batch);
    };
  }
  if (failure->release) write.end = HeldWrite::End::kRelease;
  write.done = [failure, self = shared_from_this()](const absl::StatusOr<HeldState>& result) {
    self->EndFailure(failure, result);
  };
  worker_->Submit(std::move(write));
}

absl::Status Partition::Park(const Failure& failure, const store::Reader& reader,
                             WriteBatch& batch) const {
  const OpenEvent& event = failure.event;
  std::string key = ParkedKey(subscription().incarnation, partition_, {event.collection, event.id});
  StoredParked parked;
  parked.document.incarnation = event.incarnation;
  parked.document.from_version = event.version;
  parked.document.place = event.place;
  parked.document.attempts = failure.next.attempts;
  parked.document.reason = failure.next.reason;
  parked.document.park_time = workshop().clock.Now();
  // One that stands there is of a collection that was deleted.
  ASSIGN_OR_RETURN(const std::optional<store::Record> there, reader.Get(Keyspace::kFeed, key));
  if (there) {
    batch.Replace(Keyspace::kFeed, std::move(key), EncodeParked(parked), there->stamp);
  } else {
    batch.Insert(Keyspace::kFeed, std::move(key), EncodeParked(parked));
  }
  return absl::OkStatus();
}

void Partition::EndFailure(const std::shared_ptr<Failure>& failure,
                           const absl::StatusOr<HeldState>& result) {
  if (!result.ok()) {
    const auto reason = ReasonOf(result.status());
    if (reason == ErrorReason::kLeaseLost || reason == ErrorReason::kCancelled) return;
    return GiveUp(result.status());
  }
  const lease::Place& place = result->state.place;
  bool tell = false;
  {
    const std::lock_guard lock(mutex_);
    // It does not come again, which its consumer has to know: what comes next counts.
    tell = place >= failure->event.place && place > told_;
    if (tell) told_ = place;
    // Even parked, perhaps, by an attempt of which that was not known.
    if (failure->parks) perhaps_parked_ = {failure->event.collection, failure->event.id};
    ++parked_changes_;
    failed_ = result->written && !failure->parks ? failure->next : PartitionData();
    if (result->written) careful_ = setup_->window;
    window_->AcknowledgeUpTo(result->state.place);
    if (result->written && failure->parks) setup_->counts->events_acknowledged += 1;
    if (failed_.attempts > 0) {
      hold_until_ = workshop().clock.SteadyNow() + Backoff(failed_.attempts);
      Arm(*hold_until_);
    }
    if (result->written && failure->release) {
      phase_ = Phase::kEnding;
      revoke_ = *failure->release;
    }
  }
  if (tell) {
    setup_->stream->Tell([partition = partition_, place](ConsumerSink& sink) {
      sink.Acknowledged(partition, place);
    });
  }
  if (result->written && failure->release) return Ended();
  GoOn();
}

// After a failure: ends what was to end, or begins anew at the place. What is parked is known again
// before anything is delivered.
void Partition::GoOn() {
  std::optional<DocumentOfPartition> parked;
  {
    const std::lock_guard lock(mutex_);
    if (!end_asked_ && phase_ == Phase::kActive) parked = perhaps_parked_;
  }
  if (parked) {
    const absl::Status loaded = LoadParked(*parked);
    if (ReasonOf(loaded) == ErrorReason::kRecordCorrupt) return GiveUp(loaded);
    if (!loaded.ok()) {
      return workshop().Later(kLoadRetry, [self = shared_from_this()] { self->GoOn(); });
    }
  }
  bool release = false;
  {
    const std::lock_guard lock(mutex_);
    failing_ = false;
    release = end_asked_ || phase_ == Phase::kLeaving;
    // Their write came behind one that was to end the lease, and did not.
    if (acked_ > told_) WriteAcksLater();
  }
  if (release) return Release(RevokeReason::kBalance, true);
  OpenSource();
}

// The consumer cannot go on; nothing that it would wait for here is under way any more.
void Partition::GiveUp(const absl::Status& status) {
  bool release = false;
  {
    const std::lock_guard lock(mutex_);
    failing_ = false;
    release = end_asked_ || phase_ == Phase::kLeaving;
  }
  // Who asked for the end waits for that alone.
  if (release) return Release(RevokeReason::kBalance, true);
  setup_->failed(status);
}

}  // namespace strata::feed
