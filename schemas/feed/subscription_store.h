// What is stored of subscriptions: made, read and deleted. Internal to this folder.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/feed/consumer_workshop.h"
#include "schemas/feed/subscription_record.h"
#include "schemas/feed/subscriptions.h"
#include "schemas/store/guarded_commit.h"

namespace strata::feed {

// As Subscriptions, which has the contract. Keep it in a shared_ptr: work in flight holds it.
class SubscriptionStore : public std::enable_shared_from_this<SubscriptionStore> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit SubscriptionStore(std::shared_ptr<ConsumerWorkshop> workshop)
      : workshop_(std::move(workshop)) {}

  void Create(CreateSubscription request, std::function<void(absl::StatusOr<Subscription>)> done);
  absl::StatusOr<SubscriptionState> Get(const std::string& name) const;
  absl::StatusOr<std::vector<Subscription>> List(const std::string& prefix,
                                                 const std::string& after_name, size_t most,
                                                 const StopCheck& stopped) const;
  void Delete(const std::string& name, Time deadline, std::function<void(absl::Status)> done);

  absl::StatusOr<std::vector<ParkedDocument>> ListParked(const std::string& name,
                                                         const std::optional<ParkedDocument>& after,
                                                         size_t most,
                                                         const StopCheck& stopped) const;
  // `asked` is called when it is written, with the subscription's incarnation, before `done`.
  void Request(const std::string& name, Subscriptions::ParkedRequest request,
               std::optional<DocumentToReplay> document, Time deadline,
               std::function<void(absl::StatusOr<int32_t>)> done,
               std::function<void(int64_t)> asked);

  absl::StatusOr<std::optional<std::string>> NameOf(int64_t incarnation) const;
  absl::StatusOr<std::optional<versioning::FloorHolder>> LowestPlace(
      const store::Reader& reader) const;

 private:
  struct Creation {
    CreateSubscription request;
    std::function<void(absl::StatusOr<Subscription>)> done;
  };
  struct Asking;

  store::CommitGround Ground();
  void RunCreations();
  void EndCreations();
  absl::Status CheckRoom(const store::Reader& reader) const;
  absl::StatusOr<store::CommitPosition> PositionOf(const Start& start) const;
  absl::StatusOr<Subscription> PlanCreate(const CreateSubscription& request,
                                          store::WriteBatch& batch) const;
  absl::Status PlanDelete(const std::string& name, store::WriteBatch& batch) const;
  absl::StatusOr<PartitionState> StateOf(const Subscription& subscription, int32_t partition,
                                         const store::Reader& reader) const;
  absl::Status FindPending(const store::Reader& reader, SubscriptionState& state) const;
  absl::StatusOr<Subscription> Require(const store::Reader& reader, const std::string& name) const;
  void AskOn(const std::shared_ptr<Asking>& asking);
  absl::Status PlanAsking(Asking& asking, store::WriteBatch& batch) const;
  void CleanUp();
  absl::StatusOr<bool> PlanCleanUp(store::WriteBatch& batch) const;

  const std::shared_ptr<ConsumerWorkshop> workshop_;

  std::mutex mutex_;  // guards what follows
  // One after the other: they all write the counter of incarnations.
  std::deque<Creation> creations_;
  bool creating_ = false;
};

// UNSUPPORTED_BY_ENGINE without commit positions and atomic batches.
absl::Status CheckCapabilities(const store::Store& store);

}  // namespace strata::feed
