// Decides a group of batches, one after the other, as if each were alone and came first.
#pragma once

#include <rocksdb/db.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "schemas/store/ledger_block.h"
#include "schemas/store/store.h"
#include "schemas/store/write_batch.h"
#include "service/engines/rocksdb/keyspace_handles.h"
#include "service/engines/rocksdb/recent_stamps.h"
#include "service/engines/rocksdb/record_cache.h"

namespace strata::engines::rocks {

// Collects into one rocksdb::WriteBatch what a group of batches writes. Not thread-safe. The
// database must have no other writer while the group lives.
class CommitGroup {
 public:
  // `last_position` is of the last commit before the group, `ledger` where the ledger ends there;
  // what has expired at `now` counts as absent. Makes room for batches of about `bytes` in
  // `writes`.
  CommitGroup(rocksdb::DB& database, const KeyspaceHandles& keyspaces, RecordCache& cache,
              RecentStamps& recent, store::CommitPosition last_position,
              const store::LedgerTail& ledger, UnixMicros now, size_t bytes, size_t writes);

  // Decides `batch` against the database and what the group has accepted so far. The result holds
  // once the group is durable: committed with its position, or refused by a guard, or failed
  // (RECORD_CORRUPT or STORE_UNAVAILABLE from reading what a guard names; LAYOUT_LIMIT), and then
  // it leaves no trace in the group. `batch` must outlive the group. REQUIRES: the keyspaces that
  // it puts into are made.
  store::CommitResult Add(const store::WriteBatch& batch);

  // True if nothing was accepted.
  bool empty() const { return last_position_ == first_position_; }
  store::CommitPosition last_position() const { return last_position_; }

  // Writes all that was accepted, with one sync, and brings the caches along; if it fails, they
  // know nothing of it. REQUIRES: !empty(). Call once, after the last Add.
  rocksdb::Status Write();
  // Where the ledger ends after a Write that succeeded.
  const store::LedgerTail& ledger() const { return ledger_; }

 private:
  using Place = RecordCache::Place;
  using StoredStamp = std::optional<store::Stamp>;  // of the record at a place, if there is one
  struct Change {
    Place place;
    std::optional<StoredStamp> before;  // nothing: the group had not asked for it
  };

  absl::StatusOr<StoredStamp> Find(const Place& place);
  absl::StatusOr<bool> Decide(const store::WriteBatch& batch, store::CommitPosition position);
  void Set(const Place& place, StoredStamp stamp);
  void Undo();
  void Collect(const store::WriteBatch& batch, store::CommitPosition position);
  void Put(store::Keyspace keyspace, std::string_view key, std::string_view header,
           std::string_view value);
  void EndBlock();

  rocksdb::DB& database_;
  RecordCache& cache_;
  RecentStamps& recent_;
  const KeyspaceHandles& keyspaces_;
  const UnixMicros now_;
  const store::CommitPosition first_position_;
  store::CommitPosition last_position_;
  store::LedgerTail ledger_;
  std::optional<store::LedgerBlockWriter> block_;  // none: nothing of the group is in the ledger
  rocksdb::WriteBatch writes_;
  // What the cache is to keep of them; in the order of the writes, so that of two under one key the
  // later one stays.
  std::vector<Place> cached_places_;
  std::vector<RecordCache::Entry> cached_entries_;
  std::vector<RecentStamps::Written> stamped_;  // what recent_ is to know, in the same order

  // What the group read or wrote: the database's answer for these places once it is written.
  absl::flat_hash_map<Place, StoredStamp> stamps_;
  // Of the batch being decided: what it changed in stamps_, and which of its writes are to be done.
  std::vector<Change> changes_;
  std::vector<bool> writes_to_do_;
};

}  // namespace strata::engines::rocks
