// A file system under RocksDB that fails when it is told to.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace strata::engines::rocks {

// The machine's file system, but the write-ahead log's appends or syncs fail as long as a switch is
// on. Thread-safe.
class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FaultFileSystem() : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "strata.fault"; }

  std::atomic<bool> fail_log_syncs = false;
  std::atomic<bool> fail_log_appends = false;
  std::atomic<int64_t> log_syncs = 0;  // how many were tried

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    rocksdb::IOStatus status = target()->NewWritableFile(name, options, result, debug);
    if (status.ok() && name.ends_with(".log"))
      *result = std::make_unique<LogFile>(std::move(*result), *this);
    return status;
  }

 private:
  class LogFile final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    LogFile(std::unique_ptr<rocksdb::FSWritableFile>&& file, FaultFileSystem& owner)
        : rocksdb::FSWritableFileOwnerWrapper(std::move(file)), owner_(owner) {}

    using rocksdb::FSWritableFileOwnerWrapper::Append;
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (owner_.fail_log_appends) return rocksdb::IOStatus::IOError("append failed by the test");
      return FSWritableFileOwnerWrapper::Append(data, options, debug);
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      ++owner_.log_syncs;
      if (owner_.fail_log_syncs) return rocksdb::IOStatus::IOError("sync failed by the test");
      return FSWritableFileOwnerWrapper::Sync(options, debug);
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* debug) override {
      return Sync(options, debug);
    }

   private:
    FaultFileSystem& owner_;
  };
};

}  // namespace strata::engines::rocks
