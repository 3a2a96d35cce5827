// The weakest store that the port allows, over any other: writes of single records, no snapshots,
// no positions. What runs over it runs over any engine.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "schemas/store/forwarding_store.h"

namespace strata::store {

// A batch that is committed write by write, and what becomes of it. Not thread-safe.
class SingleRecordBatch {
 public:
  // One with a check is finished at once, refused with UNSUPPORTED_BY_ENGINE.
  explicit SingleRecordBatch(WriteBatch batch);

  bool finished() const { return finished_; }
  // The first write that is not done yet. REQUIRES: !finished().
  const Write& next() const { return batch_.writes()[result_.applied]; }
  // That write alone, to be committed now.
  WriteBatch NextAlone() const;
  // What became of it.
  void Take(const CommitResult& alone);
  // Ends here; nobody knows any more what becomes of the next write.
  void Abandon(absl::Status status);

  // So far. A failure after the first write, before the commit point, is OUTCOME_UNKNOWN; after the
  // commit point it is none.
  const CommitResult& result() const { return result_; }
  const std::vector<Write>& writes() const { return batch_.writes(); }

 private:
  const WriteBatch batch_;
  CommitResult result_;
  bool finished_ = false;
};

// All capabilities are off, but that reads block where they do inside. A batch's writes are
// committed to the inner store one by one; the first guard that fails ends it, and `committed`,
// `applied` and `refused` say how far it came. Batches interleave between their writes, but those
// that write the same key go one after the other. Ledger entries are dropped, positions read as 0;
// stamps are the inner store's.
//
// `done` is called in a callback of the inner store, or, for a batch that is refused at once, by
// Commit itself. Several of them over one inner store are as several processes. The destructor
// waits for what is under way: not from a callback.
class SingleRecordStore : public ForwardingStore {
 public:
  explicit SingleRecordStore(Store& inner);
  explicit SingleRecordStore(std::unique_ptr<Store> inner);
  ~SingleRecordStore() override;

  Capabilities capabilities() const override;
  absl::StatusOr<std::optional<Record>> Get(Keyspace keyspace, std::string_view key) const override;
  std::vector<absl::StatusOr<std::optional<Record>>> GetMany(
      std::span<const RecordKey> keys) const override;
  std::unique_ptr<Cursor> Scan(Keyspace keyspace, const Range& range) const override;
  std::unique_ptr<Reader> Snapshot() const override;  // the live store
  void Commit(WriteBatch batch, CommitCallback done) override;
  CommitPosition LastPosition() const override;
  CommitPosition StartPosition() const override { return 0; }
  void OnPosition(PositionListener /*listener*/) override {}

 private:
  struct Running;
  using RunningPtr = std::shared_ptr<Running>;

  bool Begin(const RunningPtr& running);
  void Run(const RunningPtr& running);
  void End(const RunningPtr& running);

  std::mutex mutex_;  // guards the members below
  std::condition_variable idle_;
  size_t running_ = 0;
  // Of each key that a batch under way writes: the last such batch. Its writes hold the keys.
  absl::flat_hash_map<RecordKey, RunningPtr> last_writers_;
};

}  // namespace strata::store
