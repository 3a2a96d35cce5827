// The records of leases. A lease is two: who has it, and until when.
//
//   leases owner (key: name 0x00 0x00) =
//     { holder: string, metadata: { name: string … }, acquired, released: int64 (microseconds) }
//   leases state (key: name 0x00 0x01) =
//     { expires, ttl: int64 (microseconds), position: int64, index: int32, data: binary }
//
// Members that are empty or 0 are left out; a position without index is that of a whole commit. A
// released lease has no holder, and says when it was released.
//
// The owner is replaced by Acquire and Release alone; its stamp is the token, and no record of a
// lease is ever deleted where a stamp could come back (store/record.h), so tokens only grow. Two
// owners of one lease are never equal: `acquired` grows from each to the next. The state is
// replaced under the stamp that was read, so that no place is lost. Acquire writes the state first:
// a state without owner is a lease that nobody has acquired yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/lease/place.h"
#include "schemas/store/store.h"

namespace strata::lease {

using Metadata = std::map<std::string, std::string>;

struct Owner {
  std::string holder;  // empty: it was released
  Metadata metadata;
  UnixMicros acquire_time = 0;
  UnixMicros release_time = 0;  // 0: it was not

  std::string Encode() const;
  // RECORD_CORRUPT.
  static absl::StatusOr<Owner> Decode(std::string_view value);

  friend bool operator==(const Owner&, const Owner&) = default;
};

struct State {
  UnixMicros expire_time = 0;
  std::chrono::microseconds ttl{0};
  Place place;  // up to where its holders are done
  std::string
      data;  // what else a holder inside the server keeps; whoever replaces a state keeps it

  std::string Encode() const;
  // RECORD_CORRUPT.
  static absl::StatusOr<State> Decode(std::string_view value);

  friend bool operator==(const State&, const State&) = default;
};

// What is stored of a lease, with the stamps.
struct StoredLease {
  std::optional<Owner> owner;  // none: it was never acquired
  store::Stamp token = 0;      // the owner's
  std::optional<State> state;
  store::Stamp state_stamp = 0;

  // Somebody else may not take it yet.
  bool IsHeld(UnixMicros now) const {
    return owner && !owner->holder.empty() && state && state->expire_time > now;
  }
  // Whoever shows this token holds it, expired or not.
  bool IsHeldBy(store::Stamp shown) const {
    return owner && !owner->holder.empty() && token == shown;
  }
};

std::string OwnerKey(std::string_view name);
std::string StateKey(std::string_view name);
// Every record of the leases whose names begin with `prefix` and come after `after_name`.
store::Range LeaseRange(std::string_view prefix, std::string_view after_name);
// The lease that a key of either kind belongs to; RECORD_CORRUPT for other bytes.
absl::StatusOr<std::string_view> LeaseNameOf(std::string_view key);

// Both records: where the reader is of no one moment, a commit on both stamps finds out. A
// lease that has an owner has a state; one that was forgotten in between is read again.
// RECORD_CORRUPT, STORE_UNAVAILABLE.
absl::StatusOr<StoredLease> ReadLease(const store::Reader& reader, std::string_view name);
// As ReadLease, without the state: enough to tell whose a token is.
absl::StatusOr<StoredLease> ReadOwner(const store::Reader& reader, std::string_view name);
// Whether the owner under this key has this token, told without a copy of it: most fenced writes
// ask for no more. False too where what is stored is no owner. STORE_UNAVAILABLE.
absl::StatusOr<bool> IsHeldBy(const store::Reader& reader, std::string_view owner_key,
                              store::Stamp shown);

}  // namespace strata::lease
