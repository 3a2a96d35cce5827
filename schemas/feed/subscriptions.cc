#include "schemas/feed/subscriptions.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/filter.h"
#include "schemas/feed/consumer_core.h"
#include "schemas/feed/consumer_workshop.h"
#include "schemas/feed/lookout.h"
#include "schemas/feed/subscription_requests.h"
#include "schemas/feed/subscription_store.h"

namespace strata::feed {

namespace {

class OpenConsumer final : public Consumer {
 public:
  explicit OpenConsumer(std::shared_ptr<ConsumerCore> core) : core_(std::move(core)) {}
  ~OpenConsumer() override { core_->Abandon(); }

  const Subscription& subscription() const override { return core_->subscription(); }
  void Ready() override { core_->Ready(); }
  absl::Status Ack(int32_t partition, const lease::Place& place) override {
    return core_->Ack(partition, place);
  }
  absl::Status Nack(int32_t partition, const lease::Place& place, std::string_view reason,
                    bool park) override {
    return core_->Nack(partition, place, reason, park);
  }
  void Leave() override { core_->End(absl::OkStatus()); }

 private:
  const std::shared_ptr<ConsumerCore> core_;
};

// 128 bits of chance, as hexadecimal digits.
std::string NewMember(Entropy& entropy) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string member;
  for (const char byte : entropy.Bytes(16)) {
    member += kDigits[static_cast<uint8_t>(byte) >> 4];
    member += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return member;
}

}  // namespace

class Subscriptions::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(std::shared_ptr<ConsumerWorkshop> workshop)
      : workshop_(std::move(workshop)), store_(std::make_shared<SubscriptionStore>(workshop_)) {}

  SubscriptionStore& store() { return *store_; }

  // Returns when nothing touches any more what it was made with.
  void Close() {
    workshop_->doors.Close();
    for (const CorePtr& core : Cores()) core->Drop();
  }

  absl::StatusOr<SubscriptionState> Get(const std::string& name) {
    ASSIGN_OR_RETURN(SubscriptionState state, store_->Get(name));
    const std::lock_guard lock(mutex_);
    const auto counts = counts_.find(state.subscription.incarnation);
    if (counts == counts_.end()) return state;
    state.events_acknowledged = counts->second->events_acknowledged;
    state.acknowledging_commits = counts->second->acknowledging_commits;
    state.take_overs = counts->second->take_overs;
    return state;
  }

  void Delete(const std::string& name, std::chrono::steady_clock::time_point deadline,
              std::function<void(absl::Status)> done) {
    store_->Delete(name, deadline,
                   [weak = weak_from_this(), done = std::move(done)](const absl::Status& status) {
                     if (const auto self = weak.lock()) self->ForgetDeletedSoon();
                     done(status);
                   });
  }

  size_t counted() {
    const std::lock_guard lock(mutex_);
    return counts_.size();
  }

  absl::StatusOr<std::unique_ptr<Consumer>> Open(ConsumeQuery query,
                                                 std::shared_ptr<ConsumerSink> sink);

  // Those who consume a subscription here look again.
  void Nudge(int64_t incarnation) {
    std::shared_ptr<Lookout> lookout;
    {
      const std::lock_guard lock(mutex_);
      const auto found = lookouts_.find(incarnation);
      if (found != lookouts_.end()) lookout = found->second.lock();
    }
    if (lookout != nullptr) lookout->LookSoon();
  }

  void StopConsumers() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    for (const CorePtr& core : Cores()) core->End(Draining());
  }

  bool AwaitGone(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    return gone_.wait_for(lock, patience, [this] { return cores_.empty(); });
  }

 private:
  using CorePtr = std::shared_ptr<ConsumerCore>;

  std::vector<CorePtr> Cores() {
    std::vector<CorePtr> cores;
    const std::lock_guard lock(mutex_);
    for (const auto& [key, core] : cores_) cores.push_back(core);
    return cores;
  }

  std::shared_ptr<ConsumerCounts> CountsOf(int64_t incarnation) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<ConsumerCounts>& counts = counts_[incarnation];
    if (counts == nullptr) {
      counts = std::make_shared<ConsumerCounts>();
      ForgetDeletedSoon();
    }
    return counts;
  }

  std::shared_ptr<Lookout> LookoutOf(const StoredSubscription& subscription) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<Lookout>& lookout = lookouts_[subscription.subscription.incarnation];
    std::shared_ptr<Lookout> there = lookout.lock();
    if (there == nullptr) {
      there = std::make_shared<Lookout>(workshop_, subscription);
      lookout = there;
    }
    return there;
  }

  void ForgetDeletedSoon() {
    workshop_->Later([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->ForgetDeleted();
    });
  }

  // What was counted of subscriptions that are not there any more, wherever they were deleted.
  void ForgetDeleted() {
    std::vector<int64_t> incarnations;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [incarnation, counts] : counts_) incarnations.push_back(incarnation);
    }
    for (const int64_t incarnation : incarnations) {
      const absl::StatusOr<std::optional<std::string>> name = store_->NameOf(incarnation);
      if (!name.ok() || name->has_value()) continue;
      const std::lock_guard lock(mutex_);
      counts_.erase(incarnation);
    }
  }

  void Forget(ConsumerCore& core) {
    CorePtr last;
    const std::lock_guard lock(mutex_);
    const auto found = cores_.find(&core);
    if (found == cores_.end()) return;
    last = std::move(found->second);  // goes when the lock does
    cores_.erase(found);
    std::erase_if(lookouts_, [](const auto& each) { return each.second.expired(); });
    if (cores_.empty()) gone_.notify_all();
  }

  const std::shared_ptr<ConsumerWorkshop> workshop_;
  const std::shared_ptr<SubscriptionStore> store_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable gone_;
  bool stopping_ = false;
  std::map<const ConsumerCore*, CorePtr> cores_;               // until all is given back
  std::map<int64_t, std::shared_ptr<ConsumerCounts>> counts_;  // by incarnation
  std::map<int64_t, std::weak_ptr<Lookout>> lookouts_;         // by incarnation
};

absl::StatusOr<std::unique_ptr<Consumer>> Subscriptions::Impl::Open(
    ConsumeQuery query, std::shared_ptr<ConsumerSink> sink) {
  RETURN_IF_ERROR(CheckCapabilities(workshop_->store));
  RETURN_IF_ERROR(CheckConsume(query));
  ASSIGN_OR_RETURN(std::optional<StoredSubscription> subscription,
                   ReadSubscription(workshop_->store, query.subscription));
  if (!subscription) return SubscriptionNotFound(query.subscription);
  PartitionSetup setup;
  setup.workshop = workshop_;
  setup.stream = std::make_shared<Stream>(workshop_, std::move(sink));
  setup.counts = CountsOf(subscription->subscription.incarnation);
  setup.query.caller = query.caller;
  setup.query.selection = subscription->subscription.selection;
  if (subscription->subscription.filter) {
    ASSIGN_OR_RETURN(setup.query.filter,
                     document::Filter::Compile(*subscription->subscription.filter));
  }
  setup.query.include_content = query.include_content;
  setup.query.include_before = query.include_before;
  setup.query.include_changes = query.include_changes;
  setup.subscription = *std::move(subscription);
  setup.window = query.window;
  setup.member = NewMember(workshop_->entropy);
  setup.consumer = std::move(query.consumer);
  std::shared_ptr<Lookout> lookout = LookoutOf(setup.subscription);
  const auto core = std::make_shared<ConsumerCore>(std::move(setup), std::move(lookout),
                                                   [weak = weak_from_this()](ConsumerCore& gone) {
                                                     if (const auto self = weak.lock())
                                                       self->Forget(gone);
                                                   });
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return Draining();
    const int64_t most = workshop_->options.consumers_max;
    if (static_cast<int64_t>(cores_.size()) >= most) {
      return Error(ErrorReason::kOverloaded,
                   "there are " + std::to_string(most) + " consumers, the maximum")
          .With("limit", most);
    }
    cores_.emplace(core.get(), core);
  }
  return std::make_unique<OpenConsumer>(core);
}

Subscriptions::Subscriptions(store::Store& store, Feed& feed, lease::Leases& leases,
                             const Clock& clock, Entropy& entropy, Executor& executor,
                             const SubscriptionsOptions& options)
    : impl_(std::make_shared<Impl>(std::make_shared<ConsumerWorkshop>(
          store, feed, leases, clock, entropy, executor, options))) {}

Subscriptions::~Subscriptions() { impl_->Close(); }

void Subscriptions::Create(CreateSubscription request,
                           std::function<void(absl::StatusOr<Subscription>)> done) {
  impl_->store().Create(std::move(request), std::move(done));
}

absl::StatusOr<SubscriptionState> Subscriptions::Get(const std::string& name) const {
  return impl_->Get(name);
}

absl::StatusOr<std::vector<Subscription>> Subscriptions::List(const std::string& prefix,
                                                              const std::string& after_name,
                                                              size_t most,
                                                              const StopCheck& stopped) const {
  return impl_->store().List(prefix, after_name, most, stopped);
}

void Subscriptions::Delete(const std::string& name, std::chrono::steady_clock::time_point deadline,
                           std::function<void(absl::Status)> done) {
  impl_->Delete(name, deadline, std::move(done));
}

absl::StatusOr<std::vector<ParkedDocument>> Subscriptions::ListParked(
    const std::string& name, const std::optional<ParkedDocument>& after, size_t most,
    const StopCheck& stopped) const {
  return impl_->store().ListParked(name, after, most, stopped);
}

void Subscriptions::Request(const std::string& name, ParkedRequest request,
                            std::optional<DocumentToReplay> document,
                            std::chrono::steady_clock::time_point deadline,
                            std::function<void(absl::StatusOr<int32_t>)> done) {
  impl_->store().Request(name, request, std::move(document), deadline, std::move(done),
                         [impl = std::weak_ptr(impl_)](int64_t incarnation) {
                           if (const auto alive = impl.lock()) alive->Nudge(incarnation);
                         });
}

absl::StatusOr<std::unique_ptr<Consumer>> Subscriptions::Open(ConsumeQuery query,
                                                              std::shared_ptr<ConsumerSink> sink) {
  return impl_->Open(std::move(query), std::move(sink));
}

void Subscriptions::StopConsumers() { impl_->StopConsumers(); }

size_t Subscriptions::counted() const { return impl_->counted(); }

bool Subscriptions::AwaitGone(std::chrono::milliseconds patience) {
  return impl_->AwaitGone(patience);
}

absl::StatusOr<std::optional<std::string>> Subscriptions::NameOf(int64_t incarnation) const {
  return impl_->store().NameOf(incarnation);
}

absl::StatusOr<std::optional<versioning::FloorHolder>> Subscriptions::LowestPlace(
    const store::Reader& reader) const {
  return impl_->store().LowestPlace(reader);
}

}  // namespace strata::feed
