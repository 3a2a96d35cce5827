#include "schemas/feed/lookout.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/feed/subscription_requests.h"

namespace strata::feed {

using std::chrono::microseconds;
using store::Keyspace;

namespace {

constexpr std::chrono::steady_clock::duration kLookGrid = std::chrono::milliseconds(50);

}  // namespace

Lookout::Lookout(std::shared_ptr<ConsumerWorkshop> workshop, StoredSubscription subscription)
    : workshop_(std::move(workshop)), subscription_(std::move(subscription)) {}

void Lookout::Show(std::weak_ptr<Onlooker> onlooker) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    onlookers_.push_back(std::move(onlooker));
    first = !std::exchange(looks_on_, true);
  }
  LookSoon();
  if (first) LookOnAndOn();
}

void Lookout::LookOnAndOn() {
  workshop_->Later(Interval(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->Look();
    {
      const std::lock_guard lock(self->mutex_);
      if (self->onlookers_.empty()) {
        self->looks_on_ = false;
        return;
      }
    }
    self->LookOnAndOn();
  });
}

void Lookout::LookSoon() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(look_comes_, true)) return;
  }
  workshop_->Later([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Look();
  });
}

void Lookout::LookAfter(microseconds delay) {
  const Time now = workshop_->clock.SteadyNow();
  const Time::duration since_epoch = (now + delay).time_since_epoch();
  const Time at((since_epoch / kLookGrid + 1) * kLookGrid);
  {
    const std::lock_guard lock(mutex_);
    if (!comes_at_.insert(at).second) return;
  }
  workshop_->Later(std::chrono::ceil<microseconds>(at - now), [weak = weak_from_this(), at] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    {
      const std::lock_guard lock(self->mutex_);
      self->comes_at_.erase(at);
    }
    self->LookSoon();
  });
}

// One thread at a time; who comes meanwhile has it look once more.
void Lookout::Look() {
  {
    const std::lock_guard lock(mutex_);
    look_comes_ = false;
    look_again_ = true;
    if (std::exchange(looking_, true)) return;
  }
  while (true) {
    std::vector<std::shared_ptr<Onlooker>> onlookers;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(onlookers_, [](const auto& each) { return each.expired(); });
      if (!std::exchange(look_again_, false) || onlookers_.empty()) {
        looking_ = false;
        return;
      }
      for (const auto& each : onlookers_) {
        if (auto onlooker = each.lock()) onlookers.push_back(std::move(onlooker));
      }
    }
    const absl::StatusOr<ViewPtr> view = See();
    for (const auto& onlooker : onlookers) onlooker->OnView(view);
  }
}

void Lookout::NoteRenewal(Time begun) {
  const Time now = workshop_->clock.SteadyNow();
  const std::lock_guard lock(mutex_);
  // What waited so long may have been waited for by others too.
  if (now - begun > Interval() || now - renewed_ > 2 * Interval()) takes_since_ = now;
  renewed_ = now;
}

std::map<std::string, std::shared_ptr<Onlooker>> Lookout::LivingHere() {
  std::vector<std::shared_ptr<Onlooker>> onlookers;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& each : onlookers_) {
      if (auto onlooker = each.lock()) onlookers.push_back(std::move(onlooker));
    }
  }
  std::map<std::string, std::shared_ptr<Onlooker>> living;
  for (const auto& onlooker : onlookers) living.emplace(onlooker->member(), onlooker);
  living.erase("");
  return living;
}

absl::Status Lookout::Find() const {
  const std::string& name = subscription().name;
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   workshop_->store.Get(Keyspace::kFeed, SubscriptionKey(name)));
  if (!record || record->stamp != subscription_.stamp) return SubscriptionNotFound(name);
  return absl::OkStatus();
}

// One scan of the leases' names shows members and holders.
absl::StatusOr<ViewPtr> Lookout::See() {
  RETURN_IF_ERROR(Find());
  auto view = std::make_shared<View>();
  ASSIGN_OR_RETURN(const std::optional<store::Record> requests,
                   workshop_->store.Get(Keyspace::kFeed, RequestsKey(subscription().incarnation)));
  if (requests) view->requests = requests->stamp;
  view->holders.resize(static_cast<size_t>(subscription().partitions));
  const std::string members = MemberLeasePrefix(subscription().incarnation);
  const std::map<std::string, std::shared_ptr<Onlooker>> living = LivingHere();
  const UnixMicros now = workshop_->clock.Now();
  ++looks_;
  const auto reader = workshop_->store.Snapshot();
  std::string last;
  const auto cursor =
      reader->Scan(Keyspace::kLeases,
                   lease::LeaseRange(SubscriptionLeasePrefix(subscription().incarnation), ""));
  for (; cursor->Valid(); cursor->Next()) {
    ASSIGN_OR_RETURN(const std::string_view name, lease::LeaseNameOf(cursor->key()));
    if (name == last) continue;
    last = name;
    ASSIGN_OR_RETURN(const lease::StoredLease stored, lease::ReadLease(*reader, name));
    const std::optional<PartitionLease> lease = ParsePartitionLease(last);
    const auto unchanged = Unchanged(last, stored);
    const bool owned = stored.owner && !stored.owner->holder.empty();
    const auto here = owned ? living.find(stored.owner->holder) : living.end();
    const bool known = here != living.end() && (!lease || here->second->Has(lease->partition));
    const bool held = owned && (workshop_->leases.IsHeld(last, stored) || known ||
                                unchanged < subscription().lease_ttl);
    if (last.starts_with(members)) {
      if (held) {
        view->members.push_back(last.substr(members.size()));
      } else if (stored.state && unchanged >= subscription().lease_ttl &&
                 stored.state->expire_time + microseconds(kDeadMemberKept).count() <= now) {
        Bury(last, stored);
      }
      continue;
    }
    if (!held || !lease || lease->partition >= subscription().partitions) continue;
    view->holders[static_cast<size_t>(lease->partition)] = stored.owner->holder;
  }
  RETURN_IF_ERROR(cursor->status());
  std::erase_if(seen_, [this](const auto& each) { return each.second.look != looks_; });
  return view;
}

Lookout::Time::duration Lookout::Unchanged(const std::string& lease,
                                           const lease::StoredLease& stored) {
  const Time now = workshop_->clock.SteadyNow();
  Seen& seen = seen_[lease];
  if (seen.look == 0 || seen.token != stored.token || seen.state_stamp != stored.state_stamp) {
    seen = {stored.token, stored.state_stamp, now, 0};
  }
  seen.look = looks_;
  const std::lock_guard lock(mutex_);
  if (now - renewed_ > 2 * Interval()) return Time::duration::zero();
  return now - std::max(seen.since, takes_since_);
}

// (A uuid never comes again, so no token of its lease can.)
void Lookout::Bury(const std::string& lease, const lease::StoredLease& stored) const {
  store::WriteBatch batch;
  batch.MarkAsBackground();
  if (stored.owner) batch.DeleteIf(Keyspace::kLeases, lease::OwnerKey(lease), stored.token);
  batch.DeleteIf(Keyspace::kLeases, lease::StateKey(lease), stored.state_stamp);
  workshop_->store.Commit(std::move(batch), [](const store::CommitResult&) {});
}

}  // namespace strata::feed
