#include "service/engines/rocksdb/database.h"

#if __has_include(<rocksdb/advanced_cache.h>)  // where later releases have what a cache can do
#include <rocksdb/advanced_cache.h>
#endif
#include <rocksdb/convenience.h>

#include <algorithm>

#include "schemas/base/error.h"
#include "schemas/base/status_macros.h"
#include "service/engines/rocksdb/ballast.h"
#include "service/engines/rocksdb/driver.h"
#include "service/engines/rocksdb/log_file_system.h"
#include "service/engines/rocksdb/log_shape.h"
#include "service/engines/rocksdb/record_format.h"
#include "service/engines/rocksdb/tuning.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {

using observability::Log;
using observability::LogLevel;
using store::Keyspace;

namespace {

// What opening writes besides the tables that the log's records go into: a manifest, a new log.
constexpr uint64_t kOpeningBytes = uint64_t{16} << 20;

// Of all log files, with what was allocated ahead; as much as can be told.
uint64_t LogBytes(rocksdb::FileSystem& files, const std::string& directory) {
  const rocksdb::IOOptions options;
  std::vector<std::string> names;
  if (!files.GetChildren(directory, options, &names, nullptr).ok()) return 0;
  uint64_t bytes = 0;
  for (const std::string& name : names) {
    uint64_t size = 0;
    if (!name.ends_with(".log")) continue;
    if (files.GetFileSize(directory + "/" + name, options, &size, nullptr).ok()) bytes += size;
  }
  return bytes;
}

// Gives up the ballast if opening may need its room: beforehand, because librocksdb, where it is
// built with assertions as Debian's is, aborts when opening finds no space.
void MakeRoom(const RocksDbOptions& options, rocksdb::FileSystem& files) {
  const absl::StatusOr<DiskSpace> space =
      options.disk_space ? options.disk_space() : SpaceAt(options.directory);
  const uint64_t needed = LogBytes(files, options.directory) + kOpeningBytes;
  if (!space.ok() || space->free_bytes >= needed) return;
  const bool given_up = Ballast(options.directory, options.ballast_bytes).GiveUp();
  Log(LogLevel::kWarning,
      given_up ? "the disk is full: the ballast is given up to open the data directory"
               : "the disk is full, and there is no ballast: the data directory may not open",
      {{"free_mib", static_cast<int64_t>(space->free_bytes >> 20)},
       {"needed_mib_max", static_cast<int64_t>(needed >> 20)}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const RocksDbOptions& options) {
  auto files = std::make_shared<LogFileSystem>(
      options.file_system != nullptr ? options.file_system : rocksdb::FileSystem::Default());
  ASSIGN_OR_RETURN(DataDirectory directory, DataDirectory::Take(options.directory, *files));
  MakeRoom(options, *files);
  std::unique_ptr<Database> database(
      new Database(std::move(directory), std::move(files), *options.clock));
  ASSIGN_OR_RETURN(database->durable_, ReadOrMakeBeacon(database->files(), options.directory));
  RETURN_IF_ERROR(database->OpenFiles(options));
  ASSIGN_OR_RETURN(Format format, database->ReadFormat());
  ASSIGN_OR_RETURN(database->recovered_position_, database->RecoverPosition());
  // A log file that is gone leaves nothing to stumble over.
  RETURN_IF_ERROR(database->CheckReached(database->recovered_position_));
  RETURN_IF_ERROR(database->ReplaceLostBeacon(options));
  const Format found = format;
  format.number = kFormatNumber;
  format.features.insert(options.features.begin(), options.features.end());
  if (format != found) RETURN_IF_ERROR(WriteFormat(database->db(), format));
  ASSIGN_OR_RETURN(database->recovered_ledger_,
                   ReadLedgerTail(database->db(), database->keyspace(Keyspace::kLedger)));
  return database;
}

Database::~Database() { CloseFiles(); }

absl::Status Database::OpenFiles(const RocksDbOptions& options) {
  env_ = rocksdb::NewCompositeEnv(files_);
  cache_ = BlockCache(BlockCacheShare(options.block_cache_bytes));
  RETURN_IF_ERROR(CheckKeyspaces(options));
  rocksdb::Status status = OpenWith(options, WalMode::kAbsoluteConsistency, false);
  if (status.IsCorruption()) {
    RETURN_IF_ERROR(CheckTornTail(options));
    status = OpenWith(options, WalMode::kPointInTimeRecovery, false);
  }
  if (status.ok()) return absl::OkStatus();
  return Translate(status, "opening the data directory " + options.directory);
}

rocksdb::Status Database::OpenWith(const RocksDbOptions& options, WalMode mode, bool read_only) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, DefaultOptions(cache_));
  std::vector<Keyspace> opened;
  std::vector<Keyspace> missing;
  for (const Keyspace keyspace : store::kAllKeyspaces) {
    if (families_found_.contains(store::KeyspaceName(keyspace))) {
      families.push_back(FamilyOf(keyspace));
      opened.push_back(keyspace);
    } else if (!read_only && !store::TraitsOf(keyspace).made_when_used) {
      // A database of an earlier build lacks it. Who only looks makes none, and none is made before
      // it is used where that build is to find its way back.
      missing.push_back(keyspace);
    }
  }
  rocksdb::DBOptions database_options = DatabaseOptions(env_.get(), cache_, options.open_files_max);
  database_options.wal_recovery_mode = mode;
  if (!read_only) {
    background_writes_ =
        std::make_shared<BackgroundWrites>(env_.get(), database_options.write_buffer_manager);
    database_options.sst_file_manager = background_writes_->table_files();
    database_options.listeners.push_back(background_writes_);
  }
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::Status status =
      read_only ? rocksdb::DB::OpenForReadOnly(database_options, options.directory, families,
                                               &handles, &db)
                : rocksdb::DB::Open(database_options, options.directory, families, &handles, &db);
  if (!status.ok()) return status;
  db_.reset(db);
  default_family_ = handles.front();
  for (size_t i = 0; i < opened.size(); ++i) keyspaces_.Set(opened[i], handles[i + 1]);
  status = MakeKeyspaces(missing);
  if (!status.ok()) CloseFiles();
  return status;
}

rocksdb::ColumnFamilyDescriptor Database::FamilyOf(Keyspace keyspace) const {
  return {std::string(store::KeyspaceName(keyspace)), KeyspaceOptions(keyspace, cache_, &expiry_)};
}

rocksdb::Status Database::MakeKeyspaces(std::span<const Keyspace> keyspaces) {
  if (keyspaces.empty()) return rocksdb::Status::OK();
  // Resuming may take long.
  const std::unique_lock lock(making_or_resuming_, std::try_to_lock);
  if (!lock || background_writes_->awaits_room()) {
    return rocksdb::Status::TryAgain("no keyspace is made before there is room again");
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const Keyspace keyspace : keyspaces) families.push_back(FamilyOf(keyspace));
  std::vector<rocksdb::ColumnFamilyHandle*> made;
  rocksdb::Status status = db_->CreateColumnFamilies(families, &made);
  // Some may stand, and then are to be closed, although what comes after them failed.
  for (size_t i = 0; i < made.size(); ++i) keyspaces_.Set(keyspaces[i], made[i]);
  if (!status.ok()) background_writes_->ResumeNoMore();
  return status;
}

void Database::Resume() {
  const std::lock_guard lock(making_or_resuming_);
  if (!background_writes_->awaits_room()) return;
  background_writes_->SetAwaitsRoom(false);
  const uint64_t flushes = background_writes_->flushes_without_room();
  const rocksdb::Status status = db_->Resume();
  if (status.ok()) {
    background_writes_->ResumedAfter(flushes);
  } else {
    background_writes_->SetAwaitsRoom(true);
  }
  Log(status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
      status.ok() ? "rocksdb goes on after a background write that had no room"
                  : "rocksdb does not go on yet after a background write that had no room",
      {{"status", status.ToString()}});
}

void Database::EndBackgroundWork() { rocksdb::CancelAllBackgroundWork(db_.get(), /*wait=*/false); }

rocksdb::Status Database::MakeKeyspacesFor(const store::WriteBatch& batch) {
  return MakeKeyspaces(MissingFor(batch));
}

bool Database::HasKeyspacesFor(const store::WriteBatch& batch) const {
  return MissingFor(batch).empty();
}

std::vector<Keyspace> Database::MissingFor(const store::WriteBatch& batch) const {
  std::vector<Keyspace> missing;
  for (const store::Write& write : batch.writes()) {
    if (write.kind != store::WriteKind::kPut || keyspace(write.keyspace) != nullptr) continue;
    if (std::ranges::find(missing, write.keyspace) == missing.end()) {
      missing.push_back(write.keyspace);
    }
  }
  return missing;
}

// Of all that is made: "default" and the keyspaces.
std::vector<rocksdb::ColumnFamilyHandle*> Database::Families() const {
  std::vector<rocksdb::ColumnFamilyHandle*> families = {default_family_};
  for (const Keyspace each : store::kAllKeyspaces) {
    if (keyspace(each) != nullptr) families.push_back(keyspace(each));
  }
  return families;
}

// OK if all that is wrong with the database is that its log ends in a write that was never
// acknowledged. Looks without touching: a tolerant open for writing would drop the damaged log, and
// with it the evidence.
absl::Status Database::CheckTornTail(const RocksDbOptions& options) {
  const rocksdb::Status status = OpenWith(options, WalMode::kPointInTimeRecovery, true);
  if (!status.ok()) return Translate(status, "opening the data directory " + options.directory);
  const absl::StatusOr<store::CommitPosition> position = RecoverPosition();
  CloseFiles();
  RETURN_IF_ERROR(position.status());
  if (!durable_) {
    return Error(ErrorReason::kRecordCorrupt,
                 "The log is damaged or torn, and the commit beacon, which distinguishes the two, "
                 "is missing or damaged too. Nothing was changed. Put the file "
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
  for (rocksdb::ColumnFamilyHandle* handle : Families()) {
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

void Database::ResizeBlockCache(size_t bytes) { cache_->SetCapacity(bytes); }

void Database::BeginFlush() {
  rocksdb::FlushOptions options;
  options.wait = false;
  options.allow_write_stall = true;  // or it would wait for compactions
  const rocksdb::Status status = db_->Flush(options, Families());
  if (!status.ok()) {
    Log(LogLevel::kWarning, "rocksdb does not flush", {{"status", status.ToString()}});
  }
}

void Database::LogWritten() const {
  if (background_writes_ == nullptr) return;
  for (const auto& [keyspace, bytes] : background_writes_->Written()) {
    Log(LogLevel::kInfo, "tables written",
        {{"keyspace", keyspace},
         {"flushed_bytes", static_cast<int64_t>(bytes.flushed)},
         {"compacted_bytes", static_cast<int64_t>(bytes.compacted)}});
  }
}

void Database::CloseFiles() {
  if (db_ == nullptr) return;
  LogWritten();
  for (rocksdb::ColumnFamilyHandle* handle : Families()) db_->DestroyColumnFamilyHandle(handle);
  for (const Keyspace each : store::kAllKeyspaces) keyspaces_.Set(each, nullptr);
  const rocksdb::Status closed = db_->Close();
  if (!closed.ok()) {
    Log(LogLevel::kError, "rocksdb failed while closing", {{"status", closed.ToString()}});
  }
  db_.reset();
}

// A keyspace of a later build is a feature, and RocksDB opens no database without it.
absl::Status Database::CheckKeyspaces(const RocksDbOptions& options) {
  rocksdb::DBOptions database_options;
  database_options.env = env_.get();
  std::vector<std::string> names;
  // Of a new database there are none; what else is wrong, opening says better.
  if (!rocksdb::DB::ListColumnFamilies(database_options, options.directory, &names).ok()) {
    return absl::OkStatus();
  }
  for (std::string& name : names) {
    const bool known =
        name == rocksdb::kDefaultColumnFamilyName ||
        std::any_of(store::kAllKeyspaces.begin(), store::kAllKeyspaces.end(),
                    [&](Keyspace each) { return store::KeyspaceName(each) == name; });
    if (!known) return UnknownFormat("the keyspace " + name + ", which this one does not know");
    families_found_.insert(std::move(name));
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
  if (keyspace(Keyspace::kLedger) == nullptr) return position;  // it is not made yet
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

}  // namespace strata::engines::rocks
