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
#include "schemas/feed/partition.h"
#include "schemas/feed/stream.h"
#include "schemas/feed/worker.h"

namespace strata::feed {

// A member's leases that nobody renews go after so long.
inline constexpr std::chrono::hours kDeadMemberKept{1};

// What a Consumer does; outlives it until all is given back. It looks at who is there and who holds
// what: when it begins, when somebody comes, goes or gives something back in this process, and each
// third of the lease's ttl. Thread-safe. Keep it in a shared_ptr: work in flight holds it.
class ConsumerCore : public std::enable_shared_from_this<ConsumerCore> {
 public:
  // `setup` is complete but for what this adds: `stream`, `ended` and `failed`. `changed` is called
  // when others should look; `gone` when all is given back, as the last.
  ConsumerCore(PartitionSetup setup, std::function<void()> changed,
               std::function<void(ConsumerCore&)> gone);
  ~ConsumerCore();

  const Subscription& subscription() const { return setup_->subscription.subscription; }
  int64_t incarnation() const { return subscription().incarnation; }

  // As Consumer.
  void Ready();
  absl::Status Ack(int32_t partition, const lease::Place& place);
  absl::Status Nack(int32_t partition, const lease::Place& place, std::string_view reason,
                    bool park);

  // Looks soon.
  void LookSoon();
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
  void LookAfter(std::chrono::microseconds delay);
  void Look();
  absl::Status LookOnce(bool& asked);
  absl::Status See(Assignment& seen);
  void Forget(const std::string& lease, const lease::StoredLease& stored);
  void Move(Assignment seen);
  void OnEnded(int32_t partition);
  PartitionPtr Find(int32_t partition) const;
  absl::Status NotAssigned(std::string_view field, int32_t partition) const;
  void Finish(const absl::Status& status, bool broken);
  void FinishIfGone();

  const std::shared_ptr<PartitionSetup> setup_;
  const std::function<void()> changed_;
  const std::function<void(ConsumerCore&)> gone_;
  const std::shared_ptr<Worker> member_;

  mutable std::mutex mutex_;  // guards what follows
  bool begun_ = false;
  bool joining_ = false;  // the member's lease is being acquired
  bool is_member_ = false;
  std::map<int32_t, PartitionPtr> partitions_;
  std::map<int32_t, lease::Place> had_;  // of each partition that was this one's
  bool look_comes_ = false;              // soon
  bool looking_ = false;
  bool look_again_ = false;
  store::Stamp requests_ = 0;  // as of the last look
  size_t choice_ = 0;
  int failed_takes_ = 0;  // since a partition was held last
  std::optional<absl::Status> ending_;
  bool leaving_ = false;  // the member's lease is being given back
};

}  // namespace strata::feed
