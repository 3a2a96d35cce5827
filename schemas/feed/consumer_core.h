// One consumer of a subscription: its membership, its share of the partitions, its stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "schemas/feed/assignment.h"
#include "schemas/feed/consumer_workshop.h"
#include "schemas/feed/lookout.h"
#include "schemas/feed/partition.h"
#include "schemas/feed/stream.h"
#include "schemas/feed/worker.h"

namespace strata::feed {

// What a Consumer does; outlives it until all is given back. What it has is changed by what
// `lookout` sees. Thread-safe. Keep it in a shared_ptr: work in flight holds it.
class ConsumerCore final : public Onlooker, public std::enable_shared_from_this<ConsumerCore> {
 public:
  // `setup` is complete but for what this adds: `ended` and `failed`. `gone` is called when all is
  // given back, as the last.
  ConsumerCore(PartitionSetup setup, std::shared_ptr<Lookout> lookout,
               std::function<void(ConsumerCore&)> gone);
  ~ConsumerCore() override;

  const Subscription& subscription() const { return setup_->subscription.subscription; }
  int64_t incarnation() const { return subscription().incarnation; }

  // As Consumer.
  void Ready();
  absl::Status Ack(int32_t partition, const lease::Place& place);
  absl::Status Nack(int32_t partition, const lease::Place& place, std::string_view reason,
                    bool park);

  void OnView(const absl::StatusOr<ViewPtr>& view) override;
  std::string member() const override;
  bool Has(int32_t partition) const override { return Find(partition) != nullptr; }
  // Gives everything back, and then finishes the stream with the status. Only the first call
  // counts.
  void End(const absl::Status& status);
  // Nobody hears anything any more; what is open has failed, unless End was called before.
  void Abandon();
  // Follows the feed no more; for when nothing that was begun comes to its end.
  void Drop();

 private:
  using PartitionPtr = std::shared_ptr<Partition>;

  void Begin();
  void OnMember(const absl::StatusOr<lease::Lease>& lease);
  void OnLost(const absl::Status& status);
  void GrowOld();
  void Follow();
  void Move(const View& view);
  void OnEnded(int32_t partition);
  PartitionPtr Find(int32_t partition) const;
  absl::Status NotAssigned(std::string_view field, int32_t partition) const;
  void Finish(const absl::Status& status, bool broken);
  void FinishIfGone();

  const std::shared_ptr<PartitionSetup> setup_;
  const std::shared_ptr<Lookout> lookout_;
  const std::function<void(ConsumerCore&)> gone_;
  const std::shared_ptr<Worker> member_;
  const std::chrono::steady_clock::time_point old_at_;

  mutable std::mutex mutex_;  // guards what follows
  bool begun_ = false;
  bool joining_ = false;  // the member's lease is being acquired
  bool is_member_ = false;
  std::map<int32_t, PartitionPtr> partitions_;
  std::map<int32_t, lease::Place> had_;          // of each partition that was this one's
  std::optional<absl::StatusOr<ViewPtr>> view_;  // the newest, if it was not followed yet
  bool following_ = false;
  store::Stamp requests_ = 0;  // as of the last view
  size_t choice_ = 0;
  int failed_takes_ = 0;                           // since a partition was held last
  std::chrono::steady_clock::time_point take_at_;  // not before
  std::optional<absl::Status> ending_;
  bool leaving_ = false;  // the member's lease is being given back
};

}  // namespace strata::feed
