#include "service/engines/rocksdb/commit_group.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/base/dynamic_annotations.h"
#include "schemas/base/error.h"
#include "schemas/store/key_codec.h"
#include "service/engines/guards.h"
#include "service/engines/rocksdb/driver.h"
#include "service/engines/rocksdb/record_format.h"
#include "service/engines/rocksdb/tuning.h"

namespace strata::engines::rocks {
namespace {

// RocksDB holds more, but a group is built in memory and a memtable takes it whole.
constexpr size_t kValueBytesMax = size_t{32} << 20;
constexpr size_t kKeyBytesMax = size_t{64} << 10;

absl::Status CheckSize(const store::WriteBatch& batch) {
  for (const store::Write& write : batch.writes()) {
    if (write.key.size() <= kKeyBytesMax && write.value.size() <= kValueBytesMax) continue;
    return Error(ErrorReason::kLayoutLimit, "The record is larger than this engine can hold.")
        .With("size", static_cast<int64_t>(write.key.size() + write.value.size()))
        .With("limit", static_cast<int64_t>(kValueBytesMax));
  }
  return absl::OkStatus();
}

}  // namespace

CommitGroup::CommitGroup(rocksdb::DB& database, const KeyspaceHandles& keyspaces,
                         RecordCache& cache, RecentStamps& recent,
                         store::CommitPosition last_position, const store::LedgerTail& ledger,
                         UnixMicros now, size_t bytes, size_t writes)
    : database_(database),
      cache_(cache),
      recent_(recent),
      keyspaces_(keyspaces),
      now_(now),
      first_position_(last_position),
      last_position_(last_position),
      ledger_(ledger),
      writes_(/*reserved_bytes=*/bytes, /*max_bytes=*/0, DurableWrite().protection_bytes_per_key,
              /*default_cf_ts_sz=*/0) {
  cached_places_.reserve(writes);
  cached_entries_.reserve(writes);
  stamps_.reserve(writes);
}

store::CommitResult CommitGroup::Add(const store::WriteBatch& batch) {
  store::CommitResult result;
  result.status = CheckSize(batch);
  if (!result.status.ok()) return result;

  const store::CommitPosition position = last_position_ + 1;
  changes_.clear();
  writes_to_do_.clear();
  const absl::StatusOr<bool> holds = Decide(batch, position);
  if (!holds.ok() || !*holds) {
    Undo();
    result.status = holds.status();
    if (holds.ok()) result.refused = writes_to_do_.size();
    return result;
  }
  Collect(batch, position);
  last_position_ = position;
  result.committed = true;
  result.applied = batch.writes().size();
  result.position = position;
  return result;
}

absl::StatusOr<bool> CommitGroup::Decide(const store::WriteBatch& batch,
                                         store::CommitPosition position) {
  for (const store::Write& write : batch.writes()) {
    const Place place{write.keyspace, write.key};
    Verdict verdict = Verdict::kApply;
    if (write.guard != store::Guard::kAny) {
      const absl::StatusOr<StoredStamp> stored = Find(place);
      if (!stored.ok()) return stored.status();
      verdict = Judge(write, *stored);
    }
    if (verdict == Verdict::kRefuse) return false;
    const bool to_do = verdict == Verdict::kApply && write.kind != store::WriteKind::kCheck;
    writes_to_do_.push_back(to_do);
    if (!to_do) continue;
    // What has expired counts as absent for what follows, as it does once it is stored.
    const bool there = write.kind == store::WriteKind::kPut && !Expired(write.expire_time, now_);
    Set(place, there ? StoredStamp(position) : std::nullopt);
  }
  return true;
}

absl::StatusOr<CommitGroup::StoredStamp> CommitGroup::Find(const Place& place) {
  const auto known = stamps_.find(place);
  if (known != stamps_.end()) return known->second;
  if (RecordCache::Keeps(place.keyspace)) {
    if (const auto cached = cache_.Find(place, RecordCache::kNewest)) {
      const StoredStamp stamp =
          cached->value.none() ? StoredStamp() : StoredStamp(cached->position);
      stamps_.emplace(place, stamp);
      return stamp;
    }
  }
  StoredStamp stamp;
  if (RecentStamps::Keeps(place.keyspace)) {
    if (const auto recent = recent_.Find(place)) {
      if (!Expired(recent->expire_time, now_)) stamp = recent->stamp;
      stamps_.emplace(place, stamp);
      return stamp;
    }
  }
  rocksdb::ColumnFamilyHandle* const family = keyspaces_[place.keyspace];
  if (family == nullptr) return stamp;
  rocksdb::PinnableSlice stored;
  const rocksdb::Status status =
      database_.Get(rocksdb::ReadOptions(), family, ToSlice(place.key), &stored);
  if (status.ok()) {
    const std::optional<StoredRecord> record = ParseRecord(ToView(stored));
    if (!record) return UnreadableRecord();
    if (!Expired(record->expire_time, now_)) stamp = record->position;
  } else if (!status.IsNotFound()) {
    return Translate(status, "reading a record that a write names");
  }
  stamps_.emplace(place, stamp);
  return stamp;
}

void CommitGroup::Set(const Place& place, StoredStamp stamp) {
  const auto [entry, is_new] = stamps_.try_emplace(place, stamp);
  // Named in full: std::optional(an optional) would be a copy of it, never an empty one around it.
  changes_.push_back(
      {place, is_new ? std::optional<StoredStamp>() : std::optional<StoredStamp>(entry->second)});
  entry->second = stamp;
}

void CommitGroup::Undo() {
  // Backwards, for a place that was set twice.
  for (auto change = changes_.rbegin(); change != changes_.rend(); ++change) {
    if (change->before) {
      stamps_[change->place] = *change->before;
    } else {
      stamps_.erase(change->place);
    }
  }
}

void CommitGroup::Collect(const store::WriteBatch& batch, store::CommitPosition position) {
  const std::string header = RecordHeader(position, 0);
  for (size_t i = 0; i < batch.writes().size(); ++i) {
    if (!writes_to_do_[i]) continue;
    const store::Write& write = batch.writes()[i];
    if (RecordCache::Keeps(write.keyspace)) {
      cached_places_.push_back({write.keyspace, write.key});
      const bool deleted = write.kind == store::WriteKind::kDelete;
      cached_entries_.push_back({position, deleted ? Bytes() : Bytes(write.value)});
    }
    if (RecentStamps::Keeps(write.keyspace)) {
      // What is written without a guard is not asked for by one either.
      const bool kept = write.kind == store::WriteKind::kPut && write.guard != store::Guard::kAny;
      stamped_.push_back({{write.keyspace, write.key}, std::nullopt});
      if (kept) stamped_.back().stamped = {position, write.expire_time};
    }
    if (write.kind == store::WriteKind::kDelete) {
      rocksdb::ColumnFamilyHandle* const family = keyspaces_[write.keyspace];
      if (family != nullptr) writes_.Delete(family, ToSlice(write.key));
    } else if (write.expire_time > 0) {
      Put(write.keyspace, write.key, RecordHeader(position, write.expire_time), write.value);
    } else {
      Put(write.keyspace, write.key, header, write.value);
    }
  }
  if (batch.ledger().empty()) return;
  if (block_ && block_->full()) EndBlock();
  if (!block_) block_.emplace(ledger_);
  block_->Add(position, batch.ledger());
}

// RocksDB's Put and Delete fail only for sizes beyond what CheckSize lets pass.
void CommitGroup::Put(store::Keyspace keyspace, std::string_view key, std::string_view header,
                      std::string_view value) {
  const rocksdb::Slice key_slice = ToSlice(key);
  const rocksdb::Slice parts[] = {ToSlice(header), ToSlice(value)};
  writes_.Put(keyspaces_[keyspace], rocksdb::SliceParts(&key_slice, 1),
              rocksdb::SliceParts(parts, 2));
}

// Writes the block, which vouches for all positions up to the group's last.
void CommitGroup::EndBlock() {
  const store::LedgerBlockWriter::Block block = block_->Finish(last_position_);
  block_.reset();
  ledger_ = block.tail;
  Put(store::Keyspace::kLedger, store::LedgerKey(block.first), RecordHeader(block.tail.last, 0),
      block.value);
}

rocksdb::Status CommitGroup::Write() {
  // The last block tells the position for nothing; only without one it costs a key.
  if (block_) {
    EndBlock();
  } else {
    writes_.Put(ToSlice(kPositionKey), rocksdb::Slice(EncodePosition(last_position_)));
  }
  cache_.BeginWrite(cached_places_);
  // A memtable is a list without locks, whose entries RocksDB, which is not instrumented, publishes
  // by an atomic store: ThreadSanitizer would take each read beside this write for a race.
  ABSL_ANNOTATE_IGNORE_WRITES_BEGIN();
  rocksdb::Status status = database_.Write(DurableWrite(), &writes_);
  ABSL_ANNOTATE_IGNORE_WRITES_END();
  if (!status.ok()) {
    cached_entries_.clear();
    for (RecentStamps::Written& written : stamped_) written.stamped.reset();
  }
  cache_.EndWrite(cached_places_, std::move(cached_entries_));
  if (!stamped_.empty()) recent_.Set(stamped_, status.ok() ? last_position_ : first_position_);
  return status;
}

}  // namespace strata::engines::rocks
