#include "schemas/lease/lease_record.h"

#include <algorithm>
#include <array>
#include <utility>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/store/key_codec.h"

namespace strata::lease {
namespace {

using document::BsonBuilder;
using document::BsonReader;
using store::Keyspace;

// Names hold no control characters, so the first zero byte ends one, and "a" sorts before "a/b".
constexpr std::string_view kOwnerSuffix("\0\0", 2);
constexpr std::string_view kStateSuffix("\0\1", 2);
constexpr std::string_view kBehindSuffix("\0\2", 2);
// A lease that is forgotten and taken anew between two reads, each time.
constexpr int kReadsMax = 3;

absl::Status Corrupt() {
  return Error(ErrorReason::kRecordCorrupt, "lease record").With("record", "lease record");
}

std::string Suffixed(std::string_view name, std::string_view suffix) {
  std::string key;
  key.reserve(name.size() + suffix.size());
  return key.append(name).append(suffix);
}

absl::Status TakeOwner(absl::StatusOr<std::optional<store::Record>> record, StoredLease& lease) {
  RETURN_IF_ERROR(record.status());
  if (!*record) return absl::OkStatus();
  ASSIGN_OR_RETURN(lease.owner, Owner::Decode((*record)->value));
  lease.token = (*record)->stamp;
  return absl::OkStatus();
}

}  // namespace

std::string Owner::Encode() const {
  BsonBuilder builder;
  if (!holder.empty()) builder.String("holder", holder);
  if (!metadata.empty()) {
    BsonBuilder members;
    for (const auto& [name, value] : metadata) members.String(name, value);
    builder.Document("metadata", members.Take());
  }
  builder.Int64("acquired", acquire_time);
  if (release_time != 0) builder.Int64("released", release_time);
  return builder.Take();
}

absl::StatusOr<Owner> Owner::Decode(std::string_view value) {
  Owner owner;
  BsonReader reader(value);
  while (reader.Next()) {
    const std::string_view name = reader.name();
    if (name == "holder") {
      owner.holder = reader.String();
    } else if (name == "metadata") {
      BsonReader members(reader.Document());
      while (members.Next()) {
        std::string member(members.name());
        owner.metadata.emplace(std::move(member), members.String());
      }
      if (members.corrupt()) return Corrupt();
    } else if (name == "acquired") {
      owner.acquire_time = reader.Int64();
    } else if (name == "released") {
      owner.release_time = reader.Int64();
    } else {
      return Corrupt();
    }
  }
  if (reader.corrupt() || owner.holder.empty() != (owner.release_time != 0)) return Corrupt();
  return owner;
}

std::string State::Encode() const {
  BsonBuilder builder;
  builder.Int64("expires", expire_time).Int64("ttl", ttl.count());
  if (place.position != 0) builder.Int64("position", place.position);
  if (place.index) builder.Int32("index", *place.index);
  if (!data.empty()) builder.Binary("data", data);
  return builder.Take();
}

absl::StatusOr<State> State::Decode(std::string_view value) {
  State state;
  BsonReader reader(value);
  while (reader.Next()) {
    const std::string_view name = reader.name();
    if (name == "expires") {
      state.expire_time = reader.Int64();
    } else if (name == "ttl") {
      state.ttl = std::chrono::microseconds(reader.Int64());
    } else if (name == "position") {
      state.place.position = reader.Int64();
    } else if (name == "index") {
      const int64_t index = reader.Int64();
      if (!std::in_range<int32_t>(index)) return Corrupt();
      state.place.index = static_cast<int32_t>(index);
    } else if (name == "data") {
      state.data = reader.Binary();
    } else {
      return Corrupt();
    }
  }
  if (reader.corrupt() || state.place.position < 0 || state.place.index.value_or(0) < 0) {
    return Corrupt();
  }
  return state;
}

std::string OwnerKey(std::string_view name) { return Suffixed(name, kOwnerSuffix); }

std::string StateKey(std::string_view name) { return Suffixed(name, kStateSuffix); }

store::Range LeaseRange(std::string_view prefix, std::string_view after_name) {
  std::string begin(prefix);
  if (!after_name.empty()) begin = std::max(begin, Suffixed(after_name, kBehindSuffix));
  return {std::move(begin), store::PrefixEnd(prefix)};
}

absl::StatusOr<std::string_view> LeaseNameOf(std::string_view key) {
  if (!key.ends_with(kOwnerSuffix) && !key.ends_with(kStateSuffix)) return Corrupt();
  return key.substr(0, key.size() - kOwnerSuffix.size());
}

absl::StatusOr<StoredLease> ReadOwner(const store::Reader& reader, std::string_view name) {
  StoredLease lease;
  RETURN_IF_ERROR(TakeOwner(reader.Get(Keyspace::kLeases, OwnerKey(name)), lease));
  return lease;
}

absl::StatusOr<bool> IsHeldBy(const store::Reader& reader, std::string_view owner_key,
                              store::Stamp shown) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> owner,
                   reader.Get(Keyspace::kLeases, owner_key));
  if (!owner || owner->stamp != shown) return false;
  bool held = false;
  BsonReader members(owner->value);
  while (members.Next()) {
    const std::string_view name = members.name();
    if (name == "holder") {
      held = !members.String().empty();
    } else if (name != "metadata" && name != "acquired") {
      return false;
    }
  }
  return held && !members.corrupt();
}

absl::StatusOr<StoredLease> ReadLease(const store::Reader& reader, std::string_view name) {
  const std::string owner_key = OwnerKey(name);
  const std::string state_key = StateKey(name);
  const std::array<store::RecordKey, 2> keys = {
      {{Keyspace::kLeases, owner_key}, {Keyspace::kLeases, state_key}}};
  store::Stamp without_state = 0;
  for (int attempt = 1;; ++attempt) {
    auto records = reader.GetMany(keys);
    StoredLease lease;
    RETURN_IF_ERROR(TakeOwner(std::move(records[0]), lease));
    ASSIGN_OR_RETURN(const std::optional<store::Record> state, std::move(records[1]));
    if (state) {
      ASSIGN_OR_RETURN(lease.state, State::Decode(state->value));
      lease.state_stamp = state->stamp;
    }
    if (!lease.owner || lease.state) return lease;
    if (lease.token == without_state || attempt == kReadsMax) return Corrupt();
    without_state = lease.token;
  }
}

}  // namespace strata::lease
