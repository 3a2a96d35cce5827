#include "schemas/feed/consumer_core.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/feed/subscription_requests.h"

namespace strata::feed {
namespace {

using std::chrono::microseconds;

// After losing a partition to another: what that one does is seen then.
constexpr microseconds kLookAgain = std::chrono::milliseconds(50);
constexpr std::chrono::minutes kAgeStep{1};

// Up to a fifth earlier than it has to be, and not at the same time for all that began at the same
// time.
std::chrono::steady_clock::time_point OldAt(const PartitionSetup& setup) {
  const microseconds age = setup.workshop->options.consumer_age_max;
  const auto part = static_cast<int>(std::hash<std::string>()(setup.member) % 100);
  return setup.workshop->clock.SteadyNow() + age - age / 10 - age / 1000 * part;
}

}  // namespace

ConsumerCore::ConsumerCore(PartitionSetup setup, std::shared_ptr<Lookout> lookout,
                           std::function<void(ConsumerCore&)> gone)
    : setup_(std::make_shared<PartitionSetup>(std::move(setup))),
      lookout_(std::move(lookout)),
      gone_(std::move(gone)),
      member_(std::make_shared<Worker>(setup_->workshop)),
      old_at_(OldAt(*setup_)),
      choice_(std::hash<std::string>()(setup_->member)) {}

ConsumerCore::~ConsumerCore() = default;

// Beginning ---------------------------------------------------------------------------------------

void ConsumerCore::Ready() {
  bool begin = false;
  {
    const std::lock_guard lock(mutex_);
    begin = !std::exchange(begun_, true) && !ending_;
  }
  setup_->stream->Ready();
  if (begin) setup_->workshop->Later([self = shared_from_this()] { self->Begin(); });
}

void ConsumerCore::Begin() {
  setup_->ended = [weak = weak_from_this()](int32_t partition) {
    if (const auto self = weak.lock()) self->OnEnded(partition);
  };
  setup_->failed = [weak = weak_from_this()](const absl::Status& status) {
    if (const auto self = weak.lock()) self->End(status);
  };
  if (absl::Status admitted = setup_->stream->Admit(); !admitted.ok()) return End(admitted);
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    joining_ = true;
  }
  lease::AcquireRequest request;
  request.name = MemberLeasePrefix(incarnation()) + setup_->member;
  request.holder = setup_->member;
  request.ttl = setup_->subscription.subscription.lease_ttl;
  request.metadata = {{kConsumerMetadata, setup_->consumer}};
  request.joined = WhileItExists(setup_->subscription);
  member_->Acquire(std::move(request),
                   [self = shared_from_this(), begun = setup_->workshop->clock.SteadyNow()](
                       const absl::StatusOr<lease::Lease>& lease) {
                     if (lease.ok()) self->lookout_->NoteRenewal(begun);
                     self->OnMember(lease);
                   });
}

std::string ConsumerCore::member() const {
  const std::lock_guard lock(mutex_);
  return is_member_ && !ending_ ? setup_->member : "";
}

void ConsumerCore::OnMember(const absl::StatusOr<lease::Lease>& lease) {
  {
    const std::lock_guard lock(mutex_);
    joining_ = false;
    is_member_ = lease.ok();
  }
  if (!lease.ok()) {
    End(lease.status());
    return FinishIfGone();
  }
  member_->Begin([](lease::State&) {},
                 [weak = weak_from_this()](const absl::Status& status) {
                   if (const auto self = weak.lock()) self->OnLost(status);
                 },
                 [lookout = lookout_](std::chrono::steady_clock::time_point begun) {
                   lookout->NoteRenewal(begun);
                 });
  bool ending = false;
  {
    const std::lock_guard lock(mutex_);
    ending = ending_.has_value();
  }
  if (ending) return FinishIfGone();
  lookout_->Show(weak_from_this());
  GrowOld();
}

void ConsumerCore::OnLost(const absl::Status& status) {
  {
    const std::lock_guard lock(mutex_);
    is_member_ = false;
  }
  // Deleted with its subscription, mostly.
  const absl::Status found = lookout_->Find();
  End(ReasonOf(found) == ErrorReason::kSubscriptionNotFound ? found : status);
}

// In steps: what waits on the executor stays there when the stream has long ended.
void ConsumerCore::GrowOld() {
  if (setup_->workshop->options.consumer_age_max.count() == 0) return;
  const auto left = old_at_ - setup_->workshop->clock.SteadyNow();
  if (left.count() <= 0) {
    return End(Error(ErrorReason::kDraining, "the stream reached its maximum age; reconnect"));
  }
  setup_->workshop->Later(std::chrono::ceil<microseconds>(std::min<decltype(left)>(left, kAgeStep)),
                          [weak = weak_from_this()] {
                            if (const auto self = weak.lock()) self->GrowOld();
                          });
}

// Following what is seen --------------------------------------------------------------------------

void ConsumerCore::OnView(const absl::StatusOr<ViewPtr>& view) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    view_ = view;
    if (std::exchange(following_, true)) return;
  }
  setup_->workshop->Later([self = shared_from_this()] { self->Follow(); });
}

// One thread at a time, and always the newest view.
void ConsumerCore::Follow() {
  while (true) {
    std::optional<absl::StatusOr<ViewPtr>> view;
    std::vector<PartitionPtr> partitions;
    bool asked = false;
    {
      const std::lock_guard lock(mutex_);
      view.swap(view_);
      if (!view || ending_) {
        following_ = false;
        return;
      }
      if (view->ok()) asked = std::exchange(requests_, (**view)->requests) != (**view)->requests;
    }
    const auto reason = ReasonOf(view->status());
    if (reason == ErrorReason::kSubscriptionNotFound || reason == ErrorReason::kRecordCorrupt) {
      End(view->status());
      continue;
    }
    // What the store refuses is tried again with the next look.
    if (view->ok()) Move(***view);
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [number, partition] : partitions_) partitions.push_back(partition);
    }
    for (const PartitionPtr& partition : partitions) partition->Look(asked);
  }
}

void ConsumerCore::Move(const View& view) {
  Assignment seen{setup_->member, view.members, view.holders, {}};
  seen.leaving.resize(seen.holders.size());
  std::vector<PartitionPtr> take;
  std::vector<PartitionPtr> let_go;
  {
    const std::lock_guard lock(mutex_);
    if (ending_ || !is_member_) return;
    // What is known here is newer than what was read.
    for (size_t i = 0; i < seen.holders.size(); ++i) {
      const auto found = partitions_.find(static_cast<int32_t>(i));
      if (found == partitions_.end()) {
        // Just released, or taken: neither to be counted nor to be taken.
        if (seen.holders[i] == seen.me) {
          seen.holders[i].clear();
          seen.leaving[i] = true;
        }
        continue;
      }
      seen.leaving[i] = found->second->leaving();
      seen.holders[i] = seen.leaving[i] ? "" : seen.me;
    }
    const bool may_take = setup_->workshop->clock.SteadyNow() >= take_at_;
    while (const std::optional<feed::Move> move = NextMove(seen, choice_++)) {
      if (move->kind == feed::Move::Kind::kTake && !may_take) break;
      const auto number = static_cast<size_t>(move->partition);
      if (move->kind == feed::Move::Kind::kTake) {
        const auto had = had_.find(move->partition);
        auto partition = std::make_shared<Partition>(
            setup_, move->partition, had == had_.end() ? lease::Place() : had->second);
        partitions_.emplace(move->partition, partition);
        take.push_back(std::move(partition));
        seen.holders[number] = seen.me;
      } else {
        let_go.push_back(partitions_.at(move->partition));
        seen.holders[number].clear();
        seen.leaving[number] = true;
      }
    }
  }
  for (const PartitionPtr& partition : take) partition->Take();
  for (const PartitionPtr& partition : let_go) partition->LetGo();
}

void ConsumerCore::OnEnded(int32_t partition) {
  bool held = false;
  microseconds pause = kLookAgain;
  {
    const std::lock_guard lock(mutex_);
    const auto found = partitions_.find(partition);
    if (found == partitions_.end()) return;
    held = found->second->held();
    if (held) had_[partition] = std::max(had_[partition], found->second->highest_delivered());
    partitions_.erase(found);
    failed_takes_ = held ? 0 : std::min(failed_takes_ + 1, 16);
    pause = std::min(pause * (1 << failed_takes_), subscription().lease_ttl / 3);
    if (!held) take_at_ = setup_->workshop->clock.SteadyNow() + pause;
  }
  // What nobody had is as free as before: others need not look, or all would try for ever while a
  // store refuses.
  if (held) lookout_->LookSoon();
  // One that another was faster to take may be the wrong thing to have wanted; what others see is
  // no reason to want another before that.
  lookout_->LookAfter(pause);
  FinishIfGone();
}

// What the consumer says
// ----------------------------------------------------------------------------

ConsumerCore::PartitionPtr ConsumerCore::Find(int32_t partition) const {
  const std::lock_guard lock(mutex_);
  const auto found = partitions_.find(partition);
  return found == partitions_.end() ? nullptr : found->second;
}

absl::Status ConsumerCore::NotAssigned(std::string_view field, int32_t partition) const {
  {
    const std::lock_guard lock(mutex_);
    if (had_.contains(partition)) return absl::OkStatus();
  }
  return Error(ErrorReason::kInvalidField, std::string(field) + " names partition " +
                                               std::to_string(partition) +
                                               ", which this consumer never had")
      .With("field", std::string(field) + ".partition");
}

absl::Status ConsumerCore::Ack(int32_t partition, const lease::Place& place) {
  const PartitionPtr found = Find(partition);
  return found == nullptr ? NotAssigned("ack", partition) : found->Ack(place);
}

absl::Status ConsumerCore::Nack(int32_t partition, const lease::Place& place,
                                std::string_view reason, bool park) {
  RETURN_IF_ERROR(CheckNackReason(reason));
  const PartitionPtr found = Find(partition);
  return found == nullptr ? NotAssigned("nack", partition) : found->Nack(place, reason, park);
}

// Ending ------------------------------------------------------------------------------------------

void ConsumerCore::End(const absl::Status& status) { Finish(status, /*broken=*/false); }

void ConsumerCore::Abandon() {
  setup_->stream->Close();
  Finish(absl::OkStatus(), /*broken=*/true);
}

// On the executor, so that whoever calls is in no call of its own then.
void ConsumerCore::Finish(const absl::Status& status, bool broken) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    ending_ = status;
  }
  setup_->workshop->Later([self = shared_from_this(), broken] {
    std::vector<PartitionPtr> partitions;
    {
      const std::lock_guard lock(self->mutex_);
      for (const auto& [number, partition] : self->partitions_) partitions.push_back(partition);
    }
    for (const PartitionPtr& partition : partitions) partition->End(broken);
    self->FinishIfGone();
  });
}

void ConsumerCore::FinishIfGone() {
  absl::Status status;
  bool leave = false;
  {
    const std::lock_guard lock(mutex_);
    if (!ending_ || joining_ || !partitions_.empty() || std::exchange(leaving_, true)) return;
    status = *ending_;
    leave = std::exchange(is_member_, false);
  }
  const auto end = [self = shared_from_this(), status] {
    self->member_->Stop();
    self->setup_->stream->Finish(status);
    self->lookout_->LookSoon();
    self->gone_(*self);
  };
  if (!leave) return end();
  Worker::Write write;
  write.change = [](lease::State&) { return true; };
  write.end = lease::HeldWrite::End::kForget;
  write.done = [end](const absl::StatusOr<lease::HeldState>&) { end(); };
  member_->Submit(std::move(write));
}

void ConsumerCore::Drop() {
  std::map<int32_t, PartitionPtr> partitions;
  {
    const std::lock_guard lock(mutex_);
    partitions.swap(partitions_);
  }
  for (const auto& [number, partition] : partitions) partition->Drop();
  member_->Stop();
  setup_->stream->Close();
}

}  // namespace strata::feed
