#include "service/engines/rocksdb/rocksdb_store.h"

#include <rocksdb/db.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/store/cooperative.h"
#include "service/engines/guards.h"
#include "service/engines/nested_callbacks.h"
#include "service/engines/position_teller.h"
#include "service/engines/rocksdb/commit_beacon.h"
#include "service/engines/rocksdb/commit_group.h"
#include "service/engines/rocksdb/database.h"
#include "service/engines/rocksdb/disk_watch.h"
#include "service/engines/rocksdb/driver.h"
#include "service/engines/rocksdb/memory_watch.h"
#include "service/engines/rocksdb/recent_stamps.h"
#include "service/engines/rocksdb/record_cache.h"
#include "service/engines/rocksdb/rocksdb_reader.h"
#include "service/engines/rocksdb/tuning.h"
#include "service/observability/log.h"

namespace strata::engines {
namespace rocks {
namespace {

using observability::Log;
using observability::LogLevel;
using store::Keyspace;

// Point reads of an open database, through its cache.
class CachedReads {
 public:
  CachedReads(const Database& database, size_t cache_bytes)
      : database_(database), cache_(cache_bytes), last_position_(database.recovered_position()) {}

  RecordCache& cache() { return cache_; }
  RecentStamps& recent() { return recent_; }
  // Of the newest commit that all reads see. The committer alone sets it, after the cache.
  store::CommitPosition last_position() const { return last_position_; }
  void SetLastPosition(store::CommitPosition position) { last_position_ = position; }

  // As of `snapshot`, which was taken when `as_of` was the last position, or null and kNewest.
  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace, std::string_view key,
                                                   const rocksdb::Snapshot* snapshot,
                                                   store::CommitPosition as_of) {
    if (!RecordCache::Keeps(keyspace)) return GetUncached(keyspace, key, snapshot);
    if (auto cached = cache_.Find({keyspace, key}, as_of)) {
      if (cached->value.none()) return std::nullopt;
      return absl::StatusOr<std::optional<store::Record>>(
          absl::in_place, std::in_place,
          store::Record{std::move(cached->value), cached->position, cached->position});
    }
    const store::CommitPosition read_at = std::min(as_of, last_position());
    // What is asked for again comes into this cache, and of what lies around it nobody is likely to
    // ask for any. But what is too large for it the block cache has to keep.
    auto record = GetRecord(database_.db(), database_.keyspace(keyspace), snapshot, key,
                            cache_.record_bytes_max());
    if (!record.ok()) return record;
    RecordCache::Entry entry;
    if (*record) entry = {(*record)->position, (*record)->value};
    cache_.Learn({keyspace, key}, std::move(entry), read_at);
    return record;
  }

 private:
  absl::StatusOr<std::optional<store::Record>> GetUncached(Keyspace keyspace, std::string_view key,
                                                           const rocksdb::Snapshot* snapshot) {
    const store::CommitPosition read_at = last_position();
    UnixMicros expire_time = 0;
    auto record = GetRecord(database_.db(), database_.keyspace(keyspace), snapshot, key,
                            /*kept_from=*/0, &expire_time);
    if (snapshot == nullptr && RecentStamps::Keeps(keyspace) && record.ok() && *record) {
      recent_.Learn({keyspace, key}, {(*record)->stamp, expire_time}, read_at);
    }
    return record;
  }

  const Database& database_;
  RecordCache cache_;
  RecentStamps recent_;
  std::atomic<store::CommitPosition> last_position_;
};

class RocksDbSnapshot final : public store::Reader {
 public:
  RocksDbSnapshot(const Database& database, CachedReads& reads)
      : database_(database),
        reads_(reads),
        as_of_(reads.last_position()),  // before the snapshot, which may hold more
        snapshot_(database.db().GetSnapshot()) {}
  ~RocksDbSnapshot() override { database_.db().ReleaseSnapshot(snapshot_); }

  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                   std::string_view key) const override {
    return reads_.Get(keyspace, key, snapshot_, as_of_);
  }
  void Prefetch(std::span<const store::RecordKey> keys) const override {
    reads_.cache().Prefetch(keys);
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return ScanRecords(database_.db(), database_.keyspace(keyspace), snapshot_, range,
                       CachedOfWalk(keyspace));
  }

 private:
  const Database& database_;
  CachedReads& reads_;
  const store::CommitPosition as_of_;
  const rocksdb::Snapshot* const snapshot_;
};

// Bytes that a batch brings: what the limits of the commit queue count.
size_t BytesOf(const store::WriteBatch& batch) {
  size_t bytes = 0;
  for (const store::Write& write : batch.writes()) bytes += write.key.size() + write.value.size();
  for (const store::LedgerEntry& entry : batch.ledger()) bytes += entry.bytes();
  return bytes;
}

absl::Status WriteFailed() {
  return Error(ErrorReason::kStoreUnavailable,
               "The store takes no writes since one failed; it must be opened again.");
}

// How long a thread waits for something else than itself: what passes beyond its own CPU time.
class WaitClock {
 public:
  std::chrono::nanoseconds Waited() const {
    return (Read(CLOCK_MONOTONIC) - wall_) - (Read(CLOCK_THREAD_CPUTIME_ID) - cpu_);
  }

 private:
  static std::chrono::nanoseconds Read(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  const std::chrono::nanoseconds wall_ = Read(CLOCK_MONOTONIC);
  const std::chrono::nanoseconds cpu_ = Read(CLOCK_THREAD_CPUTIME_ID);
};

class CommittingStore final : public RocksDbStore, public store::CooperativeCommitter {
 public:
  CommittingStore(std::unique_ptr<Database> database, const RocksDbOptions& options)
      : queue_batches_max_(options.queue_batches_max),
        queue_bytes_max_(options.queue_bytes_max),
        group_bytes_max_(options.group_bytes_max),
        cooperative_wait_max_(options.cooperative_wait_max),
        database_(std::move(database)),
        reads_(*database_, RecordCacheShare(options.block_cache_bytes)),
        ledger_(database_->recovered_ledger()),
        committer_([this] { Run(); }) {}

  // Before the first commit.
  absl::Status StartWatches(const RocksDbOptions& options) {
    DiskWatch::Actions actions;
    actions.flush = [this] {
      if (!failed_) database_->BeginFlush();
    };
    actions.resume = [this] {
      if (!failed_) database_->Resume();
    };
    ASSIGN_OR_RETURN(disk_, DiskWatch::Start(options, database_->directory(), database_->files(),
                                             database_->background_writes(), std::move(actions)));
    ASSIGN_OR_RETURN(beacon_, CommitBeacon::Start(
                                  database_->files(), options.directory, options.beacon_behind_max,
                                  [this] { return database_->DurableAt(reads_.last_position()); }));
    if (options.process_bytes) {
      memory_ = std::make_unique<MemoryWatch>(options.block_cache_bytes, CacheBudget::kInterval,
                                              options.process_bytes,
                                              [this](uint64_t bytes) { ResizeCaches(bytes); });
    }
    return absl::OkStatus();
  }

  ~CommittingStore() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    committer_.join();
    database_->EndBackgroundWork();  // for which the watches may wait
  }

  store::Capabilities capabilities() const override {
    return {.atomic_batches = true,
            .fresh_scans = true,
            .snapshots = true,
            .commit_positions = true,
            .blocking_reads = false};
  }
  absl::Status Ready() const override {
    if (failed_) return WriteFailed();
    return database_->background_writes().writes_wait() ? disk_->NoRoomForMemory() : disk_->Ready();
  }

  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                   std::string_view key) const override {
    return reads_.Get(keyspace, key, nullptr, RecordCache::kNewest);
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return ScanRecords(database_->db(), database_->keyspace(keyspace), nullptr, range,
                       CachedOfWalk(keyspace));
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    return std::make_unique<RocksDbSnapshot>(*database_, reads_);
  }
  store::CommitPosition LastPosition() const override { return reads_.last_position(); }
  void OnPosition(store::PositionListener listener) override { teller_.Set(std::move(listener)); }

  void Commit(store::WriteBatch batch, store::CommitCallback done) override;
  store::CooperativeCommitter* cooperative() override { return this; }
  void Join() override { joined_here = this; }
  void Leave() override;
  bool WorkWaits() const override { return work_waits_.load(std::memory_order_relaxed); }
  void CommitOneGroup() override;
  store::RangeEstimate Estimate(Keyspace keyspace, const store::Range& range) const override;
  absl::Status CompactAll() override;

 private:
  struct Waiting {
    store::WriteBatch batch;
    store::CommitCallback done;
    size_t bytes = 0;
  };

  void Run();
  void ResizeCaches(uint64_t bytes) {
    database_->ResizeBlockCache(BlockCacheShare(bytes));
    reads_.cache().Resize(RecordCacheShare(bytes));
  }
  void Refuse(absl::Status status, store::CommitCallback done);
  void CommitFromQueue(std::unique_lock<std::mutex> lock);
  std::vector<Waiting> TakeGroup();
  bool MakeKeyspaces(const std::vector<Waiting>& waiting);
  std::vector<store::CommitResult> CommitAll(const std::vector<Waiting>& waiting);
  store::CommitResult RefusedForRoom() const;
  // Whether a thread that has joined may wait for the disk without harm to its other work.
  bool DiskIsFast() const { return wait_average_ <= cooperative_wait_max_; }

  // The store that this thread has joined.
  static thread_local const CommittingStore* joined_here;

  const size_t queue_batches_max_;
  const size_t queue_bytes_max_;
  const size_t group_bytes_max_;
  const std::chrono::microseconds cooperative_wait_max_;
  const std::unique_ptr<Database> database_;
  mutable CachedReads reads_;
  // The committer's:
  store::LedgerTail ledger_;
  std::atomic<bool> failed_ = false;  // a write did not succeed

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool committing_ = false;  // somebody is the committer
  // The store's own thread is to take what waits. It wakes up for other reasons too, its first
  // moment among them, and is to leave to a thread that has joined what that one has put in.
  bool own_thread_called_ = false;
  std::deque<Waiting> queue_;
  size_t queue_bytes_ = 0;
  std::chrono::nanoseconds wait_average_{0};  // of the last dozen or so commits, for the disk
  // The queue holds something, nobody is the committer, and the disk is fast. Changed under the
  // mutex.
  std::atomic<bool> work_waits_ = false;

  PositionTeller teller_;
  std::unique_ptr<DiskWatch> disk_;
  std::unique_ptr<CommitBeacon> beacon_;
  std::unique_ptr<MemoryWatch> memory_;  // none where nobody says what the process has
  std::thread committer_;                // last: it uses all the others
};

thread_local const CommittingStore* CommittingStore::joined_here = nullptr;

void CommittingStore::Commit(store::WriteBatch batch, store::CommitCallback done) {
  const size_t bytes = BytesOf(batch);
  absl::Status admitted = failed_ ? WriteFailed() : disk_->Admit(bytes, batch.removal());
  if (!admitted.ok()) return Refuse(std::move(admitted), std::move(done));
  bool wake_committer = false;
  {
    const std::lock_guard lock(mutex_);
    // An empty queue takes any batch, or the largest could never be written.
    const bool fits = queue_.empty() || (queue_.size() < queue_batches_max_ &&
                                         queue_bytes_ + bytes <= queue_bytes_max_);
    if (fits) {
      queue_.push_back({std::move(batch), std::move(done), bytes});
      queue_bytes_ += bytes;
      done = nullptr;
      work_waits_ = !committing_ && DiskIsFast();
      wake_committer = joined_here != this || !DiskIsFast();
      if (wake_committer) own_thread_called_ = true;
    }
  }
  if (wake_committer) changed_.notify_one();
  if (done == nullptr) return;
  disk_->Written(bytes);
  Refuse(Error(ErrorReason::kOverloaded, "Too many writes are waiting."), std::move(done));
}

void CommittingStore::Refuse(absl::Status status, store::CommitCallback done) {
  store::CommitResult refused;
  refused.status = std::move(status);
  CallNested(*this, [refused = std::move(refused), done = std::move(done)] { done(refused); });
}

void CommittingStore::Run() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return !committing_ && (stopping_ || (own_thread_called_ && !queue_.empty()));
    });
    if (queue_.empty()) return;
    CommitFromQueue(std::move(lock));
  }
}

void CommittingStore::CommitOneGroup() {
  std::unique_lock lock(mutex_);
  if (committing_ || queue_.empty()) return;
  CommitFromQueue(std::move(lock));
}

void CommittingStore::Leave() {
  joined_here = nullptr;
  {
    const std::lock_guard lock(mutex_);
    own_thread_called_ = true;
  }
  changed_.notify_one();
}

// Commits what waits, up to a group's size, and calls back. REQUIRES: nobody is the committer, and
// the queue is not empty.
void CommittingStore::CommitFromQueue(std::unique_lock<std::mutex> lock) {
  committing_ = true;
  work_waits_ = false;
  own_thread_called_ = false;
  std::vector<Waiting> group = TakeGroup();
  lock.unlock();
  const WaitClock wait_clock;
  std::vector<store::CommitResult> results = CommitAll(group);
  const std::chrono::nanoseconds waited = wait_clock.Waited();
  const bool grew = std::any_of(results.begin(), results.end(),
                                [](const store::CommitResult& result) { return result.committed; });
  for (const Waiting& each : group) disk_->Written(each.bytes);
  for (size_t i = 0; i < group.size(); ++i) {
    // Taken out, so that what a callback holds goes with its call and not with the group.
    const store::CommitCallback done = std::move(group[i].done);
    done(std::move(results[i]));
  }
  if (grew) teller_.Tell();
  lock.lock();
  committing_ = false;
  wait_average_ += (waited - wait_average_) / 8;
  work_waits_ = !queue_.empty() && DiskIsFast();
  // A thread that has joined asks again by itself.
  const bool wake_committer = !queue_.empty() && (joined_here != this || !work_waits_);
  if (wake_committer) own_thread_called_ = true;
  lock.unlock();
  if (wake_committer) changed_.notify_one();
}

// What waits, within the group's limit. REQUIRES: the mutex is held.
std::vector<CommittingStore::Waiting> CommittingStore::TakeGroup() {
  std::vector<Waiting> group;
  size_t bytes = 0;
  while (!queue_.empty() && bytes < group_bytes_max_) {
    bytes += queue_.front().bytes;
    group.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  queue_bytes_ -= bytes;
  return group;
}

// Those that the batches put into and that have never been used. False: not all are there, as there
// is no room to make one, or the store has failed.
bool CommittingStore::MakeKeyspaces(const std::vector<Waiting>& waiting) {
  bool all_made = true;
  for (const Waiting& each : waiting) {
    if (failed_) return false;
    const rocksdb::Status status = database_->MakeKeyspacesFor(each.batch);
    if (status.ok()) continue;
    all_made = false;
    if (status.IsTryAgain()) continue;
    failed_ = true;
    Log(LogLevel::kError, "rocksdb failed while making a keyspace; the store takes no more writes",
        {{"status", status.ToString()}});
  }
  return all_made;
}

store::CommitResult CommittingStore::RefusedForRoom() const {
  store::CommitResult refused;
  refused.status = disk_->NoRoomForMemory();
  return refused;
}

std::vector<store::CommitResult> CommittingStore::CommitAll(const std::vector<Waiting>& waiting) {
  std::vector<store::CommitResult> results;
  results.reserve(waiting.size());
  const bool keyspaces_made = MakeKeyspaces(waiting);
  if (failed_) {
    store::CommitResult refused;
    refused.status = WriteFailed();
    results.assign(waiting.size(), refused);
    return results;
  }
  size_t bytes = 0;
  size_t writes = 0;
  for (const Waiting& each : waiting) {
    bytes += each.bytes;
    writes += each.batch.writes().size();
  }
  CommitGroup group(database_->db(), database_->keyspaces(), reads_.cache(), reads_.recent(),
                    reads_.last_position(), ledger_, database_->age_clock().Now(), bytes, writes);
  const auto now = database_->age_clock().SteadyNow();
  for (const Waiting& each : waiting) {
    if (TooLate(each.batch, now)) {
      results.push_back(DroppedTooLate());
    } else if (!keyspaces_made && !database_->HasKeyspacesFor(each.batch)) {
      results.push_back(RefusedForRoom());
    } else {
      results.push_back(group.Add(each.batch));
    }
  }
  if (group.empty()) return results;

  const rocksdb::Status status = group.Write();
  if (status.ok()) {
    ledger_ = group.ledger();
    reads_.SetLastPosition(group.last_position());
    return results;
  }
  if (database_->background_writes().RefusedForRoom(status)) {
    // What a guard refused, too: it may have been for a write of this group.
    results.assign(waiting.size(), RefusedForRoom());
    return results;
  }
  failed_ = true;
  Log(LogLevel::kError, "rocksdb failed while committing; the store takes no more writes",
      {{"status", status.ToString()}});
  for (store::CommitResult& result : results) {
    // A refusal may rest on a write of this group, whose outcome is unknown; that nothing was
    // written is certain all the same.
    const bool unknown = result.committed;
    result = {};
    result.status = unknown ? Error(ErrorReason::kOutcomeUnknown,
                                    "The store failed while writing; the write may still be there "
                                    "when it is opened again.")
                            : Error(ErrorReason::kStoreUnavailable,
                                    "The store failed; this write was not done.");
  }
  return results;
}

store::RangeEstimate CommittingStore::Estimate(Keyspace keyspace, const store::Range& range) const {
  rocksdb::DB& db = database_->db();
  rocksdb::ColumnFamilyHandle* const family = database_->keyspace(keyspace);
  if (family == nullptr) return {};
  // RocksDB asks for an upper bound; no key of ours begins like this one and goes on.
  static const std::string* const kBeyondAll = new std::string(64, '\xFF');
  const rocksdb::Range bounds(ToSlice(range.begin),
                              ToSlice(range.end.empty() ? *kBeyondAll : range.end));
  if (bounds.start.compare(bounds.limit) >= 0) return {};

  uint64_t memory_records = 0;
  uint64_t memory_bytes = 0;
  db.GetApproximateMemTableStats(family, bounds, &memory_records, &memory_bytes);
  uint64_t file_bytes = 0;
  rocksdb::SizeApproximationOptions files;
  files.include_memtables = false;
  files.include_files = true;
  if (!db.GetApproximateSizes(files, family, &bounds, 1, &file_bytes).ok()) file_bytes = 0;

  const auto property = [&](const std::string& name) {
    uint64_t value = 0;
    return db.GetIntProperty(family, name, &value) ? value : 0;
  };
  // The memtable's guess is far off either way, but its total is known.
  const uint64_t all_memory_records = property(rocksdb::DB::Properties::kNumEntriesActiveMemTable) +
                                      property(rocksdb::DB::Properties::kNumEntriesImmMemTables);
  const bool unbounded = range.begin.empty() && range.end.empty();
  if (unbounded || memory_records > all_memory_records) {
    if (memory_records > 0) memory_bytes = memory_bytes * all_memory_records / memory_records;
    memory_records = all_memory_records;
  }

  // Files know their sizes by key but not their counts: take the keyspace's average record.
  const uint64_t all_records = property(rocksdb::DB::Properties::kEstimateNumKeys);
  const uint64_t all_file_bytes = property(rocksdb::DB::Properties::kLiveSstFilesSize);
  const uint64_t all_file_records =
      all_records > all_memory_records ? all_records - all_memory_records : 0;
  const double records_per_byte = all_file_bytes == 0 ? 0
                                                      : static_cast<double>(all_file_records) /
                                                            static_cast<double>(all_file_bytes);
  const double file_records = records_per_byte * static_cast<double>(file_bytes);
  return {static_cast<int64_t>(memory_records) + static_cast<int64_t>(file_records),
          static_cast<int64_t>(memory_bytes + file_bytes)};
}

absl::Status CommittingStore::CompactAll() {
  rocksdb::CompactRangeOptions options;
  // The last level too: what has expired lies there longest.
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
  for (const Keyspace keyspace : store::kAllKeyspaces) {
    rocksdb::ColumnFamilyHandle* const family = database_->keyspace(keyspace);
    if (family == nullptr) continue;
    const rocksdb::Status status = database_->db().CompactRange(options, family, nullptr, nullptr);
    if (!status.ok()) return Translate(status, "compacting");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::Open(const RocksDbOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(options));
  auto store = std::make_unique<CommittingStore>(std::move(database), options);
  RETURN_IF_ERROR(store->StartWatches(options));
  return store;
}

}  // namespace rocks
}  // namespace strata::engines
