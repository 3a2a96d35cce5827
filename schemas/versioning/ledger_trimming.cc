#include "schemas/versioning/ledger_trimming.h"

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "schemas/base/status_macros.h"
#include "schemas/store/key_codec.h"
#include "schemas/versioning/ledger.h"

namespace strata::versioning {

using store::CommitPosition;
using store::Keyspace;

LedgerTrimmer::LedgerTrimmer(store::Store& store, const Clock& clock,
                             std::chrono::microseconds retention, const FloorHolders& holders,
                             size_t chunk)
    : store_(store), clock_(clock), retention_(retention), holders_(holders), chunk_(chunk) {}

absl::Status LedgerTrimmer::Trim(const StopCheck& stopped) {
  LedgerFloor floor;
  std::optional<LedgerFloor> higher;
  std::optional<store::Record> holders;
  {
    const std::unique_ptr<store::Reader> reader = store_.Snapshot();
    ASSIGN_OR_RETURN(floor, ReadLedgerFloor(*reader));
    // Before anybody is asked: whoever comes later is noticed by it.
    ASSIGN_OR_RETURN(holders, reader->Get(Keyspace::kFeed, kFloorHoldersKey));
    ASSIGN_OR_RETURN(higher, Choose(*reader, floor));
  }
  if (higher) {
    ASSIGN_OR_RETURN(const bool raised, Raise(floor, *higher, holders));
    // Else somebody else raised it, or there is somebody more to ask: the next time.
    if (raised) floor = *higher;
  }
  return DeleteBelow(floor.position, stopped);
}

// A floor above the one there is; nothing if that one stays.
absl::StatusOr<std::optional<LedgerFloor>> LedgerTrimmer::Choose(const store::Reader& reader,
                                                                 const LedgerFloor& floor) const {
  const auto newest = reader.Scan(Keyspace::kLedger, {.begin = "", .end = "", .reverse = true});
  RETURN_IF_ERROR(newest->status());
  if (!newest->Valid()) return std::nullopt;
  CommitPosition keep = store::ParseLedgerKey(newest->key()).value_or(0);
  ASSIGN_OR_RETURN(const CommitPosition since,
                   FirstPositionSince(reader, clock_.Now() - retention_.count()));
  keep = std::min(keep, since);
  ASSIGN_OR_RETURN(const std::optional<FloorHolder> holder, holders_.Lowest(reader));
  if (holder) keep = std::min(keep, holder->position);
  if (keep <= floor.position) return std::nullopt;

  const LedgerBlocks first(reader, keep);
  RETURN_IF_ERROR(first.status());
  if (!first.Valid() || first.key() <= floor.position) return std::nullopt;
  if (!first.header()) return DamagedLedgerBlock(first.key());
  const auto below = reader.Scan(
      Keyspace::kLedger, {.begin = "", .end = store::LedgerKey(first.key()), .reverse = true});
  RETURN_IF_ERROR(below->status());
  if (!below->Valid()) return std::nullopt;
  const auto header = store::ParseLedgerBlockHeader(below->value());
  if (!header) return DamagedLedgerBlock(store::ParseLedgerKey(below->key()).value_or(0));
  return LedgerFloor{.position = first.key(),
                     .trimmed = header->tail.last,
                     .latest = header->tail.latest,
                     .hash = header->tail.hash};
}

absl::StatusOr<bool> LedgerTrimmer::Raise(const LedgerFloor& from, const LedgerFloor& to,
                                          const std::optional<store::Record>& holders) {
  store::WriteBatch batch;
  batch.MarkAsRemoval();
  if (holders) {
    batch.Check(Keyspace::kFeed, std::string(kFloorHoldersKey), holders->stamp);
  } else {
    batch.CheckAbsent(Keyspace::kFeed, std::string(kFloorHoldersKey));
  }
  if (from.stamp == 0) {
    batch.Insert(Keyspace::kFeed, std::string(kLedgerFloorKey), to.Encode());
  } else {
    batch.Replace(Keyspace::kFeed, std::string(kLedgerFloorKey), to.Encode(), from.stamp);
  }
  return Commit(std::move(batch));
}

absl::Status LedgerTrimmer::DeleteBelow(CommitPosition position, const StopCheck& stopped) {
  if (position <= deleted_below_) return absl::OkStatus();
  store::Range range;
  if (deleted_below_ > 0) range.begin = store::LedgerKey(deleted_below_);
  range.end = store::LedgerKey(position);
  while (!Stopped(stopped)) {
    store::WriteBatch batch;
    batch.MarkAsRemoval();
    const auto cursor = store_.Scan(Keyspace::kLedger, range);
    for (; cursor->Valid() && batch.writes().size() < chunk_; cursor->Next()) {
      batch.Delete(Keyspace::kLedger, std::string(cursor->key()));
    }
    RETURN_IF_ERROR(cursor->status());
    if (batch.writes().empty()) {
      deleted_below_ = position;
      return absl::OkStatus();
    }
    range.begin = batch.writes().back().key;
    RETURN_IF_ERROR(Commit(std::move(batch)).status());
  }
  return absl::OkStatus();
}

// False for a lost race.
absl::StatusOr<bool> LedgerTrimmer::Commit(store::WriteBatch batch) {
  batch.MarkAsBackground();
  const auto committed = std::make_shared<std::promise<store::CommitResult>>();
  store_.Commit(std::move(batch), [committed](store::CommitResult result) {
    committed->set_value(std::move(result));
  });
  const store::CommitResult result = committed->get_future().get();
  RETURN_IF_ERROR(result.status);
  return result.committed;
}

}  // namespace strata::versioning
