#include "schemas/feed/consumer_core.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/feed/subscription_requests.h"
#include "schemas/lease/lease_record.h"

namespace strata::feed {
namespace {

using std::chrono::microseconds;
using store::Keyspace;

// After losing a partition to another: what that one does is seen then.
constexpr microseconds kLookAgain = std::chrono::milliseconds(50);

}  // namespace

ConsumerCore::ConsumerCore(PartitionSetup setup, std::function<void()> changed,
                           std::function<void(ConsumerCore&)> gone)
    : setup_(std::make_shared<PartitionSetup>(std::move(setup))),
      changed_(std::move(changed)),
      gone_(std::move(gone)),
      member_(std::make_shared<Worker>(setup_->workshop)),
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
                   [self = shared_from_this()](const absl::StatusOr<lease::Lease>& lease) {
                     self->OnMember(lease);
                   });
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
                   const auto self = weak.lock();
                   if (self == nullptr) return;
                   {
                     const std::lock_guard lock(self->mutex_);
                     self->is_member_ = false;
                   }
                   // Deleted with its subscription, mostly, which the look tells.
                   self->Look();
                   self->End(status);
                 });
  bool ending = false;
  {
    const std::lock_guard lock(mutex_);
    ending = ending_.has_value();
  }
  if (ending) return FinishIfGone();
  changed_();
  LookAfter(setup_->subscription.subscription.lease_ttl / 3);
}

// Looking -----------------------------------------------------------------------------------------

void ConsumerCore::LookAfter(microseconds delay) {
  setup_->workshop->Later(delay, [weak = weak_from_this(), delay] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    {
      const std::lock_guard lock(self->mutex_);
      if (self->ending_) return;
    }
    self->Look();
    self->LookAfter(delay);
  });
}

void ConsumerCore::LookSoon() {
  {
    const std::lock_guard lock(mutex_);
    if (!is_member_ || ending_ || std::exchange(look_comes_, true)) return;
  }
  setup_->workshop->Later([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Look();
  });
}

// One thread at a time.
void ConsumerCore::Look() {
  {
    const std::lock_guard lock(mutex_);
    look_comes_ = false;
    if (ending_) return;
    look_again_ = true;
    if (std::exchange(looking_, true)) return;
  }
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (!std::exchange(look_again_, false) || ending_) {
        looking_ = false;
        return;
      }
    }
    bool asked = false;
    const absl::Status looked = LookOnce(asked);
    const auto reason = ReasonOf(looked);
    if (reason == ErrorReason::kSubscriptionNotFound || reason == ErrorReason::kRecordCorrupt) {
      End(looked);
      continue;
    }
    // What the store refuses is tried again with the next look.
    std::vector<PartitionPtr> partitions;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [number, partition] : partitions_) partitions.push_back(partition);
    }
    for (const PartitionPtr& partition : partitions) partition->Look(asked);
  }
}

absl::Status ConsumerCore::LookOnce(bool& asked) {
  const Subscription& subscription = setup_->subscription.subscription;
  const store::Store& store = setup_->workshop->store;
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   store.Get(Keyspace::kFeed, SubscriptionKey(subscription.name)));
  if (!record || record->stamp != setup_->subscription.stamp) {
    return SubscriptionNotFound(subscription.name);
  }
  ASSIGN_OR_RETURN(const std::optional<store::Record> requests,
                   store.Get(Keyspace::kFeed, RequestsKey(subscription.incarnation)));
  const store::Stamp stamp = requests ? requests->stamp : 0;
  {
    const std::lock_guard lock(mutex_);
    asked = std::exchange(requests_, stamp) != stamp;
  }
  Assignment seen;
  RETURN_IF_ERROR(See(seen));
  Move(std::move(seen));
  return absl::OkStatus();
}

// One scan of the leases' names shows members and holders.
absl::Status ConsumerCore::See(Assignment& seen) {
  const Subscription& subscription = setup_->subscription.subscription;
  const std::string members = MemberLeasePrefix(subscription.incarnation);
  const UnixMicros now = setup_->workshop->clock.Now();
  seen.me = setup_->member;
  seen.holders.resize(static_cast<size_t>(subscription.partitions));
  seen.leaving.resize(seen.holders.size());
  const auto reader = setup_->workshop->store.Snapshot();
  std::string last;
  const auto cursor = reader->Scan(
      Keyspace::kLeases, lease::LeaseRange(SubscriptionLeasePrefix(subscription.incarnation), ""));
  for (; cursor->Valid(); cursor->Next()) {
    ASSIGN_OR_RETURN(const std::string_view name, lease::LeaseNameOf(cursor->key()));
    if (name == last) continue;
    last = name;
    ASSIGN_OR_RETURN(const lease::StoredLease stored, lease::ReadLease(*reader, name));
    const bool held = stored.IsHeld(now);
    if (last.starts_with(members)) {
      if (held) {
        seen.members.push_back(last.substr(members.size()));
      } else if (stored.state &&
                 stored.state->expire_time + microseconds(kDeadMemberKept).count() <= now) {
        Forget(last, stored);
      }
      continue;
    }
    const std::optional<PartitionLease> lease = ParsePartitionLease(last);
    if (!held || !lease || lease->partition >= subscription.partitions) continue;
    seen.holders[static_cast<size_t>(lease->partition)] = stored.owner->holder;
  }
  return cursor->status();
}

// A uuid never comes again, so no token of its lease can.
void ConsumerCore::Forget(const std::string& lease, const lease::StoredLease& stored) {
  store::WriteBatch batch;
  if (stored.owner) batch.DeleteIf(Keyspace::kLeases, lease::OwnerKey(lease), stored.token);
  batch.DeleteIf(Keyspace::kLeases, lease::StateKey(lease), stored.state_stamp);
  setup_->workshop->store.Commit(std::move(batch), [](const store::CommitResult&) {});
}

void ConsumerCore::Move(Assignment seen) {
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
    while (const std::optional<feed::Move> move = NextMove(seen, choice_++)) {
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
  }
  // What nobody had is as free as before: others need not look, or all would try for ever while a
  // store refuses.
  if (held) changed_();
  // One that another was faster to take may be the wrong thing to have wanted.
  setup_->workshop->Later(pause, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->LookSoon();
  });
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
    self->changed_();
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
