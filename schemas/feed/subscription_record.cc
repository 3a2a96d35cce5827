#include "schemas/feed/subscription_record.h"

#include <algorithm>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/store/key_codec.h"

namespace strata::feed {
namespace {

using document::BsonBuilder;
using document::BsonReader;
using store::Keyspace;

constexpr std::string_view kZero("\0", 1);
constexpr std::string_view kNamePrefix("name\0", 5);
constexpr std::string_view kIncarnationPrefix("incarnation\0", 12);
constexpr std::string_view kDeletedPrefix("deleted\0", 8);
constexpr std::string_view kRequestsPrefix("requests\0", 9);
constexpr std::string_view kParkedPrefix("parked\0", 7);
constexpr size_t kNumberSize = 8;

absl::Status Corrupt() {
  return Error(ErrorReason::kRecordCorrupt, "subscription record")
      .With("record", "subscription record");
}

std::string Numbered(std::string_view prefix, int64_t number) {
  std::string key(prefix);
  for (int shift = 56; shift >= 0; shift -= 8) {
    key += static_cast<char>(static_cast<uint64_t>(number) >> shift);
  }
  return key;
}

int64_t NumberOf(std::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes.substr(0, kNumberSize)) {
    number = (number << 8) | static_cast<uint8_t>(byte);
  }
  return static_cast<int64_t>(number);
}

store::Range RangeOf(std::string prefix) {
  std::string end = store::PrefixEnd(prefix);
  return {std::move(prefix), std::move(end)};
}

std::string PartitionPrefix(int64_t incarnation, int32_t partition) {
  return Numbered(kParkedPrefix, incarnation) + static_cast<char>(partition);
}

template <typename Number>
bool Narrow(int64_t number, Number& narrow) {
  narrow = static_cast<Number>(number);
  return std::in_range<Number>(number);
}

bool ReadMember(BsonReader& reader, Subscription& made) {
  using std::chrono::microseconds;
  const std::string_view name = reader.name();
  if (name == "incarnation") {
    made.incarnation = reader.Int64();
  } else if (name == "collections") {
    BsonReader elements(reader.Document());
    while (elements.Next()) made.selection.collections.emplace_back(elements.String());
    return !elements.corrupt();
  } else if (name == "id_prefix") {
    made.selection.id_prefix = reader.String();
  } else if (name == "kinds") {
    BsonReader elements(reader.Document());
    while (elements.Next()) {
      made.selection.kinds.push_back(static_cast<versioning::VersionKind>(elements.Int64()));
    }
    return !elements.corrupt();
  } else if (name == "filter") {
    made.filter = document::Content::FromTrusted(std::string(reader.Document()));
  } else if (name == "start") {
    made.start_position = reader.Int64();
  } else if (name == "partitions") {
    return Narrow(reader.Int64(), made.partitions);
  } else if (name == "max_attempts") {
    return Narrow(reader.Int64(), made.max_attempts);
  } else if (name == "backoff_first") {
    made.backoff_first = microseconds(reader.Int64());
  } else if (name == "backoff_max") {
    made.backoff_max = microseconds(reader.Int64());
  } else if (name == "ack_timeout") {
    made.ack_timeout = microseconds(reader.Int64());
  } else if (name == "lease_ttl") {
    made.lease_ttl = microseconds(reader.Int64());
  } else if (name == "created") {
    made.create_time = reader.Int64();
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string SubscriptionKey(std::string_view name) { return std::string(kNamePrefix).append(name); }

std::string IncarnationKey(int64_t incarnation) {
  return Numbered(kIncarnationPrefix, incarnation);
}

std::string DeletedKey(int64_t incarnation) { return Numbered(kDeletedPrefix, incarnation); }

std::string RequestsKey(int64_t incarnation) { return Numbered(kRequestsPrefix, incarnation); }

store::Range SubscriptionRange(std::string_view prefix, std::string_view after_name) {
  store::Range range = RangeOf(SubscriptionKey(prefix));
  // Names hold no control characters, so nothing comes between.
  if (!after_name.empty()) {
    range.begin = std::max(range.begin, SubscriptionKey(after_name).append(kZero));
  }
  return range;
}

store::Range ParkedRange(int64_t incarnation) {
  return RangeOf(Numbered(kParkedPrefix, incarnation));
}

store::Range ParkedRange(int64_t incarnation, int32_t partition) {
  return RangeOf(PartitionPrefix(incarnation, partition));
}

store::Range DeletedRange() { return RangeOf(std::string(kDeletedPrefix)); }

std::string EncodeSubscription(const Subscription& subscription) {
  BsonBuilder builder;
  builder.Int64("incarnation", subscription.incarnation);
  const Selection& selection = subscription.selection;
  if (!selection.collections.empty()) {
    BsonBuilder elements;
    for (size_t i = 0; i < selection.collections.size(); ++i) {
      elements.String(std::to_string(i), selection.collections[i]);
    }
    builder.Array("collections", elements.Take());
  }
  if (!selection.id_prefix.empty()) builder.String("id_prefix", selection.id_prefix);
  if (!selection.kinds.empty()) {
    BsonBuilder elements;
    for (size_t i = 0; i < selection.kinds.size(); ++i) {
      elements.Int32(std::to_string(i), static_cast<int32_t>(selection.kinds[i]));
    }
    builder.Array("kinds", elements.Take());
  }
  if (subscription.filter) builder.Document("filter", subscription.filter->bytes());
  return builder.Int64("start", subscription.start_position)
      .Int64("partitions", subscription.partitions)
      .Int64("max_attempts", subscription.max_attempts)
      .Int64("backoff_first", subscription.backoff_first.count())
      .Int64("backoff_max", subscription.backoff_max.count())
      .Int64("ack_timeout", subscription.ack_timeout.count())
      .Int64("lease_ttl", subscription.lease_ttl.count())
      .Int64("created", subscription.create_time)
      .Take();
}

absl::StatusOr<Subscription> DecodeSubscription(std::string_view key, std::string_view value) {
  if (!key.starts_with(kNamePrefix)) return Corrupt();
  Subscription subscription;
  subscription.name = key.substr(kNamePrefix.size());
  BsonReader reader(value);
  while (reader.Next()) {
    if (!ReadMember(reader, subscription)) return Corrupt();
  }
  if (reader.corrupt() || subscription.incarnation < 1 || subscription.partitions < 1 ||
      subscription.partitions > kPartitionsMax || subscription.max_attempts < 1 ||
      subscription.lease_ttl.count() < 1) {
    return Corrupt();
  }
  return subscription;
}

std::string EncodeName(std::string_view name) { return BsonBuilder().String("name", name).Take(); }

absl::StatusOr<std::string> DecodeName(std::string_view value) {
  BsonReader reader(value);
  if (!reader.Next() || reader.name() != "name") return Corrupt();
  std::string name(reader.String());
  if (reader.corrupt()) return Corrupt();
  return name;
}

std::string EncodeIncarnations(int64_t last) { return BsonBuilder().Int64("last", last).Take(); }

absl::StatusOr<int64_t> DecodeIncarnations(std::string_view value) {
  BsonReader reader(value);
  if (!reader.Next() || reader.name() != "last") return Corrupt();
  const int64_t last = reader.Int64();
  if (reader.corrupt()) return Corrupt();
  return last;
}

absl::StatusOr<int64_t> IncarnationOfDeletedKey(std::string_view key) {
  if (key.size() != kDeletedPrefix.size() + kNumberSize) return Corrupt();
  return NumberOf(key.substr(kDeletedPrefix.size()));
}

std::string ParkedKey(int64_t subscription, int32_t partition,
                      const DocumentOfPartition& document) {
  return PartitionPrefix(subscription, partition)
      .append(document.collection)
      .append(kZero)
      .append(document.id);
}

std::string EncodeParked(const StoredParked& parked) {
  const ParkedDocument& document = parked.document;
  BsonBuilder builder;
  builder.Int64("incarnation", document.incarnation)
      .Int64("version", document.from_version)
      .Int64("position", document.place.position);
  if (document.place.index) builder.Int32("index", *document.place.index);
  builder.Int32("attempts", document.attempts);
  if (!document.reason.empty()) builder.String("reason", document.reason);
  builder.Int64("parked", document.park_time);
  if (document.replay) builder.Bool("replay", true);
  if (parked.discard) builder.Bool("discard", true);
  return builder.Take();
}

absl::StatusOr<StoredParked> DecodeParked(std::string_view key, std::string_view value,
                                          store::Stamp stamp) {
  const size_t head = kParkedPrefix.size() + kNumberSize + 1;
  if (key.size() <= head) return Corrupt();
  StoredParked parked;
  parked.stamp = stamp;
  ParkedDocument& document = parked.document;
  document.partition = static_cast<uint8_t>(key[head - 1]);
  const std::string_view name = key.substr(head);
  const size_t zero = name.find('\0');
  if (zero == std::string_view::npos) return Corrupt();
  document.collection = name.substr(0, zero);
  document.id = name.substr(zero + 1);
  BsonReader reader(value);
  while (reader.Next()) {
    const std::string_view member = reader.name();
    if (member == "incarnation") {
      document.incarnation = reader.Int64();
    } else if (member == "version") {
      document.from_version = reader.Int64();
    } else if (member == "position") {
      document.place.position = reader.Int64();
    } else if (member == "index") {
      int32_t index = 0;
      if (!Narrow(reader.Int64(), index)) return Corrupt();
      document.place.index = index;
    } else if (member == "attempts") {
      if (!Narrow(reader.Int64(), document.attempts)) return Corrupt();
    } else if (member == "reason") {
      document.reason = reader.String();
    } else if (member == "parked") {
      document.park_time = reader.Int64();
    } else if (member == "replay") {
      document.replay = reader.Bool();
    } else if (member == "discard") {
      parked.discard = reader.Bool();
    } else {
      return Corrupt();
    }
  }
  if (reader.corrupt() || document.from_version < 1) return Corrupt();
  return parked;
}

std::string PartitionData::Encode() const {
  if (*this == PartitionData()) return "";
  BsonBuilder builder;
  if (failed.position != 0) {
    builder.Int64("position", failed.position);
    if (failed.index) builder.Int32("index", *failed.index);
    builder.Int32("attempts", attempts);
    if (!reason.empty()) builder.String("reason", reason);
    if (retry_time != 0) builder.Int64("retry", retry_time);
    if (blocked) builder.Bool("blocked", true);
    if (begun) builder.Bool("begun", true);
  }
  if (in_flight != 0) builder.Int32("in_flight", in_flight);
  if (oldest_open_time != 0) builder.Int64("open", oldest_open_time);
  return builder.Take();
}

absl::StatusOr<PartitionData> PartitionData::Decode(std::string_view data) {
  PartitionData made;
  if (data.empty()) return made;
  BsonReader reader(data);
  while (reader.Next()) {
    const std::string_view member = reader.name();
    if (member == "position") {
      made.failed.position = reader.Int64();
    } else if (member == "index") {
      int32_t index = 0;
      if (!Narrow(reader.Int64(), index)) return Corrupt();
      made.failed.index = index;
    } else if (member == "attempts") {
      if (!Narrow(reader.Int64(), made.attempts)) return Corrupt();
    } else if (member == "reason") {
      made.reason = reader.String();
    } else if (member == "retry") {
      made.retry_time = reader.Int64();
    } else if (member == "blocked") {
      made.blocked = reader.Bool();
    } else if (member == "begun") {
      made.begun = reader.Bool();
    } else if (member == "in_flight") {
      if (!Narrow(reader.Int64(), made.in_flight)) return Corrupt();
    } else if (member == "open") {
      made.oldest_open_time = reader.Int64();
    } else {
      return Corrupt();
    }
  }
  if (reader.corrupt()) return Corrupt();
  return made;
}

absl::StatusOr<std::optional<StoredSubscription>> ReadSubscription(const store::Reader& reader,
                                                                   std::string_view name) {
  const std::string key = SubscriptionKey(name);
  ASSIGN_OR_RETURN(const std::optional<store::Record> record, reader.Get(Keyspace::kFeed, key));
  if (!record) return std::nullopt;
  StoredSubscription stored;
  ASSIGN_OR_RETURN(stored.subscription, DecodeSubscription(key, record->value));
  stored.stamp = record->stamp;
  return stored;
}

}  // namespace strata::feed
