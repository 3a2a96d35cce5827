// The subscriptions of a store: what they are, and who consumes them here.
//
// All that is known of a subscription is in records, so that consumers of several processes share
// one: what it is and what it has parked (subscription_record.h), a lease for each partition, whose
// place is how far it has come, and one for each consumer. Who gets which partition each decides
// for itself, by looking at those leases (assignment.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/base/executor.h"
#include "schemas/base/stop.h"
#include "schemas/feed/consumer.h"
#include "schemas/feed/feed.h"
#include "schemas/feed/subscription.h"
#include "schemas/lease/leases.h"
#include "schemas/store/store.h"
#include "schemas/versioning/ledger_floor.h"

namespace strata::feed {

inline constexpr int64_t kConsumersMax = 1'000;

struct SubscriptionsOptions {
  int64_t consumers_max = kConsumersMax;  // of this process
  int32_t parked_max = kParkedMax;
  // A consumer's stream ends with DRAINING, in order, when it is so old, or up to a fifth younger.
  // 0: it does not.
  std::chrono::microseconds consumer_age_max{0};
};

struct CreateSubscription {
  Subscription subscription;  // but for incarnation, start_position and create_time
  Start start;                // no copy
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct DocumentToReplay {
  std::string collection;
  std::string id;
};

// Thread-safe. Callbacks come once, on any thread, perhaps before the call returns, with no lock
// held. What blocks, if the engine's reads do, does so on the caller's thread; consumers work on
// the executor.
class Subscriptions {
 public:
  // All outlive it. What the executor still has to do for it may come later and does nothing.
  Subscriptions(store::Store& store, Feed& feed, lease::Leases& leases, const Clock& clock,
                Entropy& entropy, Executor& executor, const SubscriptionsOptions& options = {});
  // REQUIRES: no consumer is open.
  ~Subscriptions();
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  // SUBSCRIPTION_EXISTS; INVALID_NAME, INVALID_FIELD; POSITION_TRIMMED, POSITION_UNKNOWN;
  // UNSUPPORTED_BY_ENGINE without commit positions and atomic batches; OUTCOME_UNKNOWN,
  // RETRIES_EXHAUSTED, DEADLINE_EXCEEDED, STORE_UNAVAILABLE, DISK_FULL.
  void Create(CreateSubscription request, std::function<void(absl::StatusOr<Subscription>)> done);
  // SUBSCRIPTION_NOT_FOUND, RECORD_CORRUPT, STORE_UNAVAILABLE, UNSUPPORTED_BY_ENGINE.
  absl::StatusOr<SubscriptionState> Get(const std::string& name) const;
  // Up to `most` of them in the byte order of their names, from behind `after_name` on.
  absl::StatusOr<std::vector<Subscription>> List(const std::string& prefix,
                                                 const std::string& after_name, size_t most,
                                                 const StopCheck& stopped) const;
  // In one commit with the release of its leases; what it has parked goes with it, or soon after.
  // SUBSCRIPTION_NOT_FOUND; else as Create.
  void Delete(const std::string& name, std::chrono::steady_clock::time_point deadline,
              std::function<void(absl::Status)> done);

  // What is parked, from behind `after` on (nothing: from the first), by partition, collection and
  // id. SUBSCRIPTION_NOT_FOUND.
  absl::StatusOr<std::vector<ParkedDocument>> ListParked(const std::string& name,
                                                         const std::optional<ParkedDocument>& after,
                                                         size_t most,
                                                         const StopCheck& stopped) const;
  // Asks whoever has, or will have, the partitions to deliver the document, or all that are parked,
  // again, or to give them up; answers how many that are. SUBSCRIPTION_NOT_FOUND; else as Create.
  enum class ParkedRequest : uint8_t { kReplay, kDiscard };
  void Request(const std::string& name, ParkedRequest request,
               std::optional<DocumentToReplay> document,
               std::chrono::steady_clock::time_point deadline,
               std::function<void(absl::StatusOr<int32_t>)> done);

  // Opens a stream; begins with its first Ready. SUBSCRIPTION_NOT_FOUND, OVERLOADED with too many
  // consumers, DRAINING; INVALID_FIELD; UNSUPPORTED_BY_ENGINE.
  absl::StatusOr<std::unique_ptr<Consumer>> Open(ConsumeQuery query,
                                                 std::shared_ptr<ConsumerSink> sink);

  // The subscription of that incarnation; its name is what permissions are about. Nothing: it was
  // deleted.
  absl::StatusOr<std::optional<std::string>> NameOf(int64_t incarnation) const;

  // For FloorHolders: the lowest place of all, with its subscription.
  absl::StatusOr<std::optional<versioning::FloorHolder>> LowestPlace(
      const store::Reader& reader) const;

  // No consumer is taken in from now on, and those there are end: their partitions are given back,
  // their sinks finished with DRAINING.
  void StopConsumers();
  // Waits until all that consumers had here is given back. False: it is not, after so long.
  bool AwaitGone(std::chrono::milliseconds patience);

  // Of so many subscriptions it is counted here what their consumers do.
  size_t counted() const;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace strata::feed
