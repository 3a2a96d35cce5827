#include "service/engines/rocksdb/log_file_system.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "service/engines/rocksdb/data_directory.h"
#include "service/engines/rocksdb/log_ahead.h"
#include "service/engines/rocksdb/log_shape.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {
namespace {

using rocksdb::IOStatus;

std::string_view NameIn(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// A file up to `end`, and after that a record that cannot be.
class BrokenOff final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  BrokenOff(std::unique_ptr<rocksdb::FSSequentialFile>&& file, uint64_t end)
      : FSSequentialFileOwnerWrapper(std::move(file)), end_(end), broken_(BrokenRecordAt(end)) {}

  IOStatus Read(size_t count, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                char* scratch, rocksdb::IODebugContext* debug) override {
    if (at_ < end_) {
      const auto size = static_cast<size_t>(std::min<uint64_t>(count, end_ - at_));
      const IOStatus status =
          FSSequentialFileOwnerWrapper::Read(size, options, result, scratch, debug);
      if (!status.ok() || result->size() < size) return status;
      at_ += size;
      if (size == count) return status;
      if (result->data() != scratch) std::memcpy(scratch, result->data(), size);
      const size_t more = broken_.copy(scratch + size, count - size, 0);
      at_ += more;
      *result = rocksdb::Slice(scratch, size + more);
      return status;
    }
    const size_t size = at_ - end_ < broken_.size() ? broken_.copy(scratch, count, at_ - end_) : 0;
    at_ += size;
    *result = rocksdb::Slice(scratch, size);
    return IOStatus::OK();
  }
  IOStatus Skip(uint64_t count) override {
    at_ += count;
    return FSSequentialFileOwnerWrapper::Skip(count);
  }

 private:
  // No record of length 0 has this type, nor this checksum.
  static std::string BrokenRecordAt(uint64_t end) {
    const uint64_t left = kLogBlockBytes - end % kLogBlockBytes;
    std::string broken(left < kLogHeaderBytes ? left : 0, '\0');
    broken.append(kLogHeaderBytes - 1, '\0').append(1, '\xFF');
    return broken;
  }

  const uint64_t end_;
  const std::string broken_;
  uint64_t at_ = 0;
};

// A log whose space is allocated ahead as long as there is enough of it.
class Log : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  Log(std::unique_ptr<rocksdb::FSWritableFile>&& file, std::shared_ptr<std::atomic<bool>> ahead)
      : FSWritableFileOwnerWrapper(std::move(file)), ahead_(std::move(ahead)) {}

  void SetPreallocationBlockSize(size_t size) override {
    FSWritableFileOwnerWrapper::SetPreallocationBlockSize(std::min(size, kAheadBytesMax));
  }
  void PrepareWrite(size_t offset, size_t size, const rocksdb::IOOptions& options,
                    rocksdb::IODebugContext* debug) override {
    if (*ahead_) FSWritableFileOwnerWrapper::PrepareWrite(offset, size, options, debug);
  }

 private:
  // RocksDB asks for a tenth more than a memtable, 35 MiB: on a busy server, that much of the disk
  // is taken by what the newest log does not hold yet.
  static constexpr size_t kAheadBytesMax = size_t{8} << 20;

  const std::shared_ptr<std::atomic<bool>> ahead_;
};

// A log over a file that takes whole blocks alone. It is appended to anywhere: the block that is
// not full is written again, with what has come since, and zeros after that.
class DirectLog final : public Log {
 public:
  // `files` has the file at `path`, and outlives this.
  DirectLog(std::unique_ptr<rocksdb::FSWritableFile>&& file, rocksdb::FileSystem& files,
            const std::string& path, const std::shared_ptr<std::atomic<bool>>& ahead)
      : Log(std::move(file), ahead),
        zeros_(files, path, ahead),
        block_bytes_(std::max(kPageBytes, target()->GetRequiredBufferAlignment())) {
    Reserve(block_bytes_);
  }

  // Writes the first block, empty: some file systems open a file so and then refuse its writes.
  IOStatus Try() {
    std::memset(buffer_.get(), 0, block_bytes_);
    return target()->PositionedAppend({buffer_.get(), block_bytes_}, 0, {}, nullptr);
  }

  // To RocksDB it is a log as any other: of a direct file it would ask what this one does.
  bool use_direct_io() const override { return false; }

  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  rocksdb::IODebugContext* debug) override {
    const size_t end = filled_ + data.size();
    const size_t whole = end / block_bytes_ * block_bytes_;
    const size_t written = whole == end ? whole : whole + block_bytes_;
    Reserve(written);
    std::memcpy(buffer_.get() + filled_, data.data(), data.size());
    std::memset(buffer_.get() + end, 0, written - end);
    zeros_.Reach(start_ + written);
    const IOStatus status =
        target()->PositionedAppend({buffer_.get(), written}, start_, options, debug);
    if (!status.ok()) return status;
    start_ += whole;
    filled_ = end - whole;
    if (whole > 0) std::memcpy(buffer_.get(), buffer_.get() + whole, filled_);
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  rocksdb::IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  uint64_t GetFileSize(const rocksdb::IOOptions& /*options*/,
                       rocksdb::IODebugContext* /*debug*/) override {
    return start_ + filled_;
  }
  IOStatus Close(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
    zeros_.End();
    const IOStatus cut = target()->Truncate(start_ + filled_, options, debug);
    const IOStatus closed = Log::Close(options, debug);
    return cut.ok() ? closed : cut;
  }

 private:
  // A file system's block: one that is written in part is read, or zeroed, before.
  static constexpr size_t kPageBytes = 4096;

  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };

  // Room for so many bytes, whole blocks; what is filled stays.
  void Reserve(size_t bytes) {
    if (bytes <= capacity_) return;
    capacity_ = std::max(bytes, 2 * capacity_);
    std::unique_ptr<char, Free> larger(
        static_cast<char*>(std::aligned_alloc(block_bytes_, capacity_)));
    if (larger == nullptr) throw std::bad_alloc();
    if (filled_ > 0) std::memcpy(larger.get(), buffer_.get(), filled_);
    buffer_ = std::move(larger);
  }

  LogAhead zeros_;
  const size_t block_bytes_;
  std::unique_ptr<char, Free> buffer_;  // begins with the block that is not full
  size_t capacity_ = 0;
  uint64_t start_ = 0;  // where in the file that block is
  size_t filled_ = 0;   // of it
};

}  // namespace

rocksdb::FileOptions LogFileSystem::OptimizeForLogWrite(const rocksdb::FileOptions& file_options,
                                                        const rocksdb::DBOptions& options) const {
  rocksdb::FileOptions made = target()->OptimizeForLogWrite(file_options, options);
  made.fallocate_with_keep_size = false;
  return made;
}

IOStatus LogFileSystem::NewSequentialFile(const std::string& path,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                          rocksdb::IODebugContext* debug) {
  const std::string_view name = NameIn(path);
  std::optional<uint64_t> gap;
  if (name.ends_with(".log") || ParseManifestName(name)) {
    const IOStatus status = FindLogGap(*target(), path, &gap);
    if (!status.ok()) return status;
  }
  const IOStatus status = target()->NewSequentialFile(path, options, result, debug);
  if (!status.ok() || !gap) return status;
  observability::Log(observability::LogLevel::kError, "a log of rocksdb lacks what was in it",
                     {{"file", name}, {"offset", static_cast<int64_t>(*gap)}});
  *result = std::make_unique<BrokenOff>(std::move(*result), *gap);
  return status;
}

IOStatus LogFileSystem::NewWritableFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSWritableFile>* result,
                                        rocksdb::IODebugContext* debug) {
  if (!NameIn(path).ends_with(".log")) {
    return target()->NewWritableFile(path, options, result, debug);
  }
  rocksdb::FileOptions direct_options = options;
  direct_options.use_direct_writes = true;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  if (target()->NewWritableFile(path, direct_options, &file, debug).ok()) {
    auto log = std::make_unique<DirectLog>(std::move(file), *target(), path, logs_ahead_);
    if (log->Try().ok()) {
      *result = std::move(log);
      return IOStatus::OK();
    }
  }
  const IOStatus status = target()->NewWritableFile(path, options, &file, debug);
  if (status.ok()) *result = std::make_unique<Log>(std::move(file), logs_ahead_);
  return status;
}

// The file CURRENT must not outlive a power loss that the manifest which it names does not.
IOStatus LogFileSystem::RenameFile(const std::string& source, const std::string& renamed,
                                   const rocksdb::IOOptions& options,
                                   rocksdb::IODebugContext* debug) {
  if (NameIn(renamed) == "CURRENT") {
    const IOStatus synced = SyncDirectory(*target(), renamed.substr(0, renamed.rfind('/')));
    if (!synced.ok()) return synced;
  }
  return target()->RenameFile(source, renamed, options, debug);
}

}  // namespace strata::engines::rocks
