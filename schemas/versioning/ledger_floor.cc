#include "schemas/versioning/ledger_floor.h"

#include <algorithm>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/document/bson_builder.h"
#include "schemas/versioning/document_errors.h"

namespace strata::versioning {

using store::Keyspace;

std::string LedgerFloor::Encode() const {
  return document::BsonBuilder()
      .Int64("position", position)
      .Int64("trimmed", trimmed)
      .Int64("latest", latest)
      .Binary("hash", HashBytes(hash))
      .Take();
}

absl::StatusOr<LedgerFloor> ReadLedgerFloor(const store::Reader& reader) {
  ASSIGN_OR_RETURN(const std::optional<store::Record> record,
                   reader.Get(Keyspace::kFeed, kLedgerFloorKey));
  LedgerFloor floor;
  if (!record) return floor;
  std::string_view hash;
  document::BsonReader members(record->value);
  while (members.Next()) {
    if (members.name() == "position") floor.position = members.Int64();
    if (members.name() == "trimmed") floor.trimmed = members.Int64();
    if (members.name() == "latest") floor.latest = members.Int64();
    if (members.name() == "hash") hash = members.Binary();
  }
  if (members.corrupt() || hash.size() != floor.hash.size() || floor.trimmed < 1 ||
      floor.position <= floor.trimmed) {
    return Error(ErrorReason::kRecordCorrupt, "the record of where the ledger begins is damaged")
        .With("record", "ledger floor");
  }
  std::copy(hash.begin(), hash.end(), floor.hash.begin());
  floor.stamp = record->stamp;
  return floor;
}

absl::Status CheckKept(const LedgerFloor& floor, std::string_view field,
                       store::CommitPosition place) {
  if (place >= floor.trimmed) return absl::OkStatus();
  return PositionTrimmed(field, place, floor.trimmed);
}

absl::Status CheckTimeKept(const LedgerFloor& floor, std::string_view field, UnixMicros time) {
  if (floor.trimmed == 0 || time > floor.latest) return absl::OkStatus();
  return PositionTrimmed(field, 0, floor.trimmed);
}

absl::StatusOr<std::optional<FloorHolder>> FloorHolders::Lowest(const store::Reader& reader) const {
  std::optional<FloorHolder> lowest;
  for (const Ask& ask : asks_) {
    ASSIGN_OR_RETURN(std::optional<FloorHolder> holder, ask(reader));
    if (holder && (!lowest || holder->position < lowest->position)) lowest = std::move(holder);
  }
  return lowest;
}

void AddFloorHolder(const LedgerFloor& floor, store::WriteBatch& batch) {
  if (floor.stamp == 0) {
    batch.CheckAbsent(Keyspace::kFeed, std::string(kLedgerFloorKey));
  } else {
    batch.Check(Keyspace::kFeed, std::string(kLedgerFloorKey), floor.stamp);
  }
  batch.Put(Keyspace::kFeed, std::string(kFloorHoldersKey), document::BsonBuilder().Take());
}

}  // namespace strata::versioning
