#include "service/engines/rocksdb/background_writes.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

namespace strata::engines::rocks {
namespace {

// RocksDB's limit is of all its tables together, and one that a flush passes ends all writes. With
// so much on both sides of the comparison only compactions are held to it.
constexpr uint64_t kSlackBytes = uint64_t{256} << 20;

}  // namespace

BackgroundWrites::BackgroundWrites(rocksdb::Env* env,
                                   std::shared_ptr<rocksdb::WriteBufferManager> memory)
    : table_files_(rocksdb::NewSstFileManager(env)), memory_(std::move(memory)) {}

void BackgroundWrites::Limit(uint64_t free_bytes, uint64_t kept_bytes) {
  const uint64_t left = free_bytes - std::min(free_bytes, MemoryBytes());
  const uint64_t slack = kSlackBytes + kept_bytes;
  table_files_->SetCompactionBufferSize(kept_bytes + slack);
  table_files_->SetMaxAllowedSpaceUsage(table_files_->GetTotalSize() + left + slack);
}

std::map<std::string, TableBytes> BackgroundWrites::Written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

void BackgroundWrites::OnBackgroundError(rocksdb::BackgroundErrorReason reason,
                                         rocksdb::Status* error) {
  switch (reason) {
    case rocksdb::BackgroundErrorReason::kFlushNoWAL:  // a table, whose records are in the log
      if (error->IsNoSpace()) ++flushes_without_room_;
      break;
    case rocksdb::BackgroundErrorReason::kCompaction:
      break;
    default:
      other_failed_ = true;
  }
}

void BackgroundWrites::OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/,
                                            rocksdb::Status /*error*/, bool* auto_recovery) {
  *auto_recovery = false;
  if (resumes_) awaits_room_ = true;
}

void BackgroundWrites::OnCompactionBegin(rocksdb::DB* /*database*/,
                                         const rocksdb::CompactionJobInfo& job) {
  uint64_t bytes = 0;
  for (const std::string& input : job.input_files) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(input, error);
    if (!error) bytes += size;
  }
  const std::lock_guard lock(mutex_);
  bytes_by_job_[job.job_id] = bytes;
  Add();
}

void BackgroundWrites::OnTableFileCreated(const rocksdb::TableFileCreationInfo& table) {
  const std::lock_guard lock(mutex_);
  TableBytes& written = written_[table.cf_name];
  const bool compacted = table.reason == rocksdb::TableFileCreationReason::kCompaction;
  (compacted ? written.compacted : written.flushed) += table.file_size;
  const auto found = bytes_by_job_.find(table.job_id);  // not of a flush
  if (found != bytes_by_job_.end()) found->second -= std::min(found->second, table.file_size);
  Add();
}

void BackgroundWrites::OnCompactionCompleted(rocksdb::DB* /*database*/,
                                             const rocksdb::CompactionJobInfo& job) {
  const std::lock_guard lock(mutex_);
  bytes_by_job_.erase(job.job_id);
  Add();
}

// REQUIRES: the mutex is held.
void BackgroundWrites::Add() {
  uint64_t bytes = 0;
  for (const auto& [job, each] : bytes_by_job_) bytes += each;
  compactions_bytes_ = bytes;
}

}  // namespace strata::engines::rocks
