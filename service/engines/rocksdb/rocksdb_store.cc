#include "service/engines/rocksdb/rocksdb_store.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

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

#include "schemas/base/age_clock.h"
#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "schemas/store/cooperative.h"
#include "schemas/store/key_codec.h"
#include "service/engines/guards.h"
#include "service/engines/nested_callbacks.h"
#include "service/engines/rocksdb/commit_beacon.h"
#include "service/engines/rocksdb/commit_group.h"
#include "service/engines/rocksdb/data_directory.h"
#include "service/engines/rocksdb/driver.h"
#include "service/engines/rocksdb/expiry_filter.h"
#include "service/engines/rocksdb/format.h"
#include "service/engines/rocksdb/log_file_system.h"
#include "service/engines/rocksdb/log_shape.h"
#include "service/engines/rocksdb/record_cache.h"
#include "service/engines/rocksdb/record_format.h"
#include "service/engines/rocksdb/rocksdb_reader.h"
#include "service/engines/rocksdb/tuning.h"
#include "service/observability/log.h"

namespace strata::engines {
namespace rocks {
namespace {

using observability::Log;
using observability::LogLevel;
using store::Keyspace;

// The record cache takes this part of the block cache's bytes.
constexpr size_t kRecordCacheShare = 8;

// An open database and all that it stands on, in the order in which they must be made; they go in
// the reverse order.
class Database {
 public:
  static absl::StatusOr<std::unique_ptr<Database>> Open(const RocksDbOptions& options);
  ~Database();

  rocksdb::DB& db() const { return *db_; }
  const KeyspaceHandles& keyspaces() const { return keyspaces_; }
  rocksdb::ColumnFamilyHandle* keyspace(Keyspace keyspace) const {
    return keyspaces_[static_cast<size_t>(keyspace)];
  }
  rocksdb::FileSystem& files() const { return *files_; }
  const Clock& age_clock() const { return age_clock_; }
  // Of the last commit that the database holds.
  store::CommitPosition recovered_position() const { return recovered_position_; }
  // Where its ledger ends.
  const store::LedgerTail& recovered_ledger() const { return recovered_ledger_; }
  // What the beacon may vouch for when the commits up to `position` are durable. On one thread.
  Durable DurableAt(store::CommitPosition position);

 private:
  Database(DataDirectory directory, std::shared_ptr<rocksdb::FileSystem> files, const Clock& clock)
      : directory_(std::move(directory)),
        files_(std::move(files)),
        age_clock_(clock),
        expiry_(age_clock_) {}

  using WalMode = rocksdb::WALRecoveryMode;

  absl::Status OpenFiles(const RocksDbOptions& options);
  rocksdb::Status OpenWith(const RocksDbOptions& options,
                           const std::shared_ptr<rocksdb::Cache>& cache, WalMode mode,
                           bool read_only);
  absl::Status CheckTornTail(const RocksDbOptions& options,
                             const std::shared_ptr<rocksdb::Cache>& cache);
  absl::Status CheckReached(store::CommitPosition position) const;
  absl::Status ReplaceLostBeacon(const RocksDbOptions& options);
  void CloseFiles();
  absl::Status CheckKeyspaces(const RocksDbOptions& options) const;
  absl::StatusOr<Format> ReadFormat() const;
  absl::StatusOr<store::CommitPosition> RecoverPosition() const;
  absl::StatusOr<std::optional<std::string>> GetOwn(std::string_view key) const;

  const DataDirectory directory_;
  const std::shared_ptr<rocksdb::FileSystem> files_;
  const AgeClock age_clock_;
  const ExpiryFilter expiry_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;  // "default" first, then by keyspace
  KeyspaceHandles keyspaces_ = {};
  std::optional<Durable> durable_;  // by the beacon; nothing: it was lost
  store::CommitPosition recovered_position_ = 0;
  store::LedgerTail recovered_ledger_;
  // Of the manifest, as it was when the keyspaces' files had been changed so often.
  Durable manifest_;
  uint64_t manifest_changes_ = 0;
};

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const RocksDbOptions& options) {
  auto files = std::make_shared<LogFileSystem>(
      options.file_system != nullptr ? options.file_system : rocksdb::FileSystem::Default());
  ASSIGN_OR_RETURN(DataDirectory directory, DataDirectory::Take(options.directory, *files));
  std::unique_ptr<Database> database(
      new Database(std::move(directory), std::move(files), *options.clock));
  ASSIGN_OR_RETURN(database->durable_, ReadOrMakeBeacon(database->files(), options.directory));
  RETURN_IF_ERROR(database->OpenFiles(options));
  ASSIGN_OR_RETURN(const Format format, database->ReadFormat());
  ASSIGN_OR_RETURN(database->recovered_position_, database->RecoverPosition());
  // A log file that is gone leaves nothing to stumble over.
  RETURN_IF_ERROR(database->CheckReached(database->recovered_position_));
  RETURN_IF_ERROR(database->ReplaceLostBeacon(options));
  if (format.number != kFormatNumber) {
    RETURN_IF_ERROR(
        Migrate(database->db(), database->keyspaces(), format, options.convert_ledger_entry));
  }
  ASSIGN_OR_RETURN(database->recovered_ledger_,
                   ReadLedgerTail(database->db(), database->keyspace(Keyspace::kLedger)));
  return database;
}

Database::~Database() { CloseFiles(); }

absl::Status Database::OpenFiles(const RocksDbOptions& options) {
  env_ = rocksdb::NewCompositeEnv(files_);
  const auto cache = rocksdb::NewLRUCache(options.block_cache_bytes -
                                          options.block_cache_bytes / kRecordCacheShare);
  RETURN_IF_ERROR(CheckKeyspaces(options));
  rocksdb::Status status = OpenWith(options, cache, WalMode::kAbsoluteConsistency, false);
  if (status.IsCorruption()) {
    RETURN_IF_ERROR(CheckTornTail(options, cache));
    status = OpenWith(options, cache, WalMode::kPointInTimeRecovery, false);
  }
  if (status.ok()) return absl::OkStatus();
  return Translate(status, "opening the data directory " + options.directory);
}

rocksdb::Status Database::OpenWith(const RocksDbOptions& options,
                                   const std::shared_ptr<rocksdb::Cache>& cache, WalMode mode,
                                   bool read_only) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, DefaultOptions(cache));
  for (const Keyspace keyspace : store::kAllKeyspaces) {
    families.emplace_back(std::string(store::KeyspaceName(keyspace)),
                          KeyspaceOptions(keyspace, cache, &expiry_));
  }
  rocksdb::DBOptions database_options = DatabaseOptions(env_.get(), cache);
  database_options.wal_recovery_mode = mode;
  rocksdb::DB* db = nullptr;
  handles_.clear();
  const rocksdb::Status status =
      read_only ? rocksdb::DB::OpenForReadOnly(database_options, options.directory, families,
                                               &handles_, &db)
                : rocksdb::DB::Open(database_options, options.directory, families, &handles_, &db);
  if (!status.ok()) return status;
  db_.reset(db);
  std::copy(handles_.begin() + 1, handles_.end(), keyspaces_.begin());
  return status;
}

// OK if all that is wrong with the database is that its log ends in a write that was never
// acknowledged. Looks without touching: a tolerant open for writing would drop the damaged log, and
// with it the evidence.
absl::Status Database::CheckTornTail(const RocksDbOptions& options,
                                     const std::shared_ptr<rocksdb::Cache>& cache) {
  const rocksdb::Status status = OpenWith(options, cache, WalMode::kPointInTimeRecovery, true);
  if (!status.ok()) return Translate(status, "opening the data directory " + options.directory);
  const absl::StatusOr<store::CommitPosition> position = RecoverPosition();
  CloseFiles();
  RETURN_IF_ERROR(position.status());
  if (!durable_) {
    return Error(ErrorReason::kRecordCorrupt,
                 "The log is damaged or torn, and the commit beacon, which tells the one from the "
                 "other, is missing or damaged too. Nothing was changed. Put the file "
                 "commit-beacon of this data directory back, or restore all of it from a backup.")
        .With("recovered_position", *position);
  }
  RETURN_IF_ERROR(CheckReached(*position));
  Log(LogLevel::kWarning,
      "dropped the end of the log: a write that was cut short, never acknowledged",
      {{"position", *position}});
  return absl::OkStatus();
}

// Whether `position`, to which the database was recovered, is as far as the beacon vouches for.
absl::Status Database::CheckReached(store::CommitPosition position) const {
  if (!durable_ || position >= durable_->position) return absl::OkStatus();
  return Error(ErrorReason::kRecordCorrupt,
               "The log is damaged: commits that were durable are missing. Nothing was changed.")
      .With("recovered_position", position)
      .With("durable_position", durable_->position);
}

// The log is whole: nothing is missing that a beacon would have to vouch for.
absl::Status Database::ReplaceLostBeacon(const RocksDbOptions& options) {
  if (durable_) return absl::OkStatus();
  Log(LogLevel::kWarning, "the commit beacon was missing or damaged; it is made again",
      {{"position", recovered_position_}});
  return MakeBeacon(*files_, options.directory, {.position = recovered_position_});
}

Durable Database::DurableAt(store::CommitPosition position) {
  uint64_t changes = 0;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    uint64_t number = 0;
    if (db_->GetIntProperty(handle, rocksdb::DB::Properties::kCurrentSuperVersionNumber, &number))
      changes += number;
  }
  if (changes != manifest_changes_) {  // listing all files is more than a look each 100 ms may cost
    std::vector<std::string> names;
    uint64_t bytes = 0;
    const rocksdb::Status status = db_->GetLiveFiles(names, &bytes, /*flush_memtable=*/false);
    for (const std::string& name : names) {  // "/MANIFEST-000012" among them
      const std::optional<uint64_t> number = ParseManifestName(std::string_view(name).substr(1));
      if (!status.ok() || !number) continue;
      manifest_changes_ = changes;
      manifest_.manifest = *number;
      manifest_.manifest_bytes = bytes;
    }
  }
  Durable durable = manifest_;
  durable.position = position;
  return durable;
}

void Database::CloseFiles() {
  if (db_ == nullptr) return;
  for (rocksdb::ColumnFamilyHandle* handle : handles_) db_->DestroyColumnFamilyHandle(handle);
  const rocksdb::Status closed = db_->Close();
  if (!closed.ok()) {
    Log(LogLevel::kError, "rocksdb failed while closing", {{"status", closed.ToString()}});
  }
  db_.reset();
}

// A keyspace of a later build is a feature, and RocksDB opens no database without it.
absl::Status Database::CheckKeyspaces(const RocksDbOptions& options) const {
  rocksdb::DBOptions database_options;
  database_options.env = env_.get();
  std::vector<std::string> names;
  // Of a new database there are none; what else is wrong, opening says better.
  if (!rocksdb::DB::ListColumnFamilies(database_options, options.directory, &names).ok()) {
    return absl::OkStatus();
  }
  for (const std::string& name : names) {
    const bool known =
        name == rocksdb::kDefaultColumnFamilyName ||
        std::any_of(store::kAllKeyspaces.begin(), store::kAllKeyspaces.end(),
                    [&](Keyspace each) { return store::KeyspaceName(each) == name; });
    if (!known) return UnknownFormat("the keyspace " + name + ", which this one does not know");
  }
  return absl::OkStatus();
}

absl::StatusOr<Format> Database::ReadFormat() const {
  ASSIGN_OR_RETURN(const std::optional<std::string> text, GetOwn(kFormatKey));
  if (!text) return Format{};
  ASSIGN_OR_RETURN(Format format, Format::Parse(*text));
  RETURN_IF_ERROR(CheckReadable(format));
  return format;
}

absl::StatusOr<store::CommitPosition> Database::RecoverPosition() const {
  ASSIGN_OR_RETURN(const std::optional<std::string> stored, GetOwn(kPositionKey));
  store::CommitPosition position = 0;
  if (stored) {
    const std::optional<store::CommitPosition> parsed = ParsePosition(*stored);
    if (!parsed) return UnreadableRecord();
    position = *parsed;
  }
  ASSIGN_OR_RETURN(const store::LedgerTail ledger,
                   ReadLedgerTail(*db_, keyspace(Keyspace::kLedger)));
  return std::max(position, ledger.last);
}

absl::StatusOr<std::optional<std::string>> Database::GetOwn(std::string_view key) const {
  std::string value;
  const rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), ToSlice(key), &value);
  if (status.IsNotFound()) return std::nullopt;
  if (!status.ok()) return Translate(status, "opening the database");
  return value;
}

// Point reads of an open database, through its cache.
class CachedReads {
 public:
  CachedReads(const Database& database, size_t cache_bytes)
      : database_(database), cache_(cache_bytes), last_position_(database.recovered_position()) {}

  RecordCache& cache() { return cache_; }
  // Of the newest commit that all reads see. The committer alone sets it, after the cache.
  store::CommitPosition last_position() const { return last_position_; }
  void SetLastPosition(store::CommitPosition position) { last_position_ = position; }

  // As of `snapshot`, which was taken when `as_of` was the last position, or null and kNewest.
  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace, std::string_view key,
                                                   const rocksdb::Snapshot* snapshot,
                                                   store::CommitPosition as_of) {
    if (!RecordCache::Keeps(keyspace)) {
      return GetRecord(database_.db(), database_.keyspace(keyspace), snapshot, key);
    }
    if (const auto cached = cache_.Find({keyspace, key}, as_of)) {
      if (cached->value == nullptr) return std::nullopt;
      return store::Record{*cached->value, cached->position, cached->position};
    }
    const store::CommitPosition read_at = std::min(as_of, last_position());
    auto record = GetRecord(database_.db(), database_.keyspace(keyspace), snapshot, key);
    if (!record.ok()) return record;
    RecordCache::Entry entry;
    if (*record) entry = {(*record)->position, std::make_shared<std::string>((*record)->value)};
    cache_.Learn({keyspace, key}, std::move(entry), read_at);
    return record;
  }

 private:
  const Database& database_;
  RecordCache cache_;
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
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return ScanRecords(database_.db(), database_.keyspace(keyspace), snapshot_, range);
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
        reads_(*database_, options.block_cache_bytes / kRecordCacheShare),
        ledger_(database_->recovered_ledger()),
        committer_([this] { Run(); }) {}

  // Before the first commit.
  absl::Status StartBeacon(const RocksDbOptions& options) {
    ASSIGN_OR_RETURN(beacon_, CommitBeacon::Start(
                                  database_->files(), options.directory, options.beacon_behind_max,
                                  [this] { return database_->DurableAt(reads_.last_position()); }));
    return absl::OkStatus();
  }

  ~CommittingStore() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    committer_.join();
  }

  store::Capabilities capabilities() const override {
    return {.atomic_batches = true,
            .fresh_scans = true,
            .snapshots = true,
            .commit_positions = true,
            .blocking_reads = false};
  }

  absl::StatusOr<std::optional<store::Record>> Get(Keyspace keyspace,
                                                   std::string_view key) const override {
    return reads_.Get(keyspace, key, nullptr, RecordCache::kNewest);
  }
  std::unique_ptr<store::Cursor> Scan(Keyspace keyspace, const store::Range& range) const override {
    return ScanRecords(database_->db(), database_->keyspace(keyspace), nullptr, range);
  }
  std::unique_ptr<store::Reader> Snapshot() const override {
    return std::make_unique<RocksDbSnapshot>(*database_, reads_);
  }
  store::CommitPosition LastPosition() const override { return reads_.last_position(); }

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
  void CommitGroupOf(std::unique_lock<std::mutex> lock);
  std::vector<Waiting> TakeGroup();
  std::vector<store::CommitResult> CommitAll(const std::vector<Waiting>& waiting);
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
  bool failed_ = false;  // a write did not succeed

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  bool stopping_ = false;
  bool committing_ = false;  // somebody is the committer
  std::deque<Waiting> queue_;
  size_t queue_bytes_ = 0;
  std::chrono::nanoseconds wait_average_{0};  // of the last dozen or so commits, for the disk
  // The queue holds something, nobody is the committer, and the disk is fast. Changed under the
  // mutex.
  std::atomic<bool> work_waits_ = false;

  std::unique_ptr<CommitBeacon> beacon_;
  std::thread committer_;  // last: it uses all the others
};

thread_local const CommittingStore* CommittingStore::joined_here = nullptr;

void CommittingStore::Commit(store::WriteBatch batch, store::CommitCallback done) {
  const size_t bytes = BytesOf(batch);
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
    }
  }
  if (wake_committer) changed_.notify_one();
  if (done == nullptr) return;
  store::CommitResult refused;
  refused.status = Error(ErrorReason::kOverloaded, "Too many writes are waiting.");
  CallNested(*this, [refused = std::move(refused), done = std::move(done)] { done(refused); });
}

void CommittingStore::Run() {
  while (true) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !committing_ && (stopping_ || !queue_.empty()); });
    if (queue_.empty()) return;
    CommitGroupOf(std::move(lock));
  }
}

void CommittingStore::CommitOneGroup() {
  std::unique_lock lock(mutex_);
  if (committing_ || queue_.empty()) return;
  CommitGroupOf(std::move(lock));
}

void CommittingStore::Leave() {
  joined_here = nullptr;
  changed_.notify_one();
}

// Commits what waits, up to a group's size, and calls back. REQUIRES: nobody is the committer, and
// the queue is not empty.
void CommittingStore::CommitGroupOf(std::unique_lock<std::mutex> lock) {
  committing_ = true;
  work_waits_ = false;
  std::vector<Waiting> group = TakeGroup();
  lock.unlock();
  const WaitClock wait_clock;
  std::vector<store::CommitResult> results = CommitAll(group);
  const std::chrono::nanoseconds waited = wait_clock.Waited();
  for (size_t i = 0; i < group.size(); ++i) {
    // Taken out, so that what a callback holds goes with its call and not with the group.
    const store::CommitCallback done = std::move(group[i].done);
    done(std::move(results[i]));
  }
  lock.lock();
  committing_ = false;
  wait_average_ += (waited - wait_average_) / 8;
  work_waits_ = !queue_.empty() && DiskIsFast();
  // A thread that has joined asks again by itself.
  const bool wake_committer = !queue_.empty() && (joined_here != this || !work_waits_);
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

std::vector<store::CommitResult> CommittingStore::CommitAll(const std::vector<Waiting>& waiting) {
  std::vector<store::CommitResult> results;
  results.reserve(waiting.size());
  if (failed_) {
    store::CommitResult refused;
    refused.status = Error(ErrorReason::kStoreUnavailable,
                           "The store takes no writes since one failed; it must be opened again.");
    results.assign(waiting.size(), refused);
    return results;
  }
  size_t bytes = 0;
  for (const Waiting& each : waiting) bytes += each.bytes;
  CommitGroup group(database_->db(), database_->keyspaces(), reads_.cache(), reads_.last_position(),
                    ledger_, database_->age_clock().Now(), bytes);
  const auto now = database_->age_clock().SteadyNow();
  for (const Waiting& each : waiting) {
    results.push_back(TooLate(each.batch, now) ? DroppedTooLate() : group.Add(each.batch));
  }
  if (group.empty()) return results;

  const rocksdb::Status status = group.Write();
  if (status.ok()) {
    ledger_ = group.ledger();
    reads_.SetLastPosition(group.last_position());
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
  for (rocksdb::ColumnFamilyHandle* keyspace : database_->keyspaces()) {
    const rocksdb::Status status =
        database_->db().CompactRange(options, keyspace, nullptr, nullptr);
    if (!status.ok()) return Translate(status, "compacting");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::Open(const RocksDbOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Database> database, Database::Open(options));
  auto store = std::make_unique<CommittingStore>(std::move(database), options);
  RETURN_IF_ERROR(store->StartBeacon(options));
  return store;
}

}  // namespace rocks
}  // namespace strata::engines
