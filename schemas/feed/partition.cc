#include "schemas/feed/partition.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/field_checks.h"
#include "schemas/base/status_macros.h"
#include "schemas/feed/subscription_requests.h"

namespace strata::feed {
namespace {

using lease::HeldState;
using lease::HeldWrite;
using std::chrono::microseconds;
using store::Keyspace;
using store::WriteBatch;

// Of an event without its contents, roughly.
constexpr size_t kEventBytes = 256;

size_t BytesOf(const Event& event) {
  size_t bytes = kEventBytes + event.collection.size() + event.id.size();
  if (event.version.content) bytes += event.version.content->size();
  if (event.before) bytes += event.before->size();
  return bytes;
}

}  // namespace

store::JoinedPlan WhileItExists(const StoredSubscription& subscription) {
  return [name = subscription.subscription.name, stamp = subscription.stamp](
             const store::Reader& reader, WriteBatch& batch) -> absl::Status {
    const std::string key = SubscriptionKey(name);
    ASSIGN_OR_RETURN(const std::optional<store::Record> record, reader.Get(Keyspace::kFeed, key));
    if (!record || record->stamp != stamp) return SubscriptionNotFound(name);
    batch.Check(Keyspace::kFeed, key, stamp);
    return absl::OkStatus();
  };
}

// Takes events from one reader for the partition.
class Partition::Source final : public Sink {
 public:
  Source(std::shared_ptr<Partition> partition) : partition_(std::move(partition)) {}

  // While it fills a message it goes on to the end of its turn, where that is sent.
  bool closed() const override {
    return !filling && (detached || partition_->setup_->stream->closed());
  }
  absl::Status Admit() override {
    const Doors::Visit visit(partition_->workshop().doors);
    if (!visit.let_in()) return StoppedError();
    return partition_->setup_->stream->Admit();
  }
  size_t room() const override {
    const std::lock_guard lock(partition_->mutex_);
    if (partition_->careful_ > 0) return 1;
    return static_cast<size_t>(partition_->setup_->window) - partition_->window_->open();
  }
  bool Add(Event&& event) override {
    const Doors::Visit visit(partition_->workshop().doors);
    return visit.let_in() && partition_->Offer(*this, std::move(event));
  }
  bool AddDocument(versioning::CopyCursor&) override { return false; }  // there is no copy
  void Send(const Progress& progress) override {
    const Doors::Visit visit(partition_->workshop().doors);
    if (visit.let_in()) partition_->EndTurn(*this, progress);
  }
  void Finish(const absl::Status& status) override {
    const Doors::Visit visit(partition_->workshop().doors);
    if (!visit.let_in() || detached || partition_->setup_->stream->closed()) return;
    partition_->setup_->failed(status);
  }

  std::atomic<bool> detached = false;  // the partition follows another one, or none
  std::atomic<bool> filling = false;   // a message; changed in the reader's turn

 private:
  const std::shared_ptr<Partition> partition_;
};

Partition::Partition(std::shared_ptr<const PartitionSetup> setup, int32_t partition,
                     const lease::Place& stale)
    : setup_(std::move(setup)),
      partition_(partition),
      worker_(std::make_shared<Worker>(setup_->workshop)),
      stale_(stale) {}

Partition::~Partition() = default;

bool Partition::leaving() const {
  const std::lock_guard lock(mutex_);
  return phase_ == Phase::kLeaving || phase_ == Phase::kEnding || end_asked_;
}

bool Partition::held() const {
  const std::lock_guard lock(mutex_);
  return window_.has_value();
}

lease::Place Partition::highest_delivered() const {
  const std::lock_guard lock(mutex_);
  return std::max(highest_, stale_);
}

// Taking it -------------------------------------------------------------------------------------

void Partition::Take() {
  lease::AcquireRequest request;
  request.name = LeaseName();
  request.holder = setup_->member;
  request.ttl = subscription().lease_ttl;
  request.metadata = {{kConsumerMetadata, setup_->consumer}};
  request.joined = WhileItExists(setup_->subscription);
  worker_->Acquire(std::move(request),
                   [self = shared_from_this()](const absl::StatusOr<lease::Lease>& lease) {
                     self->OnTaken(lease);
                   });
}

void Partition::OnTaken(const absl::StatusOr<lease::Lease>& lease) {
  if (!lease.ok()) return Ended();
  const absl::StatusOr<PartitionData> data = PartitionData::Decode(lease->data);
  bool end = false;
  {
    const std::lock_guard lock(mutex_);
    const lease::Place start{subscription().start_position, std::nullopt};
    window_.emplace(std::max(lease->place, start), lease->place);
    acked_ = told_ = window_->done();
    abandoned_ = lease->abandoned;
    if (abandoned_) ++setup_->counts->take_overs;
    if (data.ok() && data->failed > window_->done()) {
      failed_ = *data;
      failed_.in_flight = 0;
      failed_.oldest_open_time = 0;
      const UnixMicros now = workshop().clock.Now();
      if (failed_.retry_time > now) {
        // Whoever wrote it may have had another clock.
        const auto rest =
            std::min(microseconds(failed_.retry_time - now), Backoff(failed_.attempts));
        hold_until_ = workshop().clock.SteadyNow() + rest;
      }
    }
    if (abandoned_ || failed_.attempts > 0) careful_ = setup_->window;
    end = end_asked_ || !data.ok();
    if (hold_until_) Arm(*hold_until_);
  }
  worker_->Begin(
      [weak = weak_from_this()](lease::State& state) {
        if (const auto self = weak.lock()) self->Refresh(state);
      },
      [weak = weak_from_this()](const absl::Status&) {
        if (const auto self = weak.lock()) self->OnLost();
      });
  if (end) Release(RevokeReason::kBalance, false);
  if (!data.ok()) return setup_->failed(data.status());
  if (!end) Load();
}

// What is parked has to be known before anything is delivered.
void Partition::Load() {
  const absl::Status loaded = LoadParked();
  if (ReasonOf(loaded) == ErrorReason::kRecordCorrupt) {
    Release(RevokeReason::kBalance, false);
    return setup_->failed(loaded);
  }
  if (!loaded.ok()) {
    return workshop().Later(kLoadRetry, [self = shared_from_this()] { self->Load(); });
  }
  lease::Place place;
  bool end = false;
  std::optional<DocumentOfPartition> killed;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kTakes) return;
    phase_ = Phase::kActive;
    place = window_->done();
    end = end_asked_;
    tell_revoked_ = !end;
    // A replay that nobody took to its end may be what ended its consumer.
    if (abandoned_) {
      for (const auto& [document, parked] : parked_) {
        if (!parked.replay || parked.discard) continue;
        killed = document;
        replaying_ = true;
        break;
      }
    }
  }
  if (end) return Release(RevokeReason::kBalance, false);
  setup_->stream->Tell([this_partition = partition_, token = worker_->token(), place](
                           ConsumerSink& sink) { sink.Assigned(this_partition, token, place); });
  if (killed) WriteReplayFailure(*killed, "its consumer was gone while it was delivered again");
  OpenSource();
  if (!killed) LookAtParked();
}

absl::Status Partition::LoadParked() {
  uint64_t changes = 0;
  {
    const std::lock_guard lock(mutex_);
    changes = parked_changes_;
  }
  Parked parked;
  const auto cursor =
      workshop().store.Scan(Keyspace::kFeed, ParkedRange(subscription().incarnation, partition_));
  for (; cursor->Valid(); cursor->Next()) {
    ASSIGN_OR_RETURN(const StoredParked each,
                     DecodeParked(cursor->key(), cursor->value(), cursor->stamp()));
    parked.emplace(DocumentOfPartition{each.document.collection, each.document.id},
                   Known::Of(each));
  }
  RETURN_IF_ERROR(cursor->status());
  {
    const std::lock_guard lock(mutex_);
    if (changes == parked_changes_) {
      // That its collection was deleted is known here only.
      for (const auto& [document, known] : parked_) {
        const auto found = parked.find(document);
        if (found == parked.end() || found->second.incarnation != known.incarnation) continue;
        found->second.discard |= known.discard;
      }
      parked_ = std::move(parked);
      reload_parked_ = false;
      return absl::OkStatus();
    }
  }
  return LoadParked();
}

absl::StatusOr<std::optional<StoredParked>> Partition::ReadParked(
    const DocumentOfPartition& document) const {
  const std::string key = ParkedKey(subscription().incarnation, partition_, document);
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   workshop().store.Get(Keyspace::kFeed, key));
  if (!record) return std::nullopt;
  return DecodeParked(key, record->value, record->stamp);
}

// Of that one whether it is parked; the others are known.
absl::Status Partition::LoadParked(const DocumentOfPartition& document) {
  ASSIGN_OR_RETURN(const std::optional<StoredParked> parked, ReadParked(document));
  const std::lock_guard lock(mutex_);
  perhaps_parked_.reset();
  if (!parked) return absl::OkStatus();
  ++parked_changes_;
  parked_[document] = Known::Of(*parked);
  return absl::OkStatus();
}

// Following the feed ------------------------------------------------------------------------------

void Partition::OpenSource() {
  WatchQuery query = setup_->query;
  query.selection.partitions = subscription().partitions;
  query.selection.partition = partition_;
  query.bookmark_interval = subscription().lease_ttl / 3;
  lease::Place start;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kActive || failing_) return;
    start = window_->end();
  }
  query.start = FromPlace{start};
  auto source = std::make_shared<Source>(shared_from_this());
  const std::shared_ptr<Watch> watch = workshop().feed.Follow(std::move(query), source);
  {
    const std::lock_guard lock(mutex_);
    // Whoever moved the place meanwhile opens one there.
    if (phase_ != Phase::kActive || failing_ || source_ != nullptr || start != window_->end()) {
      source->detached = true;
      return;
    }
    source_ = std::move(source);
    watch_ = watch;
    waits_ = false;
  }
  watch->Ready();
}

// With the lock held. The watch ends on the executor: that may wait for the store.
void Partition::Retire() {
  setup_->stream->Withdraw(EventsTurn());
  turn_asked_ = false;
  if (source_ == nullptr) return;
  source_->detached = true;
  source_.reset();
  retired_.push_back(std::exchange(watch_, nullptr));
  workshop().Later([self = shared_from_this()] { self->DropRetired(); });
}

void Partition::DropRetired() {
  std::vector<std::shared_ptr<Watch>> retired;
  const std::lock_guard lock(mutex_);
  retired.swap(retired_);
}

void Partition::Drop() {
  std::vector<std::shared_ptr<Watch>> dropped;
  std::shared_ptr<Source> source;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(retired_);
    if (watch_ != nullptr) dropped.push_back(std::exchange(watch_, nullptr));
    if (source_ != nullptr) source_->detached = true;
    source.swap(source_);
  }
  worker_->Stop();
}

bool Partition::Offer(Source& source, Event&& event) {
  OpenEvent known = OpenEvent::Of(event);
  const lease::Place place = known.place;
  Delivery delivery;
  {
    const std::lock_guard lock(mutex_);
    if (source_.get() != &source || phase_ != Phase::kActive || failing_) return false;
    const auto parked = parked_.find({known.collection, known.id});
    if (parked != parked_.end() && parked->second.incarnation == known.incarnation &&
        known.type == EventType::kVersion) {
      // Whether it is still to be passed over is known when its record has gone, or not.
      if (leaves_parked_ == parked->first) return false;
      window_->Pass(place);
      skipped_[parked->first] = place;
      return true;
    }
    if (!Judge(source, known, BytesOf(event), delivery)) return false;
    // Nothing is left of what is parked of it, and all its events came before this one.
    if (known.type == EventType::kCollectionDeleted) {
      for (auto& [document, each] : parked_) {
        each.discard |= each.incarnation == known.incarnation;
      }
    }
  }
  delivery.event = std::move(event);
  if (setup_->stream->Add(partition_, std::move(delivery))) return true;
  const std::lock_guard lock(mutex_);
  if (source_.get() == &source && window_->open() > 0 && window_->last_delivered() == place) {
    window_->TakeBack();
  }
  return false;
}

// With the lock held. Whether the event is to be delivered now: then it is open, and the message is
// this partition's.
bool Partition::Judge(Source& source, const OpenEvent& event, size_t bytes, Delivery& delivery) {
  if (hold_until_ || beginning_) return false;
  if (window_->open() == 0 && !JudgeFirst(event)) return false;
  if (!HasRoom()) return false;
  if (!source.filling) {
    if (!setup_->stream->Begin(EventsTurn(), [self = shared_from_this()] { self->OnTurn(); })) {
      turn_asked_ = true;
      return false;
    }
    source.filling = true;
  }
  const bool first = window_->open() == 0;
  if (first && failed_.failed == event.place) delivery.attempt = failed_.attempts + 1;
  delivery.lease.name = LeaseName();
  delivery.lease.token = worker_->token();
  delivery.lease.place = event.place;
  if (window_->last_delivered().position > 0) delivery.lease.after = window_->last_delivered();
  window_->Deliver(event, bytes);
  highest_ = std::max(highest_, event.place);
  if (first) {
    first_open_since_ = workshop().clock.SteadyNow();
    Arm(first_open_since_ + subscription().ack_timeout);
  }
  return true;
}

// With the lock held. Whether the event, before which all is done, may be delivered at all.
bool Partition::JudgeFirst(const OpenEvent& event) {
  const bool failed = failed_.failed == event.place;
  if (const std::optional<UnixMicros> abandoned = std::exchange(abandoned_, std::nullopt);
      abandoned && event.commit_time < *abandoned && (!failed || failed_.begun)) {
    Failure failure;
    failure.event = event;
    failure.reason = "its consumer was gone before its lease was released";
    failure.uncertain = true;
    Fail(std::move(failure));
    return false;
  }
  if (!failed) {
    wants_room_ = false;
    return true;
  }
  if (!failed_.blocked || event.type != EventType::kVersion) {
    if (!failed_.begun) BeginAttempt();
    return failed_.begun;
  }
  if (parked_.size() >= static_cast<size_t>(workshop().options.parked_max)) {
    wants_room_ = true;
    return false;
  }
  Failure failure;
  failure.event = event;
  failure.reason = failed_.reason;
  failure.park = true;
  failure.again = true;
  Fail(std::move(failure));
  return false;
}

// With the lock held. That the event comes again is written down before it does: who takes over
// from one that is gone counts it if it came, and only then.
void Partition::BeginAttempt() {
  beginning_ = true;
  workshop().Later([self = shared_from_this()] {
    Worker::Write write;
    write.change = [self](lease::State& state) {
      {
        const std::lock_guard lock(self->mutex_);
        self->failed_.begun = true;
      }
      self->Refresh(state);
      return true;
    };
    write.done = [self](const absl::StatusOr<HeldState>& result) { self->EndBeginAttempt(result); };
    self->worker_->Submit(std::move(write));
  });
}

void Partition::EndBeginAttempt(const absl::StatusOr<HeldState>& result) {
  if (!result.ok()) {
    const auto reason = ReasonOf(result.status());
    if (reason == ErrorReason::kLeaseLost || reason == ErrorReason::kCancelled) return;  // it ends
    return setup_->failed(result.status());
  }
  {
    const std::lock_guard lock(mutex_);
    beginning_ = false;
  }
  Resume();
}

void Partition::EndTurn(Source& source, const Progress& progress) {
  if (source.filling) {
    setup_->stream->Send(partition_);
  }
  {
    const std::lock_guard lock(mutex_);
    const bool filled = source.filling.exchange(false);
    if (source_.get() != &source) return;
    if (!filled && !turn_asked_) setup_->stream->Withdraw(EventsTurn());
    window_->Pass({progress.resume_position, std::nullopt});
    waits_ = true;
  }
  Resume();
}

// With the lock held.
bool Partition::CanDeliver() const {
  return phase_ == Phase::kActive && !failing_ && !beginning_ && !hold_until_ && !wants_room_ &&
         !leaves_parked_ && HasRoom();
}

// With the lock held. Where events come one by one each waits until the one before is written down,
// so that whoever takes over counts the one that did the damage.
bool Partition::HasRoom() const {
  if (careful_ == 0) return window_->HasRoom(static_cast<size_t>(setup_->window));
  return window_->open() == 0 && acked_ <= told_;
}

// Lets the reader go on, if there is something that it waits for and has come.
void Partition::Resume() {
  std::shared_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    if (!waits_ || turn_asked_ || !CanDeliver()) return;
    waits_ = false;
    watch = watch_;
  }
  if (watch != nullptr) watch->Ready();
}

// With the lock held; for threads that are not to go on themselves.
void Partition::ResumeLater() {
  if (!waits_ || turn_asked_ || !CanDeliver() || std::exchange(resumes_, true)) return;
  workshop().Later([self = shared_from_this()] {
    {
      const std::lock_guard lock(self->mutex_);
      self->resumes_ = false;
    }
    self->Resume();
  });
}

// It is this partition's turn to fill a message.
void Partition::OnTurn() {
  std::shared_ptr<Watch> watch;
  {
    const std::lock_guard lock(mutex_);
    turn_asked_ = false;
    if (!waits_ || !CanDeliver() || watch_ == nullptr) {
      return setup_->stream->Withdraw(EventsTurn());
    }
    waits_ = false;
    watch = watch_;
  }
  watch->Ready();
}

// Alarms ------------------------------------------------------------------------------------------

// With the lock held. One that is due too early only finds that out.
void Partition::Arm(Time time) {
  if (alarm_ && *alarm_ <= time) return;
  alarm_ = time;
  const auto delay = std::max(Time::duration::zero(), time - workshop().clock.SteadyNow());
  workshop().Later(std::chrono::ceil<microseconds>(delay), [weak = weak_from_this(), time] {
    if (const auto self = weak.lock()) self->OnAlarm(time);
  });
}

void Partition::OnAlarm(Time time) {
  bool release = false;
  bool late = false;
  bool replay_late = false;
  {
    const std::lock_guard lock(mutex_);
    if (alarm_ != time) return;
    alarm_.reset();
    const Time now = workshop().clock.SteadyNow();
    if (hold_until_ && now >= *hold_until_) hold_until_.reset();
    if (hold_until_) Arm(*hold_until_);
    const auto timeout = subscription().ack_timeout;
    if (phase_ == Phase::kLeaving) {
      release = !failing_ && now >= leave_by_;
      if (now < leave_by_) Arm(leave_by_);
    } else if (phase_ == Phase::kActive && !failing_ && window_->open() > 0) {
      late = now >= first_open_since_ + timeout && !std::exchange(looking_at_place_, true);
      if (!looking_at_place_) Arm(first_open_since_ + timeout);
    }
    if (replay_ && replay_->delivered) {
      replay_late = now >= replay_->since + timeout;
      if (!replay_late) Arm(replay_->since + timeout);
    }
  }
  if (release) Release(RevokeReason::kBalance, true);
  if (late) LookAtPlace([self = shared_from_this()] { self->FailIfLate(); });
  if (replay_late) ReplayFailed("it was not acknowledged in time");
  Resume();
}

// Learns of writes that were the effects of events and have moved the place, which nobody tells.
void Partition::LookAtPlace(std::function<void()> looked) {
  Worker::Write write;
  write.change = [self = shared_from_this()](lease::State& state) {
    const std::lock_guard lock(self->mutex_);
    if (!self->failing_) self->Acknowledged(self->window_->AcknowledgeUpTo(state.place));
    return false;
  };
  write.done = [self = shared_from_this(),
                looked = std::move(looked)](const absl::StatusOr<HeldState>& result) {
    if (result.ok()) return looked();
    const auto reason = ReasonOf(result.status());
    if (reason == ErrorReason::kLeaseLost || reason == ErrorReason::kCancelled) return;  // it ends
    self->setup_->failed(result.status());
  };
  worker_->Submit(std::move(write));
}

// The first open event fails for its time, unless its effect was written after all: the failure
// would find that too, but have all that follows delivered again.
void Partition::FailIfLate() {
  {
    const std::lock_guard lock(mutex_);
    looking_at_place_ = false;
    if (phase_ == Phase::kActive && !failing_ && window_->open() > 0) {
      const Time late_at = first_open_since_ + subscription().ack_timeout;
      if (workshop().clock.SteadyNow() < late_at) {
        Arm(late_at);
      } else {
        Failure failure;
        failure.event = window_->first();
        failure.reason = "it was not acknowledged in time";
        failure.release = RevokeReason::kAckTimeout;
        Fail(std::move(failure));
      }
    }
  }
  Resume();
}

// Acknowledgements --------------------------------------------------------------------------------

absl::Status Partition::NotDelivered(std::string_view field, const lease::Place& place,
                                     const std::string& problem) {
  return FieldError(field, "names event " + std::to_string(place.index.value_or(0)) +
                               " of position " + std::to_string(place.position) + ", which " +
                               problem);
}

absl::Status Partition::Ack(const lease::Place& place) {
  bool replayed = false;
  bool release = false;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kEnding || phase_ == Phase::kEnded || end_asked_) return absl::OkStatus();
    if (replay_ && replay_->delivered && replay_->place == place) {
      replayed = true;
    } else {
      Window::Acknowledgement acknowledgement;
      if (window_) acknowledgement = window_->Acknowledge(place);
      if (acknowledgement.what == Window::Acknowledged::kUnknown) {
        if (place <= stale_) return absl::OkStatus();
        return NotDelivered("ack", place, "is not delivered to this consumer");
      }
      Acknowledged(acknowledgement.events);
      acked_ = std::max(acked_, place);
      if (acked_ > told_) WriteAcksLater();
      release = phase_ == Phase::kLeaving && !failing_ && window_->open() == 0;
      ResumeLater();
    }
  }
  // At once, so that whoever leaves next finds it written.
  if (replayed) ReplayDone();
  // Not by this thread, which may be in a call of the sink's.
  if (release) {
    workshop().Later([self = shared_from_this()] { self->Release(RevokeReason::kBalance, true); });
  }
  return absl::OkStatus();
}

// With the lock held. So many events are not open any more.
void Partition::Acknowledged(size_t events) {
  if (events == 0) return;
  setup_->counts->events_acknowledged += static_cast<int64_t>(events);
  careful_ = std::max<int32_t>(0, careful_ - static_cast<int32_t>(events));
  first_open_since_ = workshop().clock.SteadyNow();
}

// With the lock held.
void Partition::WriteAcksLater() {
  if (std::exchange(writing_acks_, true)) return;
  const Time now = workshop().clock.SteadyNow();
  auto pause = std::max(Time::duration::zero(), last_ack_write_ + kAckPause - now);
  if (careful_ > 0) pause = {};
  workshop().Later(std::chrono::ceil<microseconds>(pause), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->WriteAcks();
  });
}

void Partition::WriteAcks() {
  const auto target = std::make_shared<lease::Place>();
  {
    const std::lock_guard lock(mutex_);
    last_ack_write_ = workshop().clock.SteadyNow();
  }
  Worker::Write write;
  // As late as can be: what has come by then goes with it.
  write.change = [self = shared_from_this(), target](lease::State& state) {
    {
      const std::lock_guard lock(self->mutex_);
      *target = self->acked_;
    }
    // The write that was the effect has moved it already.
    if (state.place >= *target) return false;
    self->Refresh(state);
    return true;
  };
  write.done = [self = shared_from_this(), target](const absl::StatusOr<HeldState>& result) {
    self->EndAcks(*target, result);
  };
  worker_->Submit(std::move(write));
}

void Partition::EndAcks(const lease::Place& target, const absl::StatusOr<HeldState>& result) {
  if (!result.ok()) {
    const auto reason = ReasonOf(result.status());
    if (reason != ErrorReason::kLeaseLost && reason != ErrorReason::kCancelled) {
      return setup_->failed(result.status());
    }
    const std::lock_guard lock(mutex_);
    writing_acks_ = false;
    return;
  }
  if (result->written) ++setup_->counts->acknowledging_commits;
  bool tell = false;
  {
    const std::lock_guard lock(mutex_);
    writing_acks_ = false;
    tell = target > told_;
    told_ = std::max(told_, target);
    if (acked_ > told_) WriteAcksLater();
    ResumeLater();
  }
  if (!tell) return;
  setup_->stream->Tell([partition = partition_, target](ConsumerSink& sink) {
    sink.Acknowledged(partition, target);
  });
}

// What a renewal writes along, and every write of acknowledgements. A write that was an effect may
// have moved the place meanwhile: what it did is acknowledged.
void Partition::Refresh(lease::State& state) {
  const std::lock_guard lock(mutex_);
  if (!failing_) Acknowledged(window_->AcknowledgeUpTo(state.place));
  state.place = std::max(state.place, window_->done());
  state.data = Data().Encode();
  ResumeLater();
}

// With the lock held.
PartitionData Partition::Data() const {
  PartitionData data;
  if (failed_.failed > window_->done()) data = failed_;
  data.in_flight = static_cast<int32_t>(window_->open());
  if (window_->open() > 0) data.oldest_open_time = window_->first().commit_time;
  return data;
}

// Giving it back ----------------------------------------------------------------------------------

void Partition::Look(bool asked) {
  {
    const std::lock_guard lock(mutex_);
    if (asked) {
      reload_parked_ = true;
      ++parked_changes_;  // whoever reads them now may have passed what is new
    }
    if (phase_ != Phase::kActive) return;
    wants_room_ = false;
  }
  LookAtParked();
  Resume();
}

void Partition::LetGo() {
  bool release = false;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kTakes) {
      end_asked_ = true;
      return;
    }
    if (phase_ != Phase::kActive) return;
    phase_ = Phase::kLeaving;
    Retire();
    leave_by_ = workshop().clock.SteadyNow() + kLetGoWait;
    release = !failing_ && window_->open() == 0;
    if (!release) Arm(leave_by_);
  }
  if (release) Release(RevokeReason::kBalance, true);
}

void Partition::End(bool broken) {
  if (broken) ReplayFailed("its consumer was gone before it was acknowledged");
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kEnding || phase_ == Phase::kEnded || end_asked_) return;
    end_asked_ = true;
    Retire();
    if (phase_ == Phase::kTakes || failing_) return;  // it ends when that has come to its end
    if (broken && window_->open() > 0) {
      Failure open;
      open.event = window_->first();
      open.reason = "its consumer was gone before it was acknowledged";
      open.uncertain = window_->open() > 1;
      open.release = RevokeReason::kBalance;
      Fail(std::move(open));
      return;
    }
  }
  Release(RevokeReason::kBalance, true);
}

void Partition::Release(RevokeReason reason, bool told) {
  const auto target = std::make_shared<lease::Place>();
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kEnding || phase_ == Phase::kEnded) return;
    phase_ = Phase::kEnding;
    revoke_ = reason;
    tell_revoked_ &= told;
    Retire();
  }
  Worker::Write write;
  write.end = HeldWrite::End::kRelease;
  write.change = [self = shared_from_this(), target](lease::State& state) {
    const std::lock_guard lock(self->mutex_);
    *target = self->acked_;
    self->Acknowledged(self->window_->AcknowledgeUpTo(state.place));
    state.place = std::max(state.place, self->window_->done());
    self->window_->Void();
    self->failed_.begun = false;  // nobody counts what is given back
    state.data = self->Data().Encode();
    return true;
  };
  write.done = [self = shared_from_this(), target](const absl::StatusOr<HeldState>& result) {
    self->EndRelease(*target, result);
  };
  worker_->Submit(std::move(write));
}

void Partition::EndRelease(const lease::Place& target, const absl::StatusOr<HeldState>& result) {
  bool tell = false;
  {
    const std::lock_guard lock(mutex_);
    tell = result.ok() && target > told_;
    told_ = std::max(told_, target);
  }
  if (tell) {
    ++setup_->counts->acknowledging_commits;
    setup_->stream->Tell([partition = partition_, target](ConsumerSink& sink) {
      sink.Acknowledged(partition, target);
    });
  }
  Ended();
}

void Partition::OnLost() {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != Phase::kEnding) revoke_ = RevokeReason::kLeaseLost;
  }
  Ended();
}

void Partition::Ended() {
  bool tell = false;
  RevokeReason reason{};
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(phase_, Phase::kEnded) == Phase::kEnded) return;
    tell = tell_revoked_;
    reason = revoke_;
    Retire();
    setup_->stream->Withdraw(ReplayTurn());
  }
  DropRetired();
  worker_->Stop();
  if (tell) {
    setup_->stream->Tell(
        [partition = partition_, reason](ConsumerSink& sink) { sink.Revoked(partition, reason); });
  }
  setup_->ended(partition_);
}

}  // namespace strata::feed
