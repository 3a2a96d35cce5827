#include "service/engines/rocksdb/log_file_system.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "service/engines/rocksdb/data_directory.h"
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
class Log final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  Log(std::unique_ptr<rocksdb::FSWritableFile>&& file, std::shared_ptr<std::atomic<bool>> ahead)
      : FSWritableFileOwnerWrapper(std::move(file)), ahead_(std::move(ahead)) {}

  void PrepareWrite(size_t offset, size_t size, const rocksdb::IOOptions& options,
                    rocksdb::IODebugContext* debug) override {
    if (*ahead_) FSWritableFileOwnerWrapper::PrepareWrite(offset, size, options, debug);
  }

 private:
  const std::shared_ptr<std::atomic<bool>> ahead_;
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
  const IOStatus status = target()->NewWritableFile(path, options, result, debug);
  if (!status.ok() || !NameIn(path).ends_with(".log")) return status;
  *result = std::make_unique<Log>(std::move(*result), logs_ahead_);
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
