#include "schemas/feed/subscriptions.h"

#include <utility>

#include "schemas/feed/consumer_workshop.h"
#include "schemas/feed/subscription_store.h"

namespace strata::feed {

class Subscriptions::Impl {
 public:
  explicit Impl(std::shared_ptr<ConsumerWorkshop> workshop)
      : workshop_(std::move(workshop)), store_(std::make_shared<SubscriptionStore>(workshop_)) {}

  void Close() { workshop_->doors.Close(); }
  SubscriptionStore& store() { return *store_; }

 private:
  const std::shared_ptr<ConsumerWorkshop> workshop_;
  const std::shared_ptr<SubscriptionStore> store_;
};

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
  return impl_->store().Get(name);
}

absl::StatusOr<std::vector<Subscription>> Subscriptions::List(const std::string& prefix,
                                                              const std::string& after_name,
                                                              size_t most,
                                                              const StopCheck& stopped) const {
  return impl_->store().List(prefix, after_name, most, stopped);
}

void Subscriptions::Delete(const std::string& name, std::chrono::steady_clock::time_point deadline,
                           std::function<void(absl::Status)> done) {
  impl_->store().Delete(name, deadline, std::move(done));
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
                         [](int64_t) {});
}

absl::StatusOr<std::optional<std::string>> Subscriptions::NameOf(int64_t incarnation) const {
  return impl_->store().NameOf(incarnation);
}

absl::StatusOr<std::optional<versioning::FloorHolder>> Subscriptions::LowestPlace(
    const store::Reader& reader) const {
  return impl_->store().LowestPlace(reader);
}

}  // namespace strata::feed
