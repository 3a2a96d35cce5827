// The records that tell of collections, beside those of their documents.
//
//   collections record (key: name) =
//     { incarnation: int64, strategy: int32, the strategy's options: int32 …, created: int64,
//       used: bool, deleted: bool }
//   meta record "next_incarnation" = { value: int64, ends_told: bool }
//                                         ends_told: the ledger has an entry of each deletion since
//                                         the first collection; absent where an earlier build made
//                                         that
//   meta record "sweep/<incarnation>" =
//     { collection: string, incarnation: int64, swept: int64 (absent until it is) }
//   meta record "deletion/" name 0x00 request-id =
//     { incarnation: int64, force: bool, expected: int64, time: int64 }
//
// Times are in microseconds since 1970.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "schemas/base/clock.h"
#include "schemas/store/store.h"
#include "schemas/versioning/strategy.h"

namespace strata::versioning {

inline constexpr std::string_view kNextIncarnationKey = "next_incarnation";
inline constexpr std::string_view kSweepKeyPrefix = "sweep/";

std::string SweepKey(int64_t incarnation);

// A collection, or its tombstone.
struct CollectionRecord {
  std::string name;
  int64_t incarnation = 0;
  const StrategyEntry* strategy = nullptr;
  StrategyOptions options;  // all that the strategy has
  UnixMicros create_time = 0;
  bool used = false;
  bool deleted = false;
  store::Stamp stamp = 0;  // as read; not part of the value

  std::string Encode() const;
  // RECORD_CORRUPT.
  static absl::StatusOr<CollectionRecord> Decode(std::string_view name,
                                                 const store::Record& record);
};

// The counter of incarnations.
struct IncarnationCounter {
  int64_t next = 1;
  bool ends_told = true;
  store::Stamp stamp = 0;  // as read; 0: there is no collection yet

  std::string Encode() const;
};
// RECORD_CORRUPT, STORE_UNAVAILABLE.
absl::StatusOr<IncarnationCounter> ReadIncarnationCounter(const store::Reader& reader);

// Nothing if there is no record, not even a tombstone. RECORD_CORRUPT, STORE_UNAVAILABLE.
absl::StatusOr<std::optional<CollectionRecord>> ReadCollectionRecord(const store::Reader& reader,
                                                                     std::string_view name);

// What is left to do for an incarnation that was deleted.
struct SweepRecord {
  std::string collection;
  int64_t incarnation = 0;
  std::optional<UnixMicros> swept;  // since then only the tombstone is left

  std::string Encode() const;
  // RECORD_CORRUPT.
  static absl::StatusOr<SweepRecord> Decode(std::string_view value);
};

// A deletion under a request id. It is remembered by the collection's name and apart from the
// collection's record, which a successor replaces.
struct DeletionRecord {
  int64_t incarnation = 0;  // what it deletes
  // What it was asked:
  bool force = false;
  int64_t expected = 0;
  UnixMicros time = 0;
  store::Stamp stamp = 0;  // as read; not part of the value

  std::string Encode() const;
  // RECORD_CORRUPT.
  static absl::StatusOr<DeletionRecord> Decode(const store::Record& record);
};

std::string DeletionKey(std::string_view name, std::string_view request_id);

}  // namespace strata::versioning
