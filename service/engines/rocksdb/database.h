// The RocksDB database under a store: its directory, files and format, opened or refused.
#pragma once

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "schemas/base/age_clock.h"
#include "schemas/store/ledger_block.h"
#include "schemas/store/store.h"
#include "service/engines/rocksdb/background_writes.h"
#include "service/engines/rocksdb/commit_beacon.h"
#include "service/engines/rocksdb/commit_group.h"
#include "service/engines/rocksdb/data_directory.h"
#include "service/engines/rocksdb/expiry_filter.h"
#include "service/engines/rocksdb/format.h"
#include "service/engines/rocksdb/keyspace_handles.h"
#include "service/engines/rocksdb/log_file_system.h"
#include "service/engines/rocksdb/rocksdb_store.h"

namespace strata::engines::rocks {

// An open database and all that it stands on, in the order in which they must be made; they go in
// the reverse order. Thread-safe but for what says otherwise.
class Database {
 public:
  // As RocksDbStore::Open. A ballast (ballast.h) is given up if there may be too little room
  // without.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const RocksDbOptions& options);
  ~Database();

  rocksdb::DB& db() const { return *db_; }
  const KeyspaceHandles& keyspaces() const { return keyspaces_; }
  rocksdb::ColumnFamilyHandle* keyspace(store::Keyspace keyspace) const {
    return keyspaces_[keyspace];
  }
  // Makes the keyspaces that the batch puts into and the database lacks, durably: a build that does
  // not know one refuses the database by its name from then on. On one thread at a time. TryAgain:
  // nothing was begun, as RocksDB awaits room. Another error is RocksDB's; the database may take no
  // more writes then.
  rocksdb::Status MakeKeyspacesFor(const store::WriteBatch& batch);
  // Whether it lacks none of them.
  bool HasKeyspacesFor(const store::WriteBatch& batch) const;
  LogFileSystem& files() const { return *files_; }
  const DataDirectory& directory() const { return directory_; }
  BackgroundWrites& background_writes() const { return *background_writes_; }
  const Clock& age_clock() const { return age_clock_; }
  // Of the last commit that the database holds.
  store::CommitPosition recovered_position() const { return recovered_position_; }
  // Where its ledger ends.
  const store::LedgerTail& recovered_ledger() const { return recovered_ledger_; }
  // From now on the block cache takes at most so many. What is beyond and not in use goes at once.
  void ResizeBlockCache(size_t bytes);
  // Begins to write what memory holds into tables.
  void BeginFlush();
  // Goes on after a background write for which there was no room, if there was one. Where that
  // fails anew, it may wait until EndBackgroundWork: RocksDB 7.8 was seen to wait for a flush that
  // none of its threads did. (By its source, BackgroundFlush leaves one in the queue that is begun
  // when there is an error and resuming has ended.)
  void Resume();
  // From now on there are neither writes nor background writes; for closing.
  void EndBackgroundWork();
  // What the beacon may vouch for when the commits up to `position` are durable. On one thread.
  Durable DurableAt(store::CommitPosition position);

 private:
  Database(DataDirectory directory, std::shared_ptr<LogFileSystem> files, const Clock& clock)
      : directory_(std::move(directory)),
        files_(std::move(files)),
        age_clock_(clock),
        expiry_(age_clock_) {}

  using WalMode = rocksdb::WALRecoveryMode;

  // That the batch puts into; each once.
  std::vector<store::Keyspace> MissingFor(const store::WriteBatch& batch) const;
  absl::Status OpenFiles(const RocksDbOptions& options);
  // REQUIRES: CheckKeyspaces went before.
  rocksdb::Status OpenWith(const RocksDbOptions& options, WalMode mode, bool read_only);
  rocksdb::ColumnFamilyDescriptor FamilyOf(store::Keyspace keyspace) const;
  // Those that the database lacks, at once: after each call RocksDB writes down the options of all
  // that there is and reads them back, which takes longer than the rest. Not while it awaits room.
  rocksdb::Status MakeKeyspaces(std::span<const store::Keyspace> keyspaces);
  absl::Status CheckTornTail(const RocksDbOptions& options);
  absl::Status CheckReached(store::CommitPosition position) const;
  absl::Status ReplaceLostBeacon(const RocksDbOptions& options);
  void CloseFiles();
  // What each keyspace had written to the disk besides the log: its part of write amplification.
  void LogWritten() const;
  absl::Status CheckKeyspaces(const RocksDbOptions& options);
  absl::StatusOr<Format> ReadFormat() const;
  absl::StatusOr<store::CommitPosition> RecoverPosition() const;
  absl::StatusOr<std::optional<std::string>> GetOwn(std::string_view key) const;
  std::vector<rocksdb::ColumnFamilyHandle*> Families() const;

  const DataDirectory directory_;
  const std::shared_ptr<LogFileSystem> files_;
  const AgeClock age_clock_;
  const ExpiryFilter expiry_;
  std::unique_ptr<rocksdb::Env> env_;
  std::shared_ptr<rocksdb::Cache> cache_;
  std::shared_ptr<BackgroundWrites> background_writes_;  // of db_, if that is open for writing
  std::unique_ptr<rocksdb::DB> db_;
  // RocksDB asserts that its files are as it left them when it is resumed (db_impl.cc, ResumeImpl
  // of 7.8), so no keyspace is made meanwhile, nor is it resumed once one could not be made.
  std::mutex making_or_resuming_;
  std::set<std::string, std::less<>> families_found_;  // in the database, before it was opened
  rocksdb::ColumnFamilyHandle* default_family_ = nullptr;
  KeyspaceHandles keyspaces_;
  std::optional<Durable> durable_;  // by the beacon; nothing: it was lost
  store::CommitPosition recovered_position_ = 0;
  store::LedgerTail recovered_ledger_;
  // Of the manifest, as it was when the keyspaces' files had been changed so often.
  Durable manifest_;
  uint64_t manifest_changes_ = 0;
};

}  // namespace strata::engines::rocks
