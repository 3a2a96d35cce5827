// What of a partition is parked: read, delivered again, and given up.
#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/feed/partition.h"

namespace strata::feed {

using lease::HeldState;
using lease::HeldWrite;
using store::Keyspace;
using store::WriteBatch;

// Goes on with what was asked of them, one step at a time: first the place is written, so that all
// in front of it counts.
void Partition::LookAtParked() {
  bool reload = false;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kActive || replaying_) return;
    reload = reload_parked_;
  }
  if (reload && !LoadParked().ok()) return;  // the next look tries again
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kActive || replaying_ || replay_ || failing_) return;
    if (NextAsked(parked_.begin()) == parked_.end()) return;
    replaying_ = true;
  }
  Worker::Write write;
  write.change = [self = shared_from_this()](lease::State& state) {
    const lease::Place before = state.place;
    self->Refresh(state);
    return state.place > before;
  };
  write.done = [self = shared_from_this()](const absl::StatusOr<HeldState>& result) {
    if (result.ok()) return self->StepReplay(result->state.place);
    const std::lock_guard lock(self->mutex_);
    self->replaying_ = false;
  };
  worker_->Submit(std::move(write));
}

// `stored`: the place as it is stored. Does the first thing there is to do; what waits for the
// place to move on waits for a later look, and holds up no other document.
void Partition::StepReplay(const lease::Place& stored) {
  absl::StatusOr<bool> done = false;
  std::optional<Parked::value_type> next;
  do {
    {
      const std::lock_guard lock(mutex_);
      const auto found = NextAsked(next ? parked_.upper_bound(next->first) : parked_.begin());
      if (phase_ != Phase::kActive || failing_ || replay_ || found == parked_.end()) {
        replaying_ = false;
        return;
      }
      next.emplace(*found);
    }
    done = StepReplayOf(*next, stored);
  } while (done.ok() && !*done);
  if (done.ok()) return;
  {
    const std::lock_guard lock(mutex_);
    replaying_ = false;
  }
  const auto reason = ReasonOf(done.status());
  if (reason != ErrorReason::kStoreUnavailable && reason != ErrorReason::kCancelled) {
    setup_->failed(done.status());
  }
}

// With the lock held. The first of which something is asked, from there on.
Partition::Parked::const_iterator Partition::NextAsked(Parked::const_iterator from) const {
  return std::find_if(from, parked_.end(), [](const Parked::value_type& parked) {
    return parked.second.replay || parked.second.discard;
  });
}

// Whether there was something to do.
absl::StatusOr<bool> Partition::StepReplayOf(const Parked::value_type& parked,
                                             const lease::Place& stored) {
  const DocumentOfPartition& document = parked.first;
  if (parked.second.discard) return RemoveParked(parked, stored);
  RETURN_IF_ERROR(setup_->stream->Admit());
  ASSIGN_OR_RETURN(const std::optional<StoredParked> record, ReadParked(document));
  if (!record) return RemoveParked(parked, stored);
  ASSIGN_OR_RETURN(
      ReplayStep step,
      FindReplay(workshop().store, workshop().feed.collections(), workshop().clock, setup_->query,
                 record->document, stored, [stream = setup_->stream] { return stream->closed(); }));
  if (step.event) {
    {
      const std::lock_guard lock(mutex_);
      replay_.emplace(Replay());
      replay_->document = document;
      replay_->place = OpenEvent::Of(*step.event).place;
      replay_->next_version = step.next_version;
      replay_->attempt = record->document.attempts + 1;
      replay_event_ = std::move(step.event);
    }
    DeliverReplay();
    return true;
  }
  if (step.more) {
    // None of those is wanted.
    WriteParked(document, [version = step.next_version](StoredParked& stored_parked) {
      stored_parked.document.from_version = std::max(stored_parked.document.from_version, version);
      return true;
    });
    return true;
  }
  return RemoveParked(parked, stored);
}

void Partition::DeliverReplay() {
  Delivery delivery;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kActive || !replay_ || !replay_event_) {
      replay_.reset();
      replay_event_.reset();
      replaying_ = false;
      setup_->stream->Withdraw(ReplayTurn());
      return;
    }
    if (!setup_->stream->Begin(ReplayTurn(),
                               [self = shared_from_this()] { self->DeliverReplay(); })) {
      return;
    }
    delivery.attempt = replay_->attempt;
    delivery.replay = true;
    delivery.lease.name = LeaseName();
    delivery.lease.token = worker_->token();
    delivery.event = *std::move(replay_event_);
    replay_event_.reset();
    replay_->delivered = true;
    replay_->since = workshop().clock.SteadyNow();
    replaying_ = false;
    highest_ = std::max(highest_, replay_->place);
    Arm(replay_->since + subscription().ack_timeout);
  }
  setup_->stream->Add(partition_, std::move(delivery));
  setup_->stream->Send(partition_);
}

void Partition::ReplayDone() {
  DocumentOfPartition document;
  int64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!replay_ || !replay_->delivered || replaying_) return;
    replaying_ = true;
    document = replay_->document;
    version = replay_->next_version;
  }
  WriteParked(document, [version](StoredParked& parked) {
    parked.document.from_version = std::max(parked.document.from_version, version);
    return true;
  });
}

void Partition::ReplayFailed(std::string_view reason) {
  DocumentOfPartition document;
  {
    const std::lock_guard lock(mutex_);
    if (!replay_ || !replay_->delivered || replaying_) return;
    replaying_ = true;
    document = replay_->document;
    last_replay_ = replay_->place;
  }
  WriteReplayFailure(document, std::string(reason));
}

// Once, also where the outcome of a commit is lost and it is written again: a replay that was asked
// for in between stands.
void Partition::WriteReplayFailure(const DocumentOfPartition& document, std::string reason) {
  const auto attempts = std::make_shared<std::optional<int32_t>>();  // when it is written
  WriteParked(document, [attempts, reason = std::move(reason)](StoredParked& parked) {
    if (!*attempts) *attempts = parked.document.attempts + 1;
    if (parked.document.attempts >= **attempts) return false;
    parked.document.attempts = **attempts;
    parked.document.replay = false;
    parked.document.reason = reason;
    return true;
  });
}

// Changes a record of what is parked, as its owner, and goes on with what is asked of others.
void Partition::WriteParked(const DocumentOfPartition& document,
                            std::function<bool(StoredParked& parked)> change) {
  const auto written = std::make_shared<std::optional<StoredParked>>();
  Worker::Write write;
  write.change = [](lease::State&) { return true; };
  write.joined = [self = shared_from_this(), document, change = std::move(change), written](
                     const store::Reader& reader, WriteBatch& batch) -> absl::Status {
    written->reset();
    std::string key = ParkedKey(self->subscription().incarnation, self->partition_, document);
    ASSIGN_OR_RETURN(const std::optional<store::Record> record, reader.Get(Keyspace::kFeed, key));
    if (!record) return absl::OkStatus();
    ASSIGN_OR_RETURN(StoredParked parked, DecodeParked(key, record->value, record->stamp));
    if (!change(parked)) return absl::OkStatus();
    batch.Replace(Keyspace::kFeed, std::move(key), EncodeParked(parked), record->stamp);
    *written = std::move(parked);
    return absl::OkStatus();
  };
  write.done = [self = shared_from_this(), document,
                written](const absl::StatusOr<HeldState>& result) {
    {
      const std::lock_guard lock(self->mutex_);
      self->replay_.reset();
      self->replaying_ = false;
      ++self->parked_changes_;
      if (result.ok() && *written) {
        Known& known = self->parked_[document];
        const bool gone = known.discard;  // its collection, meanwhile
        known = Known::Of(**written);
        known.discard |= gone;
      } else {
        self->reload_parked_ = true;
      }
    }
    self->LookAtParked();
  };
  worker_->Submit(std::move(write));
}

// Nothing of the document is left in front of the place, and nothing was passed over behind it: so
// it is as if it had never been parked. False: something was; it waits until the place has come
// there.
bool Partition::RemoveParked(const Parked::value_type& parked, const lease::Place& stored) {
  const auto& [document, known] = parked;
  {
    const std::lock_guard lock(mutex_);
    const auto skipped = skipped_.find(document);
    if (skipped != skipped_.end() && skipped->second > stored) return false;
    // Until it is gone the reader is not to pass over its versions; so however far the place moves
    // meanwhile, none of them lies there.
    leaves_parked_ = document;
  }
  Worker::Write write;
  write.change = [](lease::State&) { return true; };
  const auto left = std::make_shared<bool>(false);
  write.joined = [self = shared_from_this(), document = document, incarnation = known.incarnation,
                  left](const store::Reader& reader, WriteBatch& batch) -> absl::Status {
    std::string key = ParkedKey(self->subscription().incarnation, self->partition_, document);
    ASSIGN_OR_RETURN(const std::optional<store::Record> record, reader.Get(Keyspace::kFeed, key));
    if (!record) return absl::OkStatus();
    // Of a collection made anew it may have been parked since. A damaged one goes.
    const auto now = DecodeParked(key, record->value, record->stamp);
    *left = now.ok() && now->document.incarnation != incarnation;
    if (!*left) batch.DeleteIf(Keyspace::kFeed, std::move(key), record->stamp);
    return absl::OkStatus();
  };
  write.done = [self = shared_from_this(), document = document,
                left](const absl::StatusOr<HeldState>& result) {
    {
      const std::lock_guard lock(self->mutex_);
      self->leaves_parked_.reset();
      self->replaying_ = false;
      if (*left) {
        self->reload_parked_ = true;
      } else if (result.ok()) {
        ++self->parked_changes_;
        self->parked_.erase(document);
        self->skipped_.erase(document);
        self->wants_room_ = false;
      }
    }
    self->LookAtParked();
    self->Resume();
  };
  worker_->Submit(std::move(write));
  return true;
}

}  // namespace strata::feed
