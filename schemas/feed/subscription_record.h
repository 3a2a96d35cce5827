// The records of subscriptions.
//
//   feed "name" 0x00 NAME = the subscription:
//     { incarnation: int64, collections: [ string … ], id_prefix: string, kinds: [ int32 … ],
//       filter: document, start, partitions, max_attempts, backoff_first, backoff_max,
//       ack_timeout, lease_ttl: int64 (microseconds), created: int64 }
//   feed "incarnation" 0x00 INCARNATION = { name: string }
//   feed "incarnations" = { last: int64 }        the greatest that was given
//   feed "deleted" 0x00 INCARNATION = {}         something of it may still be left to delete
//   feed "requests" 0x00 INCARNATION = {}        written anew when something was asked of the
//   parked feed "parked" 0x00 INCARNATION PARTITION COLLECTION 0x00 ID = a parked document:
//     { incarnation: int64 (of the collection), version: int64 (it and all later ones wait),
//       position: int64, index: int32 (of the event that failed), attempts: int32, reason: string,
//       parked: int64, replay, discard: bool (what was asked for) }
//
//   INCARNATION = 8 bytes, big-endian; PARTITION = 1 byte
//
// A subscription is never replaced: its stamp says that it is still there. Members that are empty
// or 0 are left out. The data of a partition's lease is
//
//   { position: int64, index: int32, attempts: int32, reason: string, retry: int64,
//     blocked, begun: bool, in_flight: int32, open: int64 }
//
// of the event that has failed; the last two as of the last renewal.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/feed/subscription.h"
#include "schemas/store/store.h"

namespace strata::feed {

std::string SubscriptionKey(std::string_view name);
std::string IncarnationKey(int64_t incarnation);
std::string DeletedKey(int64_t incarnation);
std::string RequestsKey(int64_t incarnation);
inline constexpr std::string_view kIncarnationsKey = "incarnations";

// In the metadata of a subscription's leases: who has it, for people.
inline constexpr char kConsumerMetadata[] = "consumer";

// Those whose names begin with `prefix` and come after `after_name`.
store::Range SubscriptionRange(std::string_view prefix, std::string_view after_name);
// All that is parked of a subscription, or of one partition.
store::Range ParkedRange(int64_t incarnation);
store::Range ParkedRange(int64_t incarnation, int32_t partition);
store::Range DeletedRange();

std::string EncodeSubscription(const Subscription& subscription);
// RECORD_CORRUPT, as all that decode here.
absl::StatusOr<Subscription> DecodeSubscription(std::string_view key, std::string_view value);
std::string EncodeName(std::string_view name);
absl::StatusOr<std::string> DecodeName(std::string_view value);
std::string EncodeIncarnations(int64_t last);
absl::StatusOr<int64_t> DecodeIncarnations(std::string_view value);
absl::StatusOr<int64_t> IncarnationOfDeletedKey(std::string_view key);

// A document that is parked, or the one of which something is to be parked.
struct DocumentOfPartition {
  std::string collection;
  std::string id;

  friend auto operator<=>(const DocumentOfPartition&, const DocumentOfPartition&) = default;
};

struct StoredParked {
  ParkedDocument document;
  bool discard = false;  // was asked for
  store::Stamp stamp = 0;
};
std::string ParkedKey(int64_t subscription, int32_t partition, const DocumentOfPartition& document);
std::string EncodeParked(const StoredParked& parked);
absl::StatusOr<StoredParked> DecodeParked(std::string_view key, std::string_view value,
                                          store::Stamp stamp);

// What the holder of a partition keeps with its place.
struct PartitionData {
  // After this event the failure no longer counts: another event is the first open one then.
  lease::Place failed;  // position 0: none has
  int32_t attempts = 0;
  std::string reason;
  UnixMicros retry_time = 0;
  bool blocked = false;
  bool begun = false;  // the attempt after that: it may have been delivered again
  int32_t in_flight = 0;
  UnixMicros oldest_open_time = 0;  // 0: none is open

  // Empty if there is nothing to tell.
  std::string Encode() const;
  static absl::StatusOr<PartitionData> Decode(std::string_view data);

  friend bool operator==(const PartitionData&, const PartitionData&) = default;
};

// The subscription under the name, with the stamp of its record; nothing: there is none.
// RECORD_CORRUPT, STORE_UNAVAILABLE.
struct StoredSubscription {
  Subscription subscription;
  store::Stamp stamp = 0;
};
absl::StatusOr<std::optional<StoredSubscription>> ReadSubscription(const store::Reader& reader,
                                                                   std::string_view name);

}  // namespace strata::feed
