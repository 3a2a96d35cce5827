// Refuses writes before the disk is full: RocksDB does not survive that it is.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strata::engines::rocks {

struct DiskSpace {
  uint64_t free_bytes = 0;  // for who has no privileges
  uint64_t total_bytes = 0;
};

// Of the file system of `path`. STORE_UNAVAILABLE.
absl::StatusOr<DiskSpace> SpaceAt(const std::string& path);

// 5 % of the file system, at least 256 MiB, at most 4 GiB.
uint64_t DefaultReserve(uint64_t total_bytes);

// Compares what is free with a reserve. Below it writes are refused, and removals go on down to
// half of it; above 1.1 times the reserve writes are taken again.
//
// What is owed, to be written without being asked again, counts as taken from the disk, and between
// two looks what is admitted does, so a burst closes the guard before the next look would.
// Thread-safe.
class DiskGuard {
 public:
  using FreeBytes = std::function<absl::StatusOr<uint64_t>()>;
  using OwedBytes = std::function<uint64_t()>;

  // `free_bytes` is asked in Look, by the caller's thread; `owed_bytes`, which is quick, at each
  // call. A reserve of 0 refuses nothing. Looks once.
  DiskGuard(uint64_t reserve_bytes, FreeBytes free_bytes, OwedBytes owed_bytes);

  // To be called each second, and more often where IsNear. If it cannot be told what is free, what
  // was told last holds.
  void Look();
  // Whether less than four times the reserve is left.
  bool IsNear() const;

  // OK: these bytes may be written, and Written is called once they are, or will not be. DISK_FULL,
  // with what is free and the reserve.
  absl::Status Admit(size_t bytes, bool removal);
  void Written(size_t bytes);

  // DISK_FULL while writes are refused.
  absl::Status Ready() const;
  // DISK_FULL: a write that was admitted is refused, because what memory holds has no room.
  absl::Status NoRoomForMemory() const;

  uint64_t reserve_bytes() const { return static_cast<uint64_t>(reserve_); }

 private:
  int64_t Left() const;
  absl::Status DiskFull() const;
  absl::Status Full(const std::string& message) const;
  void Log(const char* what) const;

  const int64_t reserve_;
  const FreeBytes free_bytes_;
  const OwedBytes owed_bytes_;

  mutable std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  // At the last look.
  int64_t free_ = 0;
  int64_t owed_ = 0;
  // Bytes since the start.
  int64_t admitted_ = 0;
  int64_t written_ = 0;
  int64_t written_at_look_ = 0;
};

}  // namespace strata::engines::rocks
