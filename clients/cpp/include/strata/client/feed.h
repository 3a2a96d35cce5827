// The feed: every change in the order of commits, and subscriptions to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "strata/client/documents.h"
#include "strata/client/range.h"

namespace strata::client {

enum class EventType { kUnspecified = 0, kVersion = 1, kCollectionDeleted = 2 };

// One event of the feed.
struct Event {
  int64_t position = 0;
  int32_t index = 0;
  std::string collection = {};
  std::string id = {};  // empty: the event is of the collection
  Version version = {};
  std::optional<Value> before = {};
  bool left_filter = false;
  bool content_missing = false;
  bool truncated = false;
  EventType type = EventType::kUnspecified;
};

// The progress of a copy of the documents.
struct Snapshot {
  int64_t at_position = 0;
  std::string after_collection = {};
  std::string after_id = {};
  bool complete = false;
};

// Where to begin is one of the last three; without them, now.
struct WatchOptions {
  std::vector<std::string> collections = {};
  std::string id_prefix = {};
  std::vector<VersionKind> kinds = {};
  std::optional<Value> filter = {};
  bool include_content = false;
  bool include_before = false;
  bool include_changes = false;
  std::optional<absl::Duration> bookmark_interval = {};
  std::optional<int64_t> after_position = {};
  std::optional<absl::Time> start_time = {};
  std::optional<Snapshot> snapshot = {};
};

// An item of a watch: an event, or a document of the copy that `snapshot` requested.
struct WatchItem {
  std::optional<Event> event = {};
  std::optional<Document> document = {};
};

// Follows the feed, over broken connections too: nothing comes twice and nothing is missed, as long
// as no pause is longer than retry_for. One thread takes items; any thread may cancel.
class Watch {
 public:
  Watch(std::shared_ptr<Core> core, const WatchOptions& options);
  Watch(Watch&&) noexcept;
  Watch& operator=(Watch&&) noexcept;
  ~Watch();

  // Waits for the next item. Nothing: Cancel was called, or status() says why there are no more.
  std::optional<WatchItem> Next();
  absl::Status status() const;
  // Save this, not event.position, once an item is done with, and begin the next watch with it as
  // after_position. Next has given all items of commits up to this one. A commit of several
  // documents has several events with one position: a watch that begins after it misses those that
  // were not given yet. It moves on without events too, where a filter lets none through. Unset:
  // nothing is known yet, or a copy is under way.
  std::optional<int64_t> resume_position() const;
  // The last commit of the store when the server said so last.
  std::optional<int64_t> last_position() const;
  // Whether all commits up to last_position were given.
  bool caught_up() const;
  // Of a copy: its progress, with which another watch goes on as long as there is no
  // resume_position.
  std::optional<Snapshot> snapshot() const;
  void Cancel();

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

struct Feed {
  int64_t oldest_position = 0;
  int64_t last_position = 0;
  int64_t watchers = 0;
  int64_t parked_watchers = 0;
  int64_t events_sent = 0;
  int64_t catch_up_reads = 0;
  std::optional<absl::Duration> retention = {};  // unset: for ever
  std::string held_by = {};
  int64_t held_position = 0;
  int64_t take_overs = 0;
  int64_t lease_lost = 0;
};

struct Subscription {
  std::string name = {};
  int64_t incarnation = 0;
  std::vector<std::string> collections = {};
  std::string id_prefix = {};
  std::vector<VersionKind> kinds = {};
  std::optional<Value> filter = {};
  int64_t start_position = 0;
  int32_t partitions = 0;
  int32_t max_attempts = 0;
  absl::Duration backoff_first = absl::ZeroDuration();
  absl::Duration backoff_max = absl::ZeroDuration();
  absl::Duration ack_timeout = absl::ZeroDuration();
  absl::Duration lease_ttl = absl::ZeroDuration();
  absl::Time create_time = absl::InfinitePast();
};

struct SubscriptionPartition {
  int32_t partition = 0;
  std::string consumer = {};
  int64_t token = 0;
  int64_t position = 0;
  std::optional<int32_t> index = {};
  int64_t lag_positions = 0;
  std::optional<absl::Time> oldest_open_time = {};
  int32_t in_flight = 0;
  int32_t attempts = 0;
  std::string reason = {};
  std::optional<absl::Time> retry_time = {};
  int32_t parked = 0;
  bool blocked = false;
};

// A subscription, and how far it has come.
struct SubscriptionState {
  Subscription subscription = {};
  std::vector<SubscriptionPartition> partitions = {};
  int64_t last_position = 0;
  int32_t consumers = 0;
  int32_t parked = 0;
  int64_t events_acknowledged = 0;
  int64_t acknowledging_commits = 0;
  int64_t take_overs = 0;
};

struct CreateSubscriptionOptions {
  std::vector<std::string> collections = {};
  std::string id_prefix = {};
  std::vector<VersionKind> kinds = {};
  std::optional<Value> filter = {};
  std::optional<int64_t> after_position = {};
  std::optional<absl::Time> start_time = {};
  int32_t partitions = 0;
  int32_t max_attempts = 0;
  std::optional<absl::Duration> backoff_first = {};
  std::optional<absl::Duration> backoff_max = {};
  std::optional<absl::Duration> ack_timeout = {};
  std::optional<absl::Duration> lease_ttl = {};
};

struct ListSubscriptionsOptions {
  std::string prefix = {};
  int32_t page_size = 0;
};

enum class ParkedAction { kUnspecified = 0, kReplay = 1 };

// A document whose event failed too often.
struct ParkedDocument {
  std::string collection = {};
  std::string id = {};
  int32_t partition = 0;
  int64_t from_version = 0;
  int64_t position = 0;
  int32_t index = 0;
  int32_t attempts = 0;
  std::string reason = {};
  absl::Time park_time = absl::InfinitePast();
  ParkedAction action = ParkedAction::kUnspecified;
};

struct ListParkedOptions {
  int32_t page_size = 0;
};

// Both, or neither: all that are parked now.
struct ParkedOptions {
  std::string collection = {};
  std::string id = {};
};

struct ConsumeOptions {
  int32_t window = 0;
  bool include_content = false;
  bool include_before = false;
  bool include_changes = false;
};

// An event for a consumer.
struct Delivery {
  Event event = {};
  int32_t attempt = 0;
  bool replay = false;
  // For the write that is the effect (CreateOptions::lease and the like): with it the write takes
  // place once, and acknowledges the event.
  LeaseToken lease = {};
  int32_t partition = 0;
  int64_t stream = 0;  // which of the consumer's streams brought it
  int64_t term = 0;    // after how many failures of its partition
};

// Takes a subscription's events, over broken connections too. Unacknowledged events come again, so
// each comes at least once. Thread-safe: several threads may work on the events that one thread
// takes.
class Consumer {
 public:
  Consumer(std::shared_ptr<Core> core, const std::string& subscription, const std::string& consumer,
           const ConsumeOptions& options);
  Consumer(Consumer&&) noexcept;
  Consumer& operator=(Consumer&&) noexcept;
  // As Close.
  ~Consumer();

  // The next event, waited for; of each partition in the order of the feed. Nothing: it was closed,
  // has failed (status()), or `patience` is over.
  std::optional<Delivery> Next(absl::Duration patience = absl::InfiniteDuration());
  // Acknowledges all events of its partition up to this one; of a replay, this event alone. Ack and
  // Nack ignore a delivery that no longer counts, because another consumer has the partition or an
  // event before it failed. It comes again.
  void Ack(const Delivery& delivery);
  // The event failed. It comes again later, with the deliveries after it; with `park`, only after a
  // replay. All events before it must have been acknowledged.
  void Nack(const Delivery& delivery, const std::string& reason, bool park = false);
  // Gives the partitions back, after all acknowledgements are stored.
  void Close();
  absl::Status status() const;

 private:
  class Body;
  std::unique_ptr<Body> body_;
};

// Thread-safe.
class Subscriptions {
 public:
  explicit Subscriptions(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  absl::StatusOr<Subscription> Create(const std::string& name,
                                      const CreateSubscriptionOptions& options = {}) const;
  absl::StatusOr<SubscriptionState> Get(const std::string& name) const;
  Range<Subscription> List(const ListSubscriptionsOptions& options = {}) const;
  absl::Status Delete(const std::string& name) const;
  // `consumer`: its name, shown to operators.
  Consumer Consume(const std::string& name, const std::string& consumer,
                   const ConsumeOptions& options = {}) const;
  Range<ParkedDocument> Parked(const std::string& name,
                               const ListParkedOptions& options = {}) const;
  // Answer the number of documents.
  absl::StatusOr<int32_t> ReplayParked(const std::string& name,
                                       const ParkedOptions& options = {}) const;
  absl::StatusOr<int32_t> DiscardParked(const std::string& name,
                                        const ParkedOptions& options = {}) const;

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace strata::client
