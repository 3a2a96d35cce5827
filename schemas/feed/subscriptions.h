// The subscriptions of a store, and their consumers in this process.
//
// A subscription is stored in records only, so that consumers of several processes share one: its
// settings and parked documents (subscription_record.h), a lease for each partition, with the
// partition's feed position, and a lease for each consumer. Each consumer decides for itself which
// partitions it takes, by reading those leases (assignment.h).
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

inline constexpr int64_t kSubscriptionsMax = 1'000;
inline constexpr int64_t kConsumersMax = 1'000;

struct SubscriptionsOptions {
  int64_t subscriptions_max = kSubscriptionsMax;  // of the store, as far as this process sees
  int64_t consumers_max = kConsumersMax;          // of this process
  int32_t parked_max = kParkedMax;
  // The maximum age of a consumer's stream, or up to a fifth less: then it ends with DRAINING. 0:
  // none.
  std::chrono::microseconds consumer_age_max{0};
};

struct CreateSubscription {
  Subscription subscription;  // without incarnation, start_position and create_time
  Start start;                // no copy
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

struct DocumentToReplay {
  std::string collection;
  std::string id;
};

// Thread-safe. Callbacks come once, on any thread, perhaps before the call returns, with no lock
// held. The engine's blocking reads block the caller's thread; consumers work on the executor.
class Subscriptions {
 public:
  // All outlive it. Its remaining work on the executor may come later and does nothing.
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
  // Up to `most` of them in the byte order of their names, after `after_name`.
  absl::StatusOr<std::vector<Subscription>> List(const std::string& prefix,
                                                 const std::string& after_name, size_t most,
                                                 const StopCheck& stopped) const;
  // In one commit with the release of its leases; its parked documents go with it, or soon after.
  // SUBSCRIPTION_NOT_FOUND; else as Create.
  void Delete(const std::string& name, std::chrono::steady_clock::time_point deadline,
              std::function<void(absl::Status)> done);

  // The parked documents after `after` (nothing: from the first), by partition, collection and id.
  // SUBSCRIPTION_NOT_FOUND.
  absl::StatusOr<std::vector<ParkedDocument>> ListParked(const std::string& name,
                                                         const std::optional<ParkedDocument>& after,
                                                         size_t most,
                                                         const StopCheck& stopped) const;
  // Asks the present or next consumers of the partitions to deliver the document, or all parked
  // ones, again, or to give them up; answers their number. SUBSCRIPTION_NOT_FOUND; else as Create.
  enum class ParkedRequest : uint8_t { kReplay, kDiscard };
  void Request(const std::string& name, ParkedRequest request,
               std::optional<DocumentToReplay> document,
               std::chrono::steady_clock::time_point deadline,
               std::function<void(absl::StatusOr<int32_t>)> done);

  // Opens a stream; begins with its first Ready. SUBSCRIPTION_NOT_FOUND, OVERLOADED with too many
  // consumers, DRAINING; INVALID_FIELD; UNSUPPORTED_BY_ENGINE.
  absl::StatusOr<std::unique_ptr<Consumer>> Open(ConsumeQuery query,
                                                 std::shared_ptr<ConsumerSink> sink);

  // The subscription of that incarnation; permissions refer to its name. Nothing: it was deleted.
  absl::StatusOr<std::optional<std::string>> NameOf(int64_t incarnation) const;

  // For FloorHolders: the lowest place of all, with its subscription.
  absl::StatusOr<std::optional<versioning::FloorHolder>> LowestPlace(
      const store::Reader& reader) const;

  // Refuses new consumers and ends the present ones: their partitions are given back, their sinks
  // end with DRAINING.
  void StopConsumers();
  // Waits until all partitions of consumers here are given back. False: some were not in this time.
  bool AwaitGone(std::chrono::milliseconds patience);

  // Number of subscriptions with counters in this process.
  size_t counted() const;

 private:
  class Impl;
  const std::shared_ptr<Impl> impl_;
};

}  // namespace strata::feed
