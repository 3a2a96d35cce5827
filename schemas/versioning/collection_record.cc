#include "schemas/versioning/collection_record.h"

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"

namespace strata::versioning {

std::string SweepKey(int64_t incarnation) {
  return std::string(kSweepKeyPrefix) + std::to_string(incarnation);
}

namespace {

using document::BsonBuilder;
using document::BsonReader;

// The strategy's options out of a record that may hold others: earlier builds stored a
// keyframe_interval for every strategy.
std::optional<StrategyOptions> DecodeOptions(const StrategyEntry& strategy,
                                             std::string_view record) {
  StrategyOptions options;
  for (const StrategyOption& option : strategy.options) {
    int32_t value = option.default_value;
    BsonReader reader(record);
    while (reader.Next()) {
      if (reader.name() == option.name) value = static_cast<int32_t>(reader.Int64());
    }
    if (reader.corrupt()) return std::nullopt;
    options.emplace(option.name, value);
  }
  return options;
}

}  // namespace

std::string CollectionRecord::Encode() const {
  BsonBuilder builder;
  builder.Int64("incarnation", incarnation).Int32("strategy", strategy->id);
  for (const auto& [option, value] : options) builder.Int32(option, value);
  builder.Int64("created", create_time).Bool("used", used).Bool("deleted", deleted);
  return builder.Take();
}

absl::StatusOr<CollectionRecord> CollectionRecord::Decode(std::string_view name,
                                                          const store::Record& record) {
  CollectionRecord decoded;
  decoded.name = name;
  decoded.stamp = record.stamp;
  BsonReader reader(record.value);
  while (reader.Next()) {
    const std::string_view member = reader.name();
    if (member == "incarnation") {
      decoded.incarnation = reader.Int64();
    } else if (member == "strategy") {
      decoded.strategy = FindStrategy(static_cast<int32_t>(reader.Int64()));
    } else if (member == "created") {
      decoded.create_time = reader.Int64();
    } else if (member == "used") {
      decoded.used = reader.Bool();
    } else if (member == "deleted") {
      decoded.deleted = reader.Bool();
    }
  }
  const bool known = !reader.corrupt() && decoded.incarnation >= 1 && decoded.strategy != nullptr;
  std::optional<StrategyOptions> options;
  if (known) options = DecodeOptions(*decoded.strategy, record.value);
  if (!options) {
    return Error(ErrorReason::kRecordCorrupt, "collection record is damaged")
        .With("collection", name);
  }
  decoded.options = *std::move(options);
  return decoded;
}

std::string IncarnationCounter::Encode() const {
  BsonBuilder builder;
  builder.Int64("value", next);
  if (ends_told) builder.Bool("ends_told", true);
  return builder.Take();
}

absl::StatusOr<IncarnationCounter> ReadIncarnationCounter(const store::Reader& reader) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(store::Keyspace::kMeta, kNextIncarnationKey));
  IncarnationCounter counter;
  if (!record) return counter;
  counter.stamp = record->stamp;
  counter.ends_told = false;
  BsonReader members(record->value);
  while (members.Next()) {
    if (members.name() == "value") counter.next = members.Int64();
    if (members.name() == "ends_told") counter.ends_told = members.Bool();
  }
  if (!members.corrupt()) return counter;
  return Error(ErrorReason::kRecordCorrupt, "incarnation counter is damaged");
}

absl::StatusOr<std::optional<CollectionRecord>> ReadCollectionRecord(const store::Reader& reader,
                                                                     std::string_view name) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(store::Keyspace::kCollections, name));
  if (!record) return std::nullopt;
  ASSIGN_OR_RETURN(CollectionRecord decoded, CollectionRecord::Decode(name, *record));
  return decoded;
}

std::string SweepRecord::Encode() const {
  BsonBuilder builder;
  builder.String("collection", collection).Int64("incarnation", incarnation);
  if (swept) builder.Int64("swept", *swept);
  return builder.Take();
}

absl::StatusOr<SweepRecord> SweepRecord::Decode(std::string_view value) {
  SweepRecord decoded;
  BsonReader reader(value);
  while (reader.Next()) {
    if (reader.name() == "collection") {
      decoded.collection = reader.String();
    } else if (reader.name() == "incarnation") {
      decoded.incarnation = reader.Int64();
    } else if (reader.name() == "swept") {
      decoded.swept = reader.Int64();
    }
  }
  if (reader.corrupt() || decoded.collection.empty() || decoded.incarnation < 1) {
    return Error(ErrorReason::kRecordCorrupt, "record of a sweep is damaged");
  }
  return decoded;
}

std::string DeletionRecord::Encode() const {
  return BsonBuilder()
      .Int64("incarnation", incarnation)
      .Bool("force", force)
      .Int64("expected", expected)
      .Int64("time", time)
      .Take();
}

absl::StatusOr<DeletionRecord> DeletionRecord::Decode(const store::Record& record) {
  DeletionRecord decoded;
  decoded.stamp = record.stamp;
  BsonReader reader(record.value);
  while (reader.Next()) {
    if (reader.name() == "incarnation") {
      decoded.incarnation = reader.Int64();
    } else if (reader.name() == "force") {
      decoded.force = reader.Bool();
    } else if (reader.name() == "expected") {
      decoded.expected = reader.Int64();
    } else if (reader.name() == "time") {
      decoded.time = reader.Int64();
    }
  }
  if (reader.corrupt() || decoded.incarnation < 1) {
    return Error(ErrorReason::kRecordCorrupt, "record of a collection's deletion is damaged");
  }
  return decoded;
}

std::string DeletionKey(std::string_view name, std::string_view request_id) {
  // Names hold no control characters, so the zero byte parts them.
  return std::string("deletion/").append(name).append(1, '\0').append(request_id);
}

}  // namespace strata::versioning
