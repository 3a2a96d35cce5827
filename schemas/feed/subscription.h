// A subscription: a place in the feed that the server keeps for consumers who share it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/document/content.h"
#include "schemas/feed/commit.h"
#include "schemas/feed/event.h"
#include "schemas/lease/place.h"
#include "schemas/store/store.h"

namespace strata::feed {

inline constexpr int32_t kPartitionsMax = 64;
inline constexpr int32_t kPartitionsDefault = 8;
inline constexpr int32_t kMaxAttemptsMax = 1000;
inline constexpr int32_t kMaxAttemptsDefault = 5;
inline constexpr std::chrono::microseconds kBackoffMin = std::chrono::milliseconds(1);
inline constexpr std::chrono::microseconds kBackoffFirstMax = std::chrono::hours(1);
inline constexpr std::chrono::microseconds kBackoffFirstDefault = std::chrono::seconds(1);
inline constexpr std::chrono::microseconds kBackoffMaxMax = std::chrono::hours(24);
inline constexpr std::chrono::microseconds kBackoffMaxDefault = std::chrono::minutes(5);
inline constexpr std::chrono::microseconds kAckTimeoutMin = std::chrono::seconds(1);
inline constexpr std::chrono::microseconds kAckTimeoutMax = std::chrono::hours(24);
inline constexpr std::chrono::microseconds kAckTimeoutDefault = std::chrono::seconds(60);
inline constexpr int32_t kWindowMax = 1000;
inline constexpr int32_t kWindowDefault = 100;
inline constexpr size_t kSubscriptionFilterBytesMax = size_t{64} << 10;
inline constexpr size_t kNackReasonBytesMax = 1024;
// Of one partition: more documents are not parked, and the partition waits.
inline constexpr int32_t kParkedMax = 10'000;

// What does not change of a subscription.
struct Subscription {
  std::string name;
  int64_t incarnation = 0;  // greater than that of any before
  Selection selection;
  std::optional<document::Content> filter;  // as document::Filter takes it
  store::CommitPosition start_position = 0;
  int32_t partitions = kPartitionsDefault;
  int32_t max_attempts = kMaxAttemptsDefault;
  std::chrono::microseconds backoff_first = kBackoffFirstDefault;
  std::chrono::microseconds backoff_max = kBackoffMaxDefault;
  std::chrono::microseconds ack_timeout = kAckTimeoutDefault;
  std::chrono::microseconds lease_ttl = std::chrono::seconds(10);
  UnixMicros create_time = 0;
};

// One of its partitions, as it stands.
struct PartitionState {
  int32_t partition = 0;
  std::string consumer;  // empty: nobody has it
  store::Stamp token = 0;
  lease::Place place;      // up to here all is acknowledged
  bool caught_up = false;  // no event is to come; false: or that was not looked for so far
  std::optional<UnixMicros> oldest_open_time;
  int32_t in_flight = 0;
  int32_t attempts = 0;  // of the first open event
  std::string reason;    // of its last failure
  std::optional<UnixMicros> retry_time;
  int32_t parked = 0;
  bool blocked = false;
};

struct SubscriptionState {
  Subscription subscription;
  std::vector<PartitionState> partitions;
  store::CommitPosition last_position = 0;
  int32_t consumers = 0;
  // On this server since it started.
  int64_t events_acknowledged = 0;
  int64_t acknowledging_commits = 0;
  int64_t take_overs = 0;
};

// A document whose event failed too often.
struct ParkedDocument {
  std::string collection;
  int64_t incarnation = 0;  // of the collection
  std::string id;
  int32_t partition = 0;
  int64_t from_version = 0;  // it and all later ones wait
  lease::Place place;        // of the event that failed
  int32_t attempts = 0;
  std::string reason;
  UnixMicros park_time = 0;
  bool replay = false;  // was asked for
};

// Which partition the events of a document are in: the first 8 bytes of
// SHA-256(collection 0x00 id), big-endian, modulo `partitions`.
int32_t PartitionOf(std::string_view collection, std::string_view id, int32_t partitions);

// "$sub/INCARNATION/PARTITION": the lease of whoever has the partition.
std::string PartitionLeaseName(int64_t incarnation, int32_t partition);
// "$sub/INCARNATION/member/": leases of those who consume begin so.
std::string MemberLeasePrefix(int64_t incarnation);
// "$sub/INCARNATION/": all leases of a subscription begin so.
std::string SubscriptionLeasePrefix(int64_t incarnation);
// What the lease of a partition is of; nothing: it is no such lease.
struct PartitionLease {
  int64_t incarnation = 0;
  int32_t partition = 0;
};
std::optional<PartitionLease> ParsePartitionLease(std::string_view lease_name);
std::optional<int64_t> IncarnationOfPartitionLease(std::string_view lease_name);

}  // namespace strata::feed
