#include "service/engines/rocksdb/disk_guard.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include "schemas/base/error.h"
#include "service/observability/log.h"

namespace strata::engines::rocks {
namespace {

using observability::LogLevel;

constexpr uint64_t kMiB = uint64_t{1} << 20;

int64_t Signed(uint64_t bytes) {
  return static_cast<int64_t>(
      std::min<uint64_t>(bytes, std::numeric_limits<int64_t>::max() / 16));  // room for sums
}

}  // namespace

absl::StatusOr<DiskSpace> SpaceAt(const std::string& path) {
  struct statvfs info = {};
  if (statvfs(path.c_str(), &info) != 0) {
    return Error(ErrorReason::kStoreUnavailable, "The free space of " + path + " cannot be read: " +
                                                     std::generic_category().message(errno) + ".");
  }
  return DiskSpace{uint64_t{info.f_bavail} * info.f_frsize,
                   uint64_t{info.f_blocks} * info.f_frsize};
}

uint64_t DefaultReserve(uint64_t total_bytes) {
  return std::clamp(total_bytes / 20, 256 * kMiB, 4096 * kMiB);
}

DiskGuard::DiskGuard(uint64_t reserve_bytes, FreeBytes free_bytes, OwedBytes owed_bytes)
    : reserve_(Signed(reserve_bytes)),
      free_bytes_(std::move(free_bytes)),
      owed_bytes_(std::move(owed_bytes)) {
  Look();
}

void DiskGuard::Look() {
  int64_t written = 0;
  const int64_t owed = Signed(owed_bytes_());
  {
    // Before it is asked what is free: what is written meanwhile counts twice rather than never.
    const std::lock_guard lock(mutex_);
    written = written_;
  }
  const absl::StatusOr<uint64_t> free_bytes = free_bytes_();
  if (!free_bytes.ok()) return;
  const std::lock_guard lock(mutex_);
  free_ = Signed(*free_bytes);
  owed_ = owed;
  written_at_look_ = written;
  const int64_t left = Left();
  if (!closed_ && reserve_ > 0 && left < reserve_) {
    closed_ = true;
    Log("the disk is nearly full: writes are refused");
  } else if (closed_ && left >= reserve_ + reserve_ / 10) {
    closed_ = false;
    Log("the disk has room again: writes are taken");
  }
}

absl::Status DiskGuard::Admit(size_t bytes, bool removal) {
  if (reserve_ == 0) return absl::OkStatus();
  const std::lock_guard lock(mutex_);
  const int64_t left = Left() - Signed(bytes);
  if (removal) {
    if (left < reserve_ / 2) return DiskFull();
  } else {
    if (!closed_ && left < reserve_) {
      closed_ = true;
      Log("the disk is nearly full: writes are refused");
    }
    if (closed_) return DiskFull();
  }
  admitted_ += Signed(bytes);
  return absl::OkStatus();
}

void DiskGuard::Written(size_t bytes) {
  if (reserve_ == 0) return;
  const std::lock_guard lock(mutex_);
  written_ += Signed(bytes);
}

absl::Status DiskGuard::Ready() const {
  const std::lock_guard lock(mutex_);
  return closed_ ? DiskFull() : absl::OkStatus();
}

bool DiskGuard::IsNear() const {
  const std::lock_guard lock(mutex_);
  return Left() < 4 * reserve_;
}

// What is free less what is owed, and what was admitted since or not written by then. What is owed
// no more was written since, and is not free any longer. REQUIRES: the mutex is held.
int64_t DiskGuard::Left() const {
  return free_ - std::max(owed_, Signed(owed_bytes_())) - (admitted_ - written_at_look_);
}

absl::Status DiskGuard::DiskFull() const {
  const int64_t left = std::max<int64_t>(0, Left());
  return Full("the disk is nearly full: " + std::to_string(left >> 20) +
              " MiB are free, and a reserve of " + std::to_string(reserve_ >> 20) +
              " MiB is kept; nothing was written, and reads go on");
}

absl::Status DiskGuard::NoRoomForMemory() const {
  const std::lock_guard lock(mutex_);
  return Full(
      "the disk had no room for what memory holds, and the server takes no write until it has; "
      "nothing "
      "was written, and reads go on");
}

// REQUIRES: the mutex is held.
absl::Status DiskGuard::Full(const std::string& message) const {
  return Error(ErrorReason::kDiskFull, message)
      .With("free", std::max<int64_t>(0, Left()))
      .With("reserve", reserve_);
}

void DiskGuard::Log(const char* what) const {
  observability::Log(closed_ ? LogLevel::kError : LogLevel::kInfo, what,
                     {{"free_mib", Left() >> 20}, {"reserve_mib", reserve_ >> 20}});
}

}  // namespace strata::engines::rocks
