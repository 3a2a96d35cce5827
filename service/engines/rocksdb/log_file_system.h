// The file system under RocksDB: logs get their size ahead, and what is missing from one is damage.
//
// RocksDB allocates a log's space ahead but lets its size grow with each write, so that every
// fdatasync has to write the file's inode too. With the size set ahead it does not: 105 instead of
// 155 us on the disk this was measured on (bench/README.md). What was allocated and not written
// reads as zeros, which RocksDB's log reader skips; a log that is closed in order is cut to what
// was written.
//
// Logs are written past the kernel's page cache (O_DIRECT), where the file system lets them: nobody
// reads what the cache would keep, and copying into it and writing back from it cost an update that
// is alone a tenth of its time. A page of a log is written again with each append to it, as it is
// by way of the cache.
//
// What is allocated ahead is also written ahead, with zeros (log_ahead.h).
//
// Where little is left of the disk nothing is allocated or written ahead: what is free is then what
// writes may take.
//
// It skips zeros in the midst of a log or a manifest too, where they are a page that was lost, and
// what stood there would be missing without a word. So each log is looked through before RocksDB
// reads it (log_shape.h), and from the first gap on RocksDB is given a broken record instead, which
// it treats as it treats any damage.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>

namespace strata::engines::rocks {

class LogFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  explicit LogFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target)
      : FileSystemWrapper(target) {}

  // Whether logs' space is allocated and written ahead from now on; it is until this is said.
  // Thread-safe.
  void AllocateLogsAhead(bool ahead) { *logs_ahead_ = ahead; }

  static const char* kClassName() { return "strata.LogFileSystem"; }
  const char* Name() const override { return kClassName(); }

  rocksdb::FileOptions OptimizeForLogWrite(const rocksdb::FileOptions& file_options,
                                           const rocksdb::DBOptions& options) const override;
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& source, const std::string& renamed,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  const std::shared_ptr<std::atomic<bool>> logs_ahead_ = std::make_shared<std::atomic<bool>>(true);
};

}  // namespace strata::engines::rocks
