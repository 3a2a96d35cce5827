#include "service/engines/rocksdb/log_ahead.h"

#include <algorithm>

namespace strata::engines::rocks {
namespace {

// Writes and syncs zeros from `from` to `to`.
bool WriteZeros(rocksdb::FSRandomRWFile& file, uint64_t from, uint64_t to) {
  static const std::string zeros(LogAhead::kStepBytesMax, '\0');
  const rocksdb::Slice step(zeros.data(), to - from);
  return file.Write(from, step, {}, nullptr).ok() && file.Sync({}, nullptr).ok();
}

}  // namespace

uint64_t LogAhead::Goal() const {
  return reached_ < kLogBytesMin ? reached_ : reached_ + std::min(kBytesMax, 4 * reached_);
}

void LogAhead::Reach(uint64_t end) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !writing_ || end <= zeros_from_; });
  reached_ = end;
  zeros_to_ = std::max(zeros_to_, end);
  if (ended_ || writing_ || Goal() == end || !IsDue()) return;
  if (thread_.joinable()) {
    changed_.notify_all();
  } else {
    thread_ = std::thread([this] { Run(); });
  }
}

void LogAhead::End() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void LogAhead::Run() {
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  bool good = files_.NewRandomRWFile(path_, {}, &file, nullptr).ok();
  std::unique_lock lock(mutex_);
  while (good) {
    changed_.wait(lock, [this] { return ended_ || (*wanted_ && IsDue()); });
    if (ended_) break;
    zeros_from_ = zeros_to_;
    zeros_to_ = std::min(Goal(), zeros_from_ + kStepBytesMax);
    writing_ = true;
    lock.unlock();
    good = WriteZeros(*file, zeros_from_, zeros_to_);
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
  ended_ = true;
  if (file != nullptr) file->Close({}, nullptr);
}

}  // namespace strata::engines::rocks
