// The weakest store that the port allows as tests want it: stepping in between any two writes,
// stale scans, crashes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "schemas/store/single_record_store.h"

namespace strata::test_support {

// Each is called, if set, with no lock held, on the thread of the call it comes before, and may use
// any store.
struct SingleRecordHooks {
  std::function<void(store::Keyspace, std::string_view key)> before_get;
  std::function<void(store::Keyspace, const store::Range&)> before_scan;
  // Before write `index` of its batch; false: the process dies here, before it (see Crash).
  std::function<bool(const store::Write&, size_t index)> before_write;
};

struct SingleRecordOptions {
  // How many of its writes back a scan may look: each scan draws one such moment, and for each key
  // whether the scan shows its state (a record or none) of then or of now. 0: scans are fresh,
  // though not declared so. Get is always linearizable. Needs an inner store with snapshots; a
  // stale scan copies its whole range.
  size_t stale_writes = 0;
  uint64_t seed = 1;  // of that choice
};

// Commit blocks until the inner store has answered, and calls `done` on the caller's thread: so a
// test with one thread is deterministic on every engine, and one thread's batches keep their order.
// Batches of several threads interleave between their writes. Not from a callback of an inner store
// that completes on a thread of its own.
//
// `inner` must outlive it. Several decorators over one inner store are several processes; a new one
// after a crash is a restart.
class SingleRecordStore final : public store::SingleRecordStore {
 public:
  explicit SingleRecordStore(store::Store& inner, SingleRecordOptions options = {});
  ~SingleRecordStore() override;

  // REQUIRES: no call is under way.
  void set_hooks(SingleRecordHooks hooks);

  // Dies before the write that follows `writes` more applied (or skipped) ones.
  void CrashAfter(size_t writes);
  // Dies now: the batch under way writes no more and is answered OUTCOME_UNKNOWN; from now on every
  // commit is refused and every read fails with STORE_UNAVAILABLE. What was written stays.
  void Crash();
  bool crashed() const { return crashed_; }
  // How many writes were applied or skipped so far.
  size_t writes() const { return writes_; }

  absl::StatusOr<std::optional<store::Record>> Get(store::Keyspace keyspace,
                                                   std::string_view key) const override;
  std::vector<absl::StatusOr<std::optional<store::Record>>> GetMany(
      std::span<const store::RecordKey> keys) const override;
  std::unique_ptr<store::Cursor> Scan(store::Keyspace keyspace,
                                      const store::Range& range) const override;
  void Commit(store::WriteBatch batch, store::CommitCallback done) override;
  // Nobody: Commit waits for the inner store.
  store::CooperativeCommitter* cooperative() override { return nullptr; }

 private:
  store::CommitResult Apply(store::WriteBatch writes);
  bool DiesBefore(const store::SingleRecordBatch& batch);
  void RememberState();
  std::unique_ptr<store::Cursor> ScanStale(store::Keyspace keyspace,
                                           const store::Range& range) const;

  const SingleRecordOptions options_;
  SingleRecordHooks hooks_;
  std::atomic<bool> crashed_ = false;
  std::atomic<size_t> writes_ = 0;
  std::atomic<size_t> crash_at_ = SIZE_MAX;  // in writes

  mutable std::mutex mutex_;  // guards the members below
  mutable std::mt19937_64 generator_;
  std::deque<std::shared_ptr<store::Reader>> past_;  // oldest first
};

}  // namespace strata::test_support
