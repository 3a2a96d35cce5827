// What RocksDB will write without being asked again: tables of what memory holds, and compactions,
// which write all their tables anew before they drop the old ones, and of which RocksDB begins each
// without a look at the disk.
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/sst_file_manager.h>
#include <rocksdb/write_buffer_manager.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace strata::engines::rocks {

// What went into tables of one keyspace.
struct TableBytes {
  uint64_t flushed = 0;    // out of memory
  uint64_t compacted = 0;  // written anew
};

// Thread-safe.
class BackgroundWrites final : public rocksdb::EventListener {
 public:
  BackgroundWrites(rocksdb::Env* env, std::shared_ptr<rocksdb::WriteBufferManager> memory);

  // For the database's options, beside this as a listener.
  const std::shared_ptr<rocksdb::SstFileManager>& table_files() const { return table_files_; }

  // At most so much of memory is still to be written.
  uint64_t MemoryBytes() const { return memory_->memory_usage(); }
  // The same, and by compactions that are under way.
  uint64_t Outstanding() const { return compactions_bytes_ + MemoryBytes(); }

  // Since the database was opened, by keyspace.
  std::map<std::string, TableBytes> Written() const;

  // From now on a compaction is begun only if it, and what memory holds, leave `kept_bytes` of the
  // `free_bytes` that there are; to be said again whenever that changes. Never said: all are begun.
  void Limit(uint64_t free_bytes, uint64_t kept_bytes);

  // There was no room for a background write: if it was a flush, RocksDB takes no more writes until
  // it is resumed; if it was a compaction, it asks for room before the next. It is not left to
  // resume itself: it does so on a thread of its own, and closing waits for ever for one that ends
  // as closing begins (error_handler.cc of 7.8: an error that does not end writes is cleared
  // without waking whoever waits for that).
  bool awaits_room() const { return awaits_room_; }
  // As it is resumed, so that what stops it anew is not missed; and true if that failed.
  void SetAwaitsRoom(bool awaits) { awaits_room_ = awaits; }
  // From now on it is not to be resumed.
  void ResumeNoMore() { resumes_ = awaits_room_ = false; }

  // Flushes for which there was no room, since the database was opened.
  uint64_t flushes_without_room() const { return flushes_without_room_; }
  // It was resumed when there had been so many.
  void ResumedAfter(uint64_t flushes) { resumed_after_ = flushes; }
  // Whether RocksDB takes no writes, because of such a flush, until it is resumed.
  bool writes_wait() const { return flushes_without_room_ != resumed_after_; }
  // Whether a write that failed so was refused before it was begun, for the same reason: nothing of
  // it is stored. RocksDB tells of each error before any write fails for it, so if all that went
  // wrong are flushes and compactions, it is no write's own. (That a log is closed is written into
  // the manifest once the write is in it: an error of the manifest may be a write's own.)
  bool RefusedForRoom(const rocksdb::Status& write) const {
    return write.IsNoSpace() && flushes_without_room_ > 0 && !other_failed_;
  }

  void OnBackgroundError(rocksdb::BackgroundErrorReason reason, rocksdb::Status* error) override;
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason reason, rocksdb::Status error,
                            bool* auto_recovery) override;
  void OnCompactionBegin(rocksdb::DB* database, const rocksdb::CompactionJobInfo& job) override;
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& table) override;
  void OnCompactionCompleted(rocksdb::DB* database, const rocksdb::CompactionJobInfo& job) override;

 private:
  void Add();

  const std::shared_ptr<rocksdb::SstFileManager> table_files_;
  const std::shared_ptr<rocksdb::WriteBufferManager> memory_;
  std::atomic<uint64_t> compactions_bytes_ = 0;  // of all jobs
  std::atomic<bool> awaits_room_ = false;
  std::atomic<bool> resumes_ = true;
  std::atomic<uint64_t> flushes_without_room_ = 0;
  std::atomic<uint64_t> resumed_after_ = 0;
  std::atomic<bool> other_failed_ = false;  // neither a flush nor a compaction

  mutable std::mutex mutex_;  // guards what follows
  std::map<int, uint64_t> bytes_by_job_;
  std::map<std::string, TableBytes> written_;
};

}  // namespace strata::engines::rocks
